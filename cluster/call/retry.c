/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that may take several attempts: asks the policy for the next step, and carries the verdict
 * out as far as deadlines, the retry budget and the rule against repeated requests allow. Keeps the
 * history of their attempts, and the calls that wait for the next one.
 */
#include "cluster/call/retry.h"

#include "cluster/balancer/weights.h"
#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/journalled.h"
#include "cluster/call/method.h"
#include "cluster/call/report.h"
#include "cluster/config/keys.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/endpoint.h"
#include "core/base/env.h"
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/wire/message.h"

#include <string.h>

#define TO(state) (1u << SPOKEI_CALL_##state)

const unsigned spokei_call_moves[] = {
	[SPOKEI_CALL_FIRST] = TO(DECIDING),
	[SPOKEI_CALL_DECIDING] = TO(SENDING) | TO(PAUSING) | TO(UNREADY) | TO(OVER),
	[SPOKEI_CALL_SENDING] = TO(DECIDING) | TO(OVER),
	[SPOKEI_CALL_PAUSING] = TO(DECIDING) | TO(OVER),
	[SPOKEI_CALL_UNREADY] = TO(DECIDING) | TO(OVER),
	[SPOKEI_CALL_OVER] = 0,
};

static void call_due(struct spokei_retry_state *retry, int error);

static struct spokei_caller *caller_of(const struct spokei_retry_state *retry)
{
	return retry->call->method->caller;
}

/* --- the history */

#define PAUSE_CAP_NS UINT64_C(60000000000) /* longest pause of an exponential backoff */

/* Returns how long a call may last from its beginning that may become a ticket: retry.deadline, or
 * the sum of all attempts and pauses. */
static uint64_t deadline_of(const struct spokei_call_settings *settings,
			    const struct spoke_policy *policy, uint64_t timeout_ns)
{
	uint32_t retries = spokei_settings_retries(settings, policy);
	uint64_t pause_ns = settings->period_ns;
	uint64_t all_ns = spokei_later(pause_ns, timeout_ns);

	if (settings->deadline_ns)
		return settings->deadline_ns;
	for (uint32_t i = 0; i < retries; i++) {
		/* Jitter may lengthen growing pauses by a fifth. */
		uint64_t longest_ns = settings->growing ? spokei_later(pause_ns, pause_ns / 5)
							: pause_ns;

		all_ns = spokei_later(all_ns, spokei_later(longest_ns, timeout_ns));
		if (settings->growing && pause_ns < PAUSE_CAP_NS)
			pause_ns = pause_ns / 5 * 8;
		if (settings->growing && pause_ns > PAUSE_CAP_NS &&
		    settings->period_ns < PAUSE_CAP_NS)
			pause_ns = PAUSE_CAP_NS;
	}
	return all_ns;
}

/* Returns the time of each attempt of a ticket. It has more of it than the request for which its
 * call was made. */
static uint64_t time_of_ticket(const struct spokei_retry_state *retry)
{
	return retry->args.cut ? retry->args.own_ns : retry->timeout_ns;
}

/* Opens the history of a call. */
static void open_history(struct spokei_call *call)
{
	struct spokei_retry_state *retry = call->retry;
	const struct spoke_policy *policy = retry->args.policy;

	spokei_retry_state_open(retry);
	/* The result under a policy that never begins an attempt. */
	retry->ending.error = SPOKE_EUNAVAILABLE;
	retry->lasts_ns = retry->timeout_ns;
	if (policy->repeats)
		retry->lasts_ns = deadline_of(&call->method->settings, policy,
					      time_of_ticket(retry));
}

/* Returns an attempt that is not in flight, or NULL without memory. */
static struct spokei_attempt *idle_attempt(struct spokei_retry_state *retry,
					   const struct spoke_env *env)
{
	struct spokei_fork *fork;

	if (retry->call->attempt.pending.conn == NULL)
		return &retry->call->attempt;
	for (fork = retry->forks; fork; fork = fork->next)
		if (fork->attempt.pending.conn == NULL)
			return &fork->attempt;
	fork = spokei_alloc(env, 1, sizeof(*fork));
	if (fork == NULL)
		return NULL;
	fork->next = retry->forks;
	retry->forks = fork;
	fork->attempt.call = retry->call;
	return &fork->attempt;
}

static uint8_t keep(unsigned char *to, struct spoke_span text)
{
	size_t len = text.len < SPOKEI_RETRY_STATE_TEXT ? text.len : SPOKEI_RETRY_STATE_TEXT;

	if (len)
		memcpy(to, text.data, len);
	return (uint8_t)len;
}

/* Notes how an attempt has ended, or that it could not begin. A repeat that did not run tells
 * nothing of the attempt before, which may have. */
static void note_end(struct spokei_retry_state *retry, const struct spokei_outcome *outcome,
		     enum spoke_policy_fate fate)
{
	struct spokei_ending *ending = &retry->ending;

