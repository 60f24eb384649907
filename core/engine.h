/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine as the rooms above it use it: where the turn stands, the queues of the turn, the
 * wheel. One order in every environment:
 *
 *   begin    the clock is read
 *   ready    sockets are read (the watches' own functions)
 *   turn     the wheel advances to the time of begin, never to now: what has arrived is read before
 *            anybody is judged; then what other threads posted; then `soon`: completions
 *   settle   the clock is read again if somebody is on `last` (arm this turn's timers, one write
 * per connection); then `dead`: frees
 *
 * A turn that is late (it began long after the wheel wanted it) goes round again without waiting,
 * at most LATE_ROUNDS times, until nothing new is ready, before its wheel moves: the first poll
 * after a stall may report only a part of the sockets that are ready.
 */
#ifndef SPOKEI_ENGINE_H
#define SPOKEI_ENGINE_H

#include "core/env.h"
#include "core/task.h"

#include <spoke/engine.h>

#define SPOKEI_ENGINE_LATE_ROUNDS 16u

struct spoke_engine {
	const struct spoke_env *env; /* the only way out */
	struct spoke_wheel *wheel;   /* every timer of every subsystem */
	void *wheel_memory;
	size_t wheel_size;
	void *loop;           /* env->loop's */
	uint64_t begin_ns;    /* when this turn began */
	uint64_t settle_ns;   /* second reading of the clock, valid for tasks on `last` */
	uint64_t due_ns;      /* when the wheel wanted to be advanced, as of the last settle */
	uint64_t late_ns;     /* how late this turn began for that; 0: in time */
	uint64_t late_max_ns; /* option: from here on a turn is late */
	unsigned late_rounds; /* rounds this late turn has gone without moving the wheel */
	unsigned alarm_class;
	bool running;                 /* inside run() or turn() */
	bool behind;                  /* the wheel's budget ran out before its work */
	struct spoke_list soon;       /* completions: after the wheel */
	struct spoke_list last;       /* when the turn ends */
	struct spoke_list dead;       /* nothing dies inside a turn */
	struct spokei_mailbox posted; /* the only door from other threads */
};

/* Is this turn so late that nobody may be judged by the time that has passed? */
static inline bool spokei_engine_late(const struct spoke_engine *engine)
{
	return engine->late_ns > engine->late_max_ns;
}

static inline void spokei_engine_soon(struct spoke_engine *engine, struct spokei_task *task)
{
	spokei_task_put(&engine->soon, task);
}

static inline void spokei_engine_last(struct spoke_engine *engine, struct spokei_task *task)
{
	spokei_task_put(&engine->last, task);
}

static inline void spokei_engine_dead(struct spoke_engine *engine, struct spokei_task *task)
{
	spokei_task_put(&engine->dead, task);
}

/* Folds what the wheel answers into spoke's errors. */
int spokei_engine_fold(int wheel_status);

#endif
