/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next step of a call that may take several attempts: the policy says what it wants, and here
 * is decided whether that may be.
 */
#include "cluster/call/parts.h"

#define ATTEMPTS_MAX SPOKEI_ENDPOINTS_MAX /* that a policy has at a time */

static uint64_t throw_dice(const struct spokei_course *course)
{
	const struct spoke_env *env = course->call->caller->engine->env;
	uint64_t dice;

	env->dice(env->ctx, &dice, sizeof(dice));
	return dice;
}

/* Until a ticket's deadline; it begins to run as the turn of the call ends. */
static uint64_t left_of(const struct spokei_course *course)
{
	uint64_t now_ns = course->call->caller->engine->begin_ns;
	uint64_t gone_ns = 0;

	if (course->begun_ns && now_ns > course->begun_ns)
		gone_ns = now_ns - course->begun_ns;
	return course->lasts_ns > gone_ns ? course->lasts_ns - gone_ns : 0;
}

static bool is_repeatable(const struct spokei_course *course)
{
	return course->policy->repeats || course->call->method->settings.idempotent;
}

static struct spoke_verdict ask(const struct spokei_course *course)
{
	const struct spokei_call_settings *settings = &course->call->method->settings;
	struct spoke_consumer *consumer = spokei_consumer_of(course->call->method);
	struct spoke_history history = {
		.begun = course->begun,
		.open = course->open,
		.ok = course->ok,
		.failed = course->failed,
		.last = course->last,
		.repeatable = is_repeatable(course),
		.deferred = course->deferred,
		.waited = course->waited,
		.left_ns = left_of(course),
		.retries = spokei_settings_retries(settings, course->policy),
		.forks = settings->forks,
		.fail_percent = settings->fail_percent,
		.growing = settings->growing,
		.period_ns = settings->period_ns,
	};
	if (settings->growing && course->policy->repeats)
		history.dice = throw_dice(course);
	if (course->begun > 0 || course->policy->fans_out)
		spokei_directory_count(&consumer->directory, course->tried, course->tried_count,
				       &history.able, &history.fresh);
	return course->policy->next(&history);
}

/* --- sending */

/* What is left for an attempt: its own time; of a ticket not more than that has; of one that waited
 * for an endpoint not what it waited. */
static uint64_t time_for(const struct spokei_course *course)
{
	uint64_t left_ns = left_of(course);
	uint64_t now_ns = course->call->caller->engine->begin_ns;
	uint64_t time_ns = course->timeout_ns;

	if (course->unready && course->begun_ns && now_ns > course->begun_ns) {
		uint64_t gone_ns = now_ns - course->begun_ns;

		time_ns = time_ns > gone_ns ? time_ns - gone_ns : 0;
	}
	return time_ns < left_ns ? time_ns : left_ns;
}

/* Tickets avoid the endpoint that failed last, others all that they were sent to. */
static struct spokei_tried tried_of(const struct spokei_course *course)
{
	struct spokei_tried tried = { course->tried, course->tried_count };

	if (course->deferred && tried.count > 0) {
		tried.ids += tried.count - 1;
		tried.count = 1;
	}
	return tried;
}

static bool waits_for_endpoint(const struct spokei_course *course, int error)
{
	return error == SPOKE_EUNAVAILABLE && course->call->method->settings.wait_ready &&
	       !course->deferred && course->open == 0 && !course->policy->repeats;
}

/* Nobody else could be reached after all: who has an attempt already is not asked for two. */
static bool is_asked_twice(const struct spokei_course *course, const struct spokei_tried *tried,
			   uint64_t endpoint)
{
	for (size_t i = 0; i < tried->count && course->open > 0; i++)
		if (tried->ids[i] == endpoint)
			return true;
	return false;
}

