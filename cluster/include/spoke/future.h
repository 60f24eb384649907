/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Futures: calls as objects that any thread can begin, inspect, wait for and cancel:
 *
 *     error = spoke_engine_start(engine);
 *     ...
 *     error = spoke_call_wait_with(echo, SPOKE_ARGS("hello"), &future);
 *     if (error == SPOKE_OK)
 *             use(spoke_future_result(future)->value);
 *     spoke_future_free(future);
 *
 * The engine must turn meanwhile: on a thread of its own (spoke_engine_start()), or on any thread
 * that does not wait.
 *
 * Method, consumer and engine must exist when a future is begun, but may be freed before it. If
 * they end before the call, its result is ECLOSED. An environment of the user must outlive the
 * future, and the request of another engine for which it was made (`parent`).
 */
#ifndef SPOKE_FUTURE_H
#define SPOKE_FUTURE_H

#include <spoke/args.h>
#include <spoke/consumer.h>

SPOKE_BEGIN_DECLS

struct spoke_future;

/*
 * Begins a call. Any thread, as long as the consumer exists and no other thread frees it. `args`
 * and attachments are copied. The deadline counts from now on and includes the way to the engine's
 * thread. Returns 0, ENOMEM, ECLOSED or EFORKED; errors that spoke_call() would return become the
 * result of the future. Free it with spoke_future_free().
 */
SPOKE_API SPOKE_MUST_USE int spoke_future_start(struct spoke_method *method, struct spoke_span args,
						const struct spoke_call_options *options,
						struct spoke_future **ret_future);

/* Frees a future and its result, and cancels the call if it is not over; NULL is allowed. Any
 * thread, also in the future's callback, but not while another thread uses it. */
SPOKE_API void spoke_future_free(struct spoke_future *future);

/* Returns the result, or NULL while the call is not over. Valid as long as the future. Any thread.
 */
SPOKE_API const struct spoke_result *spoke_future_result(const struct spoke_future *future);

/*
 * Sets the callback: `done` is called once on the engine's thread when the call is over, or soon if
 * it already is, never inside this function. It is called even if the future is freed before. Each
 * future takes one callback. Any thread. Returns 0, ESTATE (there is one already), ECLOSED (the
 * call is over and its consumer freed) or EFORKED; after an error `done` is not called.
 */
SPOKE_API SPOKE_MUST_USE int spoke_future_then(struct spoke_future *future, spoke_call_done_fn done,
					       void *arg);

/* Cancels the call: it soon ends with ECANCELED, unless it is over before. Any thread. */
SPOKE_API void spoke_future_cancel(struct spoke_future *future);

/*
 * Waits until the call is over, with success or error; blocks. Any number of threads, but not the
 * engine's own. Waiting threads are woken at the end of the engine's turn. Returns 0 (the result is
 * available), ETHREAD (the engine's thread), ENOMEM, EFORKED or EUNSUPPORTED (the environment has
 * no threads). ESTATE: one second after the deadline there is no result yet, because the engine
 * does not turn or a callback blocks it.
 */
SPOKE_API SPOKE_MUST_USE int spoke_future_wait(struct spoke_future *future);

/* Waits for all futures, like spoke_future_wait() for each; blocks. Returns 0 or the first error of
 * a wait, after waiting for the others too. */
SPOKE_API SPOKE_MUST_USE int spoke_future_wait_all(struct spoke_future *const *futures,
						   size_t count);

/*
 * Begins a call and waits for it; blocks. Any thread but the engine's own. Returns the error of the
 * result (0: success) and the future in *ret_future, which the caller frees. If beginning or
 * waiting fails, returns the error of spoke_future_start() or spoke_future_wait() and sets
 * *ret_future to NULL; the call was not begun, or is cancelled. `ret_future` may be NULL.
 */
SPOKE_API SPOKE_MUST_USE int spoke_call_wait(struct spoke_method *method, struct spoke_span args,
					     const struct spoke_call_options *options,
					     struct spoke_future **ret_future);

/* Like spoke_future_start() and spoke_call_wait(), with arguments made in place, e.g.
 * SPOKE_ARGS("hi", 42). Return an error of spoke_pack_args(), too. */
SPOKE_API SPOKE_MUST_USE int spoke_future_start_args(struct spoke_method *method,
						     struct spoke_args args,
						     const struct spoke_call_options *options,
						     struct spoke_future **ret_future);
SPOKE_API SPOKE_MUST_USE int spoke_call_wait_args(struct spoke_method *method,
						  struct spoke_args args,
						  const struct spoke_call_options *options,
						  struct spoke_future **ret_future);

/* Do the same with the defaults of the method. */
SPOKE_MUST_USE static inline int spoke_future_start_with(struct spoke_method *method,
							 struct spoke_args args,
							 struct spoke_future **ret_future)
{
	return spoke_future_start_args(method, args, NULL, ret_future);
}

/* See above. */
SPOKE_MUST_USE static inline int spoke_call_wait_with(struct spoke_method *method,
						      struct spoke_args args,
						      struct spoke_future **ret_future)
{
	return spoke_call_wait_args(method, args, NULL, ret_future);
}

SPOKE_END_DECLS

#endif
