/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Futures: calls that any thread may start, wait for and cancel. A future is reference-counted: its
 * user, its call and each post in flight hold a share, and the last one frees it. It begins and
 * ends on the engine's thread; other threads post what they want.
 */
#include "core/engine/future.h"
#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/call/report.h"
#include "cluster/consumer/parts.h"
#include "cluster/serve/request.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "core/engine/use.h"
#include "core/value/builder.h"

#include <spoke/future.h>
#include <spoke/trace.h>

#define MARGIN_NS UINT64_C(1000000000) /* a wait ends this long after the deadline */

enum {
	OVER = 1, /* the result is set */
	THEN = 2, /* `then` is set */
};

struct spoke_future {
	struct spokei_future shared;
	struct spoke_method *method; /* while the weak handle is open */
	struct spokei_waiters waiters;
	struct spoke_post begin;
	struct spoke_post cancel;
	struct spoke_post told; /* calls a `then` that was set after the end */
	atomic_bool cancelled;  /* its user has cancelled it */
	atomic_bool has_then;   /* a thread sets, or has set, the next two */
	spoke_call_done_fn then;
	void *then_arg;
	uint64_t begun_ns;
	uint64_t posted_ns; /* from then until it reached the engine */
	uint64_t until_ns;  /* all waits end */
	struct spoke_call call;
	struct spoke_result result; /* points into bytes of `shared` */
	struct spoke_span args;
	struct spoke_call_options options;
	const void *trace; /* that of the options, unaligned; NULL: none */
	unsigned char copies[];
};

static bool is_over(const struct spoke_future *future)
{
	return spokei_future_marks(&future->shared) & OVER;
}

/* --- the end, on the engine's thread */

static const unsigned char *copy_bytes(unsigned char **at, const unsigned char *bytes, size_t len)
{
	unsigned char *begin = *at;

	if (len == 0)
		return NULL;
	SPOKE_ASSERT(begin != NULL);
	memcpy(begin, bytes, len);
	*at += len;
	return begin;
}

/* Copies a result and its bytes. Without memory the error becomes ENOMEM, unless there is a ticket,
 * which must not be lost. */
static void keep_result(struct spoke_future *future, const struct spoke_result *from)
{
	struct spoke_result *result = &future->result;
	size_t len = from->value.len + from->attachments.len + from->error_text.len +
		     from->error_class.len;
	unsigned char *at = NULL;

	*result = *from;
	result->queued_ns += future->posted_ns;
	if (len)
		at = spokei_future_bytes(&future->shared, len);
	if (len && at == NULL) {
		if (from->error != SPOKE_EDEFERRED)
			result->error = SPOKE_ENOMEM;
		result->value = (struct spoke_value){ NULL, 0 };
		result->attachments = result->value;
		result->error_text = (struct spoke_span){ NULL, 0 };
		result->error_class = result->error_text;
		return;
	}
	result->value.data = copy_bytes(&at, from->value.data, from->value.len);
	result->attachments.data = copy_bytes(&at, from->attachments.data, from->attachments.len);
	result->error_text.data = copy_bytes(&at, from->error_text.data, from->error_text.len);
	result->error_class.data = copy_bytes(&at, from->error_class.data, from->error_class.len);
}

/* The one completion of a future; the callback of its call. */
static void finish_future(void *arg, const struct spoke_result *result)
{
	struct spoke_future *future = arg;

	keep_result(future, result);
	if (spokei_future_mark(&future->shared, OVER) & THEN)
		future->then(future->then_arg, &future->result);
	spokei_waiters_end(&future->waiters, future->shared.weak);
	spokei_future_drop(&future->shared);
}

/* --- the beginning and the progress, on the engine's thread */

