/* SPDX-License-Identifier: Apache-2.0 */
/* Checks calls under a lease, and ends them when the lease ends. */
#include "cluster/call/leased.h"

#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/end.h"
#include "cluster/call/method.h"
#include "cluster/filter/fence.h"
#include "core/engine/engine.h"
#include "transport/conn/conn.h"

/* --- the beginning */

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

uint64_t spokei_leased_left(const struct spokei_retry_state *retry)
{
	if (spokei_lease_use_is_over(&retry->lease))
		return 0;
	return spoke_lease_left(retry->lease.lease);
}

static int guard(struct spokei_pending *pending)
{
	const struct spokei_attempt *attempt = spoke_container_of(pending, struct spokei_attempt,
								  pending);

	return spokei_leased_left(attempt->call->retry) > 0 ? SPOKE_OK : SPOKE_ELEASE;
}

int spokei_leased_send(struct spokei_attempt *attempt, struct spokei_conn *conn,
		       struct spokei_call_args *args,
		       void (*done)(struct spokei_pending *pending,
				    const struct spokei_outcome *outcome))
{
	struct spoke_method *method = attempt->call->method;
	uint64_t left_ns = spokei_leased_left(attempt->call->retry);
	int error = SPOKE_ELEASE;

	if (left_ns > 0)
		error = spokei_method_fill(method, conn, conn->wire, conn->profile_id, args);
	if (error)
		return error;
	if (args->timeout_ns > left_ns)
		args->timeout_ns = left_ns;
	return spokei_attempt_begin_guarded(attempt, conn, &method->request, args->timeout_ns, done,
					    guard);
}

/* --- the end */

const struct spokei_outcome *spokei_leased_outcome(const struct spokei_retry_state *retry,
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

int spokei_leased_begin(struct spokei_retry_state *retry, struct spoke_lease lease)
{
	retry->lease.over = lease_over;
	return spokei_lease_use_begin(lease, retry->call->method->caller->engine, &retry->lease);
}
