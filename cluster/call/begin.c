/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning of a call: checks, limits and filters; then the first attempt, or a refusal. */
#include "cluster/call/args.h"
#include "cluster/call/ask.h"
#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/end.h"
#include "cluster/call/leased.h"
#include "cluster/call/limits.h"
#include "cluster/call/method.h"
#include "cluster/call/next.h"
#include "cluster/call/pick.h"
#include "cluster/call/retry_state.h"
#include "cluster/config/keys.h"
#include "cluster/endpoints/directory.h"
#include "cluster/filter/filter.h"
#include "core/engine/figures.h"
#include "core/value/shape.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/wire/attachments.h"

#include <spoke/consumer.h>

/* --- checks */

static SPOKEI_NOINLINE int check_any(struct spoke_span values, size_t *ret_count)
{
	struct spoke_cursor cursor;

	return spoke_values_check(values.data, values.len, &spokei_link_own_values, &cursor,
				  ret_count);
}

static inline int check_values(struct spoke_span values, size_t *ret_count)
{
	*ret_count = 1;
	if (SPOKEI_LIKELY(spokei_shape_is_short(values.data, values.len)))
		return SPOKE_OK;
	return check_any(values, ret_count);
}

int spokei_call_prepare(const struct spoke_method *method, struct spoke_span values,
			const struct spoke_call_options *options, struct spokei_call_args *ret)
{
	const struct spokei_caller *caller = method->caller;
	int error = spokei_engine_check(caller->engine);

	if (error)
		return error;
	if (caller->closed)
		return SPOKE_ECLOSED;
	if (options->timeout_ns > SPOKEI_TIMEOUT_MAX_NS)
		return SPOKE_ERANGE;
	error = check_values(values, &ret->count);
	if (error == 0 && options->attachments.len > 0)
		error = spokei_attachments_check(options->attachments, false);
	if (error)
		return spokei_link_refused(caller->link, error, SPOKEI_REFUSED_BY_ATTACHMENTS);
	if (SPOKEI_UNLIKELY(method->type_count) && method->type_count != ret->count)
		return SPOKE_EINVAL;
	ret->values = values;
	ret->attachments = options->attachments;
	ret->key = options->hash_key;
	ret->timeout_ns = options->timeout_ns ? options->timeout_ns : method->settings.timeout_ns;
	ret->policy = NULL;
	ret->lease = NULL;
	ret->one_way = options->one_way;
	ret->optional = false;
	return SPOKE_OK;
}

/* --- calls */

/* Takes a cell for a call that has not begun. Returns 0, SPOKE_ELIMIT or SPOKE_ENOMEM. */
static int new_call(struct spoke_method *method, struct spokei_call **ret_call)
{
	struct spokei_call *call;
	void *cell;
	uint64_t handle;
	int error = spokei_slab_take(&method->caller->calls, &cell, &handle);

	if (error)
		return spokei_link_refused(method->caller->link, error, SPOKEI_REFUSED_BY_CALLS);
	call = cell;
	call->method = method;
	call->handle = handle;
	call->attempt.call = call;
	call->attempt.pending.lasting = true;
	call->attempt.endpoint = NULL;
	call->retry = NULL;
	call->excuses = false;
	call->filters = 0;
	call->limited = false;
	call->cancelled = false;
	call->cancel.node.next = NULL;
	*ret_call = call;
	return SPOKE_OK;
}

int spokei_call_begin(struct spoke_method *method, struct spokei_conn *conn,
		      const struct spokei_call_args *args, struct spokei_call **ret_call)
{
	struct spokei_call *call;
	int error = new_call(method, &call);

	if (error)
		return error;
	error = spokei_call_send(&call->attempt, conn, args);
	if (error) {
		spokei_slab_give(&method->caller->calls, call->handle);
		return error;
	}
	spokei_figures_count(method->figures, SPOKE_STAT_CALLS);
	*ret_call = call;
	return SPOKE_OK;
}

int spokei_call_taken(struct spokei_call *call, spoke_call_done_fn done, void *arg,
		      struct spoke_call *ret_call)
{
	call->done = done;
	call->arg = arg;
	if (ret_call)
		ret_call->handle = call->handle;
	return SPOKE_OK;
}

/* --- a call of one attempt */

