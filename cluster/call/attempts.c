/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attempts of a call: asks its policy for the next step, and carries the verdict out as far as
 * deadlines, the retry budget and the rule against repeated requests allow. Picks the endpoint of
 * an attempt, sends the request there, and classifies how the attempt has ended.
 */
#include "cluster/call/attempts.h"

#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/call/report.h"
#include "cluster/call/retry.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/endpoint.h"
#include "cluster/filter/fence.h"
#include "cluster/filter/filter.h"
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/engine/slow.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

static void attempt_done(struct spokei_pending *pending, const struct spokei_outcome *outcome);

/* --- the policy */

/* Opens the history of a call. */
static void open_history(struct spokei_call *call)
{
	struct spokei_retry_state *retry = call->retry;
	const struct spoke_policy *policy = retry->args.policy;

	spokei_retry_state_open(retry, call);
	/* The result under a policy that never begins an attempt. */
	retry->ending.error = SPOKE_EUNAVAILABLE;
	retry->lasts_ns = spokei_settings_deadline(&call->method->settings, policy,
						   retry->args.timeout_ns);
	if (policy->repeats)
		retry->id = call->method->caller->next_id++;
}

/* May a request that may have run be sent again? */
static bool is_repeatable(const struct spokei_retry_state *retry)
{
	return retry->args.policy->repeats || retry->call->method->settings.idempotent;
}

/* Returns how much time is left until the deadline of the call. */
static uint64_t time_left(const struct spokei_retry_state *retry)
{
	return spokei_retry_state_left(retry, retry->call->method->caller->engine->begin_ns);
}

static uint64_t random_number(const struct spokei_retry_state *retry)
{
	const struct spoke_env *env = retry->call->method->caller->engine->env;
	uint64_t dice;

	env->dice(env->ctx, &dice, sizeof(dice));
	return dice;
}

/* Shows the history of the call to its policy, and returns the verdict. */
static struct spoke_policy_verdict ask_policy(const struct spokei_retry_state *retry)
{
	const struct spoke_policy *policy = retry->args.policy;
	const struct spokei_call_settings *settings = &retry->call->method->settings;
	struct spoke_policy_history history = {
		.begun = retry->begun,
		.open = retry->open,
		.ok = retry->ok,
		.failed = retry->failed,
		.last = retry->last,
		.repeatable = is_repeatable(retry),
		.deferred = spokei_retry_state_is_deferred(retry),
		.waited = retry->waited,
		.left_ns = time_left(retry),
		.retries = spokei_settings_retries(settings, policy),
		.forks = settings->forks,
		.fail_percent = settings->fail_percent,
		.growing = settings->growing,
		.period_ns = settings->period_ns,
	};

	if (SPOKEI_UNLIKELY(settings->hedge_ns && history.repeatable))
		history.hedge_ns = spokei_hedge_after(&retry->call->method->hedge,
						      settings->hedge_ns);
	if (settings->growing && policy->repeats)
		history.dice = random_number(retry);
	spokei_directory_count(retry->call->method->caller->directory, retry->tried,
			       retry->tried_count, &history.able, &history.fresh);
	return policy->next(&history);
}

/* --- endpoints */

/* Ids of endpoints at which a call was tried already. */
struct tried {
	const uint64_t *ids;
	size_t count;
};

/* Returns the bytes to hash without a hash key: the first argument's text, else its bytes. */
static struct spoke_span first_argument(const struct spokei_call_args *args)
{
	struct spoke_cursor cursor;
	struct spoke_value first;
	struct spoke_span text;

	if (spoke_values_check(args->values.data, args->values.len, &spokei_link_own_values,
			       &cursor, &(size_t){ 0 }) ||
	    !spoke_cursor_next(&cursor, &first))
		return spokei_span(NULL, 0);
	if (spoke_value_str(first, &text) == 0)
		return text;
	return spokei_span(first.data, first.len);
}

/* A method of any version or group asks for those of the endpoint. */
static inline int follow(struct spoke_method *method, const struct spokei_endpoint *endpoint)
{
	if (SPOKEI_LIKELY(!method->any_version && !method->any_group))
		return SPOKE_OK;
	return spokei_method_follow(method, endpoint);
}

/* Picks one for a consumer that is known to have several endpoints. */
static int pick_among(struct spoke_method *method, const struct spokei_call_args *args,
		      const struct tried *tried, struct spokei_endpoint **ret_endpoint,
		      struct spokei_conn **ret_conn)
{
	const struct spokei_caller *caller = method->caller;
	const struct spoke_balancer *balancer = method->balancer_state->balancer;
	struct spokei_ask ask = {
		.balancer_state = args->policy->in_order ? NULL : method->balancer_state,
		.key = args->key,
		.timeout_ns = method->settings.timeout_ns,
		.sticky = method->settings.sticky ? &method->sticky : NULL,
	};
	int error;

