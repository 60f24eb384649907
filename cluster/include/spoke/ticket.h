/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets: retries that continue after the call has ended. If the policy is failback and the first
 * attempt fails, the call ends with EDEFERRED and result->ticket identifies a task on the engine's
 * wheel. The task retries up to `retries` times, `retry.period` apart, until `retry.deadline`.
 *
 *     static void done(void *arg, const struct spoke_result *result)
 *     {
 *             if (result->error == SPOKE_EDEFERRED)
 *                     spoke_ticket_then(consumer, result->ticket, settled, arg);
 *     }
 *
 * Every ticket is settled exactly once. This is reported to the callback of spoke_ticket_then(), if
 * one is set, and to the consumer's option `settled`. All functions: the engine's thread.
 */
#ifndef SPOKE_TICKET_H
#define SPOKE_TICKET_H

#include <spoke/call.h>

SPOKE_BEGIN_DECLS

struct spoke_consumer;

/* Outcomes of a ticket. */
enum spoke_ticket_settlement {
	SPOKE_TICKET_SUCCESS, /* an attempt was answered */
	/* the last retry failed, or one failed with an error that retrying cannot fix */
	SPOKE_TICKET_EXHAUSTED,
	SPOKE_TICKET_EXPIRED,   /* retry.deadline has passed */
	SPOKE_TICKET_CANCELLED, /* by spoke_ticket_cancel() or spoke_call_cancel() */
	SPOKE_TICKET_REFUSED,   /* dropped to make room: failback.overflow=drop-oldest */
	SPOKE_TICKET_CLOSING,   /* the consumer was closed */
	/* An attempt may have run, and must not run twice, and no provider can tell: see "once",
	 * and REPEATS.md. */
	SPOKE_TICKET_UNKNOWN,
	/* The consumer was closed, and its journal has the ticket. The next consumer with that
	 * journal goes on with it, and settles it once more, under the same `id`. */
	SPOKE_TICKET_KEPT,
};

/* Returns the name in lower case, e.g. "exhausted"; NULL for other numbers. */
SPOKE_API const char *spoke_ticket_settlement_name(enum spoke_ticket_settlement settlement);

/* The outcome of a ticket; borrowed for the callback. */
struct spoke_ticket_result {
	struct spoke_ticket ticket;
	enum spoke_ticket_settlement settlement;
	uint32_t attempts;  /* including the first */
	uint64_t id;        /* the last 16 digits of "spoke.id" in its attempts */
	uint64_t lasted_ns; /* since the call began */
	/* The result of the last attempt. If the ticket did not succeed, its error is the reason:
	 * ECANCELED, ECLOSED, ELIMIT, ETIMEOUT, or that of the last attempt. Filters may have
	 * changed it. */
	const struct spoke_result *result;
};

/* Called once on the engine's thread when a ticket is settled; may call any function. */
typedef void (*spoke_ticket_done_fn)(void *arg, const struct spoke_ticket_result *settled);

/* A ticket that is not settled yet. */
struct spoke_ticket_state {
	uint64_t id;
	uint32_t attempts; /* begun, including the first */
	bool sending;      /* an attempt is in progress */
	int last_error;    /* error of the last attempt that ended */
	uint64_t next_ns;  /* time until the next attempt; 0 during one */
	uint64_t left_ns;  /* time until the deadline */
};

/* Copies the state of a ticket. Returns whether the ticket exists and is not settled. */
SPOKE_API bool spoke_ticket_ask(const struct spoke_consumer *consumer, struct spoke_ticket ticket,
				struct spoke_ticket_state *ret_state);

/* Sets the callback: `done` is called once when the ticket is settled, never inside this function.
 * Each ticket takes one callback. Returns 0, ENOENT (settled already, or no such ticket) or EEXIST
 * (there is one already). */
SPOKE_API SPOKE_MUST_USE int spoke_ticket_then(struct spoke_consumer *consumer,
					       struct spoke_ticket ticket,
					       spoke_ticket_done_fn done, void *arg);

/* Cancels a ticket, which is settled soon afterwards. An attempt that was already written may
 * still run. Returns whether there was such a ticket. */
SPOKE_API bool spoke_ticket_cancel(struct spoke_consumer *consumer, struct spoke_ticket ticket);

/* One entry of a list of tickets. */
struct spoke_ticket_info {
	struct spoke_ticket ticket;
	const char *method; /* borrowed from the method */
	struct spoke_ticket_state state;
};

/* Lists the tickets that are not settled, oldest first, at most `max`. Returns their total number.
 */
SPOKE_API size_t spoke_consumer_ticket_list(const struct spoke_consumer *consumer,
					    struct spoke_ticket_info *infos, size_t max);

/* Returns the number of tickets that are not settled, and writes the bytes of memory they hold.
 * `ret_bytes` may be NULL. */
SPOKE_API size_t spoke_consumer_tickets(const struct spoke_consumer *consumer, size_t *ret_bytes);

SPOKE_END_DECLS

#endif
