/* SPDX-License-Identifier: Apache-2.0 */
/* Registration lines: the names of policies, balancers and registries. */
#include "cluster/catalog.h"

#include "cluster/registry/registries.h"

#include <string.h>

/* --- the registration lines */

/* clang-format off */
static const struct spoke_policy *const policies[] = {
	&spoke_policy_failover,
	&spoke_policy_failfast,
	&spoke_policy_failsafe,
	&spoke_policy_failback,
	&spoke_policy_forking,
	&spoke_policy_broadcast,
	&spoke_policy_available,
	NULL,
};

static const struct spoke_balancer *const balancers[] = {
	&spoke_balancer_random,
	&spoke_balancer_round_robin,
	&spoke_balancer_least_active,
	&spoke_balancer_consistent_hash,
	&spoke_balancer_shortest_response,
	&spoke_balancer_two_choices,
	NULL,
};
/* clang-format on */

static const struct spoke_registry *const registries[] = {
#ifdef SPOKE_WITH_ZOOKEEPER
	&spokei_registry_zookeeper,
#else
	&spokei_registry_zookeeper_absent,
#endif
	&spokei_registry_file,
	&spokei_registry_static,
	NULL,
};

/* --- */

const struct spoke_policy *spokei_catalog_policy(const char *name)
{
	for (unsigned i = 0; policies[i]; i++)
		if (strcmp(policies[i]->name, name) == 0)
			return policies[i];
	return NULL;
}

const struct spoke_balancer *spokei_catalog_balancer(const char *name)
{
	for (unsigned i = 0; balancers[i]; i++)
		if (strcmp(balancers[i]->name, name) == 0)
			return balancers[i];
	return NULL;
}

const struct spoke_registry *spokei_catalog_registry(const char *scheme)
{
	for (unsigned i = 0; registries[i]; i++)
		if (strcmp(registries[i]->scheme, scheme) == 0)
			return registries[i];
	return NULL;
}

const char *spokei_catalog_policy_name(unsigned index)
{
	return index < sizeof(policies) / sizeof(policies[0]) && policies[index]
		       ? policies[index]->name
		       : NULL;
}

const char *spokei_catalog_balancer_name(unsigned index)
{
	return index < sizeof(balancers) / sizeof(balancers[0]) && balancers[index]
		       ? balancers[index]->name
		       : NULL;
}

const char *spokei_catalog_registry_name(unsigned index)
{
	return index < sizeof(registries) / sizeof(registries[0]) && registries[index]
		       ? registries[index]->scheme
		       : NULL;
}

const struct spoke_registry *spoke_registry_find(const char *scheme)
{
	return scheme ? spokei_catalog_registry(scheme) : NULL;
}
