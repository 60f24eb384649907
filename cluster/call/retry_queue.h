/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a caller for calls that may take several attempts: the queue of calls that wait, the
 * memory of retry states, and the retry budget. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_RETRY_QUEUE_H
#define SPOKEI_CLUSTER_CALL_RETRY_QUEUE_H

#include "timer/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spoke_engine;
struct spoke_env;
struct spokei_key_values;
struct spokei_retry_state;

/*
 * The retry budget of a consumer: in any 10 s at most 100 retries plus a fifth of the calls that
 * begin in that time. Pure: the caller passes the time. On the engine's thread.
 */

#define SPOKEI_BUDGET_SLOT_NS UINT64_C(1000000000)
#define SPOKEI_BUDGET_SLOTS 11u /* that any 10 s may touch */

/* Zero-initialised. */
struct spokei_budget {
	uint64_t second; /* of the present slot */
	uint64_t end_ns; /* when that second ends */
	uint32_t slot;
	uint32_t calls[SPOKEI_BUDGET_SLOTS];
	uint32_t retries[SPOKEI_BUDGET_SLOTS];
	uint64_t calls_sum;   /* of the last 10 slots, with the present one */
	uint64_t retries_sum; /* of all slots, so retries older than 10 s may count */
};

/* Moves on to the present time, and forgets older slots. Time that goes back is ignored. */
void spokei_budget_roll(struct spokei_budget *budget, uint64_t now_ns);

/* Counts a call that has begun. */
static inline void spokei_budget_called(struct spokei_budget *budget, uint64_t now_ns)
{
	if (now_ns >= budget->end_ns)
		spokei_budget_roll(budget, now_ns);
	budget->calls[budget->slot]++;
	budget->calls_sum++;
}

/* Takes a retry from the budget. Returns false if there is none left. */
bool spokei_budget_take(struct spokei_budget *budget, uint64_t now_ns);

/* Memory for retry states: blocks of one size are kept for the next calls. Owned by a caller. */

/* Zero-initialised. */
struct spokei_retry_blocks {
	void *first; /* each block begins with the address of the next one */
	unsigned count;
};

/* Frees the blocks that are kept. */
void spokei_retry_blocks_fini(struct spokei_retry_blocks *blocks, const struct spoke_env *env);

/*
 * The calls that wait for their next attempt: for a time, on the engine's wheel, or until an
 * endpoint can take them. Tickets among them are counted and limited. Part of a consumer's caller,
 * on the engine's thread.
 */

/* The wait of a call is over. `error`: SPOKE_OK, or ELIMIT because the wheel had no room for it. */
typedef void (*spokei_retry_due_fn)(struct spokei_retry_state *retry, int error);

struct spokei_retry_queue {
	struct spoke_engine *engine;
	spokei_retry_due_fn due;
	unsigned timer_class; /* of calls that wait */
	unsigned watch_class; /* of attempts that are watched */
	uint32_t tasks_max;   /* tickets */
	size_t bytes_max;     /* of tickets */
	bool drops_oldest;    /* a full queue drops its oldest ticket for a new one */
	uint32_t tasks;
	size_t bytes;
	struct spoke_list tickets; /* the oldest first */
	struct spoke_list unready; /* the same */
	struct spoke_list pausing;
};

/* The queue must not be moved afterwards. Returns 0 or SPOKE_ELIMIT: the wheel has no class left.
 */
SPOKE_MUST_USE int spokei_retry_queue_init(struct spokei_retry_queue *queue,
					   struct spoke_engine *engine, spokei_retry_due_fn due);

/* Changes the limits of tickets; those that are there stay. */
void spokei_retry_queue_limit(struct spokei_retry_queue *queue,
			      const struct spokei_key_values *values);

/* Is there room for one more ticket that keeps as many bytes? */
static inline bool spokei_retry_queue_has_room(const struct spokei_retry_queue *queue, size_t bytes)
{
	return queue->tasks < queue->tasks_max && queue->bytes <= queue->bytes_max &&
	       bytes <= queue->bytes_max - queue->bytes;
}

/* Returns the oldest ticket, or NULL. */
struct spokei_retry_state *spokei_retry_queue_oldest(const struct spokei_retry_queue *queue);

/* Counts a call as a ticket; there must be room for it. */
void spokei_retry_queue_admit(struct spokei_retry_queue *queue, struct spokei_retry_state *retry);

/* Has a call pause for `pause_ns` from the end of this turn on, and at most until its deadline. */
void spokei_retry_queue_pause(struct spokei_retry_queue *queue, struct spokei_retry_state *retry,
			      uint64_t pause_ns);

/* Has a call wait until some endpoint can take it, at most for the time of one attempt. */
void spokei_retry_queue_unready(struct spokei_retry_queue *queue, struct spokei_retry_state *retry);

/* Watches a call whose attempts are open: it is due `after_ns` from the end of this turn on, unless
 * it leaves the queue before. It is not one of the calls that wait. */
void spokei_retry_queue_watch(struct spokei_retry_queue *queue, struct spokei_retry_state *retry,
			      uint64_t after_ns);

/* Some endpoint can take calls: all that wait for one are due, in their order. */
void spokei_retry_queue_wake(struct spokei_retry_queue *queue);

/* Ends the wait of a call, if it waits or is watched; with `over` it is no ticket any more either.
 */
void spokei_retry_queue_leave(struct spokei_retry_queue *queue, struct spokei_retry_state *retry,
			      bool over);

/* Returns a call that waits, or NULL. */
struct spokei_retry_state *spokei_retry_queue_any(const struct spokei_retry_queue *queue);

#endif
