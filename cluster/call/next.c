/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next step of a call that may take several attempts: the policy says what it wants, and here
 * is decided whether that may be.
 */
#include "cluster/call/parts.h"

#define ATTEMPTS_MAX SPOKEI_ENDPOINTS_MAX /* that a policy has at a time */

static uint64_t throw_dice(const struct spokei_retry_state *retry)
{
	const struct spoke_env *env = retry->call->caller->engine->env;
	uint64_t dice;

	env->dice(env->ctx, &dice, sizeof(dice));
	return dice;
}

/* Until a ticket's deadline; it begins to run as the turn of the call ends. */
static uint64_t left_of(const struct spokei_retry_state *retry)
{
	uint64_t now_ns = retry->call->caller->engine->begin_ns;
	uint64_t gone_ns = 0;

	if (retry->begun_ns && now_ns > retry->begun_ns)
		gone_ns = now_ns - retry->begun_ns;
	return retry->lasts_ns > gone_ns ? retry->lasts_ns - gone_ns : 0;
}

static bool is_repeatable(const struct spokei_retry_state *retry)
{
	return retry->policy->repeats || retry->call->method->settings.idempotent;
}

static struct spoke_policy_verdict ask(const struct spokei_retry_state *retry)
{
	const struct spokei_call_settings *settings = &retry->call->method->settings;
	struct spoke_consumer *consumer = spokei_consumer_of(retry->call->method);
	struct spoke_policy_history history = {
		.begun = retry->begun,
		.open = retry->open,
		.ok = retry->ok,
		.failed = retry->failed,
		.last = retry->last,
		.repeatable = is_repeatable(retry),
		.deferred = retry->deferred,
		.waited = retry->waited,
		.left_ns = left_of(retry),
		.retries = spokei_settings_retries(settings, retry->policy),
		.forks = settings->forks,
		.fail_percent = settings->fail_percent,
		.growing = settings->growing,
		.period_ns = settings->period_ns,
	};
	if (settings->growing && retry->policy->repeats)
		history.dice = throw_dice(retry);
	if (retry->begun > 0 || retry->policy->fans_out)
		spokei_directory_count(&consumer->directory, retry->tried, retry->tried_count,
				       &history.able, &history.fresh);
	return retry->policy->next(&history);
}

/* --- sending */

/* What is left for an attempt: its own time; of a ticket not more than that has; of one that waited
 * for an endpoint not what it waited. */
static uint64_t time_for(const struct spokei_retry_state *retry)
{
	uint64_t left_ns = left_of(retry);
	uint64_t now_ns = retry->call->caller->engine->begin_ns;
	uint64_t time_ns = retry->timeout_ns;

	if (retry->unready && retry->begun_ns && now_ns > retry->begun_ns) {
		uint64_t gone_ns = now_ns - retry->begun_ns;

		time_ns = time_ns > gone_ns ? time_ns - gone_ns : 0;
	}
	return time_ns < left_ns ? time_ns : left_ns;
}

/* Tickets avoid the endpoint that failed last, others all that they were sent to. */
static struct spokei_tried tried_of(const struct spokei_retry_state *retry)
{
	struct spokei_tried tried = { retry->tried, retry->tried_count };

	if (retry->deferred && tried.count > 0) {
		tried.ids += tried.count - 1;
		tried.count = 1;
	}
	return tried;
}

static bool waits_for_endpoint(const struct spokei_retry_state *retry, int error)
{
	return error == SPOKE_EUNAVAILABLE && retry->call->method->settings.wait_ready &&
	       !retry->deferred && retry->open == 0 && !retry->policy->repeats;
}

/* Nobody else could be reached after all: who has an attempt already is not asked for two. */
static bool is_asked_twice(const struct spokei_retry_state *retry, const struct spokei_tried *tried,
			   uint64_t endpoint)
{
	for (size_t i = 0; i < tried->count && retry->open > 0; i++)
		if (tried->ids[i] == endpoint)
			return true;
	return false;
}

