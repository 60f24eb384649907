/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls under a lease. Such a call always has a retry state with a history, and is a use of its
 * lease: when the lease ends, requests that are not written are taken back at once, and the call
 * ends with ELEASE a little later. Each attempt begins with a look at the clock, and each request
 * is guarded by another one right before it is written. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_LEASED_H
#define SPOKEI_CLUSTER_CALL_LEASED_H

#include "cluster/call/retry_state.h"

struct spoke_call_options;
struct spoke_engine;

/* Checks the options of a call under a lease. Returns 0, SPOKE_ELEASE, or SPOKE_EINVAL (the lease
 * is of another engine, or the attachments contain its keys). */
SPOKE_MUST_USE int spokei_leased_check(const struct spoke_engine *engine,
				       const struct spoke_call_options *options);

/* Makes a call whose history is open a use of the lease. Returns as spokei_lease_use_begin(). */
SPOKE_MUST_USE int spokei_leased_begin(struct spokei_retry_state *retry, struct spoke_lease lease);

/* Returns how long the lease of a call is surely valid. Reads the clock. */
uint64_t spokei_leased_left(const struct spokei_retry_state *retry);

/* Sends the guarded request of an attempt, which may take as long as is left of the lease. Returns
 * as spoke_call(). */
SPOKE_MUST_USE int spokei_leased_send(struct spokei_attempt *attempt, struct spokei_conn *conn,
				      struct spokei_call_args *args,
				      void (*done)(struct spokei_pending *pending,
						   const struct spokei_outcome *outcome));

/*
 * Returns how an attempt of such a call has ended; `room` is for the result. If it was not written
 * and the lease is over, it has ended because of that, whichever error came first. The policy must
 * not try again then, but may wait for the answers of other attempts.
 */
const struct spokei_outcome *spokei_leased_outcome(const struct spokei_retry_state *retry,
						   const struct spokei_outcome *outcome,
						   struct spokei_outcome *room,
						   enum spoke_policy_fate *fate);

#endif