	retry->last = fate;
	retry->unsure |= fate == SPOKE_FATE_UNSURE;
	retry->given_up = outcome->reply == NULL && retry->call->method->settings.attempt_ns == 0 &&
			  (outcome->error == SPOKE_ETIMEOUT ||
			   outcome->error == SPOKE_ETIMEOUT_UNSENT);
	if (fate == SPOKE_FATE_OK) {
		retry->ok++;
		return;
	}
	retry->failed++;
	if (retry->bound && fate == SPOKE_FATE_SAFE)
		return;
	ending->error = outcome->error;
	ending->queued_ns = outcome->queued_ns;
	ending->waited_ns = outcome->waited_ns;
	ending->error_code = 0;
	ending->text_len = 0;
	ending->class_len = 0;
	if (outcome->reply == NULL && outcome->reason)
		ending->text_len = keep(ending->text,
					spokei_span(outcome->reason, strlen(outcome->reason)));
	if (outcome->reply == NULL)
		return;
	ending->error_code = outcome->reply->error_code;
	ending->text_len = keep(ending->text, outcome->reply->error_text);
	ending->class_len = keep(ending->class_name, outcome->reply->error_class);
}

/* The same, in the journal too. */
static void note_ended(struct spokei_retry_state *retry, const struct spokei_outcome *outcome,
		       enum spoke_policy_fate fate)
{
	note_end(retry, outcome, fate);
	if (SPOKEI_LIKELY(retry->journalled == NULL))
		return;
	/* The consumer is closed. The next one must know that the request may have run. */
	retry->unsure |= outcome->error == SPOKE_ECLOSED && outcome->written;
	spokei_journalled_attempt_ended(retry);
}

/* Keeps why no endpoint can take the call now. */
static void note_reason(struct spokei_retry_state *retry, int error)
{
	retry->ending.text_len = keep(retry->ending.text,
				      spokei_limits_text(retry->call->method, error));
}

void spokei_ticket_look(const struct spokei_retry_state *retry, uint64_t now_ns,
			struct spoke_ticket_state *ret_state)
{
	*ret_state = (struct spoke_ticket_state){
		.id = retry->id,
		.attempts = retry->begun,
		.sending = retry->open > 0,
		.last_error = retry->ending.error,
		.left_ns = spokei_retry_state_left(retry, now_ns),
	};
	if (retry->state == SPOKEI_CALL_PAUSING)
		ret_state->next_ns = spokei_retry_state_pause(retry, now_ns);
}

/* --- the time of a call */

/* Returns how long the call may last from its beginning until its answer, or until it becomes a
 * ticket; of a ticket, until its settlement. */
static uint64_t answers_ns(const struct spokei_retry_state *retry)
{
	return spokei_retry_state_is_deferred(retry) || retry->timeout_ns > retry->lasts_ns
		       ? retry->lasts_ns
		       : retry->timeout_ns;
}

/* Returns how much of that time is left. */
static uint64_t answer_left(const struct spokei_retry_state *retry)
{
	uint64_t age_ns = spokei_retry_state_age(retry, caller_of(retry)->engine->begin_ns);
	uint64_t answers = answers_ns(retry);

	return answers > age_ns ? answers - age_ns : 0;
}

/* --- calls that wait, in lists and on the engine's wheel */

#define UNKNOWN UINT32_MAX /* the class of watched attempts, before the first one */

static void retry_due(struct spoke_timer *timer, void *arg);

int spokei_retry_queue_init(struct spokei_retry_queue *queue, struct spoke_engine *engine)
{
	*queue = (struct spokei_retry_queue){ .watch_class = UNKNOWN };
	spokei_list_init(&queue->tickets);
	spokei_list_init(&queue->unready);
	spokei_list_init(&queue->pausing);
	return spokei_engine_class(engine, "retry", retry_due, &queue->timer_class);
}

void spokei_retry_queue_limit(struct spokei_retry_queue *queue,
			      const struct spokei_key_values *values)
{
	queue->tasks_max = spokei_keys_u32(values, SPOKEI_KEY_FAILBACK_TASKS);
	queue->bytes_max = (size_t)values->of[SPOKEI_KEY_FAILBACK_BYTES];
	queue->drops_oldest = values->of[SPOKEI_KEY_FAILBACK_OVERFLOW] != 0;
}

/* Is there room for one more ticket that keeps as many bytes? */
static bool has_room(const struct spokei_retry_queue *queue, size_t bytes)
{
	return queue->tasks < queue->tasks_max && queue->bytes <= queue->bytes_max &&
	       bytes <= queue->bytes_max - queue->bytes;
}

static struct spokei_retry_state *of_tickets(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_retry_state, of_tickets);
}

/* Returns the oldest ticket, or NULL. */
static struct spokei_retry_state *oldest_ticket(const struct spokei_retry_queue *queue)
{
	return spokei_list_empty(&queue->tickets) ? NULL : of_tickets(queue->tickets.next);
}

/* Counts a call as a ticket. */
static void admit_ticket(struct spokei_retry_queue *queue, struct spokei_retry_state *retry)
{
	queue->tasks++;
	queue->bytes += retry->size;
	spokei_list_append(&queue->tickets, &retry->of_tickets);
}

static void end_wait(struct spokei_retry_state *retry, int error)
{
	spokei_retry_queue_leave(retry, false);
	call_due(retry, error);
}

