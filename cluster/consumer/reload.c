/* SPDX-License-Identifier: Apache-2.0 */
/* Applies each reload of the settings file to a consumer. */
#include "cluster/call/caller.h"
#include "cluster/consumer/parts.h"
#include "cluster/consumer/settings.h"
#include "cluster/endpoints/directory.h"
#include "core/engine/engine.h"
#include "transport/conn/link.h"

void spokei_consumer_inherit(struct spoke_consumer *consumer)
{
	struct spokei_consumer_settings *settings = consumer->settings;

	spokei_settings_inherit(consumer->engine, settings, &consumer->provided);
	if (settings->calls.balancer != consumer->balancer_state->balancer) {
		spokei_balancer_state_fini(consumer->balancer_state, consumer->engine->env);
		spokei_balancer_state_init(consumer->balancer_state, settings->calls.balancer);
	}
	spokei_methods_inherit(consumer);
}

static void take(struct spokei_config_user *user)
{
	struct spoke_consumer *consumer = user->owner;
	const struct spokei_consumer_settings *settings = consumer->settings;
	const struct spokei_key_values *values = &settings->in_force;

	spokei_consumer_inherit(consumer);
	consumer->caller->token_plain = values->of[SPOKEI_KEY_TOKEN_PLAIN] != 0;
	consumer->caller->told_plain = false;
	spokei_caller_resize(consumer->caller, settings->limits.pending_max,
			     spokei_keys_u32(values, SPOKEI_KEY_FAILBACK_TASKS));
	spokei_retry_queue_limit(&consumer->caller->retry, values);
	spokei_link_change(consumer->link, &settings->limits);
	spokei_directory_change(consumer->directory, &settings->directory);
}

const struct spokei_config_user_up spokei_consumer_file_up = { .take = take };
