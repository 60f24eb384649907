/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up policies and serializations by name. */
#include "examples/spoke/policies.h"

#include "examples/spoke/options.h"

#include <string.h>

bool policies_take(const struct options *options, const struct spoke_policy **ret_policy)
{
	static const struct spoke_policy *const policies[] = {
		&spoke_policy_failover,  &spoke_policy_failfast, &spoke_policy_failsafe,
		&spoke_policy_failback,  &spoke_policy_forking,  &spoke_policy_broadcast,
		&spoke_policy_available,
	};

	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		if (strcmp(policies[i]->name, options->value) != 0)
			continue;
		*ret_policy = policies[i];
		return true;
	}
	(void)options_wrong(options, "unknown; use failover, failfast, failsafe, failback, "
				     "forking, broadcast or available");
	return false;
}

bool policies_serialization(const struct options *options, enum spoke_serialization *ret)
{
	static const struct {
		const char *name;
		enum spoke_serialization serialization;
	} rows[] = {
		{ "auto", SPOKE_SERIALIZATION_AUTO },
		{ "hessian2", SPOKE_SERIALIZATION_HESSIAN2 },
		{ "msgpack", SPOKE_SERIALIZATION_MSGPACK },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].name, options->value) != 0)
			continue;
		*ret = rows[i].serialization;
		return true;
	}
	(void)options_wrong(options, "unknown; use hessian2, msgpack or auto");
	return false;
}