static void retry_due(struct spoke_timer *timer, void *arg)
{
	(void)arg;
	end_wait(spoke_container_of(timer, struct spokei_retry_state, timer), SPOKE_OK);
}

static void watch_due(struct spoke_timer *timer, void *arg)
{
	retry_due(timer, arg);
}

/* Attempts that may get a backup have a class of their own, which only programs with such methods
 * need. */
static unsigned watch_class(struct spokei_caller *caller)
{
	struct spokei_retry_queue *queue = &caller->retry;

	if (queue->watch_class == UNKNOWN &&
	    spokei_engine_class(caller->engine, "hedge", watch_due, &queue->watch_class))
		queue->watch_class = queue->timer_class; /* there is no other */
	return queue->watch_class;
}

/* When the call is due; the turn in which its wait began ends now. */
static uint64_t due_of(const struct spokei_retry_state *retry, uint64_t now_ns)
{
	uint64_t due_ns = spokei_later(now_ns, retry->pause_ns);
	uint64_t end_ns = spokei_later(retry->begun_ns, answers_ns(retry));

	if (retry->state == SPOKEI_CALL_UNREADY)
		return end_ns;
	return due_ns < end_ns || retry->watched ? due_ns : end_ns;
}

static void schedule_wait(struct spokei_task *task)
{
	struct spokei_retry_state *retry = spoke_container_of(task, struct spokei_retry_state, arm);
	struct spokei_caller *caller = caller_of(retry);
	uint64_t now_ns = spokei_engine_settled(caller->engine);
	unsigned class = retry->watched ? watch_class(caller) : caller->retry.timer_class;

	if (retry->begun_ns == 0)
		retry->begun_ns = now_ns;
	retry->due_ns = due_of(retry, now_ns);
	/* If the wheel has no room, a call that is watched goes on as if it were not. */
	if (spoke_wheel_schedule(caller->engine->wheel, &retry->timer, class, retry->due_ns) !=
		    SPOKE_WHEEL_OK &&
	    !retry->watched)
		end_wait(retry, SPOKE_ELIMIT);
}

static void schedule_wait_later(struct spokei_retry_state *retry)
{
	retry->arm.run = schedule_wait;
	spokei_run_settling(caller_of(retry)->engine, &retry->arm);
}

/* Has a call pause for `pause_ns` from the end of this turn on, and at most until its deadline. */
static void wait_paused(struct spokei_retry_state *retry, uint64_t pause_ns)
{
	spokei_call_move(&retry->state, SPOKEI_CALL_PAUSING);
	spokei_list_append(&caller_of(retry)->retry.pausing, &retry->of_retry);
	retry->pause_ns = pause_ns;
	schedule_wait_later(retry);
}

/* Has a call wait until some endpoint can take it, at most for the time of the call. */
static void wait_unready(struct spokei_retry_state *retry)
{
	spokei_call_move(&retry->state, SPOKEI_CALL_UNREADY);
	if (retry->bound || caller_of(retry)->directory->routes)
		caller_of(retry)->directory->awaited = true;
	spokei_list_append(&caller_of(retry)->retry.unready, &retry->of_retry);
	schedule_wait_later(retry);
}

/* Watches a call whose attempts are open: it is due `after_ns` from the end of this turn on, unless
 * it leaves the queue before. It is not one of the calls that wait. */
static void watch(struct spokei_retry_state *retry, uint64_t after_ns)
{
	retry->pause_ns = after_ns;
	retry->watched = true;
	schedule_wait_later(retry);
}

void spokei_retry_queue_leave(struct spokei_retry_state *retry, bool over)
{
	struct spokei_caller *caller = caller_of(retry);

	retry->watched = false;
	spokei_task_drop(&retry->arm);
	if (retry->of_retry.next)
		spokei_list_remove(&retry->of_retry);
	(void)spoke_wheel_cancel(caller->engine->wheel, &retry->timer);
	if (!over || retry->of_tickets.next == NULL)
		return;
	spokei_list_remove(&retry->of_tickets);
	caller->retry.tasks--;
	caller->retry.bytes -= retry->size;
}

/* Calls that begin to wait again meanwhile are not due. */
void spokei_retry_queue_wake(struct spokei_retry_queue *queue)
{
	struct spoke_list ready;

	spokei_list_init(&ready);
	spokei_list_move(&queue->unready, &ready);
	while (!spokei_list_empty(&ready)) {
		end_wait(spoke_container_of(spokei_list_first(&ready), struct spokei_retry_state,
					    of_retry),
			 SPOKE_OK);
	}
}

/* Returns a call that waits, or NULL. */
static struct spokei_retry_state *any_waiting(const struct spokei_retry_queue *queue)
{
	const struct spoke_list *list = &queue->pausing;

	if (spokei_list_empty(list))
		list = &queue->unready;
	if (spokei_list_empty(list))
		return NULL;
	return spoke_container_of(list->next, struct spokei_retry_state, of_retry);
}

static void sweep(struct spokei_task *task)
{
	struct spokei_caller *caller = spoke_container_of(task, struct spokei_caller, sweep);
	struct spokei_retry_state *retry;

	while ((retry = any_waiting(&caller->retry)) != NULL) {
		struct spoke_result result = spokei_retry_state_result(retry);

		result.error = SPOKE_ECLOSED;
		spokei_call_end(retry->call, SPOKE_TICKET_CLOSING, &result);
	}
}

