/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up policies by name. */
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
