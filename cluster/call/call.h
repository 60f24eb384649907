/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call, from spoke_call() to its callback, and that of its ticket if it gets one. On the
 * engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_CALL_H
#define SPOKEI_CLUSTER_CALL_CALL_H

#include "cluster/call/caller.h"
#include "transport/conn/conn.h"

/* Looks at all that needs no connection, and has the method's request say it, until the next call.
 * Returns as spoke_call(). */
SPOKE_MUST_USE int spokei_call_prepare(struct spoke_method *method, struct spoke_span args,
				       const struct spoke_call_options *options);

/* Makes the call that was prepared on a connection, as one attempt; once, or on one after another.
 * `done` and `arg` are the caller's to set. Returns as spoke_call(). */
SPOKE_MUST_USE int spokei_call_begin(struct spoke_method *method, struct spokei_conn *conn,
				     uint64_t timeout_ns, struct spokei_call **ret_call);

/* What a user's call ends with: one that was not taken (`error`) is counted, another one is told of
 * its end and has its name. Returns the error. */
static inline int spokei_call_taken(struct spoke_method *method, int error,
				    struct spokei_call *call, spoke_call_done_fn done, void *arg,
				    struct spoke_call *ret_call)
{
	if (error) {
		spokei_count(method->caller->engine, SPOKE_STAT_CALLS_REFUSED);
		return error;
	}
	call->done = done;
	call->arg = arg;
	if (ret_call)
		ret_call->handle = call->handle;
	return SPOKE_OK;
}

/* As spoke_call_cancel(). */
bool spokei_call_cancel(struct spokei_caller *caller, struct spoke_call named);

/* How long a caller may have to wait until it is told anything. */
uint64_t spokei_call_longest(const struct spoke_method *method,
			     const struct spoke_call_options *options);

/* A consumer's caller takes no more calls: those that wait for their next attempt end, a little
 * later. */
void spokei_call_sweep(struct spokei_caller *caller);

/* As spoke_ticket_ask(), of one that is a ticket. */
void spokei_ticket_look(const struct spokei_retry_state *retry, uint64_t now_ns,
			struct spoke_ticket_state *ret_state);

/* What the caller's retries are due for. */
void spokei_call_due(struct spokei_retry_state *retry);

#endif