void spokei_call_sweep(struct spokei_caller *caller)
{
	caller->sweep.run = sweep;
	spokei_run_soon(caller->engine, &caller->sweep);
}

/* Does a new ticket wait for the journal, before the user is told of it? */
static bool waits_for_journal(const struct spokei_retry_state *retry)
{
	return retry->journalled && retry->journalled->ticket.waiting.next != NULL;
}

/* --- the policy */

/* Return settings of a call: those in its journal, since an earlier process may have made it. */
static uint32_t retries_of(const struct spokei_retry_state *retry)
{
	return SPOKEI_UNLIKELY(retry->journalled)
		       ? retry->journalled->retries
		       : spokei_settings_retries(&retry->call->method->settings,
						 retry->args.policy);
}

static uint64_t period_of(const struct spokei_retry_state *retry)
{
	return SPOKEI_UNLIKELY(retry->journalled) ? retry->journalled->period_ns
						  : retry->call->method->settings.period_ns;
}

/* May a request that may have run be sent again, to any endpoint? */
static bool is_free(const struct spokei_retry_state *retry)
{
	return !retry->bound &&
	       (retry->call->method->settings.idempotent ||
		(retry->args.policy->repeats && !spokei_journalled_is_once(retry)));
}

/* May it be sent again, maybe to the instance only that recognises it? */
static bool is_repeatable(const struct spokei_retry_state *retry)
{
	return retry->bound || is_free(retry);
}

/* Returns how much time is left until the deadline of the call. */
static uint64_t time_left(const struct spokei_retry_state *retry)
{
	return spokei_retry_state_left(retry, caller_of(retry)->engine->begin_ns);
}

static uint64_t random_number(const struct spokei_retry_state *retry)
{
	const struct spoke_env *env = caller_of(retry)->engine->env;
	uint64_t dice;

	env->dice(env->ctx, &dice, sizeof(dice));
	return dice;
}

/* Returns the history of the call for its policy. */
static struct spoke_policy_history history_of(const struct spokei_retry_state *retry)
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
		.given_up = retry->given_up,
		.waited = retry->waited,
		.left_ns = time_left(retry),
		.retries = retries_of(retry),
		.forks = settings->forks,
		.fail_percent = settings->fail_percent,
		.growing = settings->growing,
		.period_ns = period_of(retry),
	};
	struct spokei_view *view;

	if (SPOKEI_UNLIKELY(settings->hedge_ns && is_free(retry)))
		history.hedge_ns = spokei_hedge_after(&retry->call->method->hedge,
						      settings->hedge_ns);
	if (settings->growing && policy->repeats)
		history.dice = random_number(retry);
	if (spokei_call_view(retry->call->method, &retry->args, &view) == SPOKE_OK)
		spokei_directory_count(caller_of(retry)->directory, view, retry->tried,
				       retry->tried_count, &history.able, &history.fresh);
	/* An instance that has refused a repeat would do so again at once. */
	if (SPOKEI_UNLIKELY(retry->bound)) {
		history.able = 1;
		history.fresh = !retry->refused;
	}
	return history;
}

static struct spoke_policy_verdict ask_policy(const struct spokei_retry_state *retry)
{
	struct spoke_policy_history history = history_of(retry);

