/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning of a call: taken, or refused at once. */
#include "cluster/call/fallback.h"
#include "cluster/call/parts.h"
#include "core/value/shape.h"
#include "transport/wire/attachments.h"

#include <spoke/consumer.h>

/* --- checks */

static SPOKEI_NOINLINE int check_any(struct spoke_span args, size_t *ret_count)
{
	struct spoke_cursor cursor;

	return spoke_values_check(args.data, args.len, NULL, &cursor, ret_count);
}

static inline int check_args(struct spoke_span args, size_t *ret_count)
{
	*ret_count = 1;
	if (SPOKEI_LIKELY(spokei_shape_is_short(args.data, args.len)))
		return SPOKE_OK;
	return check_any(args, ret_count);
}

/* What the wire has no place for is not left out in silence. */
static int check_wire(const struct spokei_wire *wire, const struct spokei_message *message)
{
	if (SPOKEI_LIKELY(wire->attachments))
		return SPOKE_OK;
	return message->version.len || message->group.len || message->attachments.len
		       ? SPOKE_EUNSUPPORTED
		       : SPOKE_OK;
}

int spokei_call_prepare(struct spoke_method *method, struct spoke_span args,
			const struct spoke_call_options *options)
{
	const struct spokei_caller *caller = method->caller;
	/* What the calls of a method say differently is set by each. */
	struct spokei_message *message = &method->request;
	int error;

	if (spokei_engine_forked(caller->engine))
		return SPOKE_EFORKED;
	if (caller->closed)
		return SPOKE_ECLOSED;
	if (options->timeout_ns > SPOKEI_TIMEOUT_MAX_NS)
		return SPOKE_ERANGE;
	error = check_args(args, &message->arg_count);
	if (error == 0 && options->attachments.len > 0)
		error = spokei_attachments_check(options->attachments, false);
	if (error)
		return error;
	if (SPOKEI_UNLIKELY(method->type_count) && method->type_count != message->arg_count)
		return SPOKE_EINVAL;
	message->args = args;
	message->attachments = options->attachments;
	message->two_way = !options->one_way;
	return SPOKE_OK;
}

/* --- one attempt */

/* The prefix of this method on this wire in its codec, made when it is wanted first. */
static struct spoke_span prefix_of(struct spoke_method *method, const struct spokei_wire *wire)
{
	struct spokei_prefix *prefix = &method->prefix;

	if (prefix->wire != wire || prefix->codec != method->request.codec) {
		spokei_buffer_truncate(&prefix->bytes, 0);
		if (wire->prefix(&method->caller->link->limits.wire, &method->request,
				 &prefix->bytes))
			return spokei_span(NULL, 0);
		prefix->wire = wire;
		prefix->codec = method->request.codec;
	}
	return spokei_span(spokei_buffer_data(&prefix->bytes), spokei_buffer_len(&prefix->bytes));
}

/* One of the last call's anew: all but the timer, and what spokei_conn_call() sets. */
static void clear_attempt(struct spokei_attempt *attempt)
{
	struct spokei_pending *pending = &attempt->pending;

	pending->node.next = NULL;
	pending->conn = NULL;
	pending->unsent = NULL;
	pending->begun_ns = 0;
	pending->written_ns = 0;
	pending->done = spokei_attempt_done;
	/* A further attempt is freed before its caller is. */
	pending->lasting = attempt == &attempt->call->attempt;
	attempt->endpoint = NULL;
}

int spokei_attempt_begin(struct spokei_attempt *attempt, struct spokei_conn *conn,
			 uint64_t timeout_ns)
{
	struct spoke_method *method = attempt->call->method;
	struct spokei_message *message = &method->request;
	int error = check_wire(conn->wire, message);

	if (error)
		return error;
	clear_attempt(attempt);
	attempt->pending.timeout_ns = timeout_ns;
	message->prefix = prefix_of(method, conn->wire);
	error = spokei_conn_call(conn, &attempt->pending, message);
	return error == SPOKE_ESTATE ? SPOKE_EUNAVAILABLE : error;
}

/* --- calls */

int spokei_call_new(struct spoke_method *method, struct spokei_call **ret_call)
{
	struct spokei_call *call;
	void *cell;
	uint64_t handle;
	int error = spokei_slab_take(&method->caller->calls, &cell, &handle);

	if (error)
		return error;
	call = cell;
	call->caller = method->caller;
	call->method = method;
	call->handle = handle;
	call->attempt.call = call;
	call->attempt.endpoint = NULL;
	call->done = NULL;
	call->retry = NULL;
	call->policy = NULL;
	call->filters = 0;
	call->limited = false;
	call->cancelled = false;
	call->cancel.node.next = NULL;
	*ret_call = call;
	return SPOKE_OK;
}

