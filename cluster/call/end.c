/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a call: its caller is told, once; of one with a ticket, once more. */
#include "cluster/call/fallback.h"
#include "cluster/call/parts.h"

#include <spoke/consumer.h>

static const unsigned char nil[] = { 0xc0 };
const struct spoke_value spokei_call_nil = { nil, sizeof(nil) };

/* --- results */

struct spoke_result spokei_call_result(const struct spokei_outcome *outcome)
{
	const struct spokei_message *reply = outcome->reply;
	struct spoke_result result = {
		.error = outcome->error,
		.written = outcome->written,
		.queued_ns = outcome->queued_ns,
		.waited_ns = outcome->waited_ns,
		.attempts = 1,
	};

	if (reply) {
		result.value = reply->value;
		result.attachments = reply->attachments;
		result.error_text = reply->error_text;
		result.error_class = reply->error_class;
		result.error_code = reply->error_code;
	}
	if (result.error == SPOKE_OK && result.value.len == 0)
		result.value = spokei_call_nil;
	return result;
}

struct spoke_result spokei_retry_state_result(const struct spokei_retry_state *retry)
{
	const struct spokei_ending *ending = &retry->ending;
	struct spoke_result result = {
		.error = ending->error,
		.attempts = retry->begun,
		.error_code = ending->error_code,
		.error_text = { ending->text, ending->text_len },
		.error_class = { ending->class_name, ending->class_len },
		.written = retry->written,
		.queued_ns = ending->queued_ns,
		.waited_ns = ending->waited_ns,
	};

	/* Only answers there were. */
	if (retry->ok > 0 && retry->failed == 0)
		result.error = SPOKE_OK;
	if (result.error == SPOKE_OK)
		result.value = spokei_call_nil;
	return result;
}

/* Whatever came first since: its owner was promised so. */
static struct spoke_result cancelled_result(const struct spoke_result *since)
{
	return (struct spoke_result){
		.error = SPOKE_ECANCELED,
		.written = since->written,
		.queued_ns = since->queued_ns,
		.waited_ns = since->waited_ns,
		.attempts = since->attempts,
	};
}

static enum spoke_stat stat_of(int error)
{
	switch (error) {
	case SPOKE_OK:
		return SPOKE_STAT_CALLS_OK;
	case SPOKE_ETIMEOUT:
		return SPOKE_STAT_CALLS_TIMEOUT;
	case SPOKE_ETIMEOUT_UNSENT:
		return SPOKE_STAT_CALLS_TIMEOUT_UNSENT;
	case SPOKE_ECANCELED:
		return SPOKE_STAT_CALLS_CANCELED;
	case SPOKE_ECLOSED:
		return SPOKE_STAT_CALLS_CLOSED;
	case SPOKE_EDEFERRED:
		return SPOKE_STAT_CALLS_DEFERRED;
	default:
		break;
	}
	if (spoke_error_is_remote(error))
		return SPOKE_STAT_CALLS_REMOTE;
	return spoke_error_is_transport(error) ? SPOKE_STAT_CALLS_LOST : SPOKE_STAT_CALLS_FAILED;
}

/* --- what is asked after */

static void ask_filters(const struct spokei_call *call, struct spoke_result *result)
{
	const struct spokei_retry_state *retry = call->retry;
	struct spoke_filter_call about = spokei_call_describe(call->method);

	about.took_ns = result->queued_ns + result->waited_ns;
	if (retry && retry->policy) {
		about.args = retry->args;
		about.attachments = retry->attachments;
		about.one_way = retry->one_way;
		if (!spokei_retry_state_is_kept(retry) && retry->begun_ns &&
		    call->caller->engine->begin_ns > retry->begun_ns)
			about.took_ns = call->caller->engine->begin_ns - retry->begun_ns;
	}
	spokei_filters_after_call(&spokei_consumer_of(call->method)->filters, call->filters, &about,
				  result);
}

/* --- the end */

static void rest_if_idle(struct spokei_caller *caller)
{
	if (SPOKEI_UNLIKELY(caller->closed) && caller->calls.count == 0 && caller->idle)
		caller->idle(caller);
}