	if (tried) {
		ask.tried = tried->ids;
		ask.tried_count = tried->count;
	}
	if (SPOKEI_UNLIKELY(balancer && balancer->keyed) && args->key.len == 0)
		ask.key = first_argument(args);
	error = spokei_directory_pick(caller->directory, &ask, ret_endpoint, ret_conn);
	if (SPOKEI_LIKELY(error == SPOKE_OK))
		return follow(method, *ret_endpoint);
	/* Without a list it is not known yet that there is no provider. */
	return error == SPOKE_ENOPROVIDER && caller->awaits_list ? SPOKE_EUNAVAILABLE : error;
}

/* Picks an endpoint for a call, and the connection to it. `tried` may be NULL. Returns as
 * spokei_directory_pick(). */
static int pick(struct spoke_method *method, const struct spokei_call_args *args,
		const struct tried *tried, struct spokei_endpoint **ret_endpoint,
		struct spokei_conn **ret_conn)
{
	struct spokei_endpoint *sole = spokei_directory_sole(method->caller->directory, ret_conn);

	if (SPOKEI_UNLIKELY(sole == NULL))
		return pick_among(method, args, tried, ret_endpoint, ret_conn);
	*ret_endpoint = sole;
	method->sticky = sole->id;
	return follow(method, sole);
}

/* An endpoint had no room for an attempt: may another endpoint have room? */
static bool has_room_elsewhere(const struct spokei_caller *caller, struct spokei_endpoint *endpoint)
{
	const struct spokei_link *link = caller->link;

	return link->pending_count < link->limits.pending_max &&
	       link->queued < link->limits.queued_max && spokei_directory_full(endpoint);
}

/* The same, after the beginning of an attempt there has returned `error`. */
static inline bool fits_elsewhere(const struct spokei_caller *caller,
				  struct spokei_endpoint *endpoint, int error)
{
	return error == SPOKE_ELIMIT && has_room_elsewhere(caller, endpoint);
}

/* --- requests */

/* The rest is set by spokei_conn_call(), or stays as the last attempt has left it. */
static inline void prepare(struct spokei_attempt *attempt, uint64_t timeout_ns)
{
	struct spokei_pending *pending = &attempt->pending;

	pending->node.next = NULL;
	pending->conn = NULL;
	pending->unsent = NULL;
	pending->begun_ns = 0;
	pending->written_ns = 0;
	pending->timeout_ns = timeout_ns;
	pending->done = attempt_done;
	attempt->endpoint = NULL;
}

int spokei_call_send(struct spokei_attempt *attempt, struct spokei_conn *conn,
		     const struct spokei_call_args *args)
{
	struct spoke_method *method = attempt->call->method;
	int error = spokei_method_fill(method, conn, conn->wire, conn->profile_id, args);

	if (error)
		return error;
	prepare(attempt, args->timeout_ns);
	error = spokei_conn_call(conn, &attempt->pending, &method->request);
	return error == SPOKE_ESTATE ? SPOKE_EUNAVAILABLE : error;
}

/* Returns the result of a call that ends as this attempt did. */
static inline struct spoke_result result_of(const struct spokei_outcome *outcome)
{
	const struct spokei_message *reply = outcome->reply;
	struct spoke_result result = {
		.error = outcome->error,
		.written = outcome->written,
		.queued_ns = outcome->queued_ns,
		.waited_ns = outcome->waited_ns,
		.attempts = 1,
	};

	if (SPOKEI_LIKELY(reply)) {
		result.value = reply->value;
		result.attachments = reply->attachments;
		result.error_text = reply->error_text;
		result.error_class = reply->error_class;
		result.error_code = reply->error_code;
	} else if (outcome->reason) {
		result.error_text = spokei_span(outcome->reason, strlen(outcome->reason));
	}
	if (result.error == SPOKE_OK && result.value.len == 0)
		result.value = spokei_call_nil;
	return result;
}

/* Returns whether an attempt ended because there was no connection, or none that the peer accepts:
 * its endpoint may know the reason. */
static bool lacked_conn(const struct spokei_outcome *outcome)
{
	return outcome->reply == NULL && (!outcome->written || outcome->error == SPOKE_EHANDSHAKE);
}

/* Returns what the end of an attempt means for another attempt. */
static enum spoke_policy_fate fate_of(int error, bool written)
{
	if (error == SPOKE_OK)
		return SPOKE_FATE_OK;
	switch ((enum spokei_error_fate)spokei_error_of(error)->fate) {
	case SPOKEI_FATE_ANSWERED:
		return SPOKE_FATE_ANSWERED;
	case SPOKEI_FATE_SAFE:
		return SPOKE_FATE_SAFE;
	case SPOKEI_FATE_WRITTEN:
		break;
	}
	return written ? SPOKE_FATE_UNSURE : SPOKE_FATE_SAFE;
}

/*
 * --- calls under a lease. Such a call always has a retry state with a history, and is a use of its
 * lease: when the lease ends, requests that are not written are taken back at once, and the call
 * ends with ELEASE a little later. Each attempt begins with a look at the clock, and each request
 * is guarded by another one right before it is written.
 */

