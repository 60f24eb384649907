/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets in the journal of their consumer: the records of a ticket; and tickets of earlier
 * processes, which go on. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_JOURNALLED_H
#define SPOKEI_CLUSTER_CALL_JOURNALLED_H

#include "cluster/journal/journal.h"

#include <spoke/ticket.h>

struct spokei_retry_state;
struct spoke_method;

/* The entry of a ticket; owned by its retry state. */
struct spokei_journalled {
	struct spokei_journal_ticket ticket;
	struct spokei_retry_state *retry;
	uint64_t begun_ns;  /* when the call began, since 1970 */
	uint64_t lasts_ns;  /* from then to the deadline */
	uint64_t period_ns; /* as it was when the call began */
	uint32_t retries;
	uint32_t flags;   /* of OPEN */
	uint32_t cleared; /* so many attempts may begin: the journal knows of them */
	uint32_t noted;   /* attempts in its last TRIED; the last one may not have begun */
	bool unsure;      /* its last record says that an attempt may have run */
};

/* Must a request that may have run not be sent again? Its ticket may know it from an earlier
 * process. */
bool spokei_journalled_is_once(const struct spokei_retry_state *retry);

/* Writes a call that is about to become a ticket to the journal of its caller. Returns false if it
 * must not become one: its ending has the reason. */
bool spokei_journalled_begin(struct spokei_retry_state *retry);

/* Writes why the journal has not taken a ticket, by the error. Returns the length of the text. */
size_t spokei_journalled_print(const struct spokei_journal *journal, int error, char *out,
			       size_t size);

/* A ticket's attempt is due. Returns true if it has to wait for the journal:
 * spokei_retry_resume() follows, or the next pause ends. */
bool spokei_journalled_holds(struct spokei_retry_state *retry);

/* An attempt of a ticket has begun, or has ended. */
void spokei_journalled_sent(const struct spokei_retry_state *retry);
void spokei_journalled_attempt_ended(const struct spokei_retry_state *retry);

/* A ticket ends, or its consumer does. Returns the settlement. */
enum spoke_ticket_settlement spokei_journalled_end(struct spokei_retry_state *retry,
						   enum spoke_ticket_settlement settlement);

/* Goes on with a ticket of an earlier process. Returns 0; SPOKE_ECORRUPT: it cannot be understood,
 * and is ended; or SPOKE_ENOMEM. *ret_unknown: it may have run, and must not run again;
 * *ret_expired: its deadline has passed. Both are settled soon. */
SPOKE_MUST_USE int spokei_journalled_restore(struct spoke_method *method,
					     const struct spokei_replay_ticket *ticket,
					     bool *ret_unknown, bool *ret_expired);

/* put() and waited() of struct spokei_journal_up. */
int spokei_journalled_put(struct spokei_journal_ticket *ticket, struct spokei_buffer *out);
void spokei_journalled_waited(struct spokei_journal_ticket *ticket, int error);

#endif
