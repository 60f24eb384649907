/* SPDX-License-Identifier: Apache-2.0 */
/* The policies of the library. */
#ifndef SPOKEI_CLUSTER_POLICY_POLICIES_H
#define SPOKEI_CLUSTER_POLICY_POLICIES_H

#include <spoke/policy.h>

/* In the order of their names in documents; NULL after the last. */
extern const struct spoke_policy *const spokei_policies[];

#endif
