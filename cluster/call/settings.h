/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of calls, of a whole consumer or of one method. */
#ifndef SPOKEI_CLUSTER_CALL_SETTINGS_H
#define SPOKEI_CLUSTER_CALL_SETTINGS_H

#include "cluster/config/owners.h"

#include <spoke/policy.h>

#include <stdbool.h>
#include <stdint.h>

#define SPOKEI_NAME_MAX 65536u /* bytes of a service or method name */

struct spokei_key_values;

/* Reads the settings from the values of the keys. */
void spokei_call_settings_fill(const struct spokei_key_values *values,
			       struct spokei_call_settings *ret);

static inline uint32_t spokei_settings_retries(const struct spokei_call_settings *settings,
					       const struct spoke_policy *policy)
{
	return settings->retries == SPOKEI_RETRIES_OF_POLICY ? policy->retries : settings->retries;
}

/* Returns how long a call may last from its beginning: retry.deadline for a call that may become a
 * ticket, else the sum of all attempts and pauses. */
uint64_t spokei_settings_deadline(const struct spokei_call_settings *settings,
				  const struct spoke_policy *policy, uint64_t timeout_ns);

#endif