static bool has_key(struct spoke_value attachments, const char *key)
{
	struct spoke_value value;

	return spoke_value_get(attachments, key, &value) == SPOKE_OK;
}

int spokei_leased_check(const struct spoke_engine *engine, const struct spoke_call_options *options)
{
	if (has_key(options->attachments, SPOKEI_FENCE_NAME) ||
	    has_key(options->attachments, SPOKEI_FENCE_NUMBER))
		return SPOKE_EINVAL;
	return spokei_lease_use_check(options->lease, engine);
}

/* Returns how long the lease of a call is surely valid. Reads the clock. */
static uint64_t lease_left(const struct spokei_retry_state *retry)
{
	if (spokei_lease_use_is_over(&retry->lease))
		return 0;
	return spoke_lease_left(retry->lease.lease);
}

static int guard(struct spokei_pending *pending)
{
	const struct spokei_attempt *attempt = spoke_container_of(pending, struct spokei_attempt,
								  pending);

	return lease_left(attempt->call->retry) > 0 ? SPOKE_OK : SPOKE_ELEASE;
}

/* Sends the guarded request of an attempt, which may take as long as is left of the lease. Returns
 * as spoke_call(). */
static int send_guarded(struct spokei_attempt *attempt, struct spokei_conn *conn,
			struct spokei_call_args *args)
{
	struct spoke_method *method = attempt->call->method;
	uint64_t left_ns = lease_left(attempt->call->retry);
	int error = SPOKE_ELEASE;

	if (left_ns > 0)
		error = spokei_method_fill(method, conn, conn->wire, conn->profile_id, args);
	if (error)
		return error;
	if (args->timeout_ns > left_ns)
		args->timeout_ns = left_ns;
	prepare(attempt, args->timeout_ns);
	error = spokei_conn_call_guarded(conn, &attempt->pending, &method->request, guard);
	return error == SPOKE_ESTATE ? SPOKE_EUNAVAILABLE : error;
}

/*
 * Returns how an attempt of such a call has ended; `room` is for the result. If it was not written
 * and the lease is over, it has ended because of that, whichever error came first. The policy must
 * not try again then, but may wait for the answers of other attempts.
 */
static const struct spokei_outcome *leased_outcome(const struct spokei_retry_state *retry,
						   const struct spokei_outcome *outcome,
						   struct spokei_outcome *room,
						   enum spoke_policy_fate *fate)
{
	if (outcome->error != SPOKE_ELEASE &&
	    (outcome->written || !spokei_lease_use_is_over(&retry->lease)))
		return outcome;
	*room = *outcome;
	room->error = SPOKE_ELEASE;
	room->reply = NULL;
	*fate = retry->open > 0 ? SPOKE_FATE_SAFE : SPOKE_FATE_ANSWERED;
	return room;
}

/* Returns whether the attempt is in flight, and can still be taken back. */
static bool is_unwritten(const struct spokei_attempt *attempt)
{
	return attempt->pending.conn != NULL && !spokei_conn_may_be_written(&attempt->pending);
}

static struct spokei_attempt *find_unwritten(struct spokei_retry_state *retry)
{
	if (is_unwritten(&retry->call->attempt))
		return &retry->call->attempt;
	for (struct spokei_fork *fork = retry->forks; fork; fork = fork->next)
		if (is_unwritten(&fork->attempt))
			return &fork->attempt;
	return NULL;
}

static bool is_any_written(const struct spokei_retry_state *retry)
{
	uint32_t unwritten = is_unwritten(&retry->call->attempt);

	for (const struct spokei_fork *fork = retry->forks; fork; fork = fork->next)
		unwritten += is_unwritten(&fork->attempt);
	return retry->open > unwritten;
}

/* Ends the attempts that were not written; others of the same call may still be answered. The call,
 * and with it the retry state, may end meanwhile. */
static void end_attempts(struct spokei_retry_state *retry)
{
	struct spokei_call *call = retry->call;
	struct spokei_caller *caller = call->method->caller;
	const uint64_t handle = call->handle;
	struct spokei_attempt *attempt;

	while (spokei_slab_get(&caller->calls, handle) == call &&
	       retry->state == SPOKEI_CALL_SENDING && (attempt = find_unwritten(retry)) != NULL)
		spokei_conn_cancel(&attempt->pending, SPOKE_ELEASE);
}

static void end_call(struct spokei_task *task)
{
	struct spokei_retry_state *retry = spoke_container_of(task, struct spokei_retry_state,
							      lease_end);
	struct spoke_result result = { .error = SPOKE_ELEASE };

	if (retry->state == SPOKEI_CALL_OVER)
		return; /* its callback is queued already */
	if (is_any_written(retry))
		end_attempts(retry);
	else
		spokei_call_end(retry->call, SPOKE_TICKET_EXHAUSTED, &result);
}

static void withdraw(struct spokei_attempt *attempt)
{
	if (attempt->pending.conn)
		spokei_conn_withdraw(&attempt->pending);
}