/* Calls, unless the future is cancelled, late or closed. *ret_text: why the call was refused. */
static int try_call(struct spoke_future *future, struct spoke_span *ret_text)
{
	struct spoke_engine *engine = future->shared.weak->engine;
	struct spoke_call_options *options = &future->options;
	struct spoke_trace_context trace;
	int error;

	if (engine->begin_ns > future->begun_ns)
		future->posted_ns = engine->begin_ns - future->begun_ns;
	if (spokei_weak_closed(future->shared.weak)) {
		/* The method is freed. */
		spokei_count(engine, SPOKE_STAT_CALLS_REFUSED);
		return SPOKE_ECLOSED;
	}
	if (atomic_load_explicit(&future->cancelled, memory_order_relaxed))
		error = SPOKE_ECANCELED;
	else if (options->timeout_ns <= future->posted_ns)
		error = SPOKE_ETIMEOUT_UNSENT;
	else {
		options->timeout_ns -= future->posted_ns;
		if (future->trace) {
			memcpy(&trace, future->trace, sizeof(trace));
			options->trace = &trace;
		}
		error = spoke_call(future->method, future->args, options, finish_future, future,
				   &future->call);
		*ret_text = spokei_limits_text(future->method, error);
		return error;
	}
	spokei_figures_count(future->method->figures, SPOKE_STAT_CALLS_REFUSED);
	return error;
}

/* Begins the call, which takes over one share. */
static void begin_arrived(struct spoke_post *arrived)
{
	struct spoke_future *future = spoke_container_of(arrived, struct spoke_future, begin);
	struct spoke_result refusal = { 0 };

	refusal.error = try_call(future, &refusal.error_text);
	if (refusal.error)
		finish_future(future, &refusal);
}

/* The beginning was posted before, and a consumer outlives its calls. */
static void cancel_arrived(struct spoke_post *arrived)
{
	struct spoke_future *future = spoke_container_of(arrived, struct spoke_future, cancel);

	if (!is_over(future))
		(void)spokei_call_cancel(future->method->caller, future->call);
	spokei_future_drop(&future->shared);
}

static void told_arrived(struct spoke_post *arrived)
{
	struct spoke_future *future = spoke_container_of(arrived, struct spoke_future, told);

	future->then(future->then_arg, &future->result);
	spokei_future_drop(&future->shared);
}

/* --- functions for any thread */

static struct spoke_future *make(struct spokei_weak *weak, struct spoke_method *method,
				 struct spoke_span args, const struct spoke_call_options *options)
{
	struct spoke_value attachments = options->attachments;
	struct spoke_span key = options->hash_key;
	size_t size = sizeof(struct spoke_future);
	struct spoke_future *future = NULL;
	unsigned char *at;

	if (options->trace)
		size += sizeof(*options->trace);
	if (args.len <= SIZE_MAX / 8 && attachments.len <= SIZE_MAX / 8 &&
	    key.len <= SIZE_MAX / 8) {
		size += args.len + attachments.len + key.len;
		future = spokei_alloc_unset(weak->env, size);
	}
	if (future == NULL)
		return NULL;
	*future = (struct spoke_future){
		.shared = spokei_future_make(weak, size),
		.method = method,
		.begin.run = begin_arrived,
		.cancel.run = cancel_arrived,
		.told.run = told_arrived,
		.args.len = args.len,
		.options = *options,
	};
	at = future->copies;
	future->args.data = copy_bytes(&at, args.data, args.len);
	future->options.attachments.data = copy_bytes(&at, attachments.data, attachments.len);
	future->options.hash_key.data = copy_bytes(&at, key.data, key.len);
	future->options.trace = NULL;
	if (options->trace)
		future->trace = copy_bytes(&at, (const unsigned char *)options->trace,
					   sizeof(*options->trace));
	return future;
}

/* --- the end of a request on another engine, which is the end of the future, too */

/* Linked to the request on its engine's thread, until the request is answered. */
struct tie {
	struct spokei_use use;
	struct spoke_post post;
	struct spoke_request *request;
	struct spoke_future *future; /* a share */
	const struct spoke_env *env;
};

static struct tie *tie_of(struct spokei_use *use)
{
	return spoke_container_of(use, struct tie, use);
}

static void request_over(struct spokei_use *use)
{
	spoke_future_cancel(tie_of(use)->future);
}

static void request_left(struct spokei_use *use)
{
	struct tie *tie = tie_of(use);

	spokei_future_drop(&tie->future->shared);
	spokei_free(tie->env, tie, 1, sizeof(*tie));
}