	return retry->args.policy->next(&history);
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

/* Returns how long the lease of a call is surely valid. Reads the clock. */
static uint64_t lease_left(const struct spokei_retry_state *retry)
{
	if (spokei_use_is_over(&retry->lease.use))
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
	uint64_t left_ns = lease_left(attempt->call->retry);

	if (left_ns == 0)
		return SPOKE_ELEASE;
	if (args->timeout_ns > left_ns)
		args->timeout_ns = left_ns;
	return spokei_call_send(attempt, conn, args, guard);
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
	    (outcome->written || !spokei_use_is_over(&retry->lease.use)))
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
		spokei_conn_cancel(&attempt->pending, SPOKE_ELEASE, false);
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

static void lease_over(struct spokei_use *use)
{
	struct spokei_retry_state *retry = spoke_container_of(use, struct spokei_retry_state,
							      lease.use);

	if (retry->state == SPOKEI_CALL_OVER)
		return;
	withdraw(&retry->call->attempt);
	for (struct spokei_fork *fork = retry->forks; fork; fork = fork->next)
		withdraw(&fork->attempt);
	retry->lease_end.run = end_call;
	spokei_run_soon(caller_of(retry)->engine, &retry->lease_end);
}

/* Makes a call whose history is open a use of the lease. Returns as spokei_lease_use_begin(). */
static int begin_leased(struct spokei_retry_state *retry, struct spoke_lease lease)
{
	retry->lease.use.over = lease_over;
	return spokei_lease_use_begin(lease, caller_of(retry)->engine, &retry->lease);
}

/* --- one attempt */

#define ATTEMPT_LEAST_NS UINT64_C(10000000) /* unless attempt.timeout is set, or less is left */

/* Returns how many attempts may follow one after `begun` others, each after the failure of the one
 * before. */
static uint64_t count_further(const struct spokei_retry_state *retry, uint32_t begun)
{
	const struct spoke_method *method = retry->call->method;
	const struct spoke_policy *policy = retry->args.policy;
	uint64_t further = spokei_settings_retries(&method->settings, policy);
	size_t listed = spokei_directory_listed(method->caller->directory);
	struct spokei_view *view;

	if (policy->attempts > SPOKE_ATTEMPTS_IN_TURN || policy->attempts == SPOKE_ATTEMPTS_ONE)
		return 0;
	if (spokei_call_view(method, &retry->args, &view) == SPOKE_OK && view)
		listed = spokei_view_count(view);
	if (policy->attempts == SPOKE_ATTEMPTS_IN_TURN && listed <= further)
		further = listed > 0 ? listed - 1 : 0;
	return further > begun ? further - begun : 0;
}

/* Returns the time that an attempt may take after `begun` others, of the time that is left: by
 * default no more than what leaves each further attempt an equal part. A request that runs at once,
 * and must not be sent again, gets all. */
static uint64_t share_of_time(const struct spokei_retry_state *retry,
			      const struct spokei_conn *conn, uint64_t left_ns, uint32_t begun)
{
	const struct spokei_call_settings *settings = &retry->call->method->settings;
	uint64_t time_ns = settings->attempt_ns;

	if (time_ns == 0 && retry->args.policy->repeats) {
		time_ns = time_of_ticket(retry);
	} else if (time_ns == 0) {
		if (!is_free(retry) && spokei_conn_takes_at_once(conn))
			return left_ns;
		time_ns = left_ns / (count_further(retry, begun) + 1);
		if (time_ns < ATTEMPT_LEAST_NS)
			time_ns = ATTEMPT_LEAST_NS;
	}
	return time_ns < left_ns ? time_ns : left_ns;
}

/* Returns the endpoints to avoid: those of all attempts, or of a ticket that of the last one. */
static struct spokei_tried tried_of(const struct spokei_retry_state *retry)
{
	struct spokei_tried tried = { retry->tried, retry->tried_count };

	if (spokei_retry_state_is_deferred(retry) && tried.count > 0) {
		tried.ids += tried.count - 1;
		tried.count = 1;
	}
	return tried;
}

/* Does the call wait until an endpoint can take it? `error`: why no attempt could begin. */
static bool waits_for_endpoint(const struct spokei_retry_state *retry, int error)
{
	if (error != SPOKE_EUNAVAILABLE || spokei_retry_state_is_deferred(retry) || retry->open > 0)
		return false;
	return retry->bound ||
	       (retry->call->method->settings.wait_ready && !retry->args.policy->repeats);
}

/* Has an endpoint an attempt of this call in flight, so that it must not get a second one? */
static bool is_asked_twice(const struct spokei_retry_state *retry, const struct spokei_tried *tried,
			   uint64_t endpoint)
{
	for (size_t i = 0; i < tried->count && retry->open > 0; i++)
		if (tried->ids[i] == endpoint)
			return true;
	return false;
}

/* Returns the arguments of the next attempt. */
static struct spokei_call_args args_of_attempt(const struct spokei_retry_state *retry,
					       uint64_t timeout_ns)
{
	struct spokei_call_args args = retry->args;

	args.timeout_ns = timeout_ns;
	if (retry->extended_len)
		args.attachments = (struct spoke_value){ retry->extended, retry->extended_len };
	return args;
}

int spokei_call_send_first(struct spokei_call *call, const struct spokei_endpoint *endpoint,
			   struct spokei_conn *conn)
{
	struct spokei_retry_state *retry = call->retry;
	uint64_t timeout_ns = share_of_time(retry, conn, retry->timeout_ns, 0);
	struct spokei_call_args args;

	if (SPOKEI_LIKELY(retry->extended == NULL)) {
		retry->args.timeout_ns = timeout_ns;
		return spokei_call_send(&call->attempt, conn, &retry->args, NULL);
	}
	spokei_repeat_attach(retry, endpoint, conn);
	args = args_of_attempt(retry, timeout_ns);
	return spokei_call_send(&call->attempt, conn, &args, NULL);
}

/* Begins an attempt at an endpoint that is picked; *ret_endpoint is NULL if there was none. */
static int begin_somewhere(struct spokei_retry_state *retry, struct spokei_attempt *attempt,
			   struct spokei_endpoint **ret_endpoint)
{
	struct spokei_call *call = retry->call;
	struct spokei_caller *caller = call->method->caller;
	struct spokei_tried tried = tried_of(retry);
	struct spokei_call_args args;
	struct spokei_conn *conn;
	int error;

