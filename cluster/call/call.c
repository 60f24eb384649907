/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beginning of a call: checks, limits and filters; then the first attempt, or a refusal. Its
 * end: the result, its callback, and the callback of its ticket. The calls of a caller as a set.
 */
#include "cluster/call/call.h"

#include "cluster/call/caller.h"
#include "cluster/call/journalled.h"
#include "cluster/call/method.h"
#include "cluster/call/report.h"
#include "cluster/call/retry.h"
#include "cluster/config/keys.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/endpoint.h"
#include "cluster/filter/filter.h"
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "core/value/builder.h"
#include "core/value/shape.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/wire/message.h"

#include <spoke/consumer.h>

#include <string.h>

static const unsigned char nil[] = { 0xc0 };
const struct spoke_value spokei_call_nil = { nil, sizeof(nil) };

/* --- values in place of errors */

/* The fallback of a method keeps the error of a handler. */
void spokei_fallback_apply(struct spoke_result *result, struct spoke_value value)
{
	static const struct spoke_span none;

	if (value.len == 0 ||
	    spokei_error_of(result->error)->replaced != SPOKEI_REPLACED_BY_FALLBACK)
		return;
	result->error = SPOKE_OK;
	result->value = value;
	result->attachments = (struct spoke_value){ NULL, 0 };
	result->error_text = none;
	result->error_class = none;
	result->error_code = 0;
	result->fallback = true;
}

static void excuse(const struct spoke_method *method, struct spoke_result *result)
{
	if (!spokei_error_is_replaced(result->error))
		return;
	spokei_event(method->caller->engine, result->error, "call failed, and is excused");
	result->error = SPOKE_OK;
	result->value = spokei_call_nil;
}

/* Replaces the error of a result, at each end of a call: by the method's fallback, else, if the
 * policy excuses the failure, by OK with nil. An error that the user has caused stays. */
static void settle_error(const struct spoke_method *method, bool excuses,
			 struct spoke_result *result)
{
	if (method->fallback.len)
		spokei_fallback_apply(result, method->fallback);
	if (excuses)
		excuse(method, result);
}

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

static SPOKEI_INLINE int prepare(const struct spoke_method *method, struct spoke_span values,
				 const struct spoke_call_options *options,
				 struct spokei_call_args *ret)
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
	ret->cut = false;
	ret->optional = false;
	return SPOKE_OK;
}

int spokei_call_prepare(const struct spoke_method *method, struct spoke_span values,
			const struct spoke_call_options *options, struct spokei_call_args *ret)
{
	return prepare(method, values, options, ret);
}

/* --- an attempt */

static void attempt_done(struct spokei_pending *pending, const struct spokei_outcome *outcome);

/* Returns the only listed endpoint if it is ready and may take a call on its one connection, the
 * usual case; NULL: a choice has to be made. */
static inline struct spokei_endpoint *sole_of(const struct spokei_directory *directory,
					      struct spokei_conn **ret_conn)
{
	struct spokei_endpoint *sole = directory->sole;

	if (SPOKEI_UNLIKELY(sole == NULL || sole->lines[0].open == NULL ||
			    !spokei_conn_is_ready(sole->lines[0].open) ||
			    sole->actives >= directory->settings.actives_max))
		return NULL;
	*ret_conn = sole->lines[0].open;
	return sole;
}

static SPOKEI_INLINE int pick(struct spoke_method *method, const struct spokei_call_args *args,
			      const struct spokei_tried *tried,
			      struct spokei_endpoint **ret_endpoint, struct spokei_conn **ret_conn)
{
	struct spokei_endpoint *sole = sole_of(method->caller->directory, ret_conn);

	if (SPOKEI_UNLIKELY(sole == NULL || method->any_version || method->any_group ||
			    args->attachments.len > 0))
		return spokei_call_pick_among(method, args, tried, ret_endpoint, ret_conn);
	*ret_endpoint = sole;
	method->sticky = sole->id;
	return SPOKE_OK;
}

int spokei_call_pick(struct spoke_method *method, const struct spokei_call_args *args,
		     const struct spokei_tried *tried, struct spokei_endpoint **ret_endpoint,
		     struct spokei_conn **ret_conn)
{
	return pick(method, args, tried, ret_endpoint, ret_conn);
}

/* Puts the request of a call for this connection together, in `request`, which is good until the
 * next one. Returns 0, SPOKE_EUNSUPPORTED (the wire cannot carry all of it) or an error of
 * turn_to().
 */