static void lease_over(struct spokei_lease_use *use)
{
	struct spokei_retry_state *retry = spoke_container_of(use, struct spokei_retry_state,
							      lease);

	if (retry->state == SPOKEI_CALL_OVER)
		return;
	withdraw(&retry->call->attempt);
	for (struct spokei_fork *fork = retry->forks; fork; fork = fork->next)
		withdraw(&fork->attempt);
	retry->lease_end.run = end_call;
	spokei_engine_soon(retry->call->method->caller->engine, &retry->lease_end);
}

/* Makes a call whose history is open a use of the lease. Returns as spokei_lease_use_begin(). */
static int begin_leased(struct spokei_retry_state *retry, struct spoke_lease lease)
{
	retry->lease.over = lease_over;
	return spokei_lease_use_begin(lease, retry->call->method->caller->engine, &retry->lease);
}

/* --- one attempt */

/* Returns the time that an attempt may take: not more than is left until the deadline, nor than is
 * left of its timeout after it has waited for an endpoint. */
static uint64_t time_of_attempt(const struct spokei_retry_state *retry)
{
	uint64_t left_ns = time_left(retry);
	uint64_t time_ns = retry->args.timeout_ns;

	if (retry->was_unready) {
		uint64_t age_ns =
			spokei_retry_state_age(retry,
					       retry->call->method->caller->engine->begin_ns);

		time_ns = time_ns > age_ns ? time_ns - age_ns : 0;
	}
	return time_ns < left_ns ? time_ns : left_ns;
}

/* Returns the endpoints to avoid: those of all attempts, or of a ticket that of the last one. */
static struct tried tried_of(const struct spokei_retry_state *retry)
{
	struct tried tried = { retry->tried, retry->tried_count };

	if (spokei_retry_state_is_deferred(retry) && tried.count > 0) {
		tried.ids += tried.count - 1;
		tried.count = 1;
	}
	return tried;
}

/* Does the call wait until an endpoint can take it? `error`: why no attempt could begin. */
static bool waits_for_endpoint(const struct spokei_retry_state *retry, int error)
{
	return error == SPOKE_EUNAVAILABLE && retry->call->method->settings.wait_ready &&
	       !spokei_retry_state_is_deferred(retry) && retry->open == 0 &&
	       !retry->args.policy->repeats;
}

/* Has an endpoint an attempt of this call in flight, so that it must not get a second one? */
static bool is_asked_twice(const struct spokei_retry_state *retry, const struct tried *tried,
			   uint64_t endpoint)
{
	for (size_t i = 0; i < tried->count && retry->open > 0; i++)
		if (tried->ids[i] == endpoint)
			return true;
	return false;
}

/* Begins an attempt at an endpoint that is picked; *ret_endpoint is NULL if there was none. */
static int begin_somewhere(struct spokei_retry_state *retry, struct spokei_attempt *attempt,
			   struct spokei_endpoint **ret_endpoint)
{
	struct spokei_call *call = retry->call;
	struct spokei_caller *caller = call->method->caller;
	struct tried tried = tried_of(retry);
	struct spokei_call_args args;
	struct spokei_conn *conn;
	int error;

	*ret_endpoint = NULL;
	error = pick(call->method, &retry->args, &tried, ret_endpoint, &conn);
	if (error)
		return error;
	if (is_asked_twice(retry, &tried, (*ret_endpoint)->id))
		return SPOKE_EUNAVAILABLE;
	/* A connection that is not open yet may never be, so the call waits for the first endpoint
	 * that is ready. If one is, and refuses calls, no event would wake the call. */
	if (spokei_conn_is_opening(conn) && caller->directory->barren &&
	    waits_for_endpoint(retry, SPOKE_EUNAVAILABLE))
		return SPOKE_EUNAVAILABLE;
	/* The last attempt may have used a wire with attachments, and this one may not. */
	retry->extended_len = 0;
	if (retry->extended && conn->wire->attachments)
		spokei_retry_state_attach(retry);
	error = spokei_retry_state_try(retry, caller->engine->env, (*ret_endpoint)->id);
	if (error)
		return error;
	args = spokei_retry_state_args(retry, time_of_attempt(retry));
	if (SPOKEI_UNLIKELY(spokei_retry_state_is_leased(retry)))
		return send_guarded(attempt, conn, &args);
	return spokei_call_send(attempt, conn, &args);
}

/* Sends an attempt of a call to an endpoint without one. Returns as spoke_call(). */
static int send_one(struct spokei_retry_state *retry)
{
	struct spokei_caller *caller = retry->call->method->caller;
	struct spokei_attempt *attempt = spokei_retry_state_attempt(retry, caller->engine->env);
	struct spokei_endpoint *endpoint;
	int error;

	if (attempt == NULL)
		return SPOKE_ENOMEM;
	if (SPOKEI_UNLIKELY(spokei_retry_state_is_leased(retry)) && lease_left(retry) == 0)
		return SPOKE_ELEASE;
	/* Of several attempts at a time each has one endpoint only. */
	do
		error = begin_somewhere(retry, attempt, &endpoint);
	while (endpoint && !retry->fans_out && fits_elsewhere(caller, endpoint, error));
	if (error)
		return error;
	SPOKE_ASSERT(endpoint != NULL);
	attempt->endpoint = endpoint;
	attempt->pending.backup = retry->open > 0 && retry->waited;
	retry->hedged |= attempt->pending.backup;
	spokei_directory_begun(endpoint, endpoint->engine->begin_ns);
	retry->open++;
	return SPOKE_OK;
}

