/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends one attempt of a call, at an endpoint that the load balancer picks among those that are
 * left. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_SEND_H
#define SPOKEI_CLUSTER_CALL_SEND_H

#include <spoke/error.h>

#include <stdbool.h>
#include <stdint.h>

struct spokei_attempt;
struct spokei_call_args;
struct spokei_conn;
struct spokei_outcome;
struct spokei_pending;
struct spokei_retry_state;

/* The end of an attempt: see spokei_attempt_begin(). */
typedef void (*spokei_attempt_done_fn)(struct spokei_pending *pending,
				       const struct spokei_outcome *outcome);

/* Sends a call as an attempt. Returns as spoke_call(). */
SPOKE_MUST_USE int spokei_call_send_as(struct spokei_attempt *attempt, struct spokei_conn *conn,
				       const struct spokei_call_args *args,
				       spokei_attempt_done_fn done);

/* Sends an attempt of a call to an endpoint without one. Returns as spoke_call(). */
SPOKE_MUST_USE int spokei_call_send_one(struct spokei_retry_state *retry,
					spokei_attempt_done_fn done);

/* Returns the time that an attempt may take: not more than is left until the deadline, nor than is
 * left of its timeout after it has waited for an endpoint. */
uint64_t spokei_call_time(const struct spokei_retry_state *retry);

/* Does the call wait until an endpoint can take it? `error`: why no attempt could begin. */
bool spokei_call_waits_for_endpoint(const struct spokei_retry_state *retry, int error);

#endif
