/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where calls wait for their next attempt: for a time, on the engine's wheel, or until an endpoint
 * can take them. Those that their callers have a ticket for are counted, and there are only so many
 * of them. Part of a consumer's caller, on the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_RETRY_QUEUE_H
#define SPOKEI_CLUSTER_CALL_RETRY_QUEUE_H

#include "cluster/call/retry_state.h"
#include "core/engine/engine.h"

struct spokei_retry_queue {
	struct spoke_engine *engine;
	void (*due)(struct spokei_retry_state *retry); /* its wait is over */
	unsigned timer_class;
	uint32_t tasks_max;
	size_t bytes_max;
	uint32_t tasks;
	size_t bytes;
	struct spoke_list tickets; /* the oldest first */
	struct spoke_list unready; /* the same */
	struct spoke_list pausing;
};

/* It must not be moved afterwards. Returns 0 or SPOKE_ELIMIT: the wheel has no class left. */
SPOKE_MUST_USE int spokei_retry_queue_init(struct spokei_retry_queue *queue,
					   struct spoke_engine *engine, uint32_t tasks_max,
					   size_t bytes_max,
					   void (*due)(struct spokei_retry_state *retry));

/* Is there room for it as a ticket? `bytes`: what it keeps. */
static inline bool spokei_retry_queue_has_room(const struct spokei_retry_queue *queue, size_t bytes)
{
	return queue->tasks < queue->tasks_max && queue->bytes <= queue->bytes_max &&
	       bytes <= queue->bytes_max - queue->bytes;
}

/* The ticket there is longest; NULL: there is none. */
struct spokei_retry_state *spokei_retry_queue_oldest(const struct spokei_retry_queue *queue);

/* It becomes a ticket, for which there is room. */
void spokei_retry_queue_admit(struct spokei_retry_queue *queue, struct spokei_retry_state *retry);

/* It waits for `pause_ns`, counted from the end of this turn, and not after a ticket's end. */
void spokei_retry_queue_pause(struct spokei_retry_queue *queue, struct spokei_retry_state *retry,
			      uint64_t pause_ns);

/* It waits until some endpoint can take it, at most for what is left of its attempt's time. */
void spokei_retry_queue_unready(struct spokei_retry_queue *queue, struct spokei_retry_state *retry);

/* Some endpoint can take calls: those that wait for that are due, in their order. */
void spokei_retry_queue_wake(struct spokei_retry_queue *queue);

/* It waits no longer; with `over` it is no ticket any more either. */
void spokei_retry_queue_leave(struct spokei_retry_queue *queue, struct spokei_retry_state *retry,
			      bool over);

/* One that waits, of either kind; NULL: none does. */
struct spokei_retry_state *spokei_retry_queue_any(const struct spokei_retry_queue *queue);

#endif
