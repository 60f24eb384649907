/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of tickets in the order of their making, which is that of their ends. A ticket is the
 * number of its cell, and 128 random bits, both in hexadecimal digits.
 */
#include "examples/spoke/tickets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NUMBER_LEN 8u /* digits of the cell's number */

struct ticket {
	uint64_t ends_ns;
	char text[TICKET_TEXT];
	uint8_t len; /* of the user; 0: used, or never made */
	char user[SPOKE_COMET_USER_MAX];
};

struct tickets {
	uint64_t life_ns;
	uint32_t first; /* cell of the oldest */
	uint32_t count;
	struct ticket used; /* copy of the one that was used last */
	struct ticket cells[TICKETS_MAX];
};

struct tickets *tickets_new(uint64_t life_ns)
{
	struct tickets *tickets = calloc(1, sizeof(*tickets));

	if (tickets)
		tickets->life_ns = life_ns;
	return tickets;
}

void tickets_free(struct tickets *tickets)
{
	free(tickets);
}

/* Forgets the oldest tickets that are used or over. */
static void sweep(struct tickets *tickets, uint64_t now_ns)
{
	while (tickets->count > 0) {
		struct ticket *oldest = &tickets->cells[tickets->first];

		if (oldest->len > 0 && oldest->ends_ns > now_ns)
			return;
		oldest->len = 0;
		tickets->first = (tickets->first + 1) % TICKETS_MAX;
		tickets->count--;
	}
}

int tickets_issue(struct tickets *tickets, struct spoke_span user, uint64_t now_ns,
		  char text[TICKET_TEXT])
{
	uint32_t cell;
	struct ticket *ticket;
	uint64_t random[2];

	if (user.len == 0 || user.len > SPOKE_COMET_USER_MAX)
		return SPOKE_EINVAL;
	sweep(tickets, now_ns);
	if (tickets->count == TICKETS_MAX)
		return SPOKE_ELIMIT;
	if (getentropy(random, sizeof(random)))
		return SPOKE_ESYSTEM;
	cell = (tickets->first + tickets->count++) % TICKETS_MAX;
	ticket = &tickets->cells[cell];
	ticket->ends_ns = now_ns + tickets->life_ns;
	ticket->len = (uint8_t)user.len;
	memcpy(ticket->user, user.data, user.len);
	(void)snprintf(ticket->text, sizeof(ticket->text), "%08x%016llx%016llx", (unsigned)cell,
		       (unsigned long long)random[0], (unsigned long long)random[1]);
	memcpy(text, ticket->text, TICKET_TEXT);
	return SPOKE_OK;
}

/* Compares in a time that does not depend on the place of the first difference. */
static bool is_same(const char *a, const char *b, size_t len)
{
	unsigned differs = 0;

	for (size_t i = 0; i < len; i++)
		differs |= (unsigned char)a[i] ^ (unsigned char)b[i];
	return differs == 0;
}

struct spoke_span tickets_use(struct tickets *tickets, struct spoke_span text, uint64_t now_ns)
{
	const struct spoke_span none = { NULL, 0 };
	char number[NUMBER_LEN + 1] = "";
	struct ticket *ticket;
	unsigned long cell;

	if (text.len != TICKET_TEXT - 1)
		return none;
	memcpy(number, text.data, NUMBER_LEN);
	cell = strtoul(number, NULL, 16);
	if (cell >= TICKETS_MAX)
		return none;
	ticket = &tickets->cells[cell];
	if (ticket->len == 0 || ticket->ends_ns <= now_ns ||
	    !is_same(ticket->text, text.data, text.len))
		return none;
	tickets->used = *ticket;
	ticket->len = 0;
	return (struct spoke_span){ tickets->used.user, tickets->used.len };
}
