/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that go on after their callers were told. A call whose policy is failback and whose first
 * attempt failed ends with EDEFERRED, and result->ticket names what goes on: a task on the engine's
 * wheel that tries again, up to `retries` times, `retry.period` apart, until `retry.deadline`.
 *
 *     static void done(void *arg, const struct spoke_result *result)
 *     {
 *             if (result->error == SPOKE_EDEFERRED)
 *                     spoke_ticket_then(consumer, result->ticket, settled, arg);
 *     }
 *
 * Every ticket is settled once, and told to whoever asked for it by then, and to the consumer's
 * option `settled`. All of this belongs to the engine's thread.
 */
#ifndef SPOKE_TICKET_H
#define SPOKE_TICKET_H

#include <spoke/call.h>

SPOKE_BEGIN_DECLS

struct spoke_consumer;

enum spoke_ticket_settlement {
	SPOKE_TICKET_SUCCESS,   /* an attempt was answered */
	SPOKE_TICKET_EXHAUSTED, /* the last retry failed too, or one with an error that no other
				 * would mend */
	SPOKE_TICKET_EXPIRED,   /* retry.deadline has passed */
	SPOKE_TICKET_CANCELLED, /* by spoke_ticket_cancel() or spoke_call_cancel() */
	SPOKE_TICKET_REFUSED,   /* it had to make room: failback.overflow=drop-oldest */
	SPOKE_TICKET_CLOSING,   /* its consumer ended */
};

/* The name in small letters, as "exhausted"; NULL for none. */
SPOKE_API const char *spoke_ticket_settlement_name(enum spoke_ticket_settlement settlement);

/* How it went with a ticket; borrowed for the callback. */
struct spoke_ticket_result {
	struct spoke_ticket ticket;
	enum spoke_ticket_settlement settlement;
	uint32_t attempts;  /* with the first */
	uint64_t id;        /* what its attempts said in the attachment "spoke.id" */
	uint64_t lasted_ns; /* since the call */
	/* What the last attempt ended with; of a ticket that is not a success its error says why:
	 * ECANCELED, ECLOSED, ELIMIT, ETIMEOUT, or the last attempt's. Filters may have made
	 * something else of it. */
	const struct spoke_result *result;
};

typedef void (*spoke_ticket_done_fn)(void *arg, const struct spoke_ticket_result *settled);

/* A ticket that is not settled yet. */
struct spoke_ticket_state {
	uint64_t id;
	uint32_t attempts; /* begun, with the first */
	bool sending;      /* an attempt is under way */
	int last_error;    /* of the attempt that ended last */
	uint64_t next_ns;  /* until the next attempt; 0 while one is under way */
	uint64_t left_ns;  /* until its deadline */
};

/* Returns whether there is such a ticket that is not settled. */
SPOKE_API bool spoke_ticket_ask(const struct spoke_consumer *consumer, struct spoke_ticket ticket,
				struct spoke_ticket_state *ret_state);

/* Has `done` called once it is settled; never from here. One per ticket. Returns 0; ENOENT: it is
 * settled, or never was; EEXIST: there is one already. */
SPOKE_API SPOKE_MUST_USE int spoke_ticket_then(struct spoke_consumer *consumer,
					       struct spoke_ticket ticket,
					       spoke_ticket_done_fn done, void *arg);

/* Settles it, a little later. An attempt that is written already is run all the same. Returns
 * whether there was such a ticket. */
SPOKE_API bool spoke_ticket_cancel(struct spoke_consumer *consumer, struct spoke_ticket ticket);

/* One of those that wait, for whoever looks at all. */
struct spoke_ticket_info {
	struct spoke_ticket ticket;
	const char *method; /* borrowed: the method's */
	struct spoke_ticket_state state;
};

/* Those that are not settled, the oldest first, as many as there is room for. Returns how many
 * there are. */
SPOKE_API size_t spoke_consumer_ticket_list(const struct spoke_consumer *consumer,
					    struct spoke_ticket_info *infos, size_t max);

/* How many there are, and how many bytes they keep. `ret_bytes` may be NULL. */
SPOKE_API size_t spoke_consumer_tickets(const struct spoke_consumer *consumer, size_t *ret_bytes);

SPOKE_END_DECLS

#endif