/* Has the attempt begin at an endpoint that is chosen; NULL: none was. */
static int begin_somewhere(struct spokei_retry_state *retry, struct spokei_attempt *attempt,
			   struct spokei_endpoint **ret_endpoint)
{
	struct spokei_call *call = retry->call;
	struct spoke_method *method = call->method;
	struct spokei_tried tried = tried_of(retry);
	struct spokei_conn *conn;
	int error;

	*ret_endpoint = NULL;
	/* Another wire may have no place for what the last one was told. */
	retry->extended_len = 0;
	spokei_retry_state_say(retry, &method->request);
	error = spokei_consumer_pick(method, retry->policy, retry->key, &tried, ret_endpoint,
				     &conn);
	if (error)
		return error;
	if (is_asked_twice(retry, &tried, (*ret_endpoint)->id))
		return SPOKE_EUNAVAILABLE;
	/* Not at a connection that may never be: it goes to whoever is there first. Unless somebody
	 * is there already, who does not want it: then nobody tells of another one. */
	if (conn->state == SPOKEI_CONN_CONNECTING && spokei_consumer_of(method)->directory.barren &&
	    waits_for_endpoint(retry, SPOKE_EUNAVAILABLE))
		return SPOKE_EUNAVAILABLE;
	if (retry->policy->repeats && conn->wire->attachments) {
		spokei_retry_state_number(retry);
		spokei_retry_state_say(retry, &method->request);
	}
	error = spokei_retry_state_try(retry, call->caller->engine->env, (*ret_endpoint)->id);
	return error ? error : spokei_attempt_begin(attempt, conn, time_for(retry));
}

static int send_one(struct spokei_retry_state *retry)
{
	struct spokei_call *call = retry->call;
	struct spokei_attempt *attempt = spokei_retry_state_attempt(retry,
								    call->caller->engine->env);
	struct spokei_endpoint *endpoint;
	int error;

	if (attempt == NULL)
		return SPOKE_ENOMEM;
	/* Who asks several asks each of them once. */
	do
		error = begin_somewhere(retry, attempt, &endpoint);
	while (endpoint && !retry->policy->fans_out &&
	       spokei_call_fits_elsewhere(call->caller, endpoint, error));
	if (error)
		return error;
	SPOKE_ASSERT(endpoint != NULL);
	attempt->endpoint = endpoint;
	spokei_directory_begun(endpoint, endpoint->engine->begin_ns);
	if (attempt == &call->attempt)
		retry->own_free = false;
	retry->open++;
	return SPOKE_OK;
}

enum sent {
	SENT_SOME,  /* it goes on when one ends, or its wait is over */
	SENT_NONE,  /* all have failed already */
	SENT_NEVER, /* it must not be sent again */
};

static bool may_send_again(struct spokei_retry_state *retry)
{
	struct spokei_caller *caller = retry->call->caller;

	if (retry->last == SPOKE_FATE_UNSURE && !is_repeatable(retry))
		return false;
	if (spokei_budget_take(&caller->budget, caller->engine->begin_ns)) {
		spokei_count(caller->engine, SPOKE_STAT_RETRIES);
		if (!retry->deferred)
			spokei_report_add(&caller->report, SPOKEI_REPORT_RETRIED, SPOKE_OK, 0);
		return true;
	}
	spokei_count(caller->engine, SPOKE_STAT_RETRIES_UNFUNDED);
	return false;
}

/* Without budget a ticket waits another period, which is no attempt. */
static bool waits_for_budget(const struct spokei_retry_state *retry)
{
	return retry->deferred && (retry->last != SPOKE_FATE_UNSURE || is_repeatable(retry));
}

static enum sent send_some(struct spokei_retry_state *retry, uint32_t count)
{
	struct spokei_caller *caller = retry->call->caller;
	bool again = retry->begun > 0;
	struct spokei_outcome outcome = { .error = SPOKE_ECLOSED };

