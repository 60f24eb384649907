/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beginning of a call: checks, limits and filters; then the first attempt, or a refusal. Its
 * end: the result, its callback, and the callback of its ticket. The calls of a caller as a set.
 */
#include "cluster/call/call.h"

#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/call/report.h"
#include "cluster/call/retry.h"
#include "cluster/config/keys.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/endpoint.h"
#include "cluster/filter/fence_table.h"
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

static bool has_key(struct spoke_value attachments, const char *key)
{
	struct spoke_value value;

	return spoke_value_get(attachments, key, &value) == SPOKE_OK;
}

/* Checks the options of a call under a lease. Returns 0, SPOKE_ELEASE, or SPOKE_EINVAL (the lease
 * is of another engine, or the attachments contain its keys). */
static int check_leased(const struct spoke_engine *engine, const struct spoke_call_options *options)
{
	if (has_key(options->attachments, SPOKEI_FENCE_NAME) ||
	    has_key(options->attachments, SPOKEI_FENCE_NUMBER))
		return SPOKE_EINVAL;
	return spokei_lease_use_check(options->lease, engine);
}

/* --- calls that begin */

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
	error = spokei_call_send(&call->attempt, conn, args, NULL);
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

/* Begins a call whose only attempt it is. Returns as spoke_call(). */
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

/* --- the memory of retry states: a free list of equal blocks; larger ones are allocated one by one
 */

#define BLOCK 1024u    /* bytes */
#define BLOCKS_MAX 64u /* that are kept */
#define EXTENSION 64u  /* bytes of two of our pairs, and of the head of a map; without a name */

/* Returns memory for `size` bytes that is not initialised, or NULL. */
static void *take_block(struct spokei_retry_blocks *blocks, const struct spoke_env *env,
			size_t size)
{
	void *block = blocks->first;

	if (size > BLOCK)
		return spokei_alloc_unset(env, size);
	if (block == NULL)
		return spokei_alloc_unset(env, BLOCK);
	memcpy(&blocks->first, block, sizeof(blocks->first));
	blocks->count--;
	return block;
}

/* Gives memory back that was taken with the same size. */
static void give_block(struct spokei_retry_blocks *blocks, const struct spoke_env *env, void *block,
		       size_t size)
{
	if (size > BLOCK) {
		spokei_free(env, block, 1, size);
	} else if (blocks->count == BLOCKS_MAX) {
		spokei_free(env, block, 1, BLOCK);
	} else {
		memcpy(block, &blocks->first, sizeof(blocks->first));
		blocks->first = block;
		blocks->count++;
	}
}

static void free_blocks(struct spokei_retry_blocks *blocks, const struct spoke_env *env)
{
	while (blocks->first)
		spokei_free(env, take_block(blocks, env, BLOCK), 1, BLOCK);
}

static struct spoke_span copy(unsigned char **at, struct spoke_span from)
{
	struct spoke_span span = spokei_span(*at, from.len);

	if (from.len)
		memcpy(*at, from.data, from.len);
	*at += from.len;
	return span;
}

/* Returns how many bytes our attachments need at most, and the head of the map; 0: there are none.
 */
static size_t room_for_ours(const struct spokei_call_args *args)
{
	size_t room = args->policy && args->policy->repeats ? EXTENSION : 0;

	if (SPOKEI_UNLIKELY(args->lease))
		room += EXTENSION + spoke_lease_name(*args->lease).len;
	return room;
}

/* Copies the arguments of a call. If it repeats its attempts, or is made under a lease, there is
 * room for attachments of ours. Returns NULL without memory. */
