/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call, from spoke_call() to its callback, and to the callback of its ticket if it becomes one.
 * Each end calls back once, and that of a ticket once more. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_CALL_H
#define SPOKEI_CLUSTER_CALL_CALL_H

#include "core/engine/task.h"
#include "transport/conn/pending.h"

#include <spoke/call.h>
#include <spoke/policy.h>
#include <spoke/ticket.h>
#include <spoke/value.h>

struct spoke_lease;
struct spoke_policy;
struct spokei_call;
struct spokei_call_args;
struct spokei_caller;
struct spokei_conn;
struct spokei_endpoint;
struct spokei_message;
struct spokei_retry_state;

struct spokei_attempt {
	struct spokei_pending pending; /* lasting, if the attempt is a call's first one */
	struct spokei_call *call;
	struct spokei_endpoint *endpoint; /* while the attempt is in flight; NULL: of a push */
};

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

/* Ends a user's function that has made a call: sets its callback and returns its handle. Returns 0.
 */
int spokei_call_taken(struct spokei_call *call, spoke_call_done_fn done, void *arg,
		      struct spoke_call *ret_call);

/* Ends the calls that wait for their next attempt, with ECLOSED, on the engine's soon: the caller
 * takes no more calls. */
void spokei_call_sweep(struct spokei_caller *caller);

/* As spoke_call_cancel(). */
bool spokei_call_cancel(struct spokei_caller *caller, struct spoke_call named);

/* The one completion of a call: frees its cell, then calls back, so that the user may call again.
 * The filters may change the result. */
void spokei_call_finish(struct spokei_call *call, struct spoke_result *result);

/* Ends a call whose only attempt has failed, or that is cancelled. */
void spokei_call_finish_failed(struct spokei_call *call, struct spoke_result *result);

/* Ends a call that has a history: finishes it, or settles its ticket. A call that is still inside
 * spoke_call() gets the error noted instead. */
void spokei_call_end(struct spokei_call *call, enum spoke_ticket_settlement settlement,
		     struct spoke_result *result);

/* The same on the engine's soon, with an error of this side. */
void spokei_call_end_later(struct spokei_call *call, enum spoke_ticket_settlement settlement,
			   int error);

/* Gives the user a ticket in place of a result, on the engine's soon. */
void spokei_call_defer(struct spokei_call *call);

/* The value nil. */
extern const struct spoke_value spokei_call_nil;

/* Returns the result of a call that ends as the attempt did that failed last. */
struct spoke_result spokei_retry_state_result(const struct spokei_retry_state *retry);

/* May a value replace this error? */
bool spokei_fallback_hides(int error);

/* Replaces the error of a result by OK and `value`, if the fallback applies; `written`, the times
 * and `attempts` stay. `value` { 0 }: the method has no fallback. */
void spokei_fallback_apply(struct spoke_result *result, struct spoke_value value);

#endif
