/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies, balancers and registries by their names in URLs. Constant tables; any thread.
 */
#ifndef SPOKEI_CLUSTER_CATALOG_H
#define SPOKEI_CLUSTER_CATALOG_H

#include <spoke/balancer.h>
#include <spoke/policy.h>
#include <spoke/registry.h>

/* Return NULL if the name is unknown. */
const struct spoke_policy *spokei_catalog_policy(const char *name);
const struct spoke_balancer *spokei_catalog_balancer(const char *name);
const struct spoke_registry *spokei_catalog_registry(const char *scheme);

/* All of them; NULL after the last. Those of balancers are in cluster/balancer/balancers.h. */
extern const struct spoke_policy *const spokei_catalog_policies[];
extern const struct spoke_registry *const spokei_catalog_registries[];

/* Return the names by their numbers; NULL after the last, where the numbers end. */
const char *spokei_catalog_policy_name(unsigned index);
const char *spokei_catalog_balancer_name(unsigned index);

#endif
