/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: one event loop, one timing wheel, one thread. Objects of an engine are used on its
 * thread only, except through functions whose comment says "any thread". On another thread, e.g. in
 * a handler of the pool, functions that return an error return ETHREAD while the engine runs: use
 * spoke_engine_post(), or a future of <spoke/future.h>.
 *
 * Callbacks run on the engine's thread, never from inside the function that registers them, and may
 * call any function.
 *
 * A forked child must make engines of its own, because inherited engines work for the parent alone.
 * In the child, functions that return an error return EFORKED. There spoke_engine_free() frees
 * memory and descriptors without disturbing the parent.
 */
#ifndef SPOKE_ENGINE_H
#define SPOKE_ENGINE_H

#include <spoke/env.h>
#include <spoke/error.h>
#include <spoke/wheel.h>

SPOKE_BEGIN_DECLS

struct spoke_engine;

/* Options of an engine. 0 or NULL in a field selects its default. */
struct spoke_engine_options {
	const struct spoke_env *env; /* borrowed for the engine's life; NULL: the host's */
	/* A loop of the user (struct ev_loop *), borrowed; NULL: its own. An ev_prepare of priority
	 * EV_MINPRI ends each turn: a prepare watcher of the user that makes calls has a higher
	 * priority. */
	void *native;
	uint64_t tick_ns;    /* tick of the wheel; 0: 1 ms */
	uint64_t timers_max; /* timers armed at one time; 0: 16,777,216 */
	/* Turns that start this late first read each socket once before timers fire, for this long
	 * at most. 0: 50 ms. */
	uint64_t late_ns;
	/* A line of the log names a handler that keeps the loop from other work for longer than
	 * this. 0: 100 ms; UINT64_MAX: never. */
	uint64_t slow_loop_ns;
	/* Busy polling: how long the engine polls after each turn before it sleeps. Events that
	 * arrive meanwhile save the time of waking a thread, about 20 us. 0: the engine polls for
	 * at most 50 us, and only while that has paid lately; SPOKE_ENGINE_SPIN_OFF: it sleeps at
	 * once. Other values keep a CPU busy for this long after every message, post and timer; at
	 * most SPOKE_ENGINE_SPIN_MAX_NS. With a `native` loop, which waits as its user programs it:
	 * EINVAL unless 0 or off. */
	uint64_t spin_ns;
	/* The least severe lines to log: "error", "warn", "info", "debug", or "off". They go to the
	 * log of the environment, or, if it has none, to the standard error output: without
	 * waiting, at most ten similar lines a second. NULL: with a log of the environment "info",
	 * else the level in the environment variable SPOKE_LOG, else "warn". */
	const char *log;
	/* Threads that run blocking work (handlers with SPOKE_HANDLER_POOL, file access), started
	 * when needed. 0: SPOKE_POOL_THREADS; at most SPOKE_POOL_THREADS_MAX, else EINVAL. */
	uint32_t pool_threads;
	/* Works that may wait for such a thread; more requests are refused. 0: SPOKE_POOL_QUEUE; at
	 * most SPOKE_POOL_QUEUE_MAX, else EINVAL. */
	uint32_t pool_queue;
};

#define SPOKE_ENGINE_SPIN_OFF UINT64_MAX            /* spin_ns: no polling */
#define SPOKE_ENGINE_SPIN_MAX_NS UINT64_C(10000000) /* largest spin_ns: 10 ms */

/*
 * Makes an engine. Returns 0, EINVAL (an option out of range), EUNSUPPORTED (spin_ns, pool_threads
 * or pool_queue in an environment that cannot), ENOMEM or ESYSTEM. Free it with
 * spoke_engine_free().
 */
SPOKE_API SPOKE_MUST_USE int spoke_engine_new(const struct spoke_engine_options *options,
					      struct spoke_engine **ret_engine);

/*
 * Frees an engine; NULL is allowed. First closes its objects (consumers, providers), so that the
 * callbacks of calls in flight are called. Pending posts are run, and posts made by these, at least
 * 16 deep; later ones of an endless chain are dropped. Alarms are unset without being called.
 * Callbacks may still use the engine, but objects made on it now are closed as well.
 *
 * In a callback of the engine, inside spoke_engine_run() or spoke_engine_turn(), it stops the run.
 * The engine is freed when that function is about to return; until then the remaining callbacks of
 * the present turn are called. An engine with a thread of its own (spoke_engine_start()) is then
 * freed by spoke_engine_join(), which must be called. From another thread, the function stops such
 * an engine and waits for its thread first. With a loop of the user, which the user runs, it must
 * not be called in a callback of the engine; in callbacks of the user's own watchers it may.
 *
 * Blocks while works of the pool are running, e.g. handlers. A name resolution that hangs is left
 * behind: its thread ends when the resolver returns, and uses the environment until then.
 *
 * In a forked child nothing is sent and no posts are run, because their threads do not exist there.
 * An engine that another thread was running during the fork is left unchanged, because its state
 * may be inconsistent: its memory stays allocated and its descriptors stay open until an exec.
 */
SPOKE_API void spoke_engine_free(struct spoke_engine *engine);

/*
 * Turns until spoke_engine_stop(), or until a drain is complete. Blocks. Returns 0, ESTATE (the
 * engine is running already, which includes a round of a loop that the user runs) or EFORKED. A
 * callback may have freed the engine when the function returns: see spoke_engine_free().
 */
SPOKE_API SPOKE_MUST_USE int spoke_engine_run(struct spoke_engine *engine);

/* Runs one turn, which waits for an event only if `wait` is set. Returns like spoke_engine_run().
 */