static void give_limit(struct spokei_call *call)
{
	if (call->limited)
		spokei_limit_give(&call->method->limit);
	call->limited = false;
}

/* The cell is free already; a text that is told may be among what was kept. */
void spokei_call_forget(struct spokei_caller *caller, struct spokei_retry_state *retry)
{
	if (retry == NULL)
		return;
	caller->kept -= retry->size;
	spokei_retry_state_free(&caller->blocks, caller->engine->env, retry);
}

void spokei_call_finish(struct spokei_call *call, struct spoke_result *result)
{
	struct spokei_caller *caller = call->caller;
	struct spokei_retry_state *retry = call->retry;
	spoke_call_done_fn done = call->done;
	void *arg = call->arg;

	if (SPOKEI_UNLIKELY(call->filters))
		ask_filters(call, result);
	if (SPOKEI_UNLIKELY(result->error) && call->method->fallback.len)
		spokei_fallback_apply(result, call->method->fallback);
	if (SPOKEI_UNLIKELY(result->fallback))
		spokei_count(caller->engine, SPOKE_STAT_CALLS_FALLBACK);
	spokei_count(caller->engine, stat_of(result->error));
	give_limit(call);
	spokei_task_drop(&call->cancel);
	spokei_slab_give(&caller->calls, call->handle);
	if (done)
		done(arg, result);
	spokei_call_forget(caller, retry);
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
	struct spokei_caller *caller = call->caller;
	struct spokei_retry_state *retry = call->retry;
	const struct spokei_consumer_settings *settings =
		&spokei_consumer_of(call->method)->settings;
	uint64_t now_ns = caller->engine->begin_ns;
	struct spoke_ticket_result settled = {
		.ticket = { call->handle },
		.settlement = retry->settlement,
		.attempts = retry->begun,
		.id = retry->id,
		.lasted_ns = retry->begun_ns && now_ns > retry->begun_ns ? now_ns - retry->begun_ns
									 : 0,
		.result = result,
	};

	if (SPOKEI_UNLIKELY(call->filters))
		ask_filters(call, result);
	spokei_count(caller->engine, stats[settled.settlement]);
	spokei_report_add(&caller->report,
			  settled.settlement == SPOKE_TICKET_SUCCESS ? SPOKEI_REPORT_SETTLED
								     : SPOKEI_REPORT_GIVEN_UP,
			  result->error, 0);
	spokei_task_drop(&call->cancel);
	spokei_slab_give(&caller->calls, call->handle);
	if (retry->settle)
		retry->settle(retry->settle_arg, &settled);
	/* The consumer lives as long as this turn, whatever became of it. */
	if (settings->settled)
		settings->settled(settings->settled_arg, &settled);
	spokei_call_forget(caller, retry);
	rest_if_idle(caller);
}

/* Whoever still is under way is told that nobody waits for it. */
static void stop_attempts(struct spokei_call *call)
{
	struct spokei_retry_state *retry = call->retry;

	if (!retry->own_free)
		spokei_conn_cancel(&call->attempt.pending, SPOKE_ECANCELED);
	for (struct spokei_fork *fork = retry->forks; fork; fork = fork->next)
		if (fork->attempt.pending.conn)
			spokei_conn_cancel(&fork->attempt.pending, SPOKE_ECANCELED);
}

static void leave(struct spokei_call *call, enum spoke_ticket_settlement settlement)
{
	struct spokei_retry_state *retry = call->retry;

	retry->stage = SPOKEI_RETRY_STATE_OVER;
	retry->settlement = settlement;
	spokei_retry_queue_leave(&call->caller->retry, retry, true);
	spokei_task_drop(&retry->tell);
	stop_attempts(call);
}

void spokei_call_end(struct spokei_call *call, enum spoke_ticket_settlement settlement,
		     struct spoke_result *result)
{
	struct spokei_retry_state *retry = call->retry;

