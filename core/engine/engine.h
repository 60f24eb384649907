/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine as the wings above it use it: the state of the turn, the queues of the turn, the
 * wheel. The order of a turn is the same in every environment:
 *
 *   begin    the clock is read; `first` runs; members are notified when the machine has slept
 *   ready    sockets are read (the functions of the watches)
 *            In the turn, sources that no descriptor tells are read first: core/engine/source.h
 *   turn     the wheel advances to the time of begin, never to now, so that arrived data is read
 *            before any timeout is checked; then posts of other threads; then completions
 *   settle   the clock is read again if there are tasks to settle (this turn's timers are armed,
 *            one write per connection, handshakes); then memory is freed
 *
 * A late turn (it began long after the wheel wanted it) polls again without waiting before its
 * wheel advances, because the first poll after a stall may report only some of the ready sockets.
 * It does so until a round serves no socket for the first time, at most LATE_ROUNDS times and for
 * at most late_max_ns, so a peer that never stops sending does not hold back the deadlines of
 * others. The wheel then advances to the begin of the first of these rounds. A wheel whose budget
 * ran out goes on in the next turns, a part in each and no extra rounds between, up to that same
 * time.
 *
 * Code outside of a turn, e.g. before the first one or in a user's loop, comes by public functions.
 * Each of them that reads a time reads the clock first: spokei_engine_refresh(), most of them by
 * spokei_engine_check(). Between turns the times are poisoned for AddressSanitizer, so a function
 * that forgets it is reported.
 */
#ifndef SPOKEI_CORE_ENGINE_ENGINE_H
#define SPOKEI_CORE_ENGINE_ENGINE_H

#include "core/engine/task.h"
#include "core/memory/buffer.h"
#include "timer/base.h"

#include <spoke/env.h>
#include <spoke/stats.h>

#define SPOKEI_ENGINE_LATE_ROUNDS 16u
#define SPOKEI_ENGINE_SCRATCH 262144u /* bytes */

struct spokei_log;
struct spokei_figures;
struct spokei_slow;
struct spoke_engine_options;
struct spoke_request;
struct spoke_loop_up;
struct spoke_timer;
struct spoke_wheel;

/* A function that runs first in each turn: right after the clock was read, before any descriptor is
 * read and before any other callback. It ends things in time even if the process was frozen:
 * timers fire too late for that, because the wheel advances after the descriptors are read.
 * Embedded in its owner, zero-initialised with `begin` set. */
struct spokei_early {
	struct spoke_list node; /* next == NULL: it does not run */
	/* The time is engine->begin_ns. May call users, which may call anything; may add and remove
	 * any such function. */
	void (*begin)(struct spokei_early *early);
};

/* The most recent events; the oldest is forgotten. */
struct spokei_events {
	uint64_t last;            /* number of the newest; 0: none */
	struct spoke_event *ring; /* SPOKE_EVENTS entries, number n at n % SPOKE_EVENTS */
};