/* Has the attempt begin at an endpoint that is chosen; NULL: none was. */
static int begin_somewhere(struct spokei_course *course, struct spokei_attempt *attempt,
			   struct spokei_endpoint **ret_endpoint)
{
	struct spokei_call *call = course->call;
	struct spoke_method *method = call->method;
	struct spokei_tried tried = tried_of(course);
	struct spokei_conn *conn;
	int error;

	*ret_endpoint = NULL;
	/* Another wire may have no place for what the last one was told. */
	course->extended_len = 0;
	spokei_course_say(course, &method->request);
	error = spokei_consumer_pick(method, course->policy, course->key, &tried, ret_endpoint,
				     &conn);
	if (error)
		return error;
	if (is_asked_twice(course, &tried, (*ret_endpoint)->id))
		return SPOKE_EUNAVAILABLE;
	/* Not at a connection that may never be: it goes to whoever is there first. Unless somebody
	 * is there already, who does not want it: then nobody tells of another one. */
	if (conn->state == SPOKEI_CONN_CONNECTING && spokei_consumer_of(method)->directory.barren &&
	    waits_for_endpoint(course, SPOKE_EUNAVAILABLE))
		return SPOKE_EUNAVAILABLE;
	if (course->policy->repeats && conn->wire->attachments) {
		spokei_course_number(course);
		spokei_course_say(course, &method->request);
	}
	error = spokei_course_try(course, call->caller->engine->env, (*ret_endpoint)->id);
	return error ? error : spokei_attempt_begin(attempt, conn, time_for(course));
}

static int send_one(struct spokei_course *course)
{
	struct spokei_call *call = course->call;
	struct spokei_attempt *attempt = spokei_course_attempt(course, call->caller->engine->env);
	struct spokei_endpoint *endpoint;
	int error;

	if (attempt == NULL)
		return SPOKE_ENOMEM;
	/* Who asks several asks each of them once. */
	do
		error = begin_somewhere(course, attempt, &endpoint);
	while (endpoint && !course->policy->fans_out &&
	       spokei_call_fits_elsewhere(call->caller, endpoint, error));
	if (error)
		return error;
	SPOKE_ASSERT(endpoint != NULL);
	attempt->endpoint = endpoint;
	spokei_directory_begun(endpoint);
	if (attempt == &call->attempt)
		course->own_free = false;
	course->open++;
	return SPOKE_OK;
}

enum sent {
	SENT_SOME,  /* it goes on when one ends, or its wait is over */
	SENT_NONE,  /* all have failed already */
	SENT_NEVER, /* it must not be sent again */
};

static bool may_send_again(struct spokei_course *course)
{
	struct spokei_caller *caller = course->call->caller;

	if (course->last == SPOKE_FATE_UNSURE && !is_repeatable(course))
		return false;
	if (spokei_budget_take(&caller->budget, caller->engine->begin_ns)) {
		spokei_count(caller->engine, SPOKE_STAT_RETRIES);
		if (!course->deferred)
			spokei_news_add(&caller->news, SPOKEI_NEWS_RETRIED, SPOKE_OK, 0);
		return true;
	}
	spokei_count(caller->engine, SPOKE_STAT_RETRIES_UNFUNDED);
	return false;
}

/* Without budget a ticket waits another period, which is no attempt. */
static bool waits_for_budget(const struct spokei_course *course)
{
	return course->deferred && (course->last != SPOKE_FATE_UNSURE || is_repeatable(course));
}

static enum sent send_some(struct spokei_course *course, uint32_t count)
{
	struct spokei_caller *caller = course->call->caller;
	bool again = course->begun > 0;
	struct spokei_outcome outcome = { .error = SPOKE_ECLOSED };