static struct spokei_retry_state *copy_args(struct spokei_retry_blocks *blocks,
					    const struct spoke_env *env,
					    const struct spokei_call_args *args)
{
	struct spoke_span attachments = { args->attachments.data, args->attachments.len };
	size_t size = sizeof(struct spokei_retry_state);
	size_t ours = room_for_ours(args);
	struct spokei_retry_state *retry;
	unsigned char *at;

	if (args->values.len > SIZE_MAX / 8 || attachments.len > SIZE_MAX / 8 ||
	    args->key.len > SIZE_MAX / 8)
		return NULL;
	size += args->values.len + attachments.len + args->key.len;
	if (ours)
		size += attachments.len + ours;
	retry = take_block(blocks, env, size);
	if (retry == NULL)
		return NULL;
	at = retry->bytes;
	retry->state = SPOKEI_CALL_FIRST;
	retry->ticket = SPOKEI_TICKET_NONE;
	retry->first_answer = false;
	retry->size = size;
	retry->args = *args;
	retry->args.values = copy(&at, args->values);
	attachments = copy(&at, attachments);
	retry->args.attachments = (struct spoke_value){ attachments.data, attachments.len };
	retry->args.key = copy(&at, args->key);
	retry->args.lease = NULL; /* the user's */
	retry->extended = ours ? at : NULL;
	return retry;
}

static void free_history(struct spokei_retry_state *retry, const struct spoke_env *env)
{
	if (spokei_retry_state_is_leased(retry)) {
		spokei_lease_use_end(&retry->lease);
		spokei_task_drop(&retry->lease_end);
	}
	while (retry->forks) {
		struct spokei_fork *fork = retry->forks;

		retry->forks = fork->next;
		spokei_free(env, fork, 1, sizeof(*fork));
	}
	if (retry->tried != retry->few)
		spokei_free(env, retry->tried, retry->tried_room, sizeof(*retry->tried));
}

/* Frees a retry state that does not wait, and has no attempt in flight. */
static void free_retry(struct spokei_retry_blocks *blocks, const struct spoke_env *env,
		       struct spokei_retry_state *retry)
{
	if (retry->state != SPOKEI_CALL_FIRST)
		free_history(retry, env);
	give_block(blocks, env, retry, retry->size);
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

	call->retry = copy_args(&caller->blocks, caller->engine->env, args);
	if (call->retry == NULL)
		return SPOKE_ENOMEM;
	caller->kept += call->retry->size;
	return SPOKE_OK;
}

/* Frees a retry state whose call has ended; NULL is fine. */
static void forget(struct spokei_caller *caller, struct spokei_retry_state *retry)
{
	if (retry == NULL)
		return;
	caller->kept -= retry->size;
	free_retry(&caller->blocks, caller->engine->env, retry);
}

static void give_up(struct spokei_call *call)
{
	SPOKE_ASSERT(!call->limited);
	struct spokei_caller *caller = call->method->caller;

	forget(caller, call->retry);
	spokei_slab_give(&caller->calls, call->handle);
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
	const struct spokei_retry_state *retry = call->retry;
	struct spokei_endpoint *endpoint;
	struct spokei_conn *conn;
	int error;

	/* Most calls need no history. */
	if (SPOKEI_UNLIKELY(!retry->first_answer || lease || call->method->settings.wait_ready))
		return spokei_call_begin_asking(call, lease);
	error = spokei_call_pick(call->method, &retry->args, NULL, &endpoint, &conn);
	if (SPOKEI_LIKELY(error == 0))
		error = spokei_call_send(&call->attempt, conn, &retry->args, NULL);
	if (SPOKEI_UNLIKELY(error))
		return spokei_call_begin_asking(call, NULL);
	call->attempt.endpoint = endpoint;
	spokei_directory_begun(endpoint, endpoint->engine->begin_ns);
	return SPOKE_OK;
}

/* *ret_excuses: the policy reports a failure as OK. */
static int begin_kept(struct spoke_method *method, const struct spokei_call_args *args,
		      struct spokei_call **ret_call, bool *ret_excuses)
{
	struct spokei_call *call;
	int error = new_call(method, &call);

	if (error)
		return error;
	error = check_kept(call->method->caller, args);
	if (error == 0)
		error = keep_args(call, args);
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
	error = keep_args(call, &args);
	if (error) {
		give_up(call);
		return error;
	}
	spokei_retry_state_open(call->retry, call);
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
	settle_error(method, excuses, &result);
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
		error = check_leased(caller->engine, options);
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

/* --- the end */

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

void spokei_call_finish(struct spokei_call *call, struct spoke_result *result)
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
	spokei_slab_give(&caller->calls, call->handle);
	/* The texts of the result may lie in the retry state. */
	if (done)
		done(arg, result);
	if (retry)
		forget(caller, retry);
	rest_if_idle(caller);
}