/* The answer of the thread that has begun the future comes after this. */
static void tie_arrived(struct spoke_post *post)
{
	struct tie *tie = spoke_container_of(post, struct tie, post);

	if (!spokei_request_waits(tie->request)) {
		request_left(&tie->use);
		return;
	}
	spokei_request_join(tie->request, &tie->use);
	if (spoke_request_abandoned(tie->request))
		request_over(&tie->use);
}

/* Takes the time and the trace of a request that is on another engine, now: its answer may free it
 * before the call begins. Returns 0, or ENOMEM. *ret_tie: for tie_to(); NULL: the request is of
 * this engine, which learns of it before the answer, or there is none. */
static int leave_request(const struct spoke_engine *engine, struct spoke_call_options *options,
			 struct spoke_trace_context *room, uint64_t *ret_left_ns,
			 struct tie **ret_tie)
{
	struct spoke_request *request = options->parent;
	const struct spoke_env *env;
	struct tie *tie;

	*ret_left_ns = UINT64_MAX;
	*ret_tie = NULL;
	if (request == NULL || options->detached || spokei_request_engine(request) == engine)
		return SPOKE_OK;
	env = spokei_request_engine(request)->env;
	tie = spokei_alloc(env, 1, sizeof(*tie));
	if (tie == NULL)
		return SPOKE_ENOMEM;
	tie->use.over = request_over;
	tie->use.left = request_left;
	tie->post.run = tie_arrived;
	tie->request = request;
	tie->env = env;
	if (options->trace == NULL && spoke_trace_of(request, room))
		options->trace = room;
	options->parent = NULL;
	options->detached = true;
	*ret_left_ns = spoke_request_abandoned(request) ? 0 : spoke_request_left(request);
	*ret_tie = tie;
	return SPOKE_OK;
}

/* Has a future that has begun end with its request. */
static void tie_to(struct spoke_future *future, struct tie *tie)
{
	struct spoke_engine *engine = spokei_request_engine(tie->request);

	tie->future = future;
	spokei_future_share(&future->shared);
	if (spokei_engine_here(engine))
		tie_arrived(&tie->post);
	else
		spoke_engine_post(engine, &tie->post);
}

/* --- the beginning, on any thread */

/* Makes a future that has not begun. Returns 0 or ENOMEM. */
static int make_later(struct spoke_method *method, struct spoke_span args,
		      const struct spoke_call_options *options, uint64_t left_ns,
		      struct spoke_future **ret_future)
{
	struct spoke_engine *engine = method->caller->engine;
	struct spoke_future *future;
	struct spokei_weak *weak;

	weak = spokei_weak_get(&spokei_consumer_calling(method->caller)->weak, engine);
	if (weak == NULL)
		return SPOKE_ENOMEM;
	future = make(weak, method, args, options);
	if (future == NULL) {
		spokei_weak_drop(weak);
		return SPOKE_ENOMEM;
	}
	future->begun_ns = weak->env->now(weak->env->ctx);
	future->until_ns = spokei_later(
		future->begun_ns,
		spokei_later(spokei_method_longest(method, &future->options), MARGIN_NS));
	if (future->options.timeout_ns == 0)
		future->options.timeout_ns = method->settings.timeout_ns;
	if (left_ns < future->options.timeout_ns)
		future->options.timeout_ns = left_ns;
	*ret_future = future;
	return SPOKE_OK;
}

int spoke_future_start(struct spoke_method *method, struct spoke_span args,
		       const struct spoke_call_options *options, struct spoke_future **ret_future)
{
	struct spoke_call_options with = { 0 };
	struct spoke_engine *engine = method->caller->engine;
	struct spoke_trace_context trace;
	struct spoke_future *future;
	struct tie *tie;
	uint64_t left_ns;
	int error;

	if (method->caller->pushes)
		return SPOKE_EINVAL;
	if (spokei_engine_forked(engine))
		return SPOKE_EFORKED;
	if (options)
		with = *options;
	error = leave_request(engine, &with, &trace, &left_ns, &tie);
	if (error)
		return error;
	error = make_later(method, args, &with, left_ns, &future);
	if (error == SPOKE_OK)
		error = spokei_future_begin(&future->shared, &future->begin);
	if (error) {
		if (tie)
			spokei_free(tie->env, tie, 1, sizeof(*tie));
		return error;
	}
	if (tie)
		tie_to(future, tie);
	*ret_future = future;
	return SPOKE_OK;
}

