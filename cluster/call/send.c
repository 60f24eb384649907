/* SPDX-License-Identifier: Apache-2.0 */
/* Picks an endpoint for an attempt, and sends the request of the call there. */
#include "cluster/call/send.h"

#include "cluster/call/ask.h"
#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/leased.h"
#include "cluster/call/method.h"
#include "cluster/call/pick.h"
#include "cluster/call/retry_state.h"
#include "cluster/endpoints/directory.h"
#include "transport/conn/conn.h"

int spokei_call_send_as(struct spokei_attempt *attempt, struct spokei_conn *conn,
			const struct spokei_call_args *args, spokei_attempt_done_fn done)
{
	struct spoke_method *method = attempt->call->method;
	int error = spokei_method_fill(method, conn, conn->wire, conn->profile_id, args);

	if (error)
		return error;
	return spokei_attempt_begin(attempt, conn, &method->request, args->timeout_ns, done);
}

uint64_t spokei_call_time(const struct spokei_retry_state *retry)
{
	uint64_t left_ns = spokei_call_left(retry);
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
static struct spokei_tried tried_of(const struct spokei_retry_state *retry)
{
	struct spokei_tried tried = { retry->tried, retry->tried_count };

	if (spokei_retry_state_is_deferred(retry) && tried.count > 0) {
		tried.ids += tried.count - 1;
		tried.count = 1;
	}
	return tried;
}

bool spokei_call_waits_for_endpoint(const struct spokei_retry_state *retry, int error)
{
	return error == SPOKE_EUNAVAILABLE && retry->call->method->settings.wait_ready &&
	       !spokei_retry_state_is_deferred(retry) && retry->open == 0 &&
	       !retry->args.policy->repeats;
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

/* Begins an attempt at an endpoint that is picked; *ret_endpoint is NULL if there was none. */
static int begin_somewhere(struct spokei_retry_state *retry, struct spokei_attempt *attempt,
			   struct spokei_endpoint **ret_endpoint, spokei_attempt_done_fn done)
{
	struct spokei_call *call = retry->call;
	struct spokei_caller *caller = call->method->caller;
	struct spokei_tried tried = tried_of(retry);
	struct spokei_call_args args;
	struct spokei_conn *conn;
	int error;

	*ret_endpoint = NULL;
	error = spokei_call_pick(call->method, &retry->args, &tried, ret_endpoint, &conn);
	if (error)
		return error;
	if (is_asked_twice(retry, &tried, (*ret_endpoint)->id))
		return SPOKE_EUNAVAILABLE;
	/* A connection that is not open yet may never be, so the call waits for the first endpoint
	 * that is ready. If one is, and refuses calls, no event would wake the call. */
	if (spokei_conn_is_opening(conn) && caller->directory->barren &&
	    spokei_call_waits_for_endpoint(retry, SPOKE_EUNAVAILABLE))
		return SPOKE_EUNAVAILABLE;
	/* The last attempt may have used a wire with attachments, and this one may not. */
	retry->extended_len = 0;
	if (retry->extended && conn->wire->attachments)
		spokei_retry_state_attach(retry);
	error = spokei_retry_state_try(retry, caller->engine->env, (*ret_endpoint)->id);
	if (error)
		return error;
	args = spokei_retry_state_args(retry, spokei_call_time(retry));
	if (SPOKEI_UNLIKELY(spokei_retry_state_is_leased(retry)))
		return spokei_leased_send(attempt, conn, &args, done);
	return spokei_call_send_as(attempt, conn, &args, done);
}

int spokei_call_send_one(struct spokei_retry_state *retry, spokei_attempt_done_fn done)
{
	struct spokei_caller *caller = retry->call->method->caller;
	struct spokei_attempt *attempt = spokei_retry_state_attempt(retry, caller->engine->env);
	struct spokei_endpoint *endpoint;
	int error;

	if (attempt == NULL)
		return SPOKE_ENOMEM;
	if (SPOKEI_UNLIKELY(spokei_retry_state_is_leased(retry)) && spokei_leased_left(retry) == 0)
		return SPOKE_ELEASE;
	/* Of several attempts at a time each has one endpoint only. */
	do
		error = begin_somewhere(retry, attempt, &endpoint, done);
	while (endpoint && !retry->fans_out && spokei_call_fits_elsewhere(caller, endpoint, error));
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