SPOKE_API SPOKE_MUST_USE int spoke_engine_turn(struct spoke_engine *engine, bool wait);

/*
 * Ends the present run after its turn; does nothing if there is none. A run begun with
 * spoke_engine_start() is present from that call on. A loop that the user runs is left as by
 * ev_break() with EVBREAK_ONE. Any thread.
 */
SPOKE_API void spoke_engine_stop(struct spoke_engine *engine);

/*
 * Runs the engine on a new thread with all signals blocked, until spoke_engine_stop(). From now on
 * this is the engine's thread; other threads use spoke_engine_post(). Returns 0, ESTATE (the engine
 * is running, or its last thread was not joined), EINVAL (it has a loop of the user), EUNSUPPORTED
 * (the environment has no threads), EFORKED, ENOMEM or ESYSTEM.
 */
SPOKE_API SPOKE_MUST_USE int spoke_engine_start(struct spoke_engine *engine);

/*
 * Waits until the run begun with spoke_engine_start() has ended; blocks. Afterwards any thread may
 * run, start or free the engine, unless a callback has freed it. Returns 0, ETHREAD (called on the
 * engine's own thread), ESTATE (there is no thread to wait for) or EFORKED. Any other thread, one
 * at a time.
 */
SPOKE_API SPOKE_MUST_USE int spoke_engine_join(struct spoke_engine *engine);

/*
 * Drains the engine: its objects finish the calls and requests in progress and accept no new ones.
 * The run ends, as by spoke_engine_stop(), when no object is left. After `timeout_ns` (UINT64_MAX:
 * never, but requests that still come are served for at most 60 s) the rest is closed. A drain
 * cannot be undone: new objects are refused with ECLOSED, and a later run ends at once if no object
 * is left. A user's loop is left once for each drain. A second drain changes the timeout.
 *
 * Returns 0, ETHREAD (called on a thread other than the engine's: use spoke_engine_post()), ELIMIT
 * or ERANGE like spoke_alarm_after(), or EFORKED; after an error nothing has changed.
 */
SPOKE_API SPOKE_MUST_USE int spoke_engine_drain(struct spoke_engine *engine, uint64_t timeout_ns);

/* Returns the time of the engine's clock, ns: in a turn as read when it began, else the present. */
SPOKE_API uint64_t spoke_engine_now(const struct spoke_engine *engine);

/* Returns the engine's wheel, for inspection; only the engine may schedule on it. */
SPOKE_API const struct spoke_wheel *spoke_engine_wheel(const struct spoke_engine *engine);

/*
 * Watches a descriptor of the caller with the engine's loop. `watch` is embedded and
 * zero-initialised, with `ready` and `fd` set. watch->ready() is called on the engine's thread with
 * the events of `io` (SPOKE_IO_READ, SPOKE_IO_WRITE) that have occurred. A further call changes
 * `io`; 0 ends the watch, which is required before the descriptor is closed or the engine freed.
 * The engine's thread.
 */
SPOKE_API void spoke_engine_watch(struct spoke_engine *engine, struct spoke_watch *watch,
				  unsigned io);

/*
 * A function to run on the engine's thread; embedded, borrowed until it runs. It must not be posted
 * again before it runs.
 */
struct spoke_post {
	struct spoke_post *next;              /* the engine's */
	void (*run)(struct spoke_post *post); /* may post it again, or free it */
};

/* Has post->run() called on the engine's thread. Never fails; has no effect in a forked child.
 * Posts of one thread run in order. Any thread. */
SPOKE_API void spoke_engine_post(struct spoke_engine *engine, struct spoke_post *post);

/*
 * A timer of the user on the engine's wheel; embedded, zero-initialised. All fields are the
 * engine's. An alarm that is set must be cancelled before its memory is freed.
 */
struct spoke_alarm {
	struct spoke_timer timer;
	struct spoke_engine *engine;
	void (*due)(struct spoke_alarm *alarm); /* see spoke_alarm_after() */
	uint64_t due_ns;                        /* exact, not rounded to a tick */
	uint64_t period_ns;                     /* 0: once */
};

/*
 * Sets an alarm: calls `due` once, `delay_ns` from now or up to a tick later. The callback may set
 * the alarm again or free it. An alarm that is already set is moved. Returns 0, ELIMIT (timers_max;
 * see spoke_engine_why()) or ERANGE (too far in the future). The engine's thread.
 */
SPOKE_API SPOKE_MUST_USE int spoke_alarm_after(struct spoke_engine *engine,
					       struct spoke_alarm *alarm, uint64_t delay_ns,
					       void (*due)(struct spoke_alarm *alarm));

/*
 * Sets a periodic alarm: calls `due` every `period_ns`, first one period from now. Periods missed
 * by a late turn are skipped: the next call comes at the next whole period that is still ahead.
 * Returns like spoke_alarm_after(), or EINVAL if the period is 0.
 */
SPOKE_API SPOKE_MUST_USE int spoke_alarm_every(struct spoke_engine *engine,
					       struct spoke_alarm *alarm, uint64_t period_ns,
					       void (*due)(struct spoke_alarm *alarm));

/* Cancels an alarm: its callback is not called any more and its memory may be freed. Returns
 * whether the alarm was set. An alarm that is not set may have outlived its engine. */
SPOKE_API bool spoke_alarm_cancel(struct spoke_alarm *alarm);

/* Changes the least severe lines to log: a level as in the option `log`. Returns 0, EINVAL or
 * EFORKED. The engine's thread. */
SPOKE_API SPOKE_MUST_USE int spoke_engine_log(struct spoke_engine *engine, const char *level);

SPOKE_END_DECLS

#endif