/* The first member of struct spokei_engine_parts, which has the rest. */
struct spoke_engine {
	const struct spoke_env *env; /* the only way out */
	struct spoke_wheel *wheel;   /* holds every timer of every subsystem */
	void *wheel_memory;
	size_t wheel_size;
	void *loop;           /* of env->loop */
	uint32_t call_number; /* of the last call that filters were asked about */
	/* Number of this turn. The rounds of a late turn share one, and so do the parts of the
	 * wheel's work. */
	uint64_t turn;
	uint64_t turn_ns; /* when its first round began */
	/* In a turn: when this round began. Outside of one: when spokei_engine_refresh() read the
	 * clock. */
	uint64_t begin_ns;
	uint64_t settle_ns;   /* second clock reading, valid for tasks that settle */
	bool settle_old;      /* users' code has run since that reading */
	uint64_t due_ns;      /* when the wheel wanted to be advanced, as of the last settle */
	uint64_t wheel_ns;    /* target of the last advance of the wheel */
	uint64_t late_ns;     /* how late this turn began; 0: in time */
	uint64_t late_max_ns; /* from here on a turn is late */
	unsigned late_rounds; /* extra rounds of this late turn so far */
	uint64_t ran_ns;      /* when the round began in which the last request came */
	/* The method whose handler ran last in this round, and when it began, by the coarse clock;
	 * NULL: none did, or it is over. */
	const struct spokei_figures *handler;
	uint64_t handler_ns;
	/* The request for which user code runs now: its handler, or the callback of a call made for
	 * it. Calls that are made meanwhile are made for it. NULL: none. */
	struct spoke_request *request;
	uint64_t slow_loop_ns; /* a handler that holds the loop longer is reported */
	unsigned alarm_class;
	unsigned forks; /* forks counted when the engine was made ... */
	/* ... and now; the same variable if the environment does not count them */
	const unsigned *forks_now;
	bool native;          /* the loop is the user's */
	bool running;         /* inside run() or turn(), or on a thread of its own */
	bool inside;          /* between begin and the end of turn, or in settle */
	bool doomed;          /* freed by one of its callbacks: memory goes when the run ends */
	bool ending;          /* drained or freed: final */
	bool closing;         /* ... and members that join now are closed, not drained */
	bool drained;         /* ... and all members had left, which ended a run */
	bool behind;          /* the wheel's budget ran out before its work */
	bool looked;          /* this round may have begun without a poll of descriptors */
	bool late_told;       /* this late turn is counted; the wheel has not advanced since */
	bool crowded;         /* more than one descriptor was ready in the round before */
	atomic_bool stopping; /* the run ends when this turn does; any thread */
	_Atomic(uintptr_t) runner; /* the thread that runs a turn now, 0: none; for a user's loop
				      the thread that ran the last turn. Any thread reads it. */
	_Atomic(void *) thread;    /* its own thread, to be joined; NULL: none */
	struct spoke_list first;   /* struct spokei_early: run when the turn begins */
	struct spoke_list completions; /* tasks: run after the wheel */
	struct spoke_list settling;    /* tasks: run when the turn ends */
	struct spoke_list freeing;     /* tasks: run last, because nothing is freed inside a turn */
	struct spoke_list sources;     /* those that are awake: see core/engine/source.h */
	struct spokei_mailbox posted;  /* the only door from other threads */
	struct spoke_list members;     /* struct spokei_member, see core/engine/members.h */
	struct spoke_list retired;     /* members that are drained but not freed */
	struct spokei_task drain;      /* notifies new members of the drain */
	struct spoke_list signals;     /* watched signals: struct spoke_signal */
	struct spokei_log *log;
	struct spokei_events events;
	uint64_t stats[SPOKE_STAT_COUNT];
	/* SPOKEI_ENGINE_SCRATCH bytes, lent to a reader until it returns. They are not initialised,
	 * so that unused pages are never touched. */
	unsigned char *scratch;
	struct spokei_spares spares; /* memory of emptied output buffers, of all connections */
	struct spoke_list figures;   /* of methods: see core/engine/figures.h */
	struct spokei_slow *slow;    /* calls and requests: see there; NULL: none */
	uint64_t pool_told_ns;       /* time of the last event about a busy pool; 0: none */
	/* A sentence without an event, and the newest event when it was set. */
	uint64_t why_after;
	char why[SPOKE_EVENT_TEXT]; /* "": none */
	/* Until when a drain may serve requests of peers that go on to send them: until its limit.
	 * A drain without a limit has one for them. 0: there is no drain. */
	uint64_t drain_serves_ns;
};

/* Returns the options that the engine was made with, without their texts. */
const struct spoke_engine_options *spokei_engine_options(const struct spoke_engine *engine);

/* Returns whether this process is a child that was forked after the engine was made. */
static inline bool spokei_engine_forked(const struct spoke_engine *engine)
{
	return *engine->forks_now != engine->forks;
}

/* Returns whether the engine is being drained or freed. New objects are then refused with
 * SPOKE_ECLOSED. */
static inline bool spokei_engine_ending(const struct spoke_engine *engine)
{
	return engine->ending;
}

