/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes a call to its next step, as its policy decides: another attempt, a pause, or the end. On
 * the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_NEXT_H
#define SPOKEI_CLUSTER_CALL_NEXT_H

#include <spoke/error.h>

struct spokei_attempt;
struct spokei_call;
struct spokei_call_args;
struct spokei_conn;
struct spokei_outcome;
struct spokei_retry_state;

/* Asks the policy of a call that is DECIDING, and does what it answers. `outcome`: of the attempt
 * that has just ended, or NULL. The call may have ended afterwards. */
void spokei_call_next(struct spokei_call *call, const struct spokei_outcome *outcome);

/* Sends a call as an attempt, whose end takes the call to its next step. Returns as spoke_call().
 */
SPOKE_MUST_USE int spokei_call_send(struct spokei_attempt *attempt, struct spokei_conn *conn,
				    const struct spokei_call_args *args);

/* The wait of a call is over; the due() of its caller's queue. */
void spokei_call_due(struct spokei_retry_state *retry, int error);

#endif