/* Does the policy end each call of this method with the first attempt? */
static inline bool ends_with_first(const struct spokei_call_settings *settings,
				   const struct spoke_policy *policy)
{
	if (policy->attempts == SPOKE_ATTEMPTS_IN_TURN)
		return spokei_settings_retries(settings, policy) == 0;
	return policy->attempts == SPOKE_ATTEMPTS_ONE ||
	       (policy->attempts == SPOKE_ATTEMPTS_FORKED && settings->forks <= 1);
}

static inline bool takes_one(const struct spoke_method *method, const struct spokei_call_args *args)
{
	const struct spoke_policy *policy = args->policy;

	if (SPOKEI_UNLIKELY(method->settings.wait_ready || args->lease))
		return false;
	if (SPOKEI_LIKELY(policy->attempts == SPOKE_ATTEMPTS_IN_TURN) &&
	    spokei_directory_listed(method->caller->directory) <= 1)
		return true;
	return ends_with_first(&method->settings, policy);
}

static int begin_one(struct spoke_method *method, const struct spokei_call_args *args,
		     struct spokei_call **ret_call)
{
	struct spokei_endpoint *endpoint;
	struct spokei_conn *conn;
	struct spokei_call *call = NULL;
	int error;

	do {
		error = spokei_call_pick(method, args, NULL, &endpoint, &conn);
		if (error)
			return error;
		error = spokei_call_begin(method, conn, args, &call);
	} while (spokei_call_fits_elsewhere(method->caller, endpoint, error));
	if (error)
		return error;
	SPOKE_ASSERT(call != NULL);
	call->attempt.endpoint = endpoint;
	call->excuses = args->policy->excuses;
	spokei_directory_begun(endpoint, endpoint->engine->begin_ns);
	*ret_call = call;
	return SPOKE_OK;
}

/* --- a call that may take several attempts */

/* The memory that is kept for further attempts is limited as that of unsent requests is. */
static int check_kept(const struct spokei_caller *caller, const struct spokei_call_args *args)
{
	const struct spokei_link_limits *limits = &caller->link->limits;
	size_t len = args->values.len;

	if (len > limits->wire.frame_max || args->attachments.len > limits->wire.frame_max - len)
		return SPOKE_ETOOLARGE;
	if (caller->kept >= limits->queued_max)
		return spokei_link_refused(caller->link, SPOKE_ELIMIT, SPOKEI_REFUSED_BY_KEPT);
	return SPOKE_OK;
}

static int keep_args(struct spokei_call *call, const struct spokei_call_args *args)
{
	struct spokei_caller *caller = call->method->caller;

	call->retry = spokei_retry_state_keep(&caller->blocks, caller->engine->env, args);
	if (call->retry == NULL)
		return SPOKE_ENOMEM;
	caller->kept += call->retry->size;
	return SPOKE_OK;
}

static void give_up(struct spokei_call *call)
{
	SPOKE_ASSERT(!call->limited);
	struct spokei_caller *caller = call->method->caller;

	spokei_call_forget(caller, call->retry);
	spokei_slab_give(&caller->calls, call->handle);
}

/* Begins as the policy decides; the history is open. */
static int ask_first(struct spokei_call *call)
{
	struct spokei_retry_state *retry = call->retry;

	retry->inside_call = true;
	spokei_call_next(call, NULL);
	retry->inside_call = false;
	if (retry->state != SPOKEI_CALL_OVER)
		return SPOKE_OK;
	return retry->ending.error ? retry->ending.error : SPOKE_EUNAVAILABLE;
}

static int begin_asking(struct spokei_call *call)
{
	spokei_call_open(call);
	return ask_first(call);
}

static int begin_leased(struct spokei_call *call, struct spoke_lease lease)
{
	int error;

	spokei_call_open(call);
	error = spokei_leased_begin(call->retry, lease);
	return error ? error : ask_first(call);
}

/* Begins with one attempt without asking the policy, and without a history: most calls need no
 * more. If the attempt cannot begin, the policy is asked after all. */
static int begin_first(struct spokei_call *call)
{
	const struct spokei_retry_state *retry = call->retry;
	struct spokei_endpoint *endpoint;
	struct spokei_conn *conn;
	int error = spokei_call_pick_among(call->method, &retry->args, NULL, &endpoint, &conn);

	if (SPOKEI_LIKELY(error == 0))
		error = spokei_call_send(&call->attempt, conn, &retry->args);
	if (SPOKEI_UNLIKELY(error))
		return begin_asking(call);
	call->attempt.endpoint = endpoint;
	spokei_directory_begun(endpoint, endpoint->engine->begin_ns);
	return SPOKE_OK;
}

