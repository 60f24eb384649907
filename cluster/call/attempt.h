/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt of a call: a request to one provider. The first attempt is embedded in its call; a
 * policy that has several attempts in flight allocates the others. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_ATTEMPT_H
#define SPOKEI_CLUSTER_CALL_ATTEMPT_H

#include "transport/conn/pending.h"

#include <spoke/policy.h>

struct spokei_call;
struct spokei_conn;
struct spokei_endpoint;
struct spokei_message;

struct spokei_attempt {
	struct spokei_pending pending; /* lasting, if the attempt is a call's first one */
	struct spokei_call *call;
	struct spokei_endpoint *endpoint; /* while the attempt is in flight; NULL: of a push */
};

/* Sends a request as an attempt; `done` is called once when the attempt ends, unless this function
 * fails. Returns as spoke_call(). */
SPOKE_MUST_USE int spokei_attempt_begin(struct spokei_attempt *attempt, struct spokei_conn *conn,
					struct spokei_message *request, uint64_t timeout_ns,
					void (*done)(struct spokei_pending *pending,
						     const struct spokei_outcome *outcome));

/* The same for a guarded request: see spokei_conn_call_guarded(). */
SPOKE_MUST_USE int spokei_attempt_begin_guarded(struct spokei_attempt *attempt,
						struct spokei_conn *conn,
						struct spokei_message *request, uint64_t timeout_ns,
						void (*done)(struct spokei_pending *pending,
							     const struct spokei_outcome *outcome),
						int (*guard)(struct spokei_pending *pending));

/* Returns what the end of an attempt means for another attempt. */
enum spoke_policy_fate spokei_attempt_fate(int error, bool written);

/* Returns whether an attempt ended because there was no connection, or none that the peer accepts:
 * its endpoint may know the reason. */
bool spokei_attempt_lacked_conn(const struct spokei_outcome *outcome);

#endif
