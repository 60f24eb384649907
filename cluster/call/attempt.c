/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a request as one attempt of a call, and classifies how attempts end. */
#include "cluster/call/attempt.h"

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
	switch (error) {
	case SPOKE_OK:
		return SPOKE_FATE_OK;
	case SPOKE_EREMOTE:
	case SPOKE_EBADREQUEST:
	case SPOKE_EFORBIDDEN: /* not retried: other providers have the same rules */
		return SPOKE_FATE_ANSWERED;
	case SPOKE_EREFUSED:
	case SPOKE_EEXPIRED:
	case SPOKE_ENOSERVICE:
		return SPOKE_FATE_SAFE;
	default:
		break;
	}
	/* A request that cannot be written here cannot be written elsewhere either, unless the
	 * cause is a lack of room, or a wire that cannot carry it. */
	if (spoke_error_is_local(error) && error != SPOKE_ELIMIT && error != SPOKE_ENOMEM &&
	    error != SPOKE_EUNAVAILABLE && error != SPOKE_ENOPROVIDER &&
	    error != SPOKE_EUNSUPPORTED)
		return SPOKE_FATE_ANSWERED;
	return written ? SPOKE_FATE_UNSURE : SPOKE_FATE_SAFE;
}