	if (SPOKEI_UNLIKELY(call->cancelled)) {
		settlement = SPOKE_TICKET_CANCELLED;
		*result = cancelled_result(result);
	}
	leave(call, settlement);
	result->attempts = retry->begun;
	result->written = retry->written;
	if (retry->young) {
		retry->ending.error = result->error;
		return;
	}
	if (retry->told)
		settle(call, result);
	else
		spokei_call_finish(call, result);
}

void spokei_call_excuse(const struct spokei_call *call, struct spoke_result *result)
{
	if (result->error == SPOKE_ECANCELED || result->error == SPOKE_ECLOSED)
		return;
	spokei_event(call->caller->engine, result->error, "call failed, and is excused");
	result->error = SPOKE_OK;
	result->value = spokei_call_nil;
}

static void excuse_if_wanted(const struct spokei_call *call, struct spoke_result *result)
{
	if (SPOKEI_UNLIKELY(result->error) && spokei_call_excuses(call->policy))
		spokei_call_excuse(call, result);
}

/* --- a little later */

static struct spokei_call *call_of(struct spokei_task *tell)
{
	return spoke_container_of(tell, struct spokei_retry_state, tell)->call;
}

static void ended_later(struct spokei_task *task)
{
	struct spokei_call *call = call_of(task);
	struct spokei_retry_state *retry = call->retry;
	struct spoke_result result = spokei_retry_state_result(retry);

	if (call->cancelled) {
		retry->settlement = SPOKE_TICKET_CANCELLED;
		result.error = SPOKE_ECANCELED;
	}
	excuse_if_wanted(call, &result);
	if (retry->told)
		settle(call, &result);
	else
		spokei_call_finish(call, &result);
}

void spokei_call_end_later(struct spokei_call *call, enum spoke_ticket_settlement settlement,
			   int error)
{
	struct spokei_retry_state *retry = call->retry;

	leave(call, settlement);
	retry->ending.error = error;
	retry->tell.run = ended_later;
	spokei_engine_soon(call->caller->engine, &retry->tell);
}

static void answered(struct spokei_task *task)
{
	struct spokei_call *call = call_of(task);
	struct spoke_result result = {
		.value = { call->retry->args.data, call->retry->args.len },
		.fallback = call->retry->fallback,
	};

	if (call->cancelled)
		result = (struct spoke_result){ .error = SPOKE_ECANCELED };
	spokei_call_finish(call, &result);
}

void spokei_call_answer(struct spokei_call *call)
{
	struct spokei_retry_state *retry = call->retry;

	retry->stage = SPOKEI_RETRY_STATE_OVER;
	retry->tell.run = answered;
	spokei_engine_soon(call->caller->engine, &retry->tell);
}

static void told(struct spokei_task *task)
{
	struct spokei_call *call = call_of(task);
	struct spokei_retry_state *retry = call->retry;
	struct spoke_result result = spokei_retry_state_result(retry);
	spoke_call_done_fn done = call->done;

	if (call->cancelled) { /* before there was one */
		spokei_call_end(call, SPOKE_TICKET_CANCELLED, &result);
		return;
	}
	retry->told = true;
	result.error = SPOKE_EDEFERRED;
	result.ticket.handle = call->handle;
	spokei_count(call->caller->engine, SPOKE_STAT_CALLS_DEFERRED);
	spokei_report_add(&call->caller->report, SPOKEI_REPORT_DEFERRED, retry->ending.error,
			  retry->pause_ns);
	give_limit(call);
	call->done = NULL;
	if (done)
		done(call->arg, &result);
}

void spokei_call_defer(struct spokei_call *call)
{
	struct spokei_retry_state *retry = call->retry;

	retry->deferred = true;
	spokei_retry_queue_admit(&call->caller->retry, retry);
	retry->tell.run = told;
	spokei_engine_soon(call->caller->engine, &retry->tell);
}

/* --- attempts */

static void finish_one(struct spokei_call *call, const struct spokei_outcome *outcome)
{
	struct spoke_result result;

	if (SPOKEI_LIKELY(outcome->reply))
		spokei_engine_answered(call->caller->engine,
				       outcome->queued_ns + outcome->waited_ns);
	result = spokei_call_result(outcome);
	if (SPOKEI_UNLIKELY(call->cancelled))
		result = cancelled_result(&result);
	else
		excuse_if_wanted(call, &result);
	spokei_call_finish(call, &result);
}

