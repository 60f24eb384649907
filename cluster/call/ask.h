/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the policy of a call for the next step. On the engine's thread. */
#ifndef SPOKEI_CLUSTER_CALL_ASK_H
#define SPOKEI_CLUSTER_CALL_ASK_H

#include <spoke/policy.h>

struct spokei_call;
struct spokei_retry_state;

/* Opens the history of a call. */
void spokei_call_open(struct spokei_call *call);

/* Shows the history of the call to its policy, and returns the verdict. */
struct spoke_policy_verdict spokei_call_ask(const struct spokei_retry_state *retry);

/* May a request that may have run be sent again? */
bool spokei_call_is_repeatable(const struct spokei_retry_state *retry);

/* Returns how much time is left until the deadline of the call. */
uint64_t spokei_call_left(const struct spokei_retry_state *retry);

#endif