/* Returns the calling thread's number. */
static inline uintptr_t spokei_engine_self(const struct spoke_engine *engine)
{
	const struct spoke_env *env = engine->env;

	return env->threads ? env->threads->self(env->ctx) : 1;
}

/* Returns whether the caller is on the thread that runs the engine now. For a user's loop this is
 * the thread that ran the last turn. Any thread. */
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

/* Implements spokei_engine_refresh(). */
void spokei_engine_read_clock(struct spoke_engine *engine);

/* Reads the clock for code outside of a turn. In a turn the time stays that of its begin. */
static inline void spokei_engine_refresh(struct spoke_engine *engine)
{
	if (SPOKEI_UNLIKELY(!engine->inside))
		spokei_engine_read_clock(engine);
}

/* Returns 0 if the caller may use the engine and its objects, else EFORKED or ETHREAD. After
 * ETHREAD nothing of the engine may be touched. Any thread. Refreshes the time. */
SPOKE_MUST_USE static inline int spokei_engine_check(struct spoke_engine *engine)
{
	if (SPOKEI_UNLIKELY(spokei_engine_forked(engine)))
		return SPOKE_EFORKED;
	if (SPOKEI_UNLIKELY(spokei_engine_elsewhere(engine)))
		return SPOKE_ETHREAD;
	spokei_engine_refresh(engine);
	return SPOKE_OK;
}

/* For functions that return nothing: whether this one, which the sentence names, is called on
 * another thread than the engine's. Then it must do nothing; an event says so. Any thread.
 * Refreshes the time. */
SPOKE_MUST_USE bool spokei_engine_refuses(struct spoke_engine *engine, const char *function);

/* The same for functions that end an object. The thread that ran a user's loop may have ended. */
SPOKE_MUST_USE static inline bool spokei_engine_keeps(struct spoke_engine *engine,
						      const char *function)
{
	if (!engine->native)
		return spokei_engine_refuses(engine, function);
	spokei_engine_refresh(engine);
	return false;
}

static inline void spokei_count_by(struct spoke_engine *engine, enum spoke_stat stat, uint64_t n)
{
	engine->stats[stat] += n;
}

static inline void spokei_count(struct spoke_engine *engine, enum spoke_stat stat)
{
	engine->stats[stat]++;
}

/* Returns the time `by_ns` after `ns`; UINT64_MAX, never, if it overflows. */
static inline uint64_t spokei_later(uint64_t ns, uint64_t by_ns)
{
	return by_ns < UINT64_MAX - ns ? ns + by_ns : UINT64_MAX;
}

/* Returns whether this turn is so late that some sockets may not have been read. It then polls
 * again. */
static inline bool spokei_engine_late(const struct spoke_engine *engine)
{
	return engine->late_ns > engine->late_max_ns;
}

/* Returns whether a late turn has time for a further round, or a further read of one socket, before
 * timers fire. */
static inline bool spokei_engine_has_time(const struct spoke_engine *engine)
{
	return engine->env->now(engine->env->ctx) - engine->turn_ns < engine->late_max_ns;
}

/* Returns whether this turn is too late to check a peer against an interval of this length. */
static inline bool spokei_engine_late_for(const struct spoke_engine *engine, uint64_t interval_ns)
{
	return engine->late_ns > interval_ns / 2;
}

/* Returns the deadline of a message with this time left; UINT64_MAX: it has none. The deadline is
 * over if it is not after begin_ns. A message that is read in a late turn may have waited in the
 * socket for as long as the turn is late, and its sender may have given up. */
static inline uint64_t spokei_engine_deadline(const struct spoke_engine *engine, int64_t timeout_ms)
{
	const int64_t ns_per_ms = 1000000;
	uint64_t held_up_ns = spokei_engine_late(engine) ? engine->late_ns : 0;
	uint64_t left_ns;

	/* The times of a clock are below INT64_MAX. */
	if (timeout_ms <= 0 || timeout_ms > INT64_MAX / ns_per_ms)
		return UINT64_MAX;
	left_ns = (uint64_t)(timeout_ms * ns_per_ms);
	return engine->begin_ns + (left_ns > held_up_ns ? left_ns - held_up_ns : 0);
}

