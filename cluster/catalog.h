/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies, balancers and registries by their names in URLs. A further one is a file of its own
 * and a line in catalog.c. Constant tables; any thread.
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

/* Return the names by their numbers; NULL after the last. */
const char *spokei_catalog_policy_name(unsigned index);
const char *spokei_catalog_balancer_name(unsigned index);
const char *spokei_catalog_registry_name(unsigned index);

#endif
