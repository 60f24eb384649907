/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: one event loop, one timing wheel, one thread. Everything made on an engine is used on
 * its thread only; the functions marked thread-safe are the exception.
 *
 * Callbacks are never called from inside the function that asked for them, always on the engine's
 * thread, and may call anything but spoke_engine_free().
 */
#ifndef SPOKE_ENGINE_H
#define SPOKE_ENGINE_H

#include <spoke/env.h>
#include <spoke/error.h>
#include <spoke/wheel.h>

SPOKE_BEGIN_DECLS

struct spoke_engine;

/* All fields may be 0 or NULL: the default stands at each. */
struct spoke_engine_options {
	const struct spoke_env *env; /* borrowed for the engine's life; NULL: the host's */
	void *native;        /* a loop of yours (struct ev_loop *), borrowed; NULL: its own */
	uint64_t tick_ns;    /* of the wheel; 0: 1 ms */
	uint64_t timers_max; /* timers armed at one time; 0: 16,777,216 */
	uint64_t late_ns;    /* a turn this late judges nobody unread; 0: 50 ms */
};

/*
 * Makes an engine. Returns 0, EINVAL (an option out of range), ENOMEM or ESYSTEM. Free it with
 * spoke_engine_free().
 */
SPOKE_API SPOKE_MUST_USE int spoke_engine_new(const struct spoke_engine_options *options,
					      struct spoke_engine **ret_engine);

/*
 * Frees an engine that is not running; NULL is fine. Alarms that are still set are forgotten, posts
 * that nobody has run are run. Must not be called from a callback of the engine.
 */
SPOKE_API void spoke_engine_free(struct spoke_engine *engine);

/* Turns until spoke_engine_stop(). Returns 0, ESTATE when it is running already, or ESYSTEM. */
SPOKE_API SPOKE_MUST_USE int spoke_engine_run(struct spoke_engine *engine);

/* One turn; waits for something to do if `wait`. Returns like spoke_engine_run(). */
SPOKE_API SPOKE_MUST_USE int spoke_engine_turn(struct spoke_engine *engine, bool wait);

/* Ends spoke_engine_run() with the present turn; without effect when it is not running. */
SPOKE_API void spoke_engine_stop(struct spoke_engine *engine);

/* Time of the engine's clock, ns, as read when the present turn began. */
SPOKE_API uint64_t spoke_engine_now(const struct spoke_engine *engine);

/*
 * A function to run on the engine's thread; embedded, borrowed until it runs. Do not post it again
 * before.
 */
struct spoke_post {
	struct spoke_post *next; /* the engine's */
	void (*run)(struct spoke_post *post);
};

/* Thread-safe. Never fails. Posts of one thread run in their order. */
SPOKE_API void spoke_engine_post(struct spoke_engine *engine, struct spoke_post *post);

/*
 * A user's timer on the engine's wheel; embedded, zero-initialised. Its memory must stay while it
 * is set: cancel it before freeing.
 */
struct spoke_alarm {
	struct spoke_timer timer; /* the engine's, as all fields */
	struct spoke_engine *engine;
	void (*due)(struct spoke_alarm *alarm);
	uint64_t due_ns;    /* exact, not rounded to a tick */
	uint64_t period_ns; /* 0: once */
};

/*
 * Calls `due` once, `delay_ns` from now or up to a tick later; the alarm may be set again, freed or
 * moved from there. Setting an alarm that is set moves it. Returns 0, ELIMIT (timers_max) or ERANGE
 * (too far in the future).
 */
SPOKE_API SPOKE_MUST_USE int spoke_alarm_after(struct spoke_engine *engine,
					       struct spoke_alarm *alarm, uint64_t delay_ns,
					       void (*due)(struct spoke_alarm *alarm));

/*
 * Calls `due` every `period_ns` (EINVAL: 0), first one period from now. What a late turn missed is
 * not made up for: the next call comes at the next whole period that is still ahead.
 */
SPOKE_API SPOKE_MUST_USE int spoke_alarm_every(struct spoke_engine *engine,
					       struct spoke_alarm *alarm, uint64_t period_ns,
					       void (*due)(struct spoke_alarm *alarm));

/* The alarm will not be called and may be freed. Returns whether it was set. */
SPOKE_API bool spoke_alarm_cancel(struct spoke_alarm *alarm);

SPOKE_END_DECLS

#endif