	*ret_endpoint = NULL;
	error = retry->bound ? spokei_repeat_pick(retry, ret_endpoint, &conn) : SPOKE_ENOPROVIDER;
	/* If an earlier process was bound, any endpoint is asked while that instance is not there:
	 * none other runs the repeat. */
	if (error && (!retry->bound || retry->bound_to == 0))
		error = spokei_call_pick(call->method, &retry->args, &tried, ret_endpoint, &conn);
	if (error)
		return error;
	if (is_asked_twice(retry, &tried, (*ret_endpoint)->id))
		return SPOKE_EUNAVAILABLE;
	/* A connection that is not open yet may never be, so the call waits for the first endpoint
	 * that is ready. If one is, and refuses calls, no event would wake the call. */
	if (spokei_conn_is_opening(conn) && caller->directory->barren &&
	    waits_for_endpoint(retry, SPOKE_EUNAVAILABLE))
		return SPOKE_EUNAVAILABLE;
	if (retry->extended)
		spokei_repeat_attach(retry, *ret_endpoint, conn);
	error = spokei_retry_state_tried(retry, caller->engine->env, (*ret_endpoint)->id);
	if (error)
		return error;
	args = args_of_attempt(retry, share_of_time(retry, conn, answer_left(retry), retry->begun));
	if (SPOKEI_UNLIKELY(spokei_retry_state_is_leased(retry)))
		return send_guarded(attempt, conn, &args);
	return spokei_call_send(attempt, conn, &args, NULL);
}

/* Sends an attempt of a call to an endpoint without one. Returns as spoke_call(). */
static int send_one(struct spokei_retry_state *retry)
{
	struct spokei_caller *caller = caller_of(retry);
	struct spokei_attempt *attempt = idle_attempt(retry, caller->engine->env);
	struct spokei_endpoint *endpoint;
	int error;

	if (attempt == NULL)
		return SPOKE_ENOMEM;
	if (SPOKEI_UNLIKELY(spokei_retry_state_is_leased(retry)) && lease_left(retry) == 0)
		return SPOKE_ELEASE;
	/* Of several attempts at a time each has one endpoint only. */
	do
		error = begin_somewhere(retry, attempt, &endpoint);
	while (endpoint && !retry->fans_out && !retry->bound &&
	       spokei_call_fits_elsewhere(caller, endpoint, error));
	if (error)
		return error;
	SPOKE_ASSERT(endpoint != NULL);
	attempt->endpoint = endpoint;
	attempt->pending.backup = retry->open > 0 && retry->waited;
	retry->hedged |= attempt->pending.backup;
	spokei_directory_begun(endpoint, endpoint->engine->begin_ns);
	retry->open++;
	if (SPOKEI_UNLIKELY(retry->journalled))
		spokei_journalled_sent(retry);
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
	struct spokei_caller *caller = caller_of(retry);
	bool backup = is_backup(retry);

	if (backup ? !is_free(retry) : retry->last == SPOKE_FATE_UNSURE && !is_repeatable(retry))
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
	if (retry->open > 0)
		return SENT_SOME;
	if (!spokei_retry_state_is_deferred(retry) ||
	    (retry->last == SPOKE_FATE_UNSURE && !is_repeatable(retry)))
		return SENT_NEVER;
	wait_paused(retry, period_of(retry));
	return SENT_SOME;
}

static enum sent send_some(struct spokei_retry_state *retry, uint32_t count)
{
	struct spokei_caller *caller = caller_of(retry);
	bool again = retry->begun > 0;
	struct spokei_outcome outcome = { .error = SPOKE_ECLOSED };

	if (caller->closed || answer_left(retry) == 0)
		return retry->open > 0 ? SENT_SOME : SENT_NEVER;
	if (count > SPOKEI_PLACES_MAX)
		count = SPOKEI_PLACES_MAX;
	retry->fans_out |= count > 1 || retry->open > 0;
	for (; count > 0; count--) {
		if (again && !retry->was_unready && !may_send_again(retry))
			return postpone(retry);
		outcome.error = send_one(retry);
		/* No instance can tell any more whether the request has run. */
		if (SPOKEI_UNLIKELY(retry->bound) && retry->bound_to &&
		    outcome.error == SPOKE_ENOPROVIDER)
			return SENT_NEVER;
		if (outcome.error && waits_for_endpoint(retry, outcome.error)) {
			retry->was_unready = true;
			wait_unready(retry);
			return SENT_SOME;
		}
		retry->waited = false;
		retry->begun++;
		if (outcome.error)
			note_ended(retry, &outcome, fate_of(outcome.error, false));
		if ((outcome.error == SPOKE_EUNAVAILABLE || outcome.error == SPOKE_ENOPROVIDER) &&
		    !retry->bound)
			note_reason(retry, outcome.error);
		/* A limit of this side is the same for all endpoints. */
		if (outcome.error == SPOKE_ELIMIT && retry->open == 0 &&
		    !retry->args.policy->repeats)
			return SENT_NEVER;
	}
	retry->was_unready = false;
	return retry->open > 0 ? SENT_SOME : SENT_NONE;
}

/* Makes room for a ticket, if the queue drops old ones. Returns 0 or ELIMIT. */
static int make_room(const struct spokei_retry_state *retry)
{
	struct spokei_caller *caller = caller_of(retry);
	struct spokei_retry_queue *queue = &caller->retry;

	while (!has_room(queue, retry->size)) {
		const struct spokei_retry_state *oldest = oldest_ticket(queue);

		if (!queue->drops_oldest || retry->size > queue->bytes_max || oldest == NULL) {
			return spokei_link_refused(caller->link, SPOKE_ELIMIT,
						   queue->tasks < queue->tasks_max
							   ? SPOKEI_REFUSED_BY_BYTES
							   : SPOKEI_REFUSED_BY_TASKS);
		}
		spokei_call_end_later(oldest->call, SPOKE_TICKET_REFUSED, SPOKE_ELIMIT);
	}
	return SPOKE_OK;
}

/* Begins a pause. Returns false if the call has to end instead. */
static bool begin_pause(struct spokei_retry_state *retry,
			const struct spoke_policy_verdict *verdict)
{
	struct spokei_caller *caller = caller_of(retry);

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
		if (SPOKEI_UNLIKELY(caller->journal) && !spokei_journalled_begin(retry))
			return false;
		SPOKE_ASSERT(has_room(&caller->retry, retry->size));
		admit_ticket(&caller->retry, retry);
		spokei_call_defer(retry->call, !waits_for_journal(retry));
	}
	retry->waited = true;
	wait_paused(retry, verdict->wait_ns);
	return true;
}

