/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of calls, of a whole consumer or of one method. */
#ifndef SPOKEI_CLUSTER_CALL_SETTINGS_H
#define SPOKEI_CLUSTER_CALL_SETTINGS_H

#include <spoke/policy.h>

#include <stdbool.h>
#include <stdint.h>

#define SPOKEI_NAME_MAX 65536u /* bytes of a service or method name */
#define SPOKEI_RETRIES_OF_POLICY UINT32_MAX

struct spoke_balancer;
struct spokei_key_values;

struct spokei_call_settings {
	const struct spoke_policy *policy;
	const struct spoke_balancer *balancer;
	uint64_t timeout_ns;
	uint8_t codec; /* id of the serialization; 0: that of the endpoint */
	bool growing;  /* exponential backoff */
	bool wait_ready;
	bool sticky;
	bool idempotent;
	uint64_t period_ns;
	uint64_t deadline_ns; /* of a ticket, from its call on; 0: spokei_settings_deadline() */
	uint64_t hedge_ns;    /* or a percentile, see SPOKE_PERCENTILE(); 0: no backups */
	uint64_t slow_ns;     /* from this time on an attempt is slow; 0: none is */
	uint32_t retries;     /* SPOKEI_RETRIES_OF_POLICY: the policy's number */
	uint32_t forks;
	uint32_t fail_percent;
	uint32_t actives;    /* 0: no limit */
	uint32_t per_second; /* 0: no limit */
};

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