void spoke_future_free(struct spoke_future *future)
{
	if (future == NULL)
		return;
	spoke_future_cancel(future);
	spokei_future_drop(&future->shared);
}

const struct spoke_result *spoke_future_result(const struct spoke_future *future)
{
	return is_over(future) ? &future->result : NULL;
}

int spoke_future_then(struct spoke_future *future, spoke_call_done_fn done, void *arg)
{
	if (spokei_weak_forked(future->shared.weak))
		return SPOKE_EFORKED;
	if (atomic_exchange_explicit(&future->has_then, true, memory_order_relaxed))
		return SPOKE_ESTATE;
	future->then = done;
	future->then_arg = arg;
	if (!(spokei_future_mark(&future->shared, THEN) & OVER))
		return SPOKE_OK;
	return spokei_future_post(&future->shared, &future->told) ? SPOKE_OK : SPOKE_ECLOSED;
}

void spoke_future_cancel(struct spoke_future *future)
{
	if (is_over(future) || spokei_weak_forked(future->shared.weak) ||
	    atomic_exchange_explicit(&future->cancelled, true, memory_order_relaxed))
		return;
	/* Without its consumer the future has ended, or is about to. */
	(void)spokei_future_post(&future->shared, &future->cancel);
}

/* --- waiting */

int spoke_future_wait(struct spoke_future *future)
{
	const struct spoke_env *env = future->shared.weak->env;
	int error;

	/* After the consumer has gone, the engine's thread may have ended. */
	if (is_over(future) && spokei_weak_closed(future->shared.weak))
		return SPOKE_OK;
	if (spokei_weak_here(future->shared.weak))
		return SPOKE_ETHREAD;
	if (is_over(future))
		return SPOKE_OK;
	if (spokei_weak_forked(future->shared.weak))
		return SPOKE_EFORKED;
	if (env->now(env->ctx) >= future->until_ns)
		return SPOKE_ESTATE;
	error = spokei_waiters_wait(&future->waiters, future->shared.weak, future->until_ns);
	return error == SPOKE_ESTATE && is_over(future) ? SPOKE_OK : error;
}

int spoke_future_wait_all(struct spoke_future *const *futures, size_t count)
{
	int first = SPOKE_OK;

	for (size_t i = 0; i < count; i++) {
		int error = spoke_future_wait(futures[i]);

		if (first == SPOKE_OK)
			first = error;
	}
	return first;
}

int spoke_call_wait(struct spoke_method *method, struct spoke_span args,
		    const struct spoke_call_options *options, struct spoke_future **ret_future)
{
	struct spoke_future *future;
	int error;

	if (ret_future)
		*ret_future = NULL;
	if (spokei_engine_here(method->caller->engine))
		return SPOKE_ETHREAD;
	error = spoke_future_start(method, args, options, &future);
	if (error)
		return error;
	error = spoke_future_wait(future);
	if (error == SPOKE_OK) {
		error = future->result.error;
		if (ret_future) {
			*ret_future = future;
			return error;
		}
	}
	spoke_future_free(future);
	return error;
}

/* --- arguments made in place: they are packed on the stack of the calling thread */

int spoke_future_start_args(struct spoke_method *method, struct spoke_args args,
			    const struct spoke_call_options *options,
			    struct spoke_future **ret_future)
{
	struct spokei_packed packed;
	int error = spokei_args_pack(method->caller->engine->env, args, &packed);

	if (error == SPOKE_OK)
		error = spoke_future_start(method, packed.values, options, ret_future);
	spokei_packed_free(&packed);
	return error;
}

int spoke_call_wait_args(struct spoke_method *method, struct spoke_args args,
			 const struct spoke_call_options *options, struct spoke_future **ret_future)
{
	struct spokei_packed packed;
	int error = spokei_args_pack(method->caller->engine->env, args, &packed);

	if (error == SPOKE_OK)
		error = spoke_call_wait(method, packed.values, options, ret_future);
	else if (ret_future)
		*ret_future = NULL;
	spokei_packed_free(&packed);
	return error;
}