/* --- the next step */

enum sent {
	SENT_SOME,  /* the call goes on when an attempt ends, or when its wait is over */
	SENT_NONE,  /* all attempts have failed already */
	SENT_NEVER, /* the request must not be sent again */
};

/* Is the next attempt one beside another that is slow? */
static bool is_backup(const struct spokei_retry_state *retry)
{
	return retry->open > 0 && retry->waited;
}

static bool may_send_again(struct spokei_retry_state *retry)
{
	struct spokei_caller *caller = retry->call->method->caller;
	bool backup = is_backup(retry);

	if ((backup || retry->last == SPOKE_FATE_UNSURE) && !is_repeatable(retry))
		return false;
	if (spokei_budget_take(&caller->budget, caller->engine->begin_ns)) {
		spokei_count(caller->engine, backup ? SPOKE_STAT_HEDGES : SPOKE_STAT_RETRIES);
		if (!backup && !retry->retried && !spokei_retry_state_is_deferred(retry)) {
			retry->retried = true;
			spokei_report_add(&caller->report, SPOKEI_REPORT_RETRIED, SPOKE_OK, 0);
		}
		return true;
	}
	spokei_count(caller->engine, SPOKE_STAT_RETRIES_UNFUNDED);
	return false;
}

/* The retry cannot begin now. A ticket without budget pauses once more, which is no attempt. */
static enum sent postpone(struct spokei_retry_state *retry)
{
	struct spokei_call *call = retry->call;

	if (retry->open > 0)
		return SENT_SOME;
	if (!spokei_retry_state_is_deferred(retry) ||
	    (retry->last == SPOKE_FATE_UNSURE && !is_repeatable(retry)))
		return SENT_NEVER;
	spokei_retry_queue_pause(&call->method->caller->retry, retry,
				 call->method->settings.period_ns);
	return SENT_SOME;
}

static enum sent send_some(struct spokei_retry_state *retry, uint32_t count)
{
	struct spokei_caller *caller = retry->call->method->caller;
	bool again = retry->begun > 0;
	struct spokei_outcome outcome = { .error = SPOKE_ECLOSED };

	if (caller->closed || time_left(retry) == 0)
		return retry->open > 0 ? SENT_SOME : SENT_NEVER;
	if (count > SPOKEI_ENDPOINTS_MAX)
		count = SPOKEI_ENDPOINTS_MAX;
	retry->fans_out |= count > 1 || retry->open > 0;
	for (; count > 0; count--) {
		if (again && !retry->was_unready && !may_send_again(retry))
			return postpone(retry);
		outcome.error = send_one(retry);
		if (outcome.error && waits_for_endpoint(retry, outcome.error)) {
			retry->was_unready = true;
			spokei_retry_queue_unready(&caller->retry, retry);
			return SENT_SOME;
		}
		retry->waited = false;
		retry->begun++;
		if (outcome.error)
			spokei_retry_state_note(retry, &outcome, fate_of(outcome.error, false));
		/* A limit of this side is the same for all endpoints. */
		if (outcome.error == SPOKE_ELIMIT && retry->open == 0 &&
		    !retry->args.policy->repeats)
			return SENT_NEVER;
	}
	retry->was_unready = false;
	return retry->open > 0 ? SENT_SOME : SENT_NONE;
}

/* --- waiting */

/* Makes room for a ticket, if the queue drops old ones. Returns 0 or ELIMIT. */
static int make_room(const struct spokei_retry_state *retry)
{
	struct spokei_caller *caller = retry->call->method->caller;
	struct spokei_retry_queue *queue = &caller->retry;

	while (!spokei_retry_queue_has_room(queue, retry->size)) {
		if (!queue->drops_oldest || retry->size > queue->bytes_max) {
			return spokei_link_refused(caller->link, SPOKE_ELIMIT,
						   queue->tasks < queue->tasks_max
							   ? SPOKEI_REFUSED_BY_BYTES
							   : SPOKEI_REFUSED_BY_TASKS);
		}
		spokei_call_end_later(spokei_retry_queue_oldest(queue)->call, SPOKE_TICKET_REFUSED,
				      SPOKE_ELIMIT);
	}
	return SPOKE_OK;
}

