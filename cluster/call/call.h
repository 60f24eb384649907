/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call, from spoke_call() to its callback, and to the callback of its ticket if it becomes one.
 * On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_CALL_H
#define SPOKEI_CLUSTER_CALL_CALL_H

#include "cluster/call/attempt.h"
#include "core/engine/task.h"

#include <spoke/call.h>

struct spokei_call_args;
struct spokei_caller;
struct spokei_retry_state;

/* A cell of the caller's slab. */
struct spokei_call {
	struct spokei_attempt attempt;
	struct spoke_method *method; /* and by it the caller */
	uint64_t handle;
	spoke_call_done_fn done; /* may be NULL */
	void *arg;
	struct spokei_retry_state *retry; /* NULL: the call makes one attempt only */
	uint8_t filters;                  /* that let the call pass, and are asked after it */
	bool excuses;                     /* a failure is reported as OK */
	bool limited;                     /* it counts towards its method's limit */
	bool cancelled;                   /* it ends so, on the engine's soon */
	uint32_t number;                  /* for filters, if the call passed any */
	struct spokei_task cancel;
};

/* Checks a call as far as no connection is needed, and puts its arguments together, without a
 * policy. Returns as spoke_call(). */
SPOKE_MUST_USE int spokei_call_prepare(const struct spoke_method *method, struct spoke_span values,
				       const struct spoke_call_options *options,
				       struct spokei_call_args *ret);

/* Makes a call of one attempt on a connection. The caller of this function sets `done` and `arg`.
 * Returns as spoke_call(). */
SPOKE_MUST_USE int spokei_call_begin(struct spoke_method *method, struct spokei_conn *conn,
				     const struct spokei_call_args *args,
				     struct spokei_call **ret_call);

/* Ends a user's function that has made a call: sets its callback and returns its handle. Returns 0.
 */
int spokei_call_taken(struct spokei_call *call, spoke_call_done_fn done, void *arg,
		      struct spoke_call *ret_call);

/* Ends the calls that wait for their next attempt, with ECLOSED, on the engine's soon: the caller
 * takes no more calls. */
void spokei_call_sweep(struct spokei_caller *caller);

/* As spoke_call_cancel(). */
bool spokei_call_cancel(struct spokei_caller *caller, struct spoke_call named);

#endif
