/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attempts of a call: picks an endpoint, sends the request there, and takes the call to its
 * next step when an attempt ends, as its policy decides. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_ATTEMPTS_H
#define SPOKEI_CLUSTER_CALL_ATTEMPTS_H

#include "cluster/call/call.h"

struct spoke_engine;

/* Takes a cell for a call that has not begun. Returns 0, SPOKE_ELIMIT or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_call_new(struct spoke_method *method, struct spokei_call **ret_call);

/* Makes a call of one attempt on a connection. The caller of this function sets `done` and `arg`.
 * Returns as spoke_call(). */
SPOKE_MUST_USE int spokei_call_begin(struct spoke_method *method, struct spokei_conn *conn,
				     const struct spokei_call_args *args,
				     struct spokei_call **ret_call);

/* Begins a call whose only attempt it is. Returns as spoke_call(). */
SPOKE_MUST_USE int spokei_call_begin_one(struct spoke_method *method,
					 const struct spokei_call_args *args,
					 struct spokei_call **ret_call);

/* Begins a call that may take several attempts: with one, without asking the policy and without a
 * history, if its first answer ends it; else, and if that attempt cannot begin, as the policy
 * decides. `lease` may be NULL. Returns as spoke_call(); after an error the call was not begun. */
SPOKE_MUST_USE int spokei_call_begin_first(struct spokei_call *call,
					   const struct spoke_lease *lease);

/* Sends a call as an attempt, whose end takes the call to its next step. Returns as spoke_call().
 */
SPOKE_MUST_USE int spokei_call_send(struct spokei_attempt *attempt, struct spokei_conn *conn,
				    const struct spokei_call_args *args);

/* The wait of a call is over; the due() of its caller's queue. */
void spokei_call_due(struct spokei_retry_state *retry, int error);

/* Checks the options of a call under a lease. Returns 0, SPOKE_ELEASE, or SPOKE_EINVAL (the lease
 * is of another engine, or the attachments contain its keys). */
SPOKE_MUST_USE int spokei_leased_check(const struct spoke_engine *engine,
				       const struct spoke_call_options *options);

#endif