	if (caller->closed || left_of(course) == 0)
		return SENT_NEVER;
	if (count > ATTEMPTS_MAX)
		count = ATTEMPTS_MAX;
	for (; count > 0; count--) {
		if (again && !course->unready && !may_send_again(course)) {
			if (course->open > 0)
				return SENT_SOME;
			if (!waits_for_budget(course))
				return SENT_NEVER;
			spokei_retry_pause(&caller->retry, course,
					   course->call->method->settings.period_ns);
			return SENT_SOME;
		}
		course->waited = false;
		outcome.error = send_one(course);
		if (outcome.error && waits_for_endpoint(course, outcome.error)) {
			course->unready = true;
			spokei_retry_unready(&caller->retry, course);
			return SENT_SOME;
		}
		course->begun++;
		if (outcome.error)
			spokei_course_note(course, &outcome,
					   spokei_attempt_fate(outcome.error, false));
		/* A limit of this side is the same for all. */
		if (outcome.error == SPOKE_ELIMIT && course->open == 0 && !course->policy->repeats)
			return SENT_NEVER;
	}
	/* All that begin now have what is left of its time. */
	course->unready = false;
	return course->open > 0 ? SENT_SOME : SENT_NONE;
}

/* --- waiting */

/* A ticket has a place, or one is made for it, or there is none. */
static bool make_room(struct spokei_course *course)
{
	struct spoke_consumer *consumer = spokei_consumer_of(course->call->method);
	struct spokei_retry *retry = &consumer->caller.retry;

	if (!consumer->settings.drops_oldest || course->size > retry->bytes_max)
		return spokei_retry_has_room(retry, course->size);
	while (!spokei_retry_has_room(retry, course->size))
		spokei_call_end_later(spokei_retry_oldest(retry)->call, SPOKE_TICKET_REFUSED,
				      SPOKE_ELIMIT);
	return true;
}

/* Returns whether it waits; if not, it is over. */
static bool wait_for(struct spokei_course *course, const struct spoke_verdict *verdict)
{
	struct spokei_caller *caller = course->call->caller;

	if (caller->closed)
		return false;
	if (verdict->defer && !course->deferred) {
		if (!make_room(course)) {
			course->ending.error = SPOKE_ELIMIT;
			course->ending.text_len = 0;
			course->ending.class_len = 0;
			return false;
		}
		spokei_call_defer(course->call);
	} else if (course->deferred) {
		spokei_news_add(&caller->news, SPOKEI_NEWS_AGAIN, course->ending.error,
				verdict->wait_ns);
	}
	course->waited = true;
	spokei_retry_pause(&caller->retry, course, verdict->wait_ns);
	return true;
}

/* --- the end */

static enum spoke_settlement settlement_of(const struct spokei_course *course, int error)
{
	if (error == SPOKE_OK)
		return SPOKE_TICKET_SUCCESS;
	if (course->call->caller->closed)
		return SPOKE_TICKET_CLOSING;
	if (left_of(course) == 0)
		return SPOKE_TICKET_EXPIRED;
	return SPOKE_TICKET_EXHAUSTED;
}

static void note_answer(const struct spokei_course *course)
{
	struct spoke_engine *engine = course->call->caller->engine;
	uint64_t now_ns = engine->begin_ns;

	spokei_engine_answered(engine, now_ns > course->begun_ns ? now_ns - course->begun_ns : 0);
}

static void finish(struct spokei_call *call, const struct spokei_outcome *outcome,
		   const struct spoke_verdict *verdict)
{
	struct spokei_course *course = call->course;
	struct spoke_result result;

	if (outcome && outcome->reply && !course->told)
		note_answer(course);
	/* What has just ended says more than what is kept, if it counts. */
	if (outcome && (outcome->error || !verdict->blame))
		result = spokei_call_result(outcome);
	else
		result = spokei_course_result(course);
	if (call->caller->closed && course->begun == 0)
		result.error = SPOKE_ECLOSED;
	/* Who is refused at once is excused by who takes calls. */
	if (result.error && verdict->excuse && !course->young)
		spokei_call_excuse(call, &result);
	spokei_call_end(call, settlement_of(course, result.error), &result);
}