/* Begins a pause. Returns false if the call has to end instead. */
static bool begin_pause(struct spokei_retry_state *retry,
			const struct spoke_policy_verdict *verdict)
{
	struct spokei_caller *caller = retry->call->method->caller;

	if (caller->closed)
		return false;
	if (spokei_retry_state_is_deferred(retry)) {
		spokei_report_again(&caller->report, &retry->again_sum, retry->ending.error,
				    verdict->wait_ns);
	} else if (verdict->defer) {
		if (make_room(retry)) {
			retry->ending.error = SPOKE_ELIMIT;
			retry->ending.text_len = (uint8_t)
				spokei_limits_print(retry->call->method, (char *)retry->ending.text,
						    sizeof(retry->ending.text));
			retry->ending.class_len = 0;
			return false;
		}
		spokei_call_defer(retry->call);
	}
	retry->waited = true;
	spokei_retry_queue_pause(&caller->retry, retry, verdict->wait_ns);
	return true;
}

/* --- the end of a call */

static enum spoke_ticket_settlement settlement_of(const struct spokei_retry_state *retry, int error)
{
	if (error == SPOKE_OK)
		return SPOKE_TICKET_SUCCESS;
	if (retry->call->method->caller->closed)
		return SPOKE_TICKET_CLOSING;
	if (time_left(retry) == 0)
		return SPOKE_TICKET_EXPIRED;
	return SPOKE_TICKET_EXHAUSTED;
}

static inline void note_age(const struct spokei_call *call, uint64_t age_ns)
{
	spokei_histogram_add(call->method->caller->engine->latency, age_ns);
	spokei_histogram_add(&call->method->figures->took, age_ns);
}

static inline void note_latency(const struct spokei_retry_state *retry)
{
	note_age(retry->call,
		 spokei_retry_state_age(retry, retry->call->method->caller->engine->begin_ns));
}

static void finish(struct spokei_call *call, const struct spokei_outcome *outcome,
		   const struct spoke_policy_verdict *verdict)
{
	struct spokei_retry_state *retry = call->retry;
	struct spoke_result result;

	if (outcome && outcome->reply && retry->ticket != SPOKEI_TICKET_HELD)
		note_latency(retry);
	/* The attempt that has just ended has more to report than the history, if it counts. */
	if (outcome && (outcome->error || !verdict->last_failure))
		result = result_of(outcome);
	else
		result = spokei_retry_state_result(retry);
	if (call->method->caller->closed && retry->begun == 0)
		result.error = SPOKE_ECLOSED;
	/* A policy that excuses all failures also excuses those that it was not asked about. */
	call->excuses |= verdict->excuse;
	spokei_call_end(call,
			settlement_of(retry, call->excuses && spokei_fallback_hides(result.error)
						     ? SPOKE_OK
						     : result.error),
			&result);
}

/* Ends a call whose policy takes the first answer, without asking it again. */
static void finish_answered(struct spokei_call *call, const struct spokei_outcome *outcome)
{
	struct spokei_retry_state *retry = call->retry;
	struct spoke_result result = result_of(outcome);

	if (SPOKEI_LIKELY(outcome->reply))
		note_latency(retry);
	result.attempts = retry->begun;
	result.written = retry->written;
	spokei_call_move(&retry->state, SPOKEI_CALL_OVER);
	spokei_call_finish(call, &result);
}

/* Attempts are in flight. The policy is asked when one ends, or after `wait_ns`. */
static void await_ends(struct spokei_retry_state *retry, uint64_t wait_ns)
{
	spokei_call_move(&retry->state, SPOKEI_CALL_SENDING);
	if (SPOKEI_UNLIKELY(wait_ns))
		spokei_retry_queue_watch(&retry->call->method->caller->retry, retry, wait_ns);
}

/* Asks the policy of a call that is DECIDING, and does what it answers. `outcome`: of the attempt
 * that has just ended, or NULL. The call may have ended afterwards. */
static void next_step(struct spokei_call *call, const struct spokei_outcome *outcome)
{
	struct spokei_retry_state *retry = call->retry;
	struct spoke_policy_verdict verdict;

	if (SPOKEI_UNLIKELY(retry->watched))
		spokei_retry_queue_leave(&call->method->caller->retry, retry, false);
	for (;;) {
		enum sent sent;

		verdict = ask_policy(retry);
		if (verdict.step == SPOKE_STEP_LISTEN && retry->open > 0) {
			await_ends(retry, verdict.wait_ns);
			return;
		}
		if (verdict.step == SPOKE_STEP_WAIT && retry->open == 0) {
			if (begin_pause(retry, &verdict))
				return;
			outcome = NULL;
			break;
		}
		if (verdict.step != SPOKE_STEP_SEND)
			break;
		sent = send_some(retry, verdict.count ? verdict.count : 1);
		if (sent == SENT_SOME) {
			if (retry->open > 0)
				await_ends(retry, verdict.wait_ns);
			return;
		}
		if (sent == SENT_NEVER)
			break;
		outcome = NULL;
	}
	finish(call, outcome, &verdict);
}

/* --- the end of an attempt */