int spokei_call_begin(struct spoke_method *method, struct spokei_conn *conn, uint64_t timeout_ns,
		      struct spokei_call **ret_call)
{
	struct spokei_call *call;
	int error = spokei_call_new(method, &call);

	if (error)
		return error;
	error = spokei_attempt_begin(&call->attempt, conn,
				     timeout_ns ? timeout_ns : method->settings.timeout_ns);
	if (error) {
		spokei_slab_give(&method->caller->calls, call->handle);
		return error;
	}
	spokei_count(method->caller->engine, SPOKE_STAT_CALLS);
	*ret_call = call;
	return SPOKE_OK;
}

/* --- a consumer's */

/* One attempt, whatever comes of it: there is nothing to keep. */
static bool takes_one(const struct spoke_consumer *consumer, const struct spoke_method *method,
		      const struct spoke_policy *policy)
{
	if (SPOKEI_UNLIKELY(method->settings.wait_ready))
		return false;
	if (policy->once)
		return true;
	return policy->elsewhere && (spokei_directory_listed(&consumer->directory) <= 1 ||
				     spokei_settings_retries(&method->settings, policy) == 0);
}

bool spokei_call_fits_elsewhere(const struct spokei_caller *caller,
				struct spokei_endpoint *endpoint, int error)
{
	const struct spokei_link *link = caller->link;

	return error == SPOKE_ELIMIT && link->pending_count < link->limits.pending_max &&
	       link->queued < link->limits.queued_max && spokei_directory_full(endpoint);
}

static int begin_one(struct spoke_method *method, const struct spoke_policy *policy,
		     const struct spoke_call_options *options, struct spokei_call **ret_call)
{
	struct spokei_endpoint *endpoint;
	struct spokei_conn *conn;
	struct spokei_call *call;
	int error;

	do {
		error = spokei_consumer_pick(method, policy, options->hash_key, NULL, &endpoint,
					     &conn);
		if (error)
			return error;
		error = spokei_call_begin(method, conn, options->timeout_ns, &call);
	} while (spokei_call_fits_elsewhere(method->caller, endpoint, error));
	if (error)
		return error;
	call->attempt.endpoint = endpoint;
	call->policy = policy;
	spokei_directory_begun(endpoint, endpoint->engine->begin_ns);
	*ret_call = call;
	return SPOKE_OK;
}

/* What is kept for another attempt is bounded as what waits to be written is. */
static int check_kept(const struct spokei_caller *caller, const struct spokei_message *request)
{
	const struct spokei_link_limits *limits = &caller->link->limits;
	size_t len = request->args.len;

	if (len > limits->wire.frame_max || request->attachments.len > limits->wire.frame_max - len)
		return SPOKE_ETOOLARGE;
	return caller->kept >= limits->queued_max ? SPOKE_ELIMIT : SPOKE_OK;
}

static int keep_call(struct spokei_call *call, const struct spoke_policy *policy,
		     const struct spoke_call_options *options)
{
	struct spoke_method *method = call->method;
	struct spokei_caller *caller = call->caller;
	struct spokei_retry_state *retry;
	int error = check_kept(caller, &method->request);

	if (error)
		return error;
	retry = spokei_retry_state_keep(&caller->blocks, caller->engine->env, &method->request,
					options->hash_key, policy->repeats);
	if (retry == NULL)
		return SPOKE_ENOMEM;
	caller->kept += retry->size;
	call->retry = retry;
	call->policy = policy;
	retry->policy = policy;
	retry->timeout_ns = options->timeout_ns ? options->timeout_ns : method->settings.timeout_ns;
	return SPOKE_OK;
}

static void give_up(struct spokei_call *call)
{
	SPOKE_ASSERT(!call->limited);
	struct spokei_caller *caller = call->caller;

	spokei_call_forget(caller, call->retry);
	spokei_slab_give(&caller->calls, call->handle);
}