	if (caller->closed || left_of(retry) == 0)
		return SENT_NEVER;
	if (count > ATTEMPTS_MAX)
		count = ATTEMPTS_MAX;
	for (; count > 0; count--) {
		if (again && !retry->unready && !may_send_again(retry)) {
			if (retry->open > 0)
				return SENT_SOME;
			if (!waits_for_budget(retry))
				return SENT_NEVER;
			spokei_retry_queue_pause(&caller->retry, retry,
						 retry->call->method->settings.period_ns);
			return SENT_SOME;
		}
		retry->waited = false;
		outcome.error = send_one(retry);
		if (outcome.error && waits_for_endpoint(retry, outcome.error)) {
			retry->unready = true;
			spokei_retry_queue_unready(&caller->retry, retry);
			return SENT_SOME;
		}
		retry->begun++;
		if (outcome.error)
			spokei_retry_state_note(retry, &outcome,
						spokei_attempt_fate(outcome.error, false));
		/* A limit of this side is the same for all. */
		if (outcome.error == SPOKE_ELIMIT && retry->open == 0 && !retry->policy->repeats)
			return SENT_NEVER;
	}
	/* All that begin now have what is left of its time. */
	retry->unready = false;
	return retry->open > 0 ? SENT_SOME : SENT_NONE;
}

/* --- waiting */

/* A ticket has a place, or one is made for it, or there is none. */
static bool make_room(struct spokei_retry_state *retry)
{
	struct spoke_consumer *consumer = spokei_consumer_of(retry->call->method);
	struct spokei_retry_queue *queue = &consumer->caller.retry;

	if (!consumer->settings.drops_oldest || retry->size > queue->bytes_max)
		return spokei_retry_queue_has_room(queue, retry->size);
	while (!spokei_retry_queue_has_room(queue, retry->size))
		spokei_call_end_later(spokei_retry_queue_oldest(queue)->call, SPOKE_TICKET_REFUSED,
				      SPOKE_ELIMIT);
	return true;
}

/* Returns whether it waits; if not, it is over. */
static bool wait_for(struct spokei_retry_state *retry, const struct spoke_policy_verdict *verdict)
{
	struct spokei_caller *caller = retry->call->caller;

	if (caller->closed)
		return false;
	if (verdict->defer && !retry->deferred) {
		if (!make_room(retry)) {
			retry->ending.error = SPOKE_ELIMIT;
			retry->ending.text_len = 0;
			retry->ending.class_len = 0;
			return false;
		}
		spokei_call_defer(retry->call);
	} else if (retry->deferred) {
		spokei_report_add(&caller->report, SPOKEI_REPORT_AGAIN, retry->ending.error,
				  verdict->wait_ns);
	}
	retry->waited = true;
	spokei_retry_queue_pause(&caller->retry, retry, verdict->wait_ns);
	return true;
}

/* --- the end */

static enum spoke_ticket_settlement settlement_of(const struct spokei_retry_state *retry, int error)
{
	if (error == SPOKE_OK)
		return SPOKE_TICKET_SUCCESS;
	if (retry->call->caller->closed)
		return SPOKE_TICKET_CLOSING;
	if (left_of(retry) == 0)
		return SPOKE_TICKET_EXPIRED;
	return SPOKE_TICKET_EXHAUSTED;
}

static void note_answer(const struct spokei_retry_state *retry)
{
	struct spoke_engine *engine = retry->call->caller->engine;
	uint64_t now_ns = engine->begin_ns;

	spokei_engine_answered(engine, now_ns > retry->begun_ns ? now_ns - retry->begun_ns : 0);
}

static void finish(struct spokei_call *call, const struct spokei_outcome *outcome,
		   const struct spoke_policy_verdict *verdict)
{
	struct spokei_retry_state *retry = call->retry;
	struct spoke_result result;

	if (outcome && outcome->reply && !retry->told)
		note_answer(retry);
	/* What has just ended says more than what is kept, if it counts. */
	if (outcome && (outcome->error || !verdict->blame))
		result = spokei_call_result(outcome);
	else
		result = spokei_retry_state_result(retry);
	if (call->caller->closed && retry->begun == 0)
		result.error = SPOKE_ECLOSED;
	/* Who is refused at once is excused by who takes calls. */
	if (result.error && verdict->excuse && !retry->young)
		spokei_call_excuse(call, &result);
	spokei_call_end(call, settlement_of(retry, result.error), &result);
}