/* Does a call of this method begin with one attempt, and end with the first answer? Then its policy
 * is asked after a failure only. */
static inline bool takes_first_answer(const struct spoke_method *method,
				      const struct spoke_policy *policy)
{
	const struct spokei_call_settings *settings = &method->settings;
	bool hedges = settings->idempotent && settings->hedge_ns > 0;

	return (policy->attempts == SPOKE_ATTEMPTS_IN_TURN && !hedges) ||
	       ends_with_first(settings, policy);
}

/* *ret_excuses: the policy reports a failure as OK. */
static int begin_kept(struct spoke_method *method, const struct spokei_call_args *args,
		      struct spokei_call **ret_call, bool *ret_excuses)
{
	bool first_answer = takes_first_answer(method, args->policy);
	struct spokei_call *call;
	int error = new_call(method, &call);

	if (error)
		return error;
	error = check_kept(call->method->caller, args);
	if (error == 0)
		error = keep_args(call, args);
	if (SPOKEI_LIKELY(error == 0)) {
		call->excuses = args->policy->excuses;
		call->retry->first_answer = first_answer;
		if (SPOKEI_UNLIKELY(args->lease))
			error = begin_leased(call, *args->lease);
		else if (SPOKEI_LIKELY(first_answer && !method->settings.wait_ready))
			error = begin_first(call);
		else
			error = begin_asking(call);
	}
	if (SPOKEI_UNLIKELY(error)) {
		*ret_excuses = call->excuses;
		give_up(call);
		return error;
	}
	spokei_figures_count(call->method->figures, SPOKE_STAT_CALLS);
	*ret_call = call;
	return SPOKE_OK;
}

/* --- a call that is not sent */

/* Begins a call that is answered with a value from this side. Returns 0, SPOKE_ENOMEM or
 * SPOKE_ELIMIT. */
static int begin_answer(struct spoke_method *method, struct spoke_value value, bool fallback,
			struct spokei_call **ret_call)
{
	const struct spokei_call_args args = { .values = spokei_span(value.data, value.len) };
	struct spokei_call *call;
	int error = new_call(method, &call);

	if (error)
		return error;
	error = keep_args(call, &args);
	if (error) {
		give_up(call);
		return error;
	}
	spokei_retry_state_open(call->retry, call);
	call->retry->fallback = fallback;
	spokei_call_answer(call);
	spokei_figures_count(call->method->figures, SPOKE_STAT_CALLS);
	*ret_call = call;
	return SPOKE_OK;
}

/* --- filters and limits */

/* The filters that a call has passed. */
struct passed {
	uint32_t number; /* of the call */
	size_t count;
};

static const struct passed unfiltered;

static int refused_by_filter(const struct spoke_method *method, int error)
{
	return spokei_link_refused(method->caller->link, error, SPOKEI_REFUSED_BY_FILTER);
}

/* Asks the filters after a call that they let pass, and that could not begin. Returns its result.
 */
static struct spoke_result ask_after(const struct spoke_method *method, struct passed passed,
				     int error)
{
	struct spoke_result result = { .error = error };
	/* Without arguments, because a copy of them may be freed already. */
	struct spoke_filter_call about = spokei_method_describe(method);

	if (passed.count == 0)
		return result;
	about.number = passed.number;
	spokei_filters_after_call(method->caller->filters, passed.count, &about, &result);
	if (method->caller->closed)
		return (struct spoke_result){ .error = SPOKE_ECLOSED };
	if (result.error != error)
		(void)refused_by_filter(method, result.error);
	return result;
}

/* Ends a call that could not begin because of `error`. Returns the error of its result; OK: the
 * result has a value, and a call has begun that ends with it. */
static int refuse(struct spoke_method *method, const struct spoke_result *result, int error,
		  struct spokei_call **ret_call)
{
	if (result->error)
		return result->error;
	return begin_answer(method, result->value, result->fallback, ret_call) ? error : SPOKE_OK;
}

/* Takes a call that limits and filters allow. */
static int take_allowed(struct spoke_method *method, const struct spokei_call_args *args,
			struct passed passed, struct spokei_call **ret_call)
{
	bool excuses = args->policy->excuses;
	struct spoke_result result;
	int error;

