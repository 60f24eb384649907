/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: one event loop, one timing wheel, one thread. Everything made on an engine is used on
 * its thread only; the functions marked thread-safe are the exception.
 *
 * Callbacks are never called from inside the function that asked for them, always on the engine's
 * thread, and may call anything.
 *
 * A forked child must make engines of its own. What it inherits works for its parent alone: in the
 * child functions that return an error return EFORKED, and spoke_engine_free() frees memory and
 * descriptors without disturbing the parent.
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
	uint64_t late_ns;    /* a turn this late judges nobody unread; 0: 50 ms. It is less, once
			      * somebody judges by intervals shorter than twice this */
	/* Busy poll: after each turn the engine looks again and again, for so long, whether there
	 * is something to do, and only then sleeps. What comes meanwhile is met the sooner by the
	 * time that waking a thread takes, some 20 us. The price is a CPU that is wholly busy for
	 * so long after everything that happens, be it a message, a post or a timer. 50 us suit
	 * calls between processes of one machine; what takes longer to come than spin_ns gains
	 * nothing. 0: it sleeps at once. At most SPOKE_ENGINE_SPIN_MAX_NS; EINVAL with a loop of
	 * yours, where waiting is yours too. */
	uint64_t spin_ns;
};

#define SPOKE_ENGINE_SPIN_MAX_NS UINT64_C(10000000) /* 10 ms */

/*
 * Makes an engine. Returns 0, EINVAL (an option out of range), EUNSUPPORTED (spin_ns in an
 * environment that cannot), ENOMEM or ESYSTEM. Free it with spoke_engine_free().
 */
SPOKE_API SPOKE_MUST_USE int spoke_engine_new(const struct spoke_engine_options *options,
					      struct spoke_engine **ret_engine);

/*
 * Frees an engine; NULL is fine. What lives on it (consumers, providers) is closed first, so that
 * calls in flight are told; posts that nobody has run are run, and so is what these post, at least
 * 16 posts deep: what comes later, of posts that go on for ever, is forgotten. Alarms that are set
 * are forgotten too, and are not set then. Whoever is told may still use the engine, though what is
 * made on it now is closed as well.
 *
 * In a callback of the engine, inside spoke_engine_run() or spoke_engine_turn(), it stops the run
 * and the engine is freed when that function is about to return; until then the callbacks of the
 * present turn still come. On a thread of its own (spoke_engine_start()) it is then freed by
 * spoke_engine_join(), which must be called. From another thread it stops such an engine and waits
 * for its thread first. With a loop of yours that you run yourself it must not be called in a
 * callback of the engine; in those of your own watchers it may.
 *
 * It waits for works of the pool that are running, names that are being resolved among them, which
 * the system may take seconds for.
 *
 * In a forked child nothing is sent, and posts are not run, for their threads are not there. An
 * engine that another thread was running as the process forked is left as it is, for nobody knows
 * what that thread was in the midst of: its memory stays, its descriptors stay until an exec.
 */
SPOKE_API void spoke_engine_free(struct spoke_engine *engine);

/*
 * Turns until spoke_engine_stop(), or until a drain is done. Returns 0, ESTATE when it is running
 * already, which includes a round of a loop of yours that you run yourself, or EFORKED. The engine
 * may be gone when it returns: see spoke_engine_free().
 */
SPOKE_API SPOKE_MUST_USE int spoke_engine_run(struct spoke_engine *engine);

/* One turn; waits for something to do if `wait`. Returns like spoke_engine_run(). */
SPOKE_API SPOKE_MUST_USE int spoke_engine_turn(struct spoke_engine *engine, bool wait);

/*
 * Ends the present run when its turn is over; without effect when there is none. A run that
 * spoke_engine_start() began is present from then on. A loop of yours that you run yourself is
 * broken out of, as by ev_break() with EVBREAK_ONE. Any thread.
 */
SPOKE_API void spoke_engine_stop(struct spoke_engine *engine);

/*
 * Runs the engine on a thread of its own, to which no signal is delivered and whose run is ended by
 * spoke_engine_stop(); from now on that is the engine's thread, and the others have
 * spoke_engine_post(). Returns 0, ESTATE when it runs already or its last thread was not joined,
 * EINVAL with a loop of yours, EUNSUPPORTED when the environment has no threads, EFORKED, ENOMEM or
 * ESYSTEM.
 */
SPOKE_API SPOKE_MUST_USE int spoke_engine_start(struct spoke_engine *engine);

/*
 * Waits until the run that spoke_engine_start() began has ended; blocks. Afterwards the engine has
 * no thread: it may be run, started or freed by any. If a callback freed it, it is gone. Returns 0,
 * ETHREAD on the engine's own thread, ESTATE when there is no thread to wait for, or EFORKED. Any
 * other thread, one at a time.
 */
SPOKE_API SPOKE_MUST_USE int spoke_engine_join(struct spoke_engine *engine);

/*
 * Asks all that lives on the engine to finish what was begun and to take nothing new. The run ends
 * as by spoke_engine_stop() when nothing lives there any more; after `timeout_ns` (UINT64_MAX:
 * never) whoever is left is closed. A drain is for ever: what would live on the engine cannot be
 * made any more (ECLOSED), and a later run ends at once when nothing lives there; but a loop of
 * yours that you run yourself is broken out of once for each drain. A second drain sets another
 * time. Returns 0, ETHREAD from another thread than the one that runs the engine, which from
 * spoke_engine_start() to spoke_engine_join() is its own (post it from there), ELIMIT or ERANGE as
 * spoke_alarm_after(), or EFORKED; nothing happened then.
 */
SPOKE_API SPOKE_MUST_USE int spoke_engine_drain(struct spoke_engine *engine, uint64_t timeout_ns);

/* Time of the engine's clock, ns, as read when the present turn began. */
SPOKE_API uint64_t spoke_engine_now(const struct spoke_engine *engine);

/* The engine's wheel, to be looked at; nobody but the engine schedules on it. */
SPOKE_API const struct spoke_wheel *spoke_engine_wheel(const struct spoke_engine *engine);

/*
 * Watches a descriptor of the caller's with the engine's loop: `watch`, embedded and
 * zero-initialised, has `ready` and `fd` set, and is called on the engine's thread with what of
 * `io` (SPOKE_IO_READ, SPOKE_IO_WRITE) is possible. Again with other `io` it changes that; with 0
 * it is watched no longer, which it has to be before the descriptor is closed or the engine freed.
 * Anywhere on the engine's thread.
 */
SPOKE_API void spoke_engine_watch(struct spoke_engine *engine, struct spoke_watch *watch,
				  unsigned io);

/*
 * A function to run on the engine's thread; embedded, borrowed until it runs. Do not post it again
 * before.
 */
struct spoke_post {
	struct spoke_post *next; /* the engine's */
	void (*run)(struct spoke_post *post);
};

/* Thread-safe. Never fails; in a forked child it does nothing that is seen. Posts of one thread run
 * in their order. */
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

/* The alarm will not be called and may be freed. Returns whether it was set; one that is not may
 * have outlived its engine. */
SPOKE_API bool spoke_alarm_cancel(struct spoke_alarm *alarm);

SPOKE_END_DECLS

#endif