/* Returns the time for tasks that settle: the reading of settle, or a new one if users' code has
 * run since, which may have taken long. */
static inline uint64_t spokei_engine_settled(struct spoke_engine *engine)
{
	if (SPOKEI_UNLIKELY(engine->settle_old)) {
		engine->settle_ns = engine->env->now(engine->env->ctx);
		engine->settle_old = false;
	}
	return engine->settle_ns;
}

/* Has early->begin() called when a turn begins, each time. Does nothing if it is already. */
static inline void spokei_run_first(struct spoke_engine *engine, struct spokei_early *early)
{
	if (early->node.next == NULL)
		spokei_list_append(&engine->first, &early->node);
}

/* Ends that, also from within begin(). The memory may be freed then. */
static inline void spokei_run_first_end(struct spokei_early *early)
{
	if (early->node.next)
		spokei_list_remove(&early->node);
}

/* Has a completion run in this turn, after the wheel. */
static inline void spokei_run_soon(struct spoke_engine *engine, struct spokei_task *task)
{
	spokei_task_put(&engine->completions, task);
}

/* Has a task run when the turn ends. */
static inline void spokei_run_settling(struct spoke_engine *engine, struct spokei_task *task)
{
	spokei_task_put(&engine->settling, task);
}

/* Has a task run that frees memory, after all others of the turn. */
static inline void spokei_run_freeing(struct spoke_engine *engine, struct spokei_task *task)
{
	spokei_task_put(&engine->freeing, task);
}

static inline bool spokei_engine_has_tasks(const struct spoke_engine *engine)
{
	return !spokei_list_empty(&engine->completions) || !spokei_list_empty(&engine->settling) ||
	       !spokei_list_empty(&engine->freeing);
}

/* Converts the wheel's status codes to errors of spoke. */
int spokei_engine_fold(int wheel_status);

/* Records an event and writes it to the log, as INFO or, with an error, as WARN. The caller escapes
 * data from peers: spokei_log_escape(). */
SPOKEI_PRINTF(3, 4)
void spokei_event(struct spoke_engine *engine, int error, const char *format, ...);

/* The same, without an error, for changes of accepted connections: so many that they have a limit
 * of the log of their own. */
SPOKEI_PRINTF(2, 3)
void spokei_event_of_peer(struct spoke_engine *engine, const char *format, ...);

/* Returns the oldest event whose number is at least `number`; NULL: there is none yet. */
const struct spoke_event *spokei_events_find(const struct spoke_engine *engine, uint64_t number);

/* Returns the number of the newest event, for spokei_why_end(). */
uint64_t spokei_why_begin(const struct spoke_engine *engine);

/* Ends a function whose errors have a sentence: an error without an event since spokei_why_begin()
 * gets one of `what` and the error's own text. Returns the error. */
int spokei_why_end(struct spoke_engine *engine, uint64_t begun, int error, const char *what);

/* Sets the sentence of spoke_engine_why() until the next event, without an event: for refusals that
 * may be too many for the list of events. The caller escapes data from peers. */
SPOKEI_PRINTF(2, 3)
void spokei_why_set(struct spoke_engine *engine, const char *format, ...);

/* Sets the sentence to `what` and the text of an error; names the limit of timers if that is
 * reached. */
void spokei_why_explain(struct spoke_engine *engine, int error, const char *what);

/* The same for an event of a user of the wheel. */
SPOKEI_PRINTF(4, 5)
void spokei_event_of(struct spoke_engine *engine, enum spoke_event_user user, int error,
		     const char *format, ...);

/* Finds the wheel's class with this callback, which gets the engine as `arg`, or makes it. `name`
 * is borrowed for the engine's life. Returns 0 or ELIMIT. */
int spokei_engine_class(struct spoke_engine *engine, const char *name,
			void (*due)(struct spoke_timer *timer, void *arg), unsigned *ret_class);

/* Returns a number for a call: the next one, never 0. */
static inline uint32_t spokei_engine_number(struct spoke_engine *engine)
{
	if (++engine->call_number == 0)
		engine->call_number = 1;
	return engine->call_number;
}

#endif