	if (SPOKEI_LIKELY(takes_one(method, args)))
		error = begin_one(method, args, ret_call);
	else
		error = begin_kept(method, args, ret_call, &excuses);
	if (SPOKEI_LIKELY(error == 0)) {
		(*ret_call)->filters = (uint8_t)passed.count;
		(*ret_call)->number = passed.number;
		return SPOKE_OK;
	}
	result = ask_after(method, passed, error);
	spokei_call_settle_error(method, excuses, &result);
	return refuse(method, &result, error, ret_call);
}

/* Begins or refuses a call, as filters have decided. */
static int carry_out(struct spoke_method *method, const struct spokei_call_args *args,
		     const struct spoke_filter_verdict *verdict, struct passed passed,
		     struct spokei_call **ret_call)
{
	struct spoke_result result;
	int error;

	if (verdict->step == SPOKE_FILTER_GO_ON)
		return take_allowed(method, args, passed, ret_call);
	if (verdict->step == SPOKE_FILTER_REFUSE) {
		error = refused_by_filter(method, verdict->error ? verdict->error : SPOKE_EREFUSED);
		result = ask_after(method, passed, error);
		return refuse(method, &result, error, ret_call);
	}
	error = begin_answer(method, verdict->value, false, ret_call);
	if (error == 0) {
		(*ret_call)->filters = (uint8_t)passed.count;
		(*ret_call)->number = passed.number;
	}
	return error;
}

static int take_filtered(struct spoke_method *method, const struct spokei_call_args *args,
			 const struct spoke_trace_context *trace, struct spokei_call **ret_call)
{
	const struct spokei_caller *caller = method->caller;
	struct spoke_filter_call about = spokei_method_describe(method);
	struct spokei_call_args with = *args;
	struct passed passed = { .number = spokei_engine_number(caller->engine) };
	struct spoke_filter_verdict verdict;
	struct spokei_buffer added; /* attachments of the filters, and the user's */
	int error = SPOKE_ECLOSED;

	spokei_buffer_init(&added, caller->engine->env, caller->link->limits.wire.frame_max);
	about.number = passed.number;
	about.args = args->values;
	about.attachments = args->attachments;
	about.one_way = args->one_way;
	about.trace = trace;
	verdict = spokei_filters_before_call(caller->filters, &about, &added, &passed.count);
	with.attachments = about.attachments;
	with.optional = args->attachments.len == 0;
	/* A filter may have closed the consumer. */
	if (!caller->closed)
		error = carry_out(method, &with, &verdict, passed, ret_call);
	spokei_buffer_fini(&added);
	return error;
}

/* Takes a call of a method with limits, or of a consumer with filters. */
static SPOKEI_NOINLINE int take_guarded(struct spoke_method *method,
					const struct spokei_call_args *args,
					const struct spoke_trace_context *trace,
					struct spokei_call **ret_call)
{
	const struct spokei_caller *caller = method->caller;
	enum spokei_limit_reached reached = spokei_limit_take(&method->limit,
							      caller->engine->begin_ns);
	int error;

	if (reached) {
		return spokei_link_refused(caller->link, SPOKE_ELIMIT,
					   reached == SPOKEI_LIMIT_RATE
						   ? SPOKEI_REFUSED_BY_RATE
						   : SPOKEI_REFUSED_BY_ACTIVES);
	}
	if (caller->filters)
		error = take_filtered(method, args, trace, ret_call);
	else
		error = take_allowed(method, args, unfiltered, ret_call);
	if (error)
		spokei_limit_give(&method->limit);
	else
		(*ret_call)->limited = true;
	return error;
}

static int take_call(struct spoke_method *method, struct spoke_span values,
		     const struct spoke_call_options *options, struct spokei_call **ret_call)
{
	struct spokei_caller *caller = method->caller;
	struct spokei_call_args args;
	int error;

	if (SPOKEI_UNLIKELY(caller->pushes))
		return SPOKE_EINVAL;
	error = spokei_call_prepare(method, values, options, &args);
	if (error)
		return error;
	if (SPOKEI_UNLIKELY(options->lease.leases)) {
		args.lease = &options->lease;
		error = spokei_leased_check(caller->engine, options);
		if (error)
			return error;
	}
	args.policy = options->policy ? options->policy : method->settings.policy;
	if (SPOKEI_LIKELY(!method->limit.is_set && caller->filters == NULL))
		error = take_allowed(method, &args, unfiltered, ret_call);
	else
		error = take_guarded(method, &args, options->trace, ret_call);
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

	if (SPOKEI_UNLIKELY(error))
		return spokei_limits_refuse(method, error, args.len);
	return spokei_call_taken(call, done, arg, ret_call);
}
