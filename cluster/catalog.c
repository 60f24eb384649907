/* SPDX-License-Identifier: Apache-2.0 */
/* Finds policies, balancers and registries by their names. */
#include "cluster/catalog.h"

#include "cluster/balancer/balancers.h"
#include "cluster/registry/registries.h"

#include <string.h>

/* clang-format off */
const struct spoke_policy *const spokei_catalog_policies[] = {
	&spoke_policy_failover,
	&spoke_policy_failfast,
	&spoke_policy_failsafe,
	&spoke_policy_failback,
	&spoke_policy_forking,
	&spoke_policy_broadcast,
	&spoke_policy_available,
	NULL,
};
/* clang-format on */

const struct spoke_registry *const spokei_catalog_registries[] = {
#define ROW(name) &spokei_registry_##name,
	SPOKEI_REGISTRIES(ROW) NULL,
};

/* --- */

const struct spoke_policy *spokei_catalog_policy(const char *name)
{
	for (unsigned i = 0; spokei_catalog_policies[i]; i++)
		if (strcmp(spokei_catalog_policies[i]->name, name) == 0)
			return spokei_catalog_policies[i];
	return NULL;
}

const struct spoke_balancer *spokei_catalog_balancer(const char *name)
{
	for (unsigned i = 0; spokei_balancers[i]; i++)
		if (strcmp(spokei_balancers[i]->name, name) == 0)
			return spokei_balancers[i];
	return NULL;
}

const struct spoke_registry *spokei_catalog_registry(const char *scheme)
{
	for (unsigned i = 0; spokei_catalog_registries[i]; i++)
		if (strcmp(spokei_catalog_registries[i]->scheme, scheme) == 0)
			return spokei_catalog_registries[i];
	return NULL;
}

const struct spoke_registry *spoke_registry_find(const char *scheme)
{
	return scheme ? spokei_catalog_registry(scheme) : NULL;
}

const char *spokei_catalog_policy_name(unsigned index)
{
	return spokei_catalog_policies[index] ? spokei_catalog_policies[index]->name : NULL;
}

const char *spokei_catalog_balancer_name(unsigned index)
{
	return spokei_balancers[index] ? spokei_balancers[index]->name : NULL;
}