static inline int fill(struct spoke_method *method, struct spokei_conn *conn,
		       const struct spokei_call_args *args)
{
	struct spokei_message *request = &method->request;
	const struct spokei_buffer *prefix = &method->prefix.bytes;
	int error = SPOKE_OK;

	request->args = args->values;
	request->arg_count = args->count;
	request->attachments = args->attachments;
	request->two_way = !args->one_way;
	/* Attachments that the wire cannot carry are rejected, not dropped. */
	if (SPOKEI_UNLIKELY(!conn->wire->attachments)) {
		if (args->optional)
			request->attachments = (struct spoke_value){ NULL, 0 };
		if (request->version.len || request->group.len || request->attachments.len)
			return SPOKE_EUNSUPPORTED;
	}
	if (SPOKEI_UNLIKELY(method->prefix.wire != conn->wire ||
			    method->prefix.profile != conn->profile_id))
		error = spokei_method_turn_to(method, conn);
	request->prefix = spokei_span(spokei_buffer_data(prefix), spokei_buffer_len(prefix));
	return error;
}

static SPOKEI_INLINE int send_as(struct spokei_attempt *attempt, struct spokei_conn *conn,
				 const struct spokei_call_args *args, spokei_conn_guard_fn guard)
{
	struct spoke_method *method = attempt->call->method;
	struct spokei_pending *pending = &attempt->pending;
	int error = fill(method, conn, args);

	if (error)
		return error;
	/* The rest is set by spokei_conn_call(), or stays as the last attempt has left it. */
	pending->node.next = NULL;
	pending->conn = NULL;
	pending->unsent = NULL;
	pending->begun_ns = 0;
	pending->written_ns = 0;
	pending->timeout_ns = args->timeout_ns;
	pending->done = attempt_done;
	attempt->endpoint = NULL;
	if (SPOKEI_UNLIKELY(guard))
		error = spokei_conn_call_guarded(conn, pending, &method->request, guard);
	else
		error = spokei_conn_call(conn, pending, &method->request);
	return SPOKEI_UNLIKELY(error == SPOKE_ESTATE) ? SPOKE_EUNAVAILABLE : error;
}

int spokei_call_send(struct spokei_attempt *attempt, struct spokei_conn *conn,
		     const struct spokei_call_args *args, spokei_conn_guard_fn guard)
{
	return send_as(attempt, conn, args, guard);
}

/* --- calls that begin */

/* Takes a cell for a call that has not begun. Returns 0, SPOKE_ELIMIT or SPOKE_ENOMEM. */
static SPOKEI_INLINE int new_call(struct spoke_method *method, struct spokei_call **ret_call)
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
	call->retry = NULL;
	call->excuses = false;
	call->filters = 0;
	call->limited = false;
	call->cancelled = false;
	call->cancel.node.next = NULL;
	*ret_call = call;
	return SPOKE_OK;
}

/* As spokei_call_begin(). */
static SPOKEI_INLINE int begin_at(struct spoke_method *method, struct spokei_conn *conn,
				  const struct spokei_call_args *args,
				  struct spokei_call **ret_call)
{
	struct spokei_call *call;
	int error = new_call(method, &call);

	if (error)
		return error;
	error = send_as(&call->attempt, conn, args, NULL);
	if (error) {
		spokei_slab_give_cell(&method->caller->calls, call);
		return error;
	}
	spokei_figures_count(method->figures, SPOKE_STAT_CALLS);
	*ret_call = call;
	return SPOKE_OK;
}

int spokei_call_begin(struct spoke_method *method, struct spokei_conn *conn,
		      const struct spokei_call_args *args, struct spokei_call **ret_call)
{
	return begin_at(method, conn, args, ret_call);
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

	/* A marked call may go to the only endpoint again. */
	if (SPOKEI_UNLIKELY(method->settings.bounded || args->lease))
		return args->lease == NULL && !spokei_settings_bound_one(&method->settings) &&
		       ends_with_first(&method->settings, policy);
	if (SPOKEI_LIKELY(policy->attempts == SPOKE_ATTEMPTS_IN_TURN) &&
	    spokei_directory_listed(method->caller->directory) <= 1)
		return true;
	return ends_with_first(&method->settings, policy);
}

/* Begins a call whose only attempt it is. Returns as spoke_call(). */
static SPOKEI_INLINE int begin_one(struct spoke_method *method, const struct spokei_call_args *args,
				   struct spokei_call **ret_call)
{
	struct spokei_endpoint *endpoint;
	struct spokei_conn *conn;
	struct spokei_call *call = NULL;
	int error;