/* Is it the one attempt that it takes? Of a course that is still to be opened the first one, if
 * that has not failed. */
static inline bool is_the_one(const struct spokei_call *call, int error)
{
	if (SPOKEI_LIKELY(call->retry == NULL))
		return true;
	return spokei_retry_state_is_kept(call->retry) && (error == SPOKE_OK || call->cancelled);
}

static void note_deadline(const struct spokei_attempt *attempt,
			  const struct spokei_outcome *outcome)
{
	struct spokei_caller *caller = attempt->call->caller;

	if (outcome->error != SPOKE_ETIMEOUT && outcome->error != SPOKE_ETIMEOUT_UNSENT)
		return;
	spokei_count(caller->engine, SPOKE_STAT_ATTEMPTS_TIMEOUT);
	spokei_report_timed_out(&caller->report, attempt->endpoint ? attempt->endpoint->name : NULL,
				attempt->pending.timeout_ns);
}

void spokei_attempt_done(struct spokei_pending *pending, const struct spokei_outcome *outcome)
{
	struct spokei_attempt *attempt = spoke_container_of(pending, struct spokei_attempt,
							    pending);
	struct spokei_call *call = attempt->call;
	struct spokei_endpoint *endpoint = attempt->endpoint;
	enum spoke_policy_fate fate = SPOKE_FATE_OK;

	if (SPOKEI_UNLIKELY(outcome->error)) {
		fate = spokei_attempt_fate(outcome->error, outcome->written);
		note_deadline(attempt, outcome);
	}
	if (SPOKEI_LIKELY(endpoint))
		spokei_directory_ended(endpoint, fate, outcome->error,
				       outcome->queued_ns + outcome->waited_ns);
	if (SPOKEI_LIKELY(is_the_one(call, outcome->error))) {
		finish_one(call, outcome);
		return;
	}
	spokei_call_attempt_ended(attempt, outcome, fate);
}

/* --- cancelling and closing */

static void call_cancelled(struct spokei_task *task)
{
	struct spokei_call *call = spoke_container_of(task, struct spokei_call, cancel);
	struct spoke_result result = { .error = SPOKE_ECANCELED };

	if (call->retry == NULL || spokei_retry_state_is_kept(call->retry)) {
		spokei_conn_cancel(&call->attempt.pending, SPOKE_ECANCELED);
		return;
	}
	if (call->retry->stage == SPOKEI_RETRY_STATE_OVER)
		return; /* it is about to be told of another end, or of this one */
	spokei_call_end(call, SPOKE_TICKET_CANCELLED, &result);
}

bool spokei_call_cancel(struct spokei_caller *caller, struct spoke_call named)
{
	struct spokei_call *call = spokei_slab_get(&caller->calls, named.handle);

	if (call == NULL)
		return false;
	call->cancelled = true;
	if (call->attempt.pending.conn)
		spokei_conn_withdraw(&call->attempt.pending);
	call->cancel.run = call_cancelled;
	spokei_engine_soon(caller->engine, &call->cancel);
	return true;
}

bool spoke_call_cancel(struct spoke_consumer *consumer, struct spoke_call call)
{
	return spokei_call_cancel(&consumer->caller, call);
}

static void sweep(struct spokei_task *task)
{
	struct spokei_caller *caller = spoke_container_of(task, struct spokei_caller, sweep);
	struct spokei_retry_state *retry;

	while ((retry = spokei_retry_queue_any(&caller->retry)) != NULL) {
		struct spoke_result result = spokei_retry_state_result(retry);

		result.error = SPOKE_ECLOSED;
		spokei_call_end(retry->call, SPOKE_TICKET_CLOSING, &result);
	}
}

void spokei_call_sweep(struct spokei_caller *caller)
{
	caller->sweep.run = sweep;
	spokei_engine_soon(caller->engine, &caller->sweep);
}