/* The policy says how it begins, of a course that is open, or how it goes on. */
static int begin_retry_state(struct spokei_call *call)
{
	struct spokei_retry_state *retry = call->retry;

	retry->young = true;
	spokei_call_next(call, NULL);
	retry->young = false;
	if (retry->stage != SPOKEI_RETRY_STATE_OVER)
		return SPOKE_OK;
	return retry->ending.error ? retry->ending.error : SPOKE_EUNAVAILABLE;
}

/* The first attempt, of which nothing is written down: as a rule it is all there is. If it cannot
 * begin, all begins as with any policy. */
static int begin_plainly(struct spokei_call *call)
{
	const struct spokei_retry_state *retry = call->retry;
	struct spokei_endpoint *endpoint;
	struct spokei_conn *conn;
	int error = spokei_consumer_choose(call->method, call->policy, retry->key, NULL, &endpoint,
					   &conn);

	if (SPOKEI_LIKELY(error == 0))
		error = spokei_attempt_begin(&call->attempt, conn, retry->timeout_ns);
	if (SPOKEI_UNLIKELY(error)) {
		spokei_call_open(call);
		return begin_retry_state(call);
	}
	call->attempt.endpoint = endpoint;
	spokei_directory_begun(endpoint, endpoint->engine->begin_ns);
	return SPOKE_OK;
}

/* One that is repeated says which attempt it is. */
static bool begins_plainly(const struct spoke_method *method, const struct spoke_policy *policy)
{
	return policy->plain && !policy->repeats && !method->settings.wait_ready;
}

static int begin_kept(struct spoke_method *method, const struct spoke_policy *policy,
		      const struct spoke_call_options *options, struct spokei_call **ret_call)
{
	struct spokei_call *call;
	int error = spokei_call_new(method, &call);

	if (error)
		return error;
	error = keep_call(call, policy, options);
	if (SPOKEI_LIKELY(error == 0)) {
		if (SPOKEI_LIKELY(begins_plainly(method, policy))) {
			error = begin_plainly(call);
		} else {
			spokei_call_open(call);
			error = begin_retry_state(call);
		}
	}
	if (SPOKEI_UNLIKELY(error)) {
		give_up(call);
		return error;
	}
	spokei_count(call->caller->engine, SPOKE_STAT_CALLS);
	*ret_call = call;
	return SPOKE_OK;
}

/* A call that is not sent, but answered with a value. Returns 0 or SPOKE_ENOMEM or SPOKE_ELIMIT. */
static int begin_answer(struct spoke_method *method, struct spoke_value value, bool fallback,
			struct spokei_call **ret_call)
{
	struct spokei_call *call;
	int error = spokei_call_new(method, &call);

	if (error)
		return error;
	method->request.args = spokei_span(value.data, value.len);
	method->request.attachments = (struct spoke_value){ NULL, 0 };
	call->retry = spokei_retry_state_keep(&call->caller->blocks, call->caller->engine->env,
					      &method->request, spokei_span(NULL, 0), false);
	if (call->retry == NULL) {
		give_up(call);
		return SPOKE_ENOMEM;
	}
	spokei_retry_state_open(call->retry, &call->attempt);
	call->caller->kept += call->retry->size;
	call->retry->fallback = fallback;
	spokei_call_answer(call);
	spokei_count(call->caller->engine, SPOKE_STAT_CALLS);
	*ret_call = call;
	return SPOKE_OK;
}

/* --- what is asked before */

/* A call that filters let go on has failed all the same: they are told, and may make something else
 * of it. Returns its error; OK: it ends with that. */
static int ask_after(struct spoke_method *method, size_t passed, int error,
		     struct spokei_call **ret_call)
{
	struct spoke_result result = { .error = error };
	/* Without arguments: a course may have had them, and is gone. */
	struct spoke_filter_call about = spokei_call_describe(method);

	spokei_filters_after_call(&spokei_consumer_of(method)->filters, passed, &about, &result);
	if (method->caller->closed)
		return SPOKE_ECLOSED;
	if (result.error)
		return result.error;
	return begin_answer(method, result.value, false, ret_call) ? error : SPOKE_OK;
}

/* Takes a call that its method's limits and the filters allow. */
static int take_allowed(struct spoke_method *method, const struct spoke_policy *policy,
			const struct spoke_call_options *options, size_t passed,
			struct spokei_call **ret_call)
{
	int error;