static void note_timeout(const struct spokei_attempt *attempt, const struct spokei_outcome *outcome)
{
	struct spokei_caller *caller = attempt->call->method->caller;

	if (outcome->error != SPOKE_ETIMEOUT && outcome->error != SPOKE_ETIMEOUT_UNSENT)
		return;
	spokei_count(caller->engine, SPOKE_STAT_ATTEMPTS_TIMEOUT);
	spokei_report_timed_out(&caller->report, attempt->endpoint ? attempt->endpoint->name : NULL,
				attempt->pending.timeout_ns);
}

/* An attempt that could not reach its endpoint does not count, and the call waits for another
 * endpoint, unless several attempts were made at a time. */
static bool waits_again(struct spokei_retry_state *retry, const struct spokei_outcome *outcome)
{
	if (outcome->written || !spoke_error_is_transport(outcome->error) ||
	    outcome->error == SPOKE_ETIMEOUT_UNSENT || retry->call->method->caller->closed ||
	    (retry->fans_out && retry->begun > 1) || !waits_for_endpoint(retry, SPOKE_EUNAVAILABLE))
		return false;
	retry->begun--;
	retry->tried_count--;
	retry->was_unready = true;
	return true;
}

/* Opens the history of a call whose first attempt has failed. */
static void open_begun(const struct spokei_attempt *attempt)
{
	struct spokei_retry_state *retry = attempt->call->retry;

	SPOKE_ASSERT(attempt->endpoint != NULL);
	open_history(attempt->call);
	spokei_call_move(&retry->state, SPOKEI_CALL_SENDING);
	retry->tried[retry->tried_count++] = attempt->endpoint->id;
	retry->begun = 1;
	retry->open = 1;
}

/* Takes a call to its next step after an attempt that was not its last one. */
static void go_on(struct spokei_call *call, const struct spokei_outcome *outcome,
		  enum spoke_policy_fate fate)
{
	struct spokei_retry_state *retry = call->retry;
	struct spokei_outcome ended;

	if (call->cancelled) {
		struct spoke_result result = result_of(outcome);

		spokei_call_end(call, SPOKE_TICKET_CANCELLED, &result);
		return;
	}
	if (SPOKEI_UNLIKELY(spokei_retry_state_is_leased(retry)))
		outcome = leased_outcome(retry, outcome, &ended, &fate);
	spokei_call_move(&retry->state, SPOKEI_CALL_DECIDING);
	if (waits_again(retry, outcome)) {
		next_step(call, NULL);
		return;
	}
	spokei_retry_state_note(retry, outcome, fate);
	next_step(call, outcome);
}

/* Does an answer end the call, so that its policy need not be asked? */
static inline bool may_finish_at_once(const struct spokei_retry_state *retry)
{
	return retry->first_answer && !retry->fans_out && !spokei_retry_state_is_deferred(retry) &&
	       !retry->call->cancelled;
}

/* Learns from the answer to a call that may have backups. */
static void note_hedged(const struct spokei_attempt *attempt)
{
	const struct spokei_retry_state *retry = attempt->call->retry;
	struct spoke_method *method = attempt->call->method;
	struct spoke_engine *engine = attempt->call->method->caller->engine;

	if (retry->hedged && attempt->pending.backup && retry->open > 0)
		spokei_count(engine, SPOKE_STAT_HEDGES_WON);
	/* After a failure it says nothing of one attempt. */
	if (retry->failed == 0)
		spokei_hedge_note(&method->hedge, method->settings.hedge_ns,
				  spokei_retry_state_age(retry, engine->begin_ns));
}

static void attempt_ended(struct spokei_attempt *attempt, const struct spokei_outcome *outcome,
			  enum spoke_policy_fate fate)
{
	struct spokei_call *call = attempt->call;
	struct spokei_retry_state *retry = call->retry;

	if (retry->state == SPOKEI_CALL_FIRST)
		open_begun(attempt);
	attempt->endpoint = NULL;
	retry->open--;
	retry->written |= outcome->written;
	/* An attempt that ends in the turn of its beginning has no time: users' code may have run
	 * for long since the turn began. Then the call's wait sets it. */
	if (retry->begun_ns == 0)
		retry->begun_ns = attempt->pending.begun_ns;
	if (retry->state == SPOKEI_CALL_OVER)
		return;
	if (SPOKEI_UNLIKELY(call->method->settings.hedge_ns) && fate == SPOKE_FATE_OK)
		note_hedged(attempt);
	if (fate == SPOKE_FATE_OK && may_finish_at_once(retry))
		finish_answered(call, outcome);
	else
		go_on(call, outcome, fate);
}

/* Is the call without a history, and needs none? */
static inline bool ends_here(const struct spokei_call *call, int error)
{
	if (SPOKEI_LIKELY(call->retry == NULL))
		return true;
	return call->retry->state == SPOKEI_CALL_FIRST && (error == SPOKE_OK || call->cancelled);
}

