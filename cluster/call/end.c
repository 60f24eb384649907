/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a call: its result, its callback, and the callback of its ticket. */
#include "cluster/call/end.h"

#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/fallback.h"
#include "cluster/call/method.h"
#include "cluster/call/retry_state.h"
#include "cluster/filter/filter.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "transport/conn/conn.h"

#include <spoke/consumer.h>

static const unsigned char nil[] = { 0xc0 };
const struct spoke_value spokei_call_nil = { nil, sizeof(nil) };

/* --- results */

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

	/* All attempts were answered. */
	if (retry->ok > 0 && retry->failed == 0)
		result.error = SPOKE_OK;
	if (result.error == SPOKE_OK)
		result.value = spokei_call_nil;
	return result;
}

/* The user was promised this result, even if another event has ended the call since. */
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

/* --- filters */

static void ask_filters(const struct spokei_call *call, struct spoke_result *result)
{
	const struct spokei_retry_state *retry = call->retry;
	struct spoke_filter_call about = spokei_method_describe(call->method);

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
	if (SPOKEI_UNLIKELY(call->limited))
		spokei_limit_give(&call->method->limit);
	call->limited = false;
}

void spokei_call_forget(struct spokei_caller *caller, struct spokei_retry_state *retry)
{
	if (retry == NULL)
		return;
	caller->kept -= retry->size;
	spokei_retry_state_free(&caller->blocks, caller->engine->env, retry);
}

static void excuse(const struct spoke_method *method, struct spoke_result *result)
{
	if (!spokei_fallback_hides(result->error))
		return;
	spokei_event(method->caller->engine, result->error, "call failed, and is excused");
	result->error = SPOKE_OK;
	result->value = spokei_call_nil;
}

void spokei_call_settle_error(const struct spoke_method *method, bool excuses,
			      struct spoke_result *result)
{
	if (method->fallback.len)
		spokei_fallback_apply(result, method->fallback);
	if (excuses)
		excuse(method, result);
}

/* Counts a call that was not answered. */
static SPOKEI_NOINLINE void count_failure(const struct spokei_call *call,
					  struct spoke_result *result)
{
	spokei_call_settle_error(call->method, call->excuses, result);
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
	spokei_call_forget(caller, retry);
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
	spokei_retry_queue_leave(&call->method->caller->retry, retry, true);
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
		*result = cancelled_result(result);
	}
	leave(call, settlement);
	result->attempts = retry->begun;
	result->written = retry->written;
	if (retry->inside_call)
		retry->ending.error = result->error;
	else
		report_end(call, result);
}

void spokei_call_finish_failed(struct spokei_call *call, struct spoke_result *result)
{
	if (call->cancelled)
		*result = cancelled_result(result);
	spokei_call_finish(call, result);
}

/* --- the end, a little later */

static struct spokei_call *call_of(struct spokei_task *tell)
{
	return spoke_container_of(tell, struct spokei_retry_state, tell)->call;
}

static void tell_soon(struct spokei_call *call, void (*run)(struct spokei_task *task))
{
	call->retry->tell.run = run;
	spokei_engine_soon(call->method->caller->engine, &call->retry->tell);
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

void spokei_call_answer(struct spokei_call *call)
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
	spokei_retry_queue_admit(&call->method->caller->retry, retry);
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
	spokei_engine_soon(caller->engine, &call->cancel);
	return true;
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