void spokei_call_next(struct spokei_call *call, const struct spokei_outcome *outcome)
{
	struct spokei_retry_state *retry = call->retry;
	struct spoke_policy_verdict verdict = { .step = SPOKE_STEP_FINISH };
	enum sent sent;

	retry->stage = SPOKEI_RETRY_STATE_SENDING;
	for (;;) {
		verdict = ask(retry);
		if (verdict.step == SPOKE_STEP_LISTEN && retry->open > 0)
			return;
		if (verdict.step == SPOKE_STEP_WAIT && retry->open == 0) {
			if (wait_for(retry, &verdict))
				return;
			outcome = NULL;
			break;
		}
		if (verdict.step != SPOKE_STEP_SEND)
			break;
		sent = send_some(retry, verdict.count ? verdict.count : 1);
		if (sent == SENT_SOME)
			return;
		if (sent == SENT_NEVER)
			break;
		outcome = NULL;
	}
	finish(call, outcome, &verdict);
}

/* --- what brings it here */

void spokei_call_open(struct spokei_call *call)
{
	struct spokei_retry_state *retry = call->retry;

	spokei_retry_state_open(retry, &call->attempt);
	/* What a policy ends with that never begins. */
	retry->ending.error = SPOKE_EUNAVAILABLE;
	retry->lasts_ns = spokei_settings_deadline(&call->method->settings, retry->policy,
						   retry->timeout_ns);
	if (retry->policy->repeats)
		retry->id = call->caller->next_id++;
}

/* An endpoint that could not be reached is none that it was sent to: it waits for another one,
 * unless others were asked at the same time. */
static bool waits_again(struct spokei_retry_state *retry, const struct spokei_outcome *outcome)
{
	if (outcome->written || !spoke_error_is_transport(outcome->error) ||
	    outcome->error == SPOKE_ETIMEOUT_UNSENT || retry->call->caller->closed ||
	    (retry->policy->fans_out && retry->begun > 1) ||
	    !waits_for_endpoint(retry, SPOKE_EUNAVAILABLE))
		return false;
	retry->begun--;
	retry->tried_count--;
	retry->unready = true;
	return true;
}

/* The first attempt has failed: now it matters where it was. */
static void open_begun(const struct spokei_attempt *attempt)
{
	struct spokei_retry_state *retry = attempt->call->retry;

	SPOKE_ASSERT(attempt->endpoint != NULL);
	spokei_call_open(attempt->call);
	retry->tried[retry->tried_count++] = attempt->endpoint->id;
	retry->begun = 1;
	retry->open = 1;
}

void spokei_call_attempt_ended(struct spokei_attempt *attempt, const struct spokei_outcome *outcome,
			       enum spoke_policy_fate fate)
{
	struct spokei_call *call = attempt->call;
	struct spokei_retry_state *retry = call->retry;
	struct spoke_result result;

	if (spokei_retry_state_is_kept(retry))
		open_begun(attempt);
	attempt->endpoint = NULL;
	retry->open--;
	retry->written |= outcome->written;
	if (attempt == &call->attempt)
		retry->own_free = true;
	if (retry->begun_ns == 0)
		retry->begun_ns = attempt->pending.begun_ns ? attempt->pending.begun_ns
							    : call->caller->engine->begin_ns;
	if (retry->stage == SPOKEI_RETRY_STATE_OVER)
		return;
	if (call->cancelled) {
		result = spokei_call_result(outcome);
		spokei_call_end(call, SPOKE_TICKET_CANCELLED, &result);
		return;
	}
	if (waits_again(retry, outcome)) {
		spokei_call_next(call, NULL);
		return;
	}
	spokei_retry_state_note(retry, outcome, fate);
	spokei_call_next(call, outcome);
}

void spokei_call_due(struct spokei_retry_state *retry)
{
	struct spokei_call *call = retry->call;

	if (retry->homeless)
		spokei_call_end_later(call, SPOKE_TICKET_EXHAUSTED, SPOKE_ELIMIT);
	else if (retry->unready && time_for(retry) == 0)
		spokei_call_end_later(call, SPOKE_TICKET_EXPIRED, SPOKE_ETIMEOUT_UNSENT);
	else if (left_of(retry) == 0)
		spokei_call_end_later(call, SPOKE_TICKET_EXPIRED, SPOKE_ETIMEOUT);
	else
		spokei_call_next(call, NULL);
}
