/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One-time tickets for users. A backend that knows its user asks for a ticket by RPC, and puts it
 * into the user's page; the page connects with it, once. A store holds a bounded number of them.
 */
#ifndef COMMAND_TICKETS_H
#define COMMAND_TICKETS_H

#include <spoke/comet.h>

#include <stdbool.h>
#include <stdint.h>

#define TICKET_TEXT 41u    /* bytes of a ticket, with the NUL */
#define TICKETS_MAX 65536u /* that are valid at one time */

struct tickets;

/* Makes a store; NULL: no memory. `life_ns`: how long a ticket is valid. */
struct tickets *tickets_new(uint64_t life_ns);
void tickets_free(struct tickets *tickets);

/* Writes a new ticket for a user. Returns 0, SPOKE_EINVAL (the user's id is empty or too long),
 * SPOKE_ELIMIT (there are too many) or SPOKE_ESYSTEM (no random numbers). */
int tickets_issue(struct tickets *tickets, struct spoke_span user, uint64_t now_ns,
		  char text[TICKET_TEXT]);

/* Uses a ticket up. Returns its user, valid until the next call; empty: the ticket is not valid. */
struct spoke_span tickets_use(struct tickets *tickets, struct spoke_span text, uint64_t now_ns);

#endif