static void settle(struct spokei_call *call, struct spoke_result *result)
{
	static const enum spoke_stat stats[] = {
		[SPOKE_TICKET_SUCCESS] = SPOKE_STAT_TICKETS_SUCCESS,
		[SPOKE_TICKET_EXHAUSTED] = SPOKE_STAT_TICKETS_EXHAUSTED,
		[SPOKE_TICKET_EXPIRED] = SPOKE_STAT_TICKETS_EXPIRED,
		[SPOKE_TICKET_CANCELLED] = SPOKE_STAT_TICKETS_CANCELLED,
		[SPOKE_TICKET_REFUSED] = SPOKE_STAT_TICKETS_REFUSED,
		[SPOKE_TICKET_CLOSING] = SPOKE_STAT_TICKETS_CLOSING,
	};
	struct spokei_caller *caller = call->method->caller;
	struct spokei_retry_state *retry = call->retry;
	struct spoke_ticket_result settled = {
		.ticket = { call->handle },
		.settlement = retry->settlement,
		.attempts = retry->begun,
		.id = retry->id,
		.lasted_ns = spokei_retry_state_age(retry, caller->engine->begin_ns),
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
	spokei_slab_give(&caller->calls, call->handle);
	if (retry->settle)
		retry->settle(retry->settle_arg, &settled);
	/* The caller exists until the end of this turn, even if that callback has freed it. */
	if (caller->settled)
		caller->settled(caller->settled_arg, &settled);
	forget(caller, retry);
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

static void cancel_attempt(struct spokei_attempt *attempt)
{
	if (attempt->pending.conn)
		spokei_conn_cancel(&attempt->pending, SPOKE_ECANCELED);
}

static void leave(struct spokei_call *call, enum spoke_ticket_settlement settlement)
{
	struct spokei_retry_state *retry = call->retry;

	spokei_call_move(&retry->state, SPOKEI_CALL_OVER);
	retry->settlement = settlement;
	spokei_retry_queue_leave(retry, true);
	spokei_task_drop(&retry->tell);
	cancel_attempt(&call->attempt);
	for (struct spokei_fork *fork = retry->forks; fork; fork = fork->next)
		cancel_attempt(&fork->attempt);
}

void spokei_call_end(struct spokei_call *call, enum spoke_ticket_settlement settlement,
		     struct spoke_result *result)
{
	struct spokei_retry_state *retry = call->retry;

	if (SPOKEI_UNLIKELY(call->cancelled)) {
		settlement = SPOKE_TICKET_CANCELLED;
		*result = spokei_call_cancelled(result);
	}
	leave(call, settlement);
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
	struct spoke_result result = spokei_retry_state_result(call->retry);

	if (call->cancelled) {
		call->retry->settlement = SPOKE_TICKET_CANCELLED;
		result.error = SPOKE_ECANCELED;
	}
	report_end(call, &result);
}

void spokei_call_end_later(struct spokei_call *call, enum spoke_ticket_settlement settlement,
			   int error)
{
	leave(call, settlement);
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

void spokei_call_defer(struct spokei_call *call)
{
	struct spokei_retry_state *retry = call->retry;

	SPOKE_ASSERT(retry->ticket == SPOKEI_TICKET_NONE);
	retry->ticket = SPOKEI_TICKET_DUE;
	tell_soon(call, tell_ticket);
}

/* --- cancelling and closing */

static void call_cancelled(struct spokei_task *task)
{
	struct spokei_call *call = spoke_container_of(task, struct spokei_call, cancel);
	struct spoke_result result = { .error = SPOKE_ECANCELED };

	if (call->retry == NULL || call->retry->state == SPOKEI_CALL_FIRST) {
		spokei_conn_cancel(&call->attempt.pending, SPOKE_ECANCELED);
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
	free_blocks(&caller->blocks, caller->engine->env);
}
