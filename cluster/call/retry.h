/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where calls wait for their next attempt: for a time, on the engine's wheel, or until an endpoint
 * can take them. Those that their callers have a ticket for are counted, and there are only so many
 * of them. Part of a consumer's caller, on the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_RETRY_H
#define SPOKEI_CLUSTER_CALL_RETRY_H

#include "cluster/call/retry_state.h"
#include "core/engine/engine.h"

struct spokei_retry {
	struct spoke_engine *engine;
	void (*due)(struct spokei_course *course); /* its wait is over */
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
SPOKE_MUST_USE int spokei_retry_init(struct spokei_retry *retry, struct spoke_engine *engine,
				     uint32_t tasks_max, size_t bytes_max,
				     void (*due)(struct spokei_course *course));

/* Is there room for it as a ticket? `bytes`: what it keeps. */
static inline bool spokei_retry_has_room(const struct spokei_retry *retry, size_t bytes)
{
	return retry->tasks < retry->tasks_max && retry->bytes <= retry->bytes_max &&
	       bytes <= retry->bytes_max - retry->bytes;
}

/* The ticket there is longest; NULL: there is none. */
struct spokei_course *spokei_retry_oldest(const struct spokei_retry *retry);

/* It becomes a ticket, for which there is room. */
void spokei_retry_admit(struct spokei_retry *retry, struct spokei_course *course);

/* It waits for `pause_ns`, counted from the end of this turn, and not after a ticket's end. */
void spokei_retry_pause(struct spokei_retry *retry, struct spokei_course *course,
			uint64_t pause_ns);

/* It waits until some endpoint can take it, at most for what is left of its attempt's time. */
void spokei_retry_unready(struct spokei_retry *retry, struct spokei_course *course);

/* Some endpoint can take calls: those that wait for that are due, in their order. */
void spokei_retry_wake(struct spokei_retry *retry);

/* It waits no longer; with `over` it is no ticket any more either. */
void spokei_retry_leave(struct spokei_retry *retry, struct spokei_course *course, bool over);

/* One that waits, of either kind; NULL: none does. */
struct spokei_course *spokei_retry_any(const struct spokei_retry *retry);

#endif
