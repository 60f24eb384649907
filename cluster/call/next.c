/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next step of a call: asks its policy, and carries out the verdict as far as deadlines, the
 * retry budget and the rule against repeated requests allow.
 */
#include "cluster/call/next.h"

#include "cluster/call/ask.h"
#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/end.h"
#include "cluster/call/fallback.h"
#include "cluster/call/leased.h"
#include "cluster/call/limits.h"
#include "cluster/call/method.h"
#include "cluster/call/retry_state.h"
#include "cluster/call/send.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/endpoint.h"
#include "cluster/filter/filter.h"
#include "core/engine/slow.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

static void attempt_done(struct spokei_pending *pending, const struct spokei_outcome *outcome);

/* --- sending */

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

	if ((backup || retry->last == SPOKE_FATE_UNSURE) && !spokei_call_is_repeatable(retry))
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
	    (retry->last == SPOKE_FATE_UNSURE && !spokei_call_is_repeatable(retry)))
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

	if (caller->closed || spokei_call_left(retry) == 0)
		return retry->open > 0 ? SENT_SOME : SENT_NEVER;
	if (count > SPOKEI_ENDPOINTS_MAX)
		count = SPOKEI_ENDPOINTS_MAX;
	retry->fans_out |= count > 1 || retry->open > 0;
	for (; count > 0; count--) {
		if (again && !retry->was_unready && !may_send_again(retry))
			return postpone(retry);
		outcome.error = spokei_call_send_one(retry, attempt_done);
		if (outcome.error && spokei_call_waits_for_endpoint(retry, outcome.error)) {
			retry->was_unready = true;
			spokei_retry_queue_unready(&caller->retry, retry);
			return SENT_SOME;
		}
		retry->waited = false;
		retry->begun++;
		if (outcome.error)
			spokei_retry_state_note(retry, &outcome,
						spokei_attempt_fate(outcome.error, false));
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

/* --- the end */

static enum spoke_ticket_settlement settlement_of(const struct spokei_retry_state *retry, int error)
{
	if (error == SPOKE_OK)
		return SPOKE_TICKET_SUCCESS;
	if (retry->call->method->caller->closed)
		return SPOKE_TICKET_CLOSING;
	if (spokei_call_left(retry) == 0)
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
		result = spokei_call_result(outcome);
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
	struct spoke_result result = spokei_call_result(outcome);

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

void spokei_call_next(struct spokei_call *call, const struct spokei_outcome *outcome)
{
	struct spokei_retry_state *retry = call->retry;
	struct spoke_policy_verdict verdict;

	if (SPOKEI_UNLIKELY(retry->watched))
		spokei_retry_queue_leave(&call->method->caller->retry, retry, false);
	for (;;) {
		enum sent sent;

		verdict = spokei_call_ask(retry);
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
	    (retry->fans_out && retry->begun > 1) ||
	    !spokei_call_waits_for_endpoint(retry, SPOKE_EUNAVAILABLE))
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
	spokei_call_open(attempt->call);
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
		struct spoke_result result = spokei_call_result(outcome);

		spokei_call_end(call, SPOKE_TICKET_CANCELLED, &result);
		return;
	}
	if (SPOKEI_UNLIKELY(spokei_retry_state_is_leased(retry)))
		outcome = spokei_leased_outcome(retry, outcome, &ended, &fate);
	spokei_call_move(&retry->state, SPOKEI_CALL_DECIDING);
	if (waits_again(retry, outcome)) {
		spokei_call_next(call, NULL);
		return;
	}
	spokei_retry_state_note(retry, outcome, fate);
	spokei_call_next(call, outcome);
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
	struct spoke_result result = spokei_call_result(outcome);

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
		if (endpoint && spokei_attempt_lacked_conn(outcome)) {
			explained = *outcome;
			explained.reason = outcome->error == SPOKE_ETOOLARGE
						   ? spokei_limits_frame(attempt->call->method)
						   : spokei_endpoint_reason(endpoint);
			outcome = &explained;
		}
		fate = spokei_attempt_fate(outcome->error, outcome->written);
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

int spokei_call_send(struct spokei_attempt *attempt, struct spokei_conn *conn,
		     const struct spokei_call_args *args)
{
	return spokei_call_send_as(attempt, conn, args, attempt_done);
}

/* --- the end of a wait */

/* An attempt is slow. A call that was cancelled ends anyway. */
static void slow(struct spokei_call *call)
{
	if (call->cancelled)
		return;
	call->retry->waited = true;
	spokei_call_move(&call->retry->state, SPOKEI_CALL_DECIDING);
	spokei_call_next(call, NULL);
}

void spokei_call_due(struct spokei_retry_state *retry, int error)
{
	struct spokei_call *call = retry->call;

	if (retry->open > 0)
		slow(call);
	else if (error)
		spokei_call_end_later(call, SPOKE_TICKET_EXHAUSTED, error);
	else if (retry->was_unready && spokei_call_time(retry) == 0)
		spokei_call_end_later(call, SPOKE_TICKET_EXPIRED, SPOKE_ETIMEOUT_UNSENT);
	else if (spokei_call_left(retry) == 0)
		spokei_call_end_later(call, SPOKE_TICKET_EXPIRED, SPOKE_ETIMEOUT);
	else {
		spokei_call_move(&retry->state, SPOKEI_CALL_DECIDING);
		spokei_call_next(call, NULL);
	}
}
