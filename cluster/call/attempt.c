/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a request as one attempt of a call, and classifies how attempts end. */
#include "cluster/call/attempt.h"

#include "core/base/error.h"
#include "transport/conn/conn.h"

/* The rest is set by spokei_conn_call(), or stays as the last attempt has left it. */
static inline void prepare(struct spokei_attempt *attempt, uint64_t timeout_ns,
			   void (*done)(struct spokei_pending *pending,
					const struct spokei_outcome *outcome))
{
	struct spokei_pending *pending = &attempt->pending;

	pending->node.next = NULL;
	pending->conn = NULL;
	pending->unsent = NULL;
	pending->begun_ns = 0;
	pending->written_ns = 0;
	pending->timeout_ns = timeout_ns;
	pending->done = done;
	attempt->endpoint = NULL;
}

int spokei_attempt_begin(struct spokei_attempt *attempt, struct spokei_conn *conn,
			 struct spokei_message *request, uint64_t timeout_ns,
			 void (*done)(struct spokei_pending *pending,
				      const struct spokei_outcome *outcome))
{
	int error;

	prepare(attempt, timeout_ns, done);
	error = spokei_conn_call(conn, &attempt->pending, request);
	return error == SPOKE_ESTATE ? SPOKE_EUNAVAILABLE : error;
}

int spokei_attempt_begin_guarded(struct spokei_attempt *attempt, struct spokei_conn *conn,
				 struct spokei_message *request, uint64_t timeout_ns,
				 void (*done)(struct spokei_pending *pending,
					      const struct spokei_outcome *outcome),
				 spokei_conn_guard_fn guard)
{
	int error;

	prepare(attempt, timeout_ns, done);
	error = spokei_conn_call_guarded(conn, &attempt->pending, request, guard);
	return error == SPOKE_ESTATE ? SPOKE_EUNAVAILABLE : error;
}

bool spokei_attempt_lacked_conn(const struct spokei_outcome *outcome)
{
	return outcome->reply == NULL && (!outcome->written || outcome->error == SPOKE_EHANDSHAKE);
}

enum spoke_policy_fate spokei_attempt_fate(int error, bool written)
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
