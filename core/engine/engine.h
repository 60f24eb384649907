/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine as the rooms above it use it: where the turn stands, the queues of the turn, the
 * wheel. One order in every environment:
 *
 *   begin    the clock is read; who lives here is told when the machine has slept
 *   ready    sockets are read (the watches' own functions)
 *   turn     the wheel advances to the time of begin, never to now: what has arrived is read before
 *            anybody is judged; then what other threads posted; then `soon`: completions
 *   settle   the clock is read again if somebody is on `last` (arm this turn's timers, one write
 * per connection); then `dead`: frees
 *
 * A turn that is late (it began long after the wheel wanted it) goes round again without waiting,
 * at most LATE_ROUNDS times, until nothing new is ready, before its wheel moves: the first poll
 * after a stall may report only a part of the sockets that are ready. A wheel whose budget ran out
 * goes on in the next turns, a part in each and no rounds between, up to that same time of begin.
 */
#ifndef SPOKEI_CORE_ENGINE_ENGINE_H
#define SPOKEI_CORE_ENGINE_ENGINE_H

#include "core/base/env.h"
#include "core/base/histogram.h"
#include "core/base/log.h"
#include "core/engine/events.h"
#include "core/engine/sleep.h"
#include "core/engine/task.h"

#include <spoke/engine.h>
#include <spoke/signals.h>
#include <spoke/stats.h>

#define SPOKEI_ENGINE_LATE_ROUNDS 16u
#define SPOKEI_ENGINE_ENDERS 2        /* SIGTERM and SIGINT */
#define SPOKEI_ENGINE_SCRATCH 262144u /* bytes */

/* A class of the wheel, found again by its callback. */
struct spokei_engine_class {
	void (*due)(struct spoke_timer *timer, void *arg);
	unsigned wheel_class;
};

struct spoke_engine {
	const struct spoke_env *env; /* the only way out */
	struct spoke_wheel *wheel;   /* every timer of every subsystem */
	void *wheel_memory;
	size_t wheel_size;
	void *loop;           /* env->loop's */
	uint64_t begin_ns;    /* when this turn began */
	uint64_t settle_ns;   /* second reading of the clock, valid for tasks on `last` */
	bool settle_old;      /* users' code has run since */
	uint64_t due_ns;      /* when the wheel wanted to be advanced, as of the last settle */
	uint64_t wheel_ns;    /* up to where the wheel was to go when it moved last */
	uint64_t late_ns;     /* how late this turn began for that; 0: in time */
	uint64_t late_max_ns; /* from here on a turn is late: the option, or less by heed() */
	struct spokei_sleep sleep;
	void (*woke)(struct spoke_engine *engine); /* tells the roll that the machine slept */
	unsigned late_rounds; /* rounds this late turn has gone without moving the wheel */
	unsigned alarm_class;
	unsigned classes_count;
	struct spokei_engine_class classes[SPOKE_WHEEL_CLASSES_MAX];
	unsigned forks;               /* what the environment counted when the engine was made */
	bool native;                  /* the loop is the user's */
	bool running;                 /* inside run() or turn(), or on a thread of its own */
	bool inside;                  /* between begin and the end of turn, or in settle */
	bool doomed;                  /* freed by one of its callbacks: it goes when the run ends */
	bool ending;                  /* drained or freed: for ever */
	bool closing;                 /* ... and who joins the roll is closed, not drained */
	bool drained;                 /* ... and all had left, which ended a run */
	bool behind;                  /* the wheel's budget ran out before its work */
	atomic_bool stopping;         /* the run ends when this turn does; any thread */
	_Atomic(uintptr_t) runner;    /* the thread that turns it now, 0: none; a user's loop: the
				       * one that turned it last. Any thread reads it. */
	_Atomic(void *) thread;       /* of its own, to be joined; NULL: none */
	struct spoke_list soon;       /* completions: after the wheel */
	struct spoke_list last;       /* when the turn ends */
	struct spoke_list dead;       /* nothing dies inside a turn */
	struct spokei_mailbox posted; /* the only door from other threads */
	struct spoke_list roll; /* what lives here: struct spokei_member, see core/engine/roll.h */
	struct spoke_list retired;    /* members that are drained, and not freed */
	struct spokei_task drain;     /* tells those on the roll who do not know yet that it ends */
	struct spoke_alarm drain_end; /* when the rest is closed */
	struct spoke_list signals;    /* that are watched: struct spoke_signal */
	struct spoke_signal enders[SPOKEI_ENGINE_ENDERS]; /* of them, which drain the engine */
	uint64_t enders_ns;                               /* the timeout of that drain */
	bool ender_came;                                  /* one of them did */
	struct spokei_log log;
	struct spokei_events events;
	uint64_t stats[SPOKE_STAT_COUNT];
	/* SPOKEI_ENGINE_SCRATCH bytes, lent to whoever reads, until it returns. They begin with
	 * anything in them, so that pages nobody uses are never touched. */
	unsigned char *scratch;
	struct spoke_histogram latency; /* of calls that were answered */
};

/* Was the process forked since the engine was made, and is this the child? */
static inline bool spokei_engine_forked(const struct spoke_engine *engine)
{
	return engine->env->forks != NULL && *engine->env->forks != engine->forks;
}

/* Is the engine being drained or freed? Then nothing new is made on it: SPOKE_ECLOSED. */
static inline bool spokei_engine_ending(const struct spoke_engine *engine)
{
	return engine->ending;
}

/* The calling thread's number. */
static inline uintptr_t spokei_engine_self(const struct spoke_engine *engine)
{
	const struct spoke_env *env = engine->env;

	return env->threads ? env->threads->self(env->ctx) : 1;
}

/*
 * Is the caller on the thread on which the engine is running right now? On a loop of the user's
 * nobody knows when it runs: the thread that turned the engine last counts. Any thread.
 */
static inline bool spokei_engine_here(const struct spoke_engine *engine)
{
	return atomic_load_explicit(&engine->runner, memory_order_relaxed) ==
	       spokei_engine_self(engine);
}

/* Does the engine belong to another thread? It does from start() on, even if that thread has not
 * begun. */
static inline bool spokei_engine_elsewhere(const struct spoke_engine *engine)
{
	if (spokei_engine_here(engine))
		return false;
	return atomic_load_explicit(&engine->runner, memory_order_relaxed) != 0 ||
	       atomic_load(&engine->thread) != NULL;
}

static inline void spokei_count_by(struct spoke_engine *engine, enum spoke_stat stat, uint64_t n)
{
	engine->stats[stat] += n;
}

static inline void spokei_count(struct spoke_engine *engine, enum spoke_stat stat)
{
	engine->stats[stat]++;
}

/* A call was answered, so long after its beginning. */
static inline void spokei_engine_answered(struct spoke_engine *engine, uint64_t took_ns)
{
	spokei_histogram_add(&engine->latency, took_ns);
}

/* The time `by_ns` after `ns`; UINT64_MAX, never, if there is none. */
static inline uint64_t spokei_later(uint64_t ns, uint64_t by_ns)
{
	return by_ns < UINT64_MAX - ns ? ns + by_ns : UINT64_MAX;
}

/* Is this turn so late that some sockets may not have been read? Then it goes round again. */
static inline bool spokei_engine_late(const struct spoke_engine *engine)
{
	return engine->late_ns > engine->late_max_ns;
}

/* Is it so late that nobody may be judged by whether he used an interval of that length? */
static inline bool spokei_engine_late_for(const struct spoke_engine *engine, uint64_t interval_ns)
{
	return engine->late_ns > interval_ns / 2;
}

/* For tasks on `last`: the time, as of when the turn began to settle; read again if users' code has
 * run since, which may have taken long. */
static inline uint64_t spokei_engine_settled(struct spoke_engine *engine)
{
	if (SPOKEI_UNLIKELY(engine->settle_old)) {
		engine->settle_ns = engine->env->now(engine->env->ctx);
		engine->settle_old = false;
	}
	return engine->settle_ns;
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

static inline bool spokei_engine_has_tasks(const struct spoke_engine *engine)
{
	return !spokei_list_empty(&engine->soon) || !spokei_list_empty(&engine->last) ||
	       !spokei_list_empty(&engine->dead);
}

/* Folds what the wheel answers into spoke's errors. */
int spokei_engine_fold(int wheel_status);

/*
 * Something happened: remembers it, and writes it to the log, as INFO or, with an error, as WARN.
 * What comes from peers is escaped by the caller: spokei_log_escape().
 */
SPOKEI_PRINTF(3, 4)
void spokei_event(struct spoke_engine *engine, int error, const char *format, ...);

/* The same, of a user of the wheel. */
SPOKEI_PRINTF(4, 5)
void spokei_event_of(struct spoke_engine *engine, enum spoke_event_user user, int error,
		     const char *format, ...);

/*
 * The wheel's class with this callback, which is given the engine as `arg`; made when it is asked
 * for first. `name` is borrowed for the engine's life. Returns 0 or ELIMIT.
 */
int spokei_engine_class(struct spoke_engine *engine, const char *name,
			void (*due)(struct spoke_timer *timer, void *arg), unsigned *ret_class);

/*
 * Somebody on the engine judges by intervals as short as this: from now on a turn is late from half
 * of the shortest such interval on, and never later than the option says. 0 is no interval.
 */
void spokei_engine_note_interval(struct spoke_engine *engine, uint64_t interval_ns);

/* --- for the life of an engine (life.c) */

/* What the loop calls: the turn. */
extern const struct spoke_loop_up spokei_engine_up;

/* Makes the wheel at begin_ns, with the class of alarms. */
int spokei_engine_make_wheel(struct spoke_engine *engine,
			     const struct spoke_engine_options *options);

#endif
