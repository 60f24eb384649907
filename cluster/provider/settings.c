/* SPDX-License-Identifier: Apache-2.0 */
/* What providers are told. */
#include "cluster/call/settings.h"

#define MUTE_INTERVALS 4u /* of silence before a peer's first byte */

static const struct spoke_span no_name = { NULL, 0 };

int spokei_settings_provider(struct spoke_engine *engine,
			     const struct spoke_provider_options *options,
			     struct spokei_link_limits *ret)
{
	const uint64_t preset_ns = spokei_key_row(SPOKEI_KEY_HEARTBEAT)->option.preset;
	struct spokei_key_values values = { .said = { false } };
	uint64_t *of = values.of;
	int error = spokei_keys_overrule(engine, &values, SPOKEI_KEY_FRAME_MAX, options->frame_max);

	of[SPOKEI_KEY_HEARTBEAT] = preset_ns;
	of[SPOKEI_KEY_IDLE_CLOSE] = SPOKEI_IDLE_OFF;
	if (error == 0)
		error = spokei_settings_interval(engine, &values, SPOKEI_KEY_HEARTBEAT,
						 options->heartbeat_ns);
	if (error == 0)
		error = spokei_settings_interval(engine, &values, SPOKEI_KEY_IDLE_CLOSE,
						 options->idle_close_ns);
	if (error)
		return error;
	spokei_link_limits_init(ret);
	ret->heartbeat_ns = of[SPOKEI_KEY_HEARTBEAT];
	ret->idle_close_ns = of[SPOKEI_KEY_IDLE_CLOSE];
	ret->mute_ns = MUTE_INTERVALS *
		       (ret->heartbeat_ns == SPOKEI_IDLE_OFF ? preset_ns : ret->heartbeat_ns);
	if (options->frame_max)
		ret->wire.frame_max = options->frame_max;
	if (options->requests_max)
		ret->serving_max = options->requests_max;
	if (options->requests_per_connection_max)
		ret->serving_per_conn_max = options->requests_per_connection_max;
	if (options->queued_max)
		ret->queued_max = options->queued_max;
	if (options->pushes_max)
		ret->pending_max = options->pushes_max;
	return SPOKE_OK;
}

/* --- what the file says */

static void fill_u32(const struct spokei_key_values *values, enum spokei_key key, uint32_t none,
		     uint32_t *option)
{
	if (*option == 0 && values->said[key])
		*option = values->of[key] ? (uint32_t)values->of[key] : none;
}

static void fill_size(const struct spokei_key_values *values, enum spokei_key key, size_t *option)
{
	if (*option == 0 && values->said[key])
		*option = (size_t)values->of[key];
}

/* 0 in the file says none. */
static void fill_time(const struct spokei_key_values *values, enum spokei_key key, uint64_t *option)
{
	if (*option == 0 && values->said[key])
		*option = values->of[key] ? values->of[key] : SPOKE_OFF;
}

static void fill_texts(const struct spoke_config *config, struct spoke_provider_options *options)
{
	const struct {
		const char **option;
		enum spokei_section section;
		enum spokei_key key;
	} rows[] = {
		{ &options->registry, SPOKEI_IN_REGISTRY, SPOKEI_KEY_REGISTRY_URL },
		{ &options->default_service, SPOKEI_IN_PROVIDER, SPOKEI_KEY_DEFAULT_SERVICE },
		{ &options->advertise, SPOKEI_IN_PROVIDER, SPOKEI_KEY_ADVERTISE },
		{ &options->application, SPOKEI_IN_PROVIDER, SPOKEI_KEY_APPLICATION },
		{ &options->access_log, SPOKEI_IN_PROVIDER, SPOKEI_KEY_ACCESS_LOG },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (*rows[i].option == NULL)
			*rows[i].option = spokei_config_text(config, rows[i].section, no_name,
							     rows[i].key);
}

void spokei_settings_served(const struct spoke_config *config,
			    struct spoke_provider_options *options)
{
	struct spokei_key_values values = { .said = { false } };

	if (config == NULL)
		return;
	spokei_config_read(config, SPOKEI_IN_PROVIDER, no_name, &values);
	spokei_config_read(config, SPOKEI_IN_REGISTRY, no_name, &values);
	fill_u32(&values, SPOKEI_KEY_CONNECTIONS_MAX, 0, &options->connections_max);
	fill_u32(&values, SPOKEI_KEY_CONNECTIONS_PER_PEER_MAX, 0,
		 &options->connections_per_peer_max);
	fill_u32(&values, SPOKEI_KEY_REQUESTS_MAX, 0, &options->requests_max);
	fill_u32(&values, SPOKEI_KEY_REQUESTS_PER_CONNECTION_MAX, 0,
		 &options->requests_per_connection_max);
	fill_u32(&values, SPOKEI_KEY_PUSHES_MAX, 0, &options->pushes_max);
	fill_u32(&values, SPOKEI_KEY_WEIGHT, SPOKE_NONE, &options->weight);
	fill_u32(&values, SPOKEI_KEY_REGISTRY_RETRY_TIMES, 0, &options->registry_retries);
	fill_size(&values, SPOKEI_KEY_FRAME_MAX, &options->frame_max);
	fill_size(&values, SPOKEI_KEY_QUEUED_MAX, &options->queued_max);
	fill_time(&values, SPOKEI_KEY_HEARTBEAT, &options->heartbeat_ns);
	fill_time(&values, SPOKEI_KEY_IDLE_CLOSE, &options->idle_close_ns);
	fill_time(&values, SPOKEI_KEY_WARMUP, &options->warmup_ns);
	fill_time(&values, SPOKEI_KEY_REGISTRY_RETRY_PERIOD, &options->registry_retry_ns);
	fill_texts(config, options);
}

struct spokei_served_limit spokei_settings_limit(const struct spoke_config *config,
						 const struct spokei_method_name *name,
						 struct spokei_served_limit own)
{
	struct spokei_key_values values = { .said = { false } };

	spokei_config_read(config, SPOKEI_IN_PROVIDER, no_name, &values);
	spokei_config_read(config, SPOKEI_IN_SERVICE, name->service, &values);
	spokei_config_read_method(config, name->service, name->method, &values);
	return (struct spokei_served_limit){
		.executes = own.executes ? own.executes : (uint32_t)values.of[SPOKEI_KEY_EXECUTES],
		.per_second = own.per_second ? own.per_second
					     : (uint32_t)values.of[SPOKEI_KEY_EXECUTES_TPS],
	};
}