	if (SPOKEI_LIKELY(takes_one(spokei_consumer_of(method), method, policy)))
		error = begin_one(method, policy, options, ret_call);
	else
		error = begin_kept(method, policy, options, ret_call);
	if (SPOKEI_LIKELY(error == 0)) {
		(*ret_call)->filters = (uint8_t)passed;
		return SPOKE_OK;
	}
	if (passed)
		error = ask_after(method, passed, error, ret_call);
	if (error && method->fallback.len && spokei_fallback_applies(error))
		error = begin_answer(method, method->fallback, true, ret_call) ? error : SPOKE_OK;
	if (error && spokei_call_excuses(policy))
		error = begin_answer(method, spokei_call_nil, false, ret_call) ? error : SPOKE_OK;
	return error;
}

static int take_filtered(struct spoke_method *method, const struct spoke_policy *policy,
			 const struct spoke_call_options *options, struct spokei_call **ret_call)
{
	struct spokei_message *request = &method->request;
	const struct spokei_message said = *request;
	struct spoke_filter_call about = spokei_call_describe(method);
	struct spoke_filter_verdict verdict;
	size_t passed;
	int error;

	about.args = request->args;
	about.attachments = request->attachments;
	about.one_way = !request->two_way;
	verdict = spokei_filters_before_call(&spokei_consumer_of(method)->filters, &about, &passed);
	/* A filter may have ended anything, or called the same method. */
	if (method->caller->closed)
		return SPOKE_ECLOSED;
	*request = said;
	if (verdict.step == SPOKE_FILTER_GO_ON)
		return take_allowed(method, policy, options, passed, ret_call);
	if (verdict.step == SPOKE_FILTER_REFUSE) {
		error = verdict.error ? verdict.error : SPOKE_EREFUSED;
		return passed ? ask_after(method, passed, error, ret_call) : error;
	}
	error = begin_answer(method, verdict.value, false, ret_call);
	if (error == 0)
		(*ret_call)->filters = (uint8_t)passed;
	return error;
}

/* Takes a call of a method that has limits, or whose consumer has filters. */
static SPOKEI_NOINLINE int take_guarded(struct spoke_method *method,
					const struct spoke_policy *policy,
					const struct spoke_call_options *options,
					struct spokei_call **ret_call)
{
	int error;

	if (spokei_limit_take(&method->limit, method->caller->engine->begin_ns))
		return SPOKE_ELIMIT;
	if (spokei_consumer_of(method)->filters.count == 0)
		error = take_allowed(method, policy, options, 0, ret_call);
	else
		error = take_filtered(method, policy, options, ret_call);
	if (error)
		spokei_limit_give(&method->limit);
	else
		(*ret_call)->limited = true;
	return error;
}

static int take_call(struct spoke_method *method, struct spoke_span args,
		     const struct spoke_call_options *options, struct spokei_call **ret_call)
{
	struct spokei_caller *caller = method->caller;
	const struct spoke_policy *policy = options->policy ? options->policy
							    : method->settings.policy;
	int error;

	if (SPOKEI_UNLIKELY(caller->pushes))
		return SPOKE_EINVAL;
	error = spokei_call_prepare(method, args, options);
	if (error)
		return error;
	if (SPOKEI_LIKELY(!method->limit.is_set && spokei_consumer_of(method)->filters.count == 0))
		error = take_allowed(method, policy, options, 0, ret_call);
	else
		error = take_guarded(method, policy, options, ret_call);
	if (error == 0)
		spokei_budget_called(&caller->budget, caller->engine->begin_ns);
	return error;
}

int spoke_call(struct spoke_method *method, struct spoke_span args,
	       const struct spoke_call_options *options, spoke_call_done_fn done, void *arg,
	       struct spoke_call *ret_call)
{
	static const struct spoke_call_options defaults;
	struct spokei_call *call = NULL;
	int error = take_call(method, args, options ? options : &defaults, &call);

	return spokei_call_taken(method, error, call, done, arg, ret_call);
}

uint64_t spokei_call_longest(const struct spoke_method *method,
			     const struct spoke_call_options *options)
{
	const struct spokei_call_settings *settings = &method->settings;
	const struct spoke_policy *policy = options->policy ? options->policy : settings->policy;
	uint64_t each_ns = options->timeout_ns ? options->timeout_ns : settings->timeout_ns;
	uint64_t attempts = spokei_settings_retries(settings, policy) + UINT64_C(1);

	/* Whose caller gets a ticket is told after the first. */
	if (policy->once || policy->fans_out || policy->repeats)
		attempts = 1;
	return each_ns > UINT64_MAX / attempts ? UINT64_MAX : each_ns * attempts;
}