	do {
		error = pick(method, args, NULL, &endpoint, &conn);
		if (error)
			return error;
		error = begin_at(method, conn, args, &call);
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

/* The memory that is kept for further attempts is limited as that of unsent requests is. Tickets
 * have a limit of their own. */
static int check_kept(const struct spokei_caller *caller, const struct spokei_call_args *args)
{
	const struct spokei_link_limits *limits = &caller->link->limits;
	size_t len = args->values.len;

	if (len > limits->wire.frame_max || args->attachments.len > limits->wire.frame_max - len)
		return SPOKE_ETOOLARGE;
	if (caller->kept - caller->retry.bytes >= limits->queued_max)
		return spokei_link_refused(caller->link, SPOKE_ELIMIT, SPOKEI_REFUSED_BY_KEPT);
	return SPOKE_OK;
}

static void give_up(struct spokei_call *call)
{
	SPOKE_ASSERT(!call->limited);
	struct spokei_caller *caller = call->method->caller;

	spokei_retry_state_free(caller, call->retry);
	spokei_slab_give_cell(&caller->calls, call);
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

/* Begins a call that may take several attempts: with one, without asking the policy and without a
 * history, if its first answer ends it; else, and if that attempt cannot begin, as the policy
 * decides. `lease` may be NULL. Returns as spoke_call(); after an error the call was not begun. */
static int begin_first(struct spokei_call *call, const struct spoke_lease *lease)
{
	struct spokei_retry_state *retry = call->retry;
	struct spokei_endpoint *endpoint;
	struct spokei_conn *conn;
	int error;

	/* Most calls need no history. */
	if (SPOKEI_UNLIKELY(!retry->first_answer || lease || call->method->settings.wait_ready))
		return spokei_call_begin_asking(call, lease);
	error = spokei_call_pick(call->method, &retry->args, NULL, &endpoint, &conn);
	if (SPOKEI_LIKELY(error == 0))
		error = spokei_call_send_first(call, endpoint, conn);
	if (SPOKEI_UNLIKELY(error))
		return spokei_call_begin_asking(call, NULL);
	call->attempt.endpoint = endpoint;
	spokei_directory_begun(endpoint, endpoint->engine->begin_ns);
	return SPOKE_OK;
}

/* *ret_excuses: the policy reports a failure as OK. */
static SPOKEI_NOINLINE int begin_kept(struct spoke_method *method,
				      const struct spokei_call_args *args,
				      struct spokei_call **ret_call, bool *ret_excuses)
{
	struct spokei_call *call;
	int error = new_call(method, &call);

	if (error)
		return error;
	error = check_kept(call->method->caller, args);
	if (error == 0)
		error = spokei_retry_state_new(call, args);
	if (SPOKEI_LIKELY(error == 0)) {
		call->excuses = args->policy->excuses;
		call->retry->first_answer = takes_first_answer(method, args->policy);
		error = begin_first(call, args->lease);
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

static void answer_later(struct spokei_call *call);

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
	error = spokei_retry_state_new(call, &args);
	if (error) {
		give_up(call);
		return error;
	}
	spokei_retry_state_open(call->retry);
	call->retry->fallback = fallback;
	answer_later(call);
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

/* Returns what filters are told of a call of this method, without its arguments. */
static struct spoke_filter_call describe(const struct spoke_method *method)
{
	const struct spokei_message *request = &method->request;

	return (struct spoke_filter_call){
		.service = method->service,
		.version = request->version,
		.group = request->group,
		.method = request->method,
	};
}

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
	struct spoke_filter_call about = describe(method);

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

/* Ends a call that limits and filters allow, and that could not begin. Returns as refuse(). */
static SPOKEI_NOINLINE int give_up_allowed(struct spoke_method *method, struct passed passed,
					   bool excuses, int error, struct spokei_call **ret_call)
{
	struct spoke_result result = ask_after(method, passed, error);

	settle_error(method, excuses, &result);
	if (result.error == SPOKE_OK)
		method->caller->journal_refusal = SPOKE_OK;
	return refuse(method, &result, error, ret_call);
}

/* Takes a call that limits and filters allow. */
static SPOKEI_INLINE int take_allowed(struct spoke_method *method,
				      const struct spokei_call_args *args, struct passed passed,
				      struct spokei_call **ret_call)
{
	bool excuses = args->policy->excuses;
	int error;

	if (SPOKEI_LIKELY(takes_one(method, args)))
		error = begin_one(method, args, ret_call);
	else
		error = begin_kept(method, args, ret_call, &excuses);
	if (SPOKEI_UNLIKELY(error))
		return give_up_allowed(method, passed, excuses, error, ret_call);
	(*ret_call)->filters = (uint8_t)passed.count;
	(*ret_call)->number = passed.number;
	return SPOKE_OK;
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
	struct spoke_filter_call about = describe(method);
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
	with.optional = args->optional || args->attachments.len == 0;
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

static SPOKEI_INLINE int take(struct spoke_method *method, const struct spokei_call_args *args,
			      const struct spoke_trace_context *trace,
			      struct spokei_call **ret_call)
{
	struct spokei_caller *caller = method->caller;
	int error;

	if (SPOKEI_LIKELY(!method->limit.is_set && caller->filters == NULL))
		error = take_allowed(method, args, unfiltered, ret_call);
	else
		error = take_guarded(method, args, trace, ret_call);
	if (error == 0)
		spokei_budget_called(&caller->budget, caller->engine->begin_ns);
	return error;
}

int spokei_call_take(struct spoke_method *method, const struct spokei_call_args *args,
		     const struct spoke_trace_context *trace, struct spokei_call **ret_call)
{
	return take(method, args, trace, ret_call);
}

/* Is the call made under a lease, or perhaps for a request? */
static inline bool is_bound(const struct spoke_engine *engine,
			    const struct spoke_call_options *options)
{
	return ((uintptr_t)options->lease.leases | (uintptr_t)options->parent |
		(uintptr_t)engine->request) != 0;
}

int spoke_call(struct spoke_method *method, struct spoke_span args,
	       const struct spoke_call_options *options, spoke_call_done_fn done, void *arg,
	       struct spoke_call *ret_call)
{
	static const struct spoke_call_options defaults;
	struct spokei_caller *caller = method->caller;
	struct spokei_call *call = NULL;
	struct spokei_call_args prepared;
	int error;

	if (options == NULL)
		options = &defaults;
	error = SPOKEI_UNLIKELY(caller->pushes) ? SPOKE_EINVAL
						: prepare(method, args, options, &prepared);
	if (SPOKEI_UNLIKELY(error))
		return spokei_limits_refuse(method, error, args.len);
	prepared.policy = options->policy ? options->policy : method->settings.policy;
	if (SPOKEI_UNLIKELY(is_bound(caller->engine, options)))
		return spokei_call_begin_inner(method, &prepared, options, done, arg, ret_call);
	error = take(method, &prepared, options->trace, &call);
	if (SPOKEI_UNLIKELY(error))
		return spokei_limits_refuse(method, error, args.len);
	return spokei_call_taken(call, done, arg, ret_call);
}

/* --- arguments made in place: they are packed on the stack, for the time of the call */

int spoke_call_args(struct spoke_method *method, struct spoke_args args,
		    const struct spoke_call_options *options, spoke_call_done_fn done, void *arg,
		    struct spoke_call *ret_call)
{
	struct spokei_packed packed;
	int error = spokei_args_pack(method->caller->engine->env, args, &packed);

	if (error)
		error = spokei_limits_refuse(method, error, 0);
	else
		error = spoke_call(method, packed.values, options, done, arg, ret_call);
	spokei_packed_free(&packed);
	return error;
}

/* --- filters */

static void ask_filters(const struct spokei_call *call, struct spoke_result *result)
{
	const struct spokei_retry_state *retry = call->retry;
	struct spoke_filter_call about = describe(call->method);

	about.number = call->number;
	about.took_ns = result->queued_ns + result->waited_ns;
	if (retry && retry->args.policy) {
		about.args = retry->args.values;
		about.attachments = retry->args.attachments;
		about.one_way = retry->args.one_way;
		if (retry->state != SPOKEI_CALL_FIRST) {
			uint64_t age_ns =
				spokei_retry_state_age(retry,
						       call->method->caller->engine->begin_ns);

			about.took_ns = age_ns ? age_ns : about.took_ns;
		}
	}
	spokei_filters_after_call(call->method->caller->filters, call->filters, &about, result);
}

/* --- the end of a call */

static inline void rest_if_idle(struct spokei_caller *caller)
{
	if (SPOKEI_UNLIKELY(caller->closed) && caller->calls.count == 0 && caller->idle)
		caller->idle(caller);
}

static inline void give_limit(struct spokei_call *call)
{
	if (SPOKEI_LIKELY(!call->limited))
		return;
	spokei_limit_give(&call->method->limit);
	call->limited = false;
}

/* Counts a call that was not answered. */
static SPOKEI_NOINLINE void count_failure(const struct spokei_call *call,
					  struct spoke_result *result)
{
	settle_error(call->method, call->excuses, result);
	if (result->fallback)
		spokei_figures_count(call->method->figures, SPOKE_STAT_CALLS_FALLBACK);
	spokei_figures_count(call->method->figures,
			     (enum spoke_stat)spokei_error_of(result->error)->stat);
}

static SPOKEI_INLINE void finish(struct spokei_call *call, struct spoke_result *result)
{
	struct spokei_caller *caller = call->method->caller;
	struct spokei_retry_state *retry = call->retry;
	spoke_call_done_fn done = call->done;
	void *arg = call->arg;

	if (SPOKEI_UNLIKELY(call->filters))
		ask_filters(call, result);
	if (SPOKEI_LIKELY(result->error == SPOKE_OK && !result->fallback))
		spokei_figures_count(call->method->figures, SPOKE_STAT_CALLS_OK);
	else
		count_failure(call, result);
	give_limit(call);
	spokei_task_drop(&call->cancel);
	spokei_slab_give_cell(&caller->calls, call);
	/* The texts of the result may lie in the retry state. */
	if (done)
		done(arg, result);
	if (SPOKEI_UNLIKELY(retry))
		spokei_retry_state_free(caller, retry);
	rest_if_idle(caller);
}

void spokei_call_finish(struct spokei_call *call, struct spoke_result *result)
{
	finish(call, result);
}

/* --- the end of an attempt */

/* Writes the result of a call that ends without a reply. */
static SPOKEI_NOINLINE void make_bare_result(const struct spokei_outcome *outcome,
					     struct spoke_result *ret)
{
	const char *reason = outcome->reason;

	*ret = (struct spoke_result){
		.error = outcome->error,
		.value = outcome->error ? (struct spoke_value){ NULL, 0 } : spokei_call_nil,
		.error_text = spokei_span(reason, reason ? strlen(reason) : 0),
		.written = outcome->written,
		.queued_ns = outcome->queued_ns,
		.waited_ns = outcome->waited_ns,
		.attempts = 1,
	};
}

static inline void make_result(const struct spokei_outcome *outcome, struct spoke_result *ret)
{
	const struct spokei_message *reply = outcome->reply;

	if (SPOKEI_UNLIKELY(reply == NULL)) {
		make_bare_result(outcome, ret);
		return;
	}
	ret->error = outcome->error;
	ret->value = reply->value;
	ret->attachments = reply->attachments;
	ret->error_text = reply->error_text;
	ret->error_class = reply->error_class;
	ret->error_code = reply->error_code;
	ret->written = outcome->written;
	ret->queued_ns = outcome->queued_ns;
	ret->waited_ns = outcome->waited_ns;
	ret->attempts = 1;
	ret->ticket.handle = 0;
	ret->fallback = false;
	if (ret->error == SPOKE_OK && ret->value.len == 0)
		ret->value = spokei_call_nil;
}

struct spoke_result spokei_call_result(const struct spokei_outcome *outcome)
{
	struct spoke_result result;

	make_result(outcome, &result);
	return result;
}

/* Returns whether an attempt ended because there was no connection, or none that the peer accepts:
 * its endpoint may know the reason. */
static bool lacked_conn(const struct spokei_outcome *outcome)
{
	return outcome->reply == NULL && (!outcome->written || outcome->error == SPOKE_EHANDSHAKE);
}

/* Returns the text of a result for a request that waited for its connection, and did not fit a
 * frame then. Valid until the next use of the engine. */
static const char *frame_text(const struct spoke_method *method)
{
	const struct spokei_caller *caller = method->caller;

	spokei_why_set(
		caller->engine,
		"arguments and names do not fit a frame; frame.max allows %zu bytes, raise it "
		"on both sides",
		caller->link->limits.wire.frame_max);
	return spoke_engine_why(caller->engine);
}

static void note_timeout(const struct spokei_attempt *attempt, const struct spokei_outcome *outcome)
{
	struct spokei_caller *caller = attempt->call->method->caller;

	if (outcome->error != SPOKE_ETIMEOUT && outcome->error != SPOKE_ETIMEOUT_UNSENT)
		return;
	spokei_count(caller->engine, SPOKE_STAT_ATTEMPTS_TIMEOUT);
	spokei_report_timed_out(&caller->report, attempt->endpoint ? attempt->endpoint->name : NULL,
				attempt->pending.timeout_ns);
}

/* Is the call without a history, and needs none? */
static inline bool ends_here(const struct spokei_call *call, int error)
{
	if (SPOKEI_LIKELY(call->retry == NULL))
		return true;
	return call->retry->state == SPOKEI_CALL_FIRST && (error == SPOKE_OK || call->cancelled);
}

static SPOKEI_NOINLINE void note_slow(const struct spokei_attempt *attempt,
				      const struct spokei_outcome *outcome)
{
	const struct spokei_slow_row row = {
		.figures = attempt->call->method->figures,
		.queued_ns = outcome->queued_ns,
		.took_ns = outcome->waited_ns,
		.error = outcome->error,
	};

	spokei_slow_note(&row, attempt->endpoint ? attempt->endpoint->name : "");
}

static SPOKEI_NOINLINE void notify_filters(const struct spokei_attempt *attempt,
					   const struct spokei_outcome *outcome)
{
	const struct spokei_call *call = attempt->call;
	const char *peer = attempt->endpoint ? attempt->endpoint->name : "";
	const struct spoke_filter_attempt about = {
		.number = call->number,
		.service = call->method->service,
		.method = call->method->request.method,
		.peer = spokei_span(peer, strlen(peer)),
		.error = outcome->error,
		.written = outcome->written,
		.backup = call->retry && call->retry->state != SPOKEI_CALL_FIRST &&
			  call->retry->hedged && attempt->pending.backup,
		.queued_ns = outcome->queued_ns,
		.waited_ns = outcome->waited_ns,
	};

	spokei_filters_after_attempt(call->method->caller->filters, call->filters, &about);
}

/* Notes an attempt that has failed. Returns its outcome, with the reason; `room` is for that. */
static SPOKEI_NOINLINE const struct spokei_outcome *note_failed(
	const struct spokei_attempt *attempt, const struct spokei_outcome *outcome,
	struct spokei_outcome *room)
{
	if (attempt->endpoint && lacked_conn(outcome)) {
		*room = *outcome;
		room->reason = outcome->error == SPOKE_ETOOLARGE
				       ? frame_text(attempt->call->method)
				       : spokei_endpoint_reason(attempt->endpoint);
		outcome = room;
	}
	note_timeout(attempt, outcome);
	return outcome;
}

static void attempt_done(struct spokei_pending *pending, const struct spokei_outcome *outcome)
{
	const uint64_t took_ns = outcome->queued_ns + outcome->waited_ns;
	struct spokei_attempt *attempt = spoke_container_of(pending, struct spokei_attempt,
							    pending);
	struct spokei_call *call = attempt->call;
	struct spokei_figures *figures = call->method->figures;
	struct spokei_outcome room;
	struct spoke_result result;

	if (SPOKEI_UNLIKELY(outcome->error))
		outcome = note_failed(attempt, outcome, &room);
	if (SPOKEI_LIKELY(attempt->endpoint))
		spokei_directory_ended(attempt->endpoint, outcome->error, took_ns);
	if (SPOKEI_UNLIKELY(took_ns >= figures->slow_ns))
		note_slow(attempt, outcome);
	if (SPOKEI_UNLIKELY(call->filters))
		notify_filters(attempt, outcome);
	if (SPOKEI_UNLIKELY(!ends_here(call, outcome->error))) {
		spokei_call_attempt_ended(attempt, outcome);
		return;
	}
	make_result(outcome, &result);
	if (SPOKEI_LIKELY(outcome->reply))
		spokei_histogram_add(&figures->took, took_ns);
	if (SPOKEI_UNLIKELY(call->cancelled))
		result = spokei_call_cancelled(&result);
	finish(call, &result);
}

/* Is spokei_link's prolong(). */
static uint64_t prolong(struct spokei_pending *pending, bool written, uint64_t now_ns)
{
	struct spokei_attempt *attempt = spoke_container_of(pending, struct spokei_attempt,
							    pending);

	/* Requests that carry a token are no attempts of calls. */
	if (pending->done != attempt_done || attempt->call->retry == NULL)
		return pending->timeout_ns;
	return spokei_call_prolonged(attempt, written, now_ns);
}

/* --- the end of a call with a history */

static void settle(struct spokei_call *call, struct spoke_result *result)
{
	static const enum spoke_stat stats[] = {
		[SPOKE_TICKET_SUCCESS] = SPOKE_STAT_TICKETS_SUCCESS,
		[SPOKE_TICKET_EXHAUSTED] = SPOKE_STAT_TICKETS_EXHAUSTED,
		[SPOKE_TICKET_EXPIRED] = SPOKE_STAT_TICKETS_EXPIRED,
		[SPOKE_TICKET_CANCELLED] = SPOKE_STAT_TICKETS_CANCELLED,
		[SPOKE_TICKET_REFUSED] = SPOKE_STAT_TICKETS_REFUSED,
		[SPOKE_TICKET_CLOSING] = SPOKE_STAT_TICKETS_CLOSING,
		[SPOKE_TICKET_UNKNOWN] = SPOKE_STAT_TICKETS_UNKNOWN,
		[SPOKE_TICKET_KEPT] = SPOKE_STAT_TICKETS_KEPT,
	};
	struct spokei_caller *caller = call->method->caller;
	struct spokei_retry_state *retry = call->retry;
	struct spoke_ticket_result settled = {
		.ticket = { call->handle },
		.settlement = retry->settlement,
		.attempts = retry->begun,
		.id = retry->id,
		.lasted_ns = spokei_later(retry->earlier_ns,
					  spokei_retry_state_age(retry, caller->engine->begin_ns)),
		.result = result,
	};

	if (SPOKEI_UNLIKELY(call->filters))
		ask_filters(call, result);
	if (call->excuses)
		excuse(call->method, result);
	spokei_count(caller->engine, stats[settled.settlement]);
	spokei_report_add(&caller->report,
			  settled.settlement == SPOKE_TICKET_SUCCESS ? SPOKEI_REPORT_SETTLED
								     : SPOKEI_REPORT_GIVEN_UP,
			  result->error, 0);
	spokei_task_drop(&call->cancel);
	spokei_slab_give_cell(&caller->calls, call);
	if (retry->settle)
		retry->settle(retry->settle_arg, &settled);
	/* The caller exists until the end of this turn, even if that callback has freed it. */
	if (caller->settled)
		caller->settled(caller->settled_arg, &settled);
	spokei_retry_state_free(caller, retry);
	rest_if_idle(caller);
}

/* Calls back: for the call, or for its ticket. */
static void report_end(struct spokei_call *call, struct spoke_result *result)
{
	if (call->retry->ticket == SPOKEI_TICKET_HELD)
		settle(call, result);
	else
		spokei_call_finish(call, result);
}

static void cancel_attempt(struct spokei_attempt *attempt, bool tells)
{
	if (attempt->pending.conn)
		spokei_conn_cancel(&attempt->pending, SPOKE_ECANCELED, tells);
}

/* Are providers told that the call has ended? Those of parallel attempts run all of them, unless
 * the user has cancelled the call. */
static bool tells_end(const struct spokei_call *call)
{
	const struct spoke_policy *policy = call->retry->args.policy;

	return call->cancelled || policy == NULL ||
	       (policy->attempts != SPOKE_ATTEMPTS_FORKED &&
		policy->attempts != SPOKE_ATTEMPTS_TO_ALL);
}

/* May an attempt have run that must not run twice, and that no instance can be asked about? */
static bool may_have_run(const struct spokei_retry_state *retry)
{
	if (retry->last == SPOKE_FATE_OK || retry->last == SPOKE_FATE_ANSWERED)
		return false;
	return retry->bound || (retry->unsure && spokei_journalled_is_once(retry));
}

/* `later`: the user is told later, and only then does the journal know of it. */
static void leave(struct spokei_call *call, enum spoke_ticket_settlement settlement, bool later)
{
	struct spokei_retry_state *retry = call->retry;
	bool tells = tells_end(call);

	spokei_call_move(&retry->state, SPOKEI_CALL_OVER);
	if (SPOKEI_UNLIKELY(may_have_run(retry)) &&
	    (settlement == SPOKE_TICKET_EXHAUSTED || settlement == SPOKE_TICKET_EXPIRED))
		settlement = SPOKE_TICKET_UNKNOWN;
	retry->settlement = settlement;
	if (SPOKEI_UNLIKELY(retry->journalled) && !later)
		retry->settlement = spokei_journalled_end(retry, settlement);
	spokei_retry_queue_leave(retry, true);
	spokei_task_drop(&retry->tell);
	cancel_attempt(&call->attempt, tells);
	for (struct spokei_fork *fork = retry->forks; fork; fork = fork->next)
		cancel_attempt(&fork->attempt, tells);
}

void spokei_call_end(struct spokei_call *call, enum spoke_ticket_settlement settlement,
		     struct spoke_result *result)
{
	struct spokei_retry_state *retry = call->retry;

	if (SPOKEI_UNLIKELY(call->cancelled)) {
		settlement = SPOKE_TICKET_CANCELLED;
		*result = spokei_call_cancelled(result);
	}
	leave(call, settlement, false);
	result->attempts = retry->begun;
	result->written = retry->written;
	if (retry->inside_call)
		retry->ending.error = result->error;
	else
		report_end(call, result);
}

/* --- the end, a little later */

static struct spokei_call *call_of(struct spokei_task *tell)
{
	return spoke_container_of(tell, struct spokei_retry_state, tell)->call;
}

static void tell_soon(struct spokei_call *call, void (*run)(struct spokei_task *task))
{
	call->retry->tell.run = run;
	spokei_run_soon(call->method->caller->engine, &call->retry->tell);
}

static void tell_end(struct spokei_task *task)
{
	struct spokei_call *call = call_of(task);
	struct spokei_retry_state *retry = call->retry;
	struct spoke_result result = spokei_retry_state_result(retry);

	if (call->cancelled) {
		retry->settlement = SPOKE_TICKET_CANCELLED;
		result.error = SPOKE_ECANCELED;
	}
	if (SPOKEI_UNLIKELY(retry->journalled))
		retry->settlement = spokei_journalled_end(retry, retry->settlement);
	report_end(call, &result);
}

void spokei_call_end_later(struct spokei_call *call, enum spoke_ticket_settlement settlement,
			   int error)
{
	leave(call, settlement, true);
	call->retry->ending.error = error;
	tell_soon(call, tell_end);
}

static void tell_answer(struct spokei_task *task)
{
	struct spokei_call *call = call_of(task);
	const struct spokei_retry_state *retry = call->retry;
	struct spoke_result result = {
		.value = { retry->args.values.data, retry->args.values.len },
		.fallback = retry->fallback,
	};

	if (call->cancelled)
		result = (struct spoke_result){ .error = SPOKE_ECANCELED };
	spokei_call_finish(call, &result);
}

/* Ends a call that is not sent with OK and its arguments, on the engine's soon. */
static void answer_later(struct spokei_call *call)
{
	spokei_call_move(&call->retry->state, SPOKEI_CALL_OVER);
	tell_soon(call, tell_answer);
}

static void tell_ticket(struct spokei_task *task)
{
	struct spokei_call *call = call_of(task);
	struct spokei_retry_state *retry = call->retry;
	struct spoke_result result = spokei_retry_state_result(retry);
	spoke_call_done_fn done = call->done;

	if (call->cancelled) { /* before the user had a ticket */
		spokei_call_end(call, SPOKE_TICKET_CANCELLED, &result);
		return;
	}
	retry->ticket = SPOKEI_TICKET_HELD;
	result.error = SPOKE_EDEFERRED;
	result.ticket.handle = call->handle;
	spokei_figures_count(call->method->figures, SPOKE_STAT_CALLS_DEFERRED);
	spokei_report_add(&call->method->caller->report, SPOKEI_REPORT_DEFERRED,
			  retry->ending.error, retry->pause_ns);
	give_limit(call);
	call->done = NULL;
	if (done)
		done(call->arg, &result);
}

void spokei_call_tell_ticket(struct spokei_call *call)
{
	SPOKE_ASSERT(call->retry->ticket == SPOKEI_TICKET_DUE);
	tell_soon(call, tell_ticket);
}

void spokei_call_defer(struct spokei_call *call, bool tells)
{
	struct spokei_retry_state *retry = call->retry;

	SPOKE_ASSERT(retry->ticket == SPOKEI_TICKET_NONE);
	retry->ticket = SPOKEI_TICKET_DUE;
	if (tells)
		spokei_call_tell_ticket(call);
}

int spokei_call_new_ticket(struct spoke_method *method, const struct spokei_call_args *args,
			   struct spokei_call **ret_call)
{
	struct spokei_slab *calls = &method->caller->calls;
	struct spokei_call *call;
	int error;

	/* Tickets that were promised are not subject to limits. */
	if (calls->count >= calls->max && calls->max < UINT32_MAX / 2)
		calls->max = calls->count + 1;
	error = new_call(method, &call);
	if (error)
		return error;
	call->done = NULL;
	error = spokei_retry_state_new(call, args);
	if (error) {
		spokei_slab_give_cell(calls, call);
		return error;
	}
	*ret_call = call;
	return SPOKE_OK;
}

/* --- cancelling and closing */

static void call_cancelled(struct spokei_task *task)
{
	struct spokei_call *call = spoke_container_of(task, struct spokei_call, cancel);
	struct spoke_result result = { .error = SPOKE_ECANCELED };

	if (call->retry == NULL || call->retry->state == SPOKEI_CALL_FIRST) {
		spokei_conn_cancel(&call->attempt.pending, SPOKE_ECANCELED, true);
		return;
	}
	if (call->retry->state == SPOKEI_CALL_OVER)
		return; /* its callback is queued already */
	spokei_call_end(call, SPOKE_TICKET_CANCELLED, &result);
}

bool spokei_call_cancel(struct spokei_caller *caller, struct spoke_call named)
{
	struct spokei_call *call;

	if (spokei_engine_elsewhere(caller->engine))
		return false;
	call = spokei_slab_get(&caller->calls, named.handle);
	if (call == NULL)
		return false;
	call->cancelled = true;
	if (call->attempt.pending.conn)
		spokei_conn_withdraw(&call->attempt.pending);
	call->cancel.run = call_cancelled;
	spokei_run_soon(caller->engine, &call->cancel);
	return true;
}

/* --- all calls of a caller */

static uint32_t calls_max(uint32_t pending_max, uint32_t tickets)
{
	return pending_max < UINT32_MAX / 2 - tickets ? pending_max + tickets : UINT32_MAX / 2;
}

void spokei_caller_init(struct spokei_caller *caller, struct spokei_link *link, uint32_t tickets)
{
	struct spoke_engine *engine = link->engine;

	*caller = (struct spokei_caller){ .engine = engine, .link = link };
	link->prolong = prolong;
	spokei_list_init(&caller->methods);
	spokei_report_init(&caller->report, engine, tickets ? &caller->retry.tasks : NULL);
	spokei_slab_init_lasting(&caller->calls, engine->env, sizeof(struct spokei_call),
				 calls_max(link->limits.pending_max, tickets));
}

void spokei_caller_resize(struct spokei_caller *caller, uint32_t pending_max, uint32_t tickets)
{
	caller->calls.max = calls_max(pending_max, tickets);
}

void spokei_caller_fini(struct spokei_caller *caller)
{
	struct spokei_slab *calls = &caller->calls;

	spokei_task_drop(&caller->sweep);
	spokei_report_fini(&caller->report);
	for (uint32_t i = 0; i < calls->used; i++) {
		struct spokei_call *call = spokei_slab_at(calls, i);
		int status = spoke_wheel_detach(caller->engine->wheel,
						&call->attempt.pending.timer);

		SPOKE_ASSERT(status == SPOKE_WHEEL_OK);
	}
	spokei_slab_fini(calls);
	spokei_retry_blocks_free(&caller->blocks, caller->engine->env);
}
