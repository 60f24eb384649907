/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties of a policy that make its calls cheaper. They are found by asking the policy about
 * sample histories, once for each method, because the answer to a history never changes.
 */
#ifndef SPOKEI_CLUSTER_CALL_TRAITS_H
#define SPOKEI_CLUSTER_CALL_TRAITS_H

#include <spoke/policy.h>

struct spokei_call_settings;

struct spokei_policy_traits {
	const struct spoke_policy *policy; /* NULL: nothing is known */
	/* The call ends with its first attempt: always, or if no other endpoint is listed. */
	bool one_attempt;
	bool one_attempt_if_alone;
	/* The call begins with one attempt, and ends with the first answer. */
	bool first_answer;
	bool fans_out; /* the call begins with several attempts at the same time */
	bool hedges;   /* the policy is asked again while the first attempt is open */
	bool excuses;  /* of one attempt only: its failure is reported as OK with nil */
};

/* Asks the policy, with the settings of a method. Any thread. */
struct spokei_policy_traits spokei_policy_traits_of(const struct spoke_policy *policy,
						    const struct spokei_call_settings *settings);

#endif