void spokei_call_next(struct spokei_call *call, const struct spokei_outcome *outcome)
{
	struct spokei_course *course = call->course;
	struct spoke_verdict verdict = { .step = SPOKE_STEP_FINISH };
	enum sent sent;

	course->stage = SPOKEI_COURSE_SENDING;
	for (;;) {
		verdict = ask(course);
		if (verdict.step == SPOKE_STEP_LISTEN && course->open > 0)
			return;
		if (verdict.step == SPOKE_STEP_WAIT && course->open == 0) {
			if (wait_for(course, &verdict))
				return;
			outcome = NULL;
			break;
		}
		if (verdict.step != SPOKE_STEP_SEND)
			break;
		sent = send_some(course, verdict.count ? verdict.count : 1);
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
	struct spokei_course *course = call->course;

	spokei_course_open(course, &call->attempt);
	/* What a policy ends with that never begins. */
	course->ending.error = SPOKE_EUNAVAILABLE;
	course->lasts_ns = spokei_settings_deadline(&call->method->settings, course->policy,
						    course->timeout_ns);
	if (course->policy->repeats)
		course->id = call->caller->next_id++;
}

/* An endpoint that could not be reached is none that it was sent to: it waits for another one,
 * unless others were asked at the same time. */
static bool waits_again(struct spokei_course *course, const struct spokei_outcome *outcome)
{
	if (outcome->written || !spoke_error_is_transport(outcome->error) ||
	    outcome->error == SPOKE_ETIMEOUT_UNSENT || course->call->caller->closed ||
	    (course->policy->fans_out && course->begun > 1) ||
	    !waits_for_endpoint(course, SPOKE_EUNAVAILABLE))
		return false;
	course->begun--;
	course->tried_count--;
	course->unready = true;
	return true;
}

/* The first attempt has failed: now it matters where it was. */
static void open_begun(const struct spokei_attempt *attempt)
{
	struct spokei_course *course = attempt->call->course;

	SPOKE_ASSERT(attempt->endpoint != NULL);
	spokei_call_open(attempt->call);
	course->tried[course->tried_count++] = attempt->endpoint->id;
	course->begun = 1;
	course->open = 1;
}

void spokei_call_attempt_ended(struct spokei_attempt *attempt, const struct spokei_outcome *outcome,
			       enum spoke_fate fate)
{
	struct spokei_call *call = attempt->call;
	struct spokei_course *course = call->course;
	struct spoke_result result;

	if (spokei_course_is_kept(course))
		open_begun(attempt);
	attempt->endpoint = NULL;
	course->open--;
	course->written |= outcome->written;
	if (attempt == &call->attempt)
		course->own_free = true;
	if (course->begun_ns == 0)
		course->begun_ns = attempt->pending.begun_ns ? attempt->pending.begun_ns
							     : call->caller->engine->begin_ns;
	if (course->stage == SPOKEI_COURSE_OVER)
		return;
	if (call->cancelled) {
		result = spokei_call_result(outcome);
		spokei_call_end(call, SPOKE_TICKET_CANCELLED, &result);
		return;
	}
	if (waits_again(course, outcome)) {
		spokei_call_next(call, NULL);
		return;
	}
	spokei_course_note(course, outcome, fate);
	spokei_call_next(call, outcome);
}

void spokei_call_due(struct spokei_course *course)
{
	struct spokei_call *call = course->call;

	if (course->homeless)
		spokei_call_end_later(call, SPOKE_TICKET_EXHAUSTED, SPOKE_ELIMIT);
	else if (course->unready && time_for(course) == 0)
		spokei_call_end_later(call, SPOKE_TICKET_EXPIRED, SPOKE_ETIMEOUT_UNSENT);
	else if (left_of(course) == 0)
		spokei_call_end_later(call, SPOKE_TICKET_EXPIRED, SPOKE_ETIMEOUT);
	else
		spokei_call_next(call, NULL);
}
