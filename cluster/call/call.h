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

struct spokei_call;
struct spokei_caller;
struct spokei_conn;
struct spokei_endpoint;
struct spokei_retry_state;
struct spokei_view;
struct spoke_trace_context;

/* The arguments of a call: everything in which one call of a method differs from another. Checked.
 * The bytes belong to the user, or to the retry state that has copied them. */
struct spokei_call_args {
	struct spoke_span values;
	size_t count;                      /* of values */
	struct spoke_value attachments;    /* a map; { 0 }: none */
	struct spoke_span key;             /* the user's hash key; { 0 }: none */
	uint64_t timeout_ns;               /* of the call, or of the attempt that is sent */
	uint64_t own_ns;                   /* the call's own timeout, for a ticket */
	const struct spoke_policy *policy; /* NULL: the call is a push, or is not sent at all */
	const struct spoke_lease *lease;   /* of the user's options; NULL: none, or it was noted */
	bool one_way;
	bool cut;      /* timeout_ns is the time left of a request; own_ns is set */
	bool optional; /* the attachments are those of filters: a wire without any drops them */
};

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

/* Begins a call that was prepared: with the options of a user that need more than that, and for a
 * request if there is one. Returns as spoke_call(). */
SPOKE_MUST_USE int spokei_call_begin_inner(struct spoke_method *method,
					   struct spokei_call_args *args,
					   const struct spoke_call_options *options,
					   spoke_call_done_fn done, void *arg,
					   struct spoke_call *ret_call);

/* Takes a call that was prepared, with its policy and its lease. Returns as spoke_call(). */
SPOKE_MUST_USE int spokei_call_take(struct spoke_method *method,
				    const struct spokei_call_args *args,
				    const struct spoke_trace_context *trace,
				    struct spokei_call **ret_call);

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

/* The one completion of a call: frees its cell, then calls back, so that the user may call again.
 * The filters may change the result. */
void spokei_call_finish(struct spokei_call *call, struct spoke_result *result);

/* Ends a call that has a history: finishes it, or settles its ticket. A call that is still inside
 * spoke_call() gets the error noted instead. */
void spokei_call_end(struct spokei_call *call, enum spoke_ticket_settlement settlement,
		     struct spoke_result *result);

/* The same on the engine's soon, with an error of this side. */
void spokei_call_end_later(struct spokei_call *call, enum spoke_ticket_settlement settlement,
			   int error);

/* Makes a call a ticket. `tells`: gives it to the user in place of a result, on the engine's soon;
 * else spokei_call_tell_ticket() does that later. */
void spokei_call_defer(struct spokei_call *call, bool tells);
void spokei_call_tell_ticket(struct spokei_call *call);

/* Makes the call of a ticket of an earlier process, with a retry state. Returns 0, SPOKE_ENOMEM or
 * SPOKE_ELIMIT. */
SPOKE_MUST_USE int spokei_call_new_ticket(struct spoke_method *method,
					  const struct spokei_call_args *args,
					  struct spokei_call **ret_call);

/* The value nil. */
extern const struct spoke_value spokei_call_nil;

/* Replaces the error of a result by OK and `value`, if the fallback applies; `written`, the times
 * and `attempts` stay. `value` { 0 }: the method has no fallback. */
void spokei_fallback_apply(struct spoke_result *result, struct spoke_value value);

/* --- one attempt */

/* Ids of endpoints at which a call was tried already. */
struct spokei_tried {
	const uint64_t *ids;
	size_t count;
};

/* Picks an endpoint for a call, and the connection to it. `tried` may be NULL. Returns as
 * spokei_directory_pick(). */
SPOKE_MUST_USE int spokei_call_pick(struct spoke_method *method,
				    const struct spokei_call_args *args,
				    const struct spokei_tried *tried,
				    struct spokei_endpoint **ret_endpoint,
				    struct spokei_conn **ret_conn);

/* Finds the view of a call; *ret_view is NULL if it may go to all endpoints. Returns 0, ENOPROVIDER
 * or ENOMEM. */
SPOKE_MUST_USE int spokei_call_view(const struct spoke_method *method,
				    const struct spokei_call_args *args,
				    struct spokei_view **ret_view);

/* The same without a look at the only endpoint. */
SPOKE_MUST_USE int spokei_call_pick_among(struct spoke_method *method,
					  const struct spokei_call_args *args,
					  const struct spokei_tried *tried,
					  struct spokei_endpoint **ret_endpoint,
					  struct spokei_conn **ret_conn);

/* An endpoint had no room for an attempt: may another endpoint have room? */
bool spokei_call_has_room_elsewhere(const struct spokei_caller *caller,
				    struct spokei_endpoint *endpoint);

/* The same, after the beginning of an attempt there has returned `error`. */
static inline bool spokei_call_fits_elsewhere(const struct spokei_caller *caller,
					      struct spokei_endpoint *endpoint, int error)
{
	return error == SPOKE_ELIMIT && spokei_call_has_room_elsewhere(caller, endpoint);
}

/* Sends a call as an attempt, whose end takes the call to its next step. `guard` is asked right
 * before the request is written; it may be NULL. Returns as spoke_call(). */
SPOKE_MUST_USE int spokei_call_send(struct spokei_attempt *attempt, struct spokei_conn *conn,
				    const struct spokei_call_args *args,
				    int (*guard)(struct spokei_pending *pending));

/* Returns the result of a call that ends as this attempt did. */
struct spoke_result spokei_call_result(const struct spokei_outcome *outcome);

/* Returns the result of a call that is cancelled: the user was promised it, even if another event
 * has ended the call since. */
static inline struct spoke_result spokei_call_cancelled(const struct spoke_result *since)
{
	return (struct spoke_result){
		.error = SPOKE_ECANCELED,
		.written = since->written,
		.queued_ns = since->queued_ns,
		.waited_ns = since->waited_ns,
		.attempts = since->attempts,
	};
}

#endif
