/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the settings of calls from the values of configuration keys. */
#include "cluster/call/settings.h"

#include "cluster/catalog.h"
#include "cluster/config/keys.h"
#include "core/engine/engine.h"
#include "transport/codec/codec.h"

#define PAUSE_CAP_NS UINT64_C(60000000000) /* longest pause of an exponential backoff */

static const struct spoke_policy *policy_at(uint64_t index)
{
	return spokei_catalog_policy(spokei_catalog_policy_name((unsigned)index));
}

static const struct spoke_balancer *balancer_at(uint64_t index)
{
	const char *name = spokei_catalog_balancer_name((unsigned)index);

	return name ? spokei_catalog_balancer(name) : NULL;
}

/* Returns the id of a serialization by its place among the names of the key; 0: auto. */
static uint8_t codec_at(uint64_t index)
{
	static const uint8_t ids[] = { 0, SPOKEI_CODEC_HESSIAN2, SPOKEI_CODEC_MSGPACK };

	return index < sizeof(ids) ? ids[index] : 0;
}

void spokei_call_settings_fill(const struct spokei_key_values *values,
			       struct spokei_call_settings *ret)
{
	const uint64_t *of = values->of;

	*ret = (struct spokei_call_settings){
		.policy = policy_at(of[SPOKEI_KEY_CLUSTER]),
		.balancer = balancer_at(of[SPOKEI_KEY_LOADBALANCE]),
		.codec = codec_at(of[SPOKEI_KEY_SERIALIZATION]),
	};
	spokei_keys_fill(values, SPOKEI_IN_METHOD, SPOKEI_AT_CALL, ret);
	if (!values->said[SPOKEI_KEY_RETRIES])
		ret->retries = SPOKEI_RETRIES_OF_POLICY;
}

uint64_t spokei_settings_deadline(const struct spokei_call_settings *settings,
				  const struct spoke_policy *policy, uint64_t timeout_ns)
{
	uint32_t retries = spokei_settings_retries(settings, policy);
	uint64_t pause_ns = settings->period_ns;
	uint64_t all_ns = spokei_later(pause_ns, timeout_ns);

	if (policy->repeats && settings->deadline_ns)
		return settings->deadline_ns;
	for (uint32_t i = 0; i < retries; i++) {
		/* Jitter may lengthen growing pauses by a fifth. */
		uint64_t longest_ns = settings->growing ? spokei_later(pause_ns, pause_ns / 5)
							: pause_ns;

		all_ns = spokei_later(all_ns, spokei_later(longest_ns, timeout_ns));
		if (settings->growing && pause_ns < PAUSE_CAP_NS)
			pause_ns = pause_ns / 5 * 8;
		if (settings->growing && pause_ns > PAUSE_CAP_NS &&
		    settings->period_ns < PAUSE_CAP_NS)
			pause_ns = PAUSE_CAP_NS;
	}
	return all_ns;
}