/* Ends a call by the outcome of its only attempt. */
static inline void finish_one(struct spokei_call *call, const struct spokei_outcome *outcome)
{
	struct spoke_result result = result_of(outcome);

	if (SPOKEI_LIKELY(outcome->reply))
		note_age(call, outcome->queued_ns + outcome->waited_ns);
	if (SPOKEI_UNLIKELY(result.error || call->cancelled))
		spokei_call_finish_failed(call, &result);
	else
		spokei_call_finish(call, &result);
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

static void attempt_done(struct spokei_pending *pending, const struct spokei_outcome *outcome)
{
	const uint64_t took_ns = outcome->queued_ns + outcome->waited_ns;
	struct spokei_attempt *attempt = spoke_container_of(pending, struct spokei_attempt,
							    pending);
	struct spokei_endpoint *endpoint = attempt->endpoint;
	enum spoke_policy_fate fate = SPOKE_FATE_OK;
	struct spokei_outcome explained;

	if (SPOKEI_UNLIKELY(outcome->error)) {
		if (endpoint && lacked_conn(outcome)) {
			explained = *outcome;
			explained.reason = outcome->error == SPOKE_ETOOLARGE
						   ? spokei_limits_frame(attempt->call->method)
						   : spokei_endpoint_reason(endpoint);
			outcome = &explained;
		}
		fate = fate_of(outcome->error, outcome->written);
		note_timeout(attempt, outcome);
	}
	if (SPOKEI_LIKELY(endpoint))
		spokei_directory_ended(endpoint, outcome->error, took_ns);
	if (SPOKEI_UNLIKELY(took_ns >= attempt->call->method->figures->slow_ns))
		note_slow(attempt, outcome);
	if (SPOKEI_UNLIKELY(attempt->call->filters))
		notify_filters(attempt, outcome);
	if (SPOKEI_LIKELY(ends_here(attempt->call, outcome->error)))
		finish_one(attempt->call, outcome);
	else
		attempt_ended(attempt, outcome, fate);
}

/* --- the end of a wait */

/* An attempt is slow. A call that was cancelled ends anyway. */
static void slow(struct spokei_call *call)
{
	if (call->cancelled)
		return;
	call->retry->waited = true;
	spokei_call_move(&call->retry->state, SPOKEI_CALL_DECIDING);
	next_step(call, NULL);
}

void spokei_call_due(struct spokei_retry_state *retry, int error)
{
	struct spokei_call *call = retry->call;

	if (retry->open > 0)
		slow(call);
	else if (error)
		spokei_call_end_later(call, SPOKE_TICKET_EXHAUSTED, error);
	else if (retry->was_unready && time_of_attempt(retry) == 0)
		spokei_call_end_later(call, SPOKE_TICKET_EXPIRED, SPOKE_ETIMEOUT_UNSENT);
	else if (time_left(retry) == 0)
		spokei_call_end_later(call, SPOKE_TICKET_EXPIRED, SPOKE_ETIMEOUT);
	else {
		spokei_call_move(&retry->state, SPOKEI_CALL_DECIDING);
		next_step(call, NULL);
	}
}

/* --- the first attempt */

int spokei_call_new(struct spoke_method *method, struct spokei_call **ret_call)
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
	int error = spokei_call_new(method, &call);

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

int spokei_call_begin_one(struct spoke_method *method, const struct spokei_call_args *args,
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
		error = spokei_call_begin(method, conn, args, &call);
	} while (fits_elsewhere(method->caller, endpoint, error));
	if (error)
		return error;
	SPOKE_ASSERT(call != NULL);
	call->attempt.endpoint = endpoint;
	call->excuses = args->policy->excuses;
	spokei_directory_begun(endpoint, endpoint->engine->begin_ns);
	*ret_call = call;
	return SPOKE_OK;
}

/* Opens the history of the call, and begins as the policy decides. */
static int begin_asking(struct spokei_call *call, const struct spoke_lease *lease)
{
	struct spokei_retry_state *retry = call->retry;
	int error = SPOKE_OK;

	open_history(call);
	if (SPOKEI_UNLIKELY(lease))
		error = begin_leased(retry, *lease);
	if (error)
		return error;
	retry->inside_call = true;
	next_step(call, NULL);
	retry->inside_call = false;
	if (retry->state != SPOKEI_CALL_OVER)
		return SPOKE_OK;
	return retry->ending.error ? retry->ending.error : SPOKE_EUNAVAILABLE;
}

int spokei_call_begin_first(struct spokei_call *call, const struct spoke_lease *lease)
{
	const struct spokei_retry_state *retry = call->retry;
	struct spokei_endpoint *endpoint;
	struct spokei_conn *conn;
	int error;

	/* Most calls need no history. */
	if (SPOKEI_UNLIKELY(!retry->first_answer || lease || call->method->settings.wait_ready))
		return begin_asking(call, lease);
	error = pick_among(call->method, &retry->args, NULL, &endpoint, &conn);
	if (SPOKEI_LIKELY(error == 0))
		error = spokei_call_send(&call->attempt, conn, &retry->args);
	if (SPOKEI_UNLIKELY(error))
		return begin_asking(call, NULL);
	call->attempt.endpoint = endpoint;
	spokei_directory_begun(endpoint, endpoint->engine->begin_ns);
	return SPOKE_OK;
}
