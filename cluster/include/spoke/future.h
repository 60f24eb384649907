/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls as objects: begun now, looked at, waited for or cancelled later, from any thread:
 *
 *     error = spoke_engine_start(engine);
 *     ...
 *     error = spoke_call_wait(echo, args, NULL, &future);
 *     if (error == SPOKE_OK)
 *             use(spoke_future_result(future)->value);
 *     spoke_future_free(future);
 *
 * The engine has to turn meanwhile: on a thread of its own (spoke_engine_start()), or on another
 * one than those that wait.
 *
 * A future stands for itself: method, consumer and engine have to live while it is begun, not
 * longer. If they end before the call does, its result is ECLOSED. What must outlive it is the
 * engine's environment, where that is one of the user's own.
 */
#ifndef SPOKE_FUTURE_H
#define SPOKE_FUTURE_H

#include <spoke/consumer.h>

SPOKE_BEGIN_DECLS

struct spoke_future;

/*
 * Begins a call. Any thread, while the consumer lives and nobody frees it. `args` and attachments
 * are copied. The deadline counts from now; the way to the engine's thread is part of it. Returns
 * 0, ENOMEM, ECLOSED or EFORKED; all that spoke_call() would refuse is the future's result instead.
 * Free it with spoke_future_free().
 */
SPOKE_API SPOKE_MUST_USE int spoke_future_start(struct spoke_method *method, struct spoke_span args,
						const struct spoke_call_options *options,
						struct spoke_future **ret_future);

/* Forgets the future and its result; a call that still runs is cancelled. NULL is fine. Any thread,
 * also in its own callback, but not while another thread uses it. */
SPOKE_API void spoke_future_free(struct spoke_future *future);

/* The result, once there is one, else NULL. Lives as long as the future. Any thread. */
SPOKE_API const struct spoke_result *spoke_future_result(const struct spoke_future *future);

/*
 * Has `done` called on the engine's thread, once, never from here: when the call is over, or soon
 * if it is. That comes even if the future is freed before. One per future. Any thread. Returns 0;
 * or, and then it is not called: ESTATE, there is one already; ECLOSED, the call is over and its
 * consumer gone; EFORKED.
 */
SPOKE_API SPOKE_MUST_USE int spoke_future_then(struct spoke_future *future, spoke_call_done_fn done,
					       void *arg);

/* Ends the call with ECANCELED, a little later, unless it is over before. Any thread. */
SPOKE_API void spoke_future_cancel(struct spoke_future *future);

/*
 * Waits until the call is over, be it with an error. Any number of threads, but for the engine's
 * own. Returns 0: the result is there; ETHREAD: this is the engine's thread; ESTATE: a second after
 * the deadline there is none yet, for nobody turns the engine, or a callback keeps it; ENOMEM,
 * EFORKED, or EUNSUPPORTED: the environment has no threads. Those who wait are woken when the
 * engine's turn is over; a callback that keeps it keeps them, until that second is over too.
 */
SPOKE_API SPOKE_MUST_USE int spoke_future_wait(struct spoke_future *future);

/* Waits for all of them. Returns 0, or the first error of a wait; the others are waited for all the
 * same. */
SPOKE_API SPOKE_MUST_USE int spoke_future_wait_all(struct spoke_future *const *futures,
						   size_t count);

/*
 * A call that blocks: begins it and waits. Any thread but the engine's own. Returns the result's
 * error, 0 for none, with the future, to be freed, in *ret_future; or what spoke_future_start() or
 * spoke_future_wait() would return, with NULL there: the call was not begun, or is cancelled.
 * `ret_future` may be NULL.
 */
SPOKE_API SPOKE_MUST_USE int spoke_call_wait(struct spoke_method *method, struct spoke_span args,
					     const struct spoke_call_options *options,
					     struct spoke_future **ret_future);

SPOKE_END_DECLS

#endif