/* --- the end of a call */

static enum spoke_ticket_settlement settlement_of(const struct spokei_retry_state *retry, int error)
{
	/* An answer ends the ticket, also while the consumer drains. */
	bool answered = retry->last == SPOKE_FATE_ANSWERED && spoke_error_is_remote(error);

	if (error == SPOKE_OK)
		return SPOKE_TICKET_SUCCESS;
	if (caller_of(retry)->closed && !answered)
		return SPOKE_TICKET_CLOSING;
	return answered || time_left(retry) > 0 ? SPOKE_TICKET_EXHAUSTED : SPOKE_TICKET_EXPIRED;
}

static inline void note_latency(const struct spokei_retry_state *retry)
{
	spokei_histogram_add(&retry->call->method->figures->took,
			     spokei_retry_state_age(retry, caller_of(retry)->engine->begin_ns));
}

static void finish(struct spokei_call *call, const struct spokei_outcome *outcome,
		   const struct spoke_policy_verdict *verdict)
{
	struct spokei_retry_state *retry = call->retry;
	struct spoke_result result;

	if (outcome && outcome->reply && retry->ticket != SPOKEI_TICKET_HELD)
		note_latency(retry);
	if (retry->bound && retry->last == SPOKE_FATE_SAFE)
		outcome = NULL;
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
			settlement_of(retry, call->excuses && spokei_error_is_replaced(result.error)
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
		watch(retry, wait_ns);
}

/* Asks the policy of a call that is DECIDING, and does what it answers. `outcome`: of the attempt
 * that has just ended, or NULL. The call may have ended afterwards. */
static void next_step(struct spokei_call *call, const struct spokei_outcome *outcome)
{
	struct spokei_retry_state *retry = call->retry;
	struct spoke_policy_verdict verdict;

	if (SPOKEI_UNLIKELY(retry->watched))
		spokei_retry_queue_leave(retry, false);
	for (;;) {
		bool given_up = retry->given_up;
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
		/* The time of an attempt that was ended for another one was not over. */
		if (sent == SENT_NONE || given_up)
			outcome = NULL;
		if (sent == SENT_NEVER)
			break;
	}
	finish(call, outcome, &verdict);
}

/* --- the end of an attempt */

/* An attempt that could not reach its endpoint does not count, and the call waits for another
 * endpoint, unless several attempts were made at a time. */
static bool waits_again(struct spokei_retry_state *retry, const struct spokei_outcome *outcome)
{
	if (outcome->written || !spoke_error_is_transport(outcome->error) ||
	    outcome->error == SPOKE_ETIMEOUT_UNSENT || caller_of(retry)->closed ||
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

/* Ends a call that is bound with the error of the attempt that may have run. */
static void end_unknown(struct spokei_call *call)
{
	spokei_call_move(&call->retry->state, SPOKEI_CALL_DECIDING);
	call->retry->last = SPOKE_FATE_SAFE;
	finish(call, NULL, &(const struct spoke_policy_verdict){ .step = SPOKE_STEP_FINISH });
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
		outcome = leased_outcome(retry, outcome, &ended, &fate);
	if (SPOKEI_UNLIKELY(retry->bound)) {
		if (spokei_repeat_is_unknown(outcome)) {
			end_unknown(call);
			return;
		}
		retry->refused = fate == SPOKE_FATE_SAFE && spoke_error_is_remote(outcome->error);
	}
	spokei_call_move(&retry->state, SPOKEI_CALL_DECIDING);
	if (waits_again(retry, outcome)) {
		next_step(call, NULL);
		return;
	}
	note_ended(retry, outcome, fate);
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

void spokei_call_attempt_ended(struct spokei_attempt *attempt, const struct spokei_outcome *outcome)
{
	enum spoke_policy_fate fate = fate_of(outcome->error, outcome->written);
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
	if (SPOKEI_UNLIKELY(retry->instance) && fate == SPOKE_FATE_UNSURE && !retry->bound)
		spokei_repeat_bind(retry);
	if (SPOKEI_UNLIKELY(call->method->settings.hedge_ns) && fate == SPOKE_FATE_OK)
		note_hedged(attempt);
	if (fate == SPOKE_FATE_OK && may_finish_at_once(retry))
		finish_answered(call, outcome);
	else
		go_on(call, outcome, fate);
}

/* --- an attempt whose time is over */

/* Would another attempt follow if this one failed now? */
static bool is_followed(const struct spokei_retry_state *retry, enum spoke_policy_fate fate)
{
	struct spokei_caller *caller = caller_of(retry);
	struct spoke_policy_history history = history_of(retry);
	struct spoke_policy_verdict verdict;

	history.open--;
	history.failed++;
	history.last = fate;
	history.given_up = false;
	verdict = retry->args.policy->next(&history);
	/* When the caller closes, calls that run may end, but no further attempt begins. */
	return !caller->closed &&
	       (verdict.step == SPOKE_STEP_SEND || verdict.step == SPOKE_STEP_WAIT) &&
	       spokei_budget_has(&caller->budget, caller->engine->begin_ns);
}

uint64_t spokei_call_prolonged(struct spokei_attempt *attempt, bool written, uint64_t now_ns)
{
	const struct spokei_pending *pending = &attempt->pending;
	struct spokei_call *call = attempt->call;
	struct spokei_retry_state *retry = call->retry;
	uint64_t age_ns = now_ns > pending->begun_ns ? now_ns - pending->begun_ns : 0;
	uint64_t all_ns;

	if (call->method->settings.attempt_ns || retry->args.policy->repeats || call->cancelled)
		return pending->timeout_ns;
	if (age_ns < pending->timeout_ns && (!written || is_free(retry)))
		return pending->timeout_ns;
	if (retry->state == SPOKEI_CALL_FIRST)
		open_begun(attempt);
	if (retry->begun_ns == 0)
		retry->begun_ns = pending->begun_ns;
	if (retry->state != SPOKEI_CALL_SENDING)
		return pending->timeout_ns;
	all_ns = spokei_later(retry->begun_ns, answers_ns(retry));
	all_ns = all_ns > pending->begun_ns ? all_ns - pending->begun_ns : 0;
	if (SPOKEI_UNLIKELY(spokei_retry_state_is_leased(retry)) &&
	    all_ns > spokei_later(age_ns, lease_left(retry)))
		all_ns = spokei_later(age_ns, lease_left(retry));
	if (all_ns <= pending->timeout_ns)
		return pending->timeout_ns;
	if (written && !is_free(retry))
		return all_ns;
	return is_followed(retry, written ? SPOKE_FATE_UNSURE : SPOKE_FATE_SAFE)
		       ? pending->timeout_ns
		       : all_ns;
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

static void call_due(struct spokei_retry_state *retry, int error)
{
	struct spokei_call *call = retry->call;

	if (retry->open > 0)
		slow(call);
	else if (error)
		spokei_call_end_later(call, SPOKE_TICKET_EXHAUSTED, error);
	else if (answer_left(retry) == 0 && retry->bound && !spokei_retry_state_is_deferred(retry))
		spokei_call_end_later(call, SPOKE_TICKET_EXPIRED, retry->ending.error);
	else if (answer_left(retry) == 0 && retry->was_unready) {
		note_reason(retry, SPOKE_EUNAVAILABLE);
		spokei_call_end_later(call, SPOKE_TICKET_EXPIRED, SPOKE_ETIMEOUT_UNSENT);
	} else if (answer_left(retry) == 0)
		spokei_call_end_later(call, SPOKE_TICKET_EXPIRED, SPOKE_ETIMEOUT);
	else {
		spokei_call_move(&retry->state, SPOKEI_CALL_DECIDING);
		/* The next attempt begins once the journal knows of it. */
		if (SPOKEI_UNLIKELY(retry->journalled) && spokei_journalled_holds(retry))
			wait_paused(retry, period_of(retry));
		else
			next_step(call, NULL);
	}
}

/* --- tickets of earlier processes */

void spokei_retry_resume(struct spokei_retry_state *retry)
{
	if (retry->state == SPOKEI_CALL_PAUSING)
		end_wait(retry, SPOKE_OK);
}

void spokei_retry_restore(struct spokei_call *call, const struct spokei_retry_past *past)
{
	struct spokei_retry_state *retry = call->retry;

	open_history(call);
	retry->journalled = past->journalled;
	retry->id = past->id;
	retry->id_half = past->id_half;
	retry->earlier_ns = past->earlier_ns;
	retry->lasts_ns = past->left_ns;
	retry->begun = past->attempts;
	retry->failed = past->attempts;
	retry->last = past->unsure ? SPOKE_FATE_UNSURE : SPOKE_FATE_SAFE;
	retry->written = past->unsure;
	retry->unsure = past->unsure;
	retry->bound = past->binds;
	retry->bound_to = 0;
	retry->instance = past->instance;
	retry->since_ms = past->since_ms;
	retry->waited = true;
	retry->ticket = SPOKEI_TICKET_HELD;
	admit_ticket(&caller_of(retry)->retry, retry);
	wait_paused(retry, past->pause_ns);
}

/* --- the first attempt */

int spokei_call_begin_asking(struct spokei_call *call, const struct spoke_lease *lease)
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
