/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the settings of a provider and of its methods from defaults, the file and options. */
#include "cluster/provider/settings.h"

#include "cluster/config/config.h"
#include "cluster/config/texts.h"
#include "cluster/config/tls.h"
#include "core/engine/engine.h"
#include "transport/http/guard.h"

#include <spoke/provider.h>
#include <spoke/tls.h>

/* Time limit of a peer's first byte: so many intervals, and never less than MUTE_NS, because Java
 * consumers send nothing before their first call or their own interval of 60 s. */
#define MUTE_INTERVALS 4u
#define MUTE_NS UINT64_C(240000000000)

static const struct spoke_span no_name = { NULL, 0 };

/* --- numbers */

static int read_options(struct spoke_engine *engine, const struct spoke_provider_options *options,
			struct spokei_key_values *values)
{
	const struct {
		enum spokei_key key;
		uint64_t option;
	} rows[] = {
		{ SPOKEI_KEY_FRAME_MAX, options->frame_max },
		{ SPOKEI_KEY_VALUES_MAX, options->values_max },
		{ SPOKEI_KEY_PUSHES_MAX, options->pushes_max },
		{ SPOKEI_KEY_CONNECTIONS_MAX, options->connections_max },
		{ SPOKEI_KEY_CONNECTIONS_PER_PEER_MAX, options->connections_per_peer_max },
		{ SPOKEI_KEY_CONNECTIONS_PER_PEER_PREFIX6, options->connections_per_peer_prefix6 },
		{ SPOKEI_KEY_REQUESTS_MAX, options->requests_max },
		{ SPOKEI_KEY_REQUESTS_PER_CONNECTION_MAX, options->requests_per_connection_max },
		{ SPOKEI_KEY_QUEUED_MAX, options->queued_max },
		{ SPOKEI_KEY_VALUES_CYCLES, options->values_cycles },
		{ SPOKEI_KEY_REGISTRY_RETRY_PERIOD, options->registry_retry_ns },
		{ SPOKEI_KEY_REGISTRY_RETRY_TIMES, options->registry_retries },
	};
	int error = spokei_tls_overrule(engine, values, options->tls);

	if (options->token_private)
		spokei_keys_set_none(values, SPOKEI_KEY_TOKEN_PUBLISH);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && error == 0; i++)
		error = spokei_keys_overrule(engine, values, rows[i].key, rows[i].option);
	if (error == 0)
		error = spokei_keys_overrule_interval(engine, values, SPOKEI_KEY_HEARTBEAT,
						      options->heartbeat_ns);
	if (error == 0)
		error = spokei_keys_overrule_interval(engine, values, SPOKEI_KEY_IDLE_CLOSE,
						      options->idle_close_ns);
	if (error == 0)
		error = spokei_keys_overrule_interval(engine, values, SPOKEI_KEY_HALF_CLOSE,
						      options->half_close_ns);
	if (options->weight == SPOKE_NONE)
		spokei_keys_set_none(values, SPOKEI_KEY_WEIGHT);
	else if (error == 0)
		error = spokei_keys_overrule(engine, values, SPOKEI_KEY_WEIGHT, options->weight);
	if (options->warmup_ns == SPOKE_OFF)
		spokei_keys_set_none(values, SPOKEI_KEY_WARMUP);
	else if (error == 0)
		error = spokei_keys_overrule(engine, values, SPOKEI_KEY_WARMUP, options->warmup_ns);
	return error;
}

static void fill_limits(const uint64_t *of, struct spokei_link_limits *ret)
{
	const uint64_t heartbeat_ns = of[SPOKEI_KEY_HEARTBEAT];

	ret->heartbeat_ns = heartbeat_ns;
	ret->idle_close_ns = of[SPOKEI_KEY_IDLE_CLOSE];
	ret->half_ns = of[SPOKEI_KEY_HALF_CLOSE];
	ret->handshake_ns = of[SPOKEI_KEY_HANDSHAKE_TIMEOUT];
	ret->mute_ns = MUTE_INTERVALS * heartbeat_ns;
	if (ret->mute_ns < MUTE_NS)
		ret->mute_ns = MUTE_NS;
	spokei_link_limits_frame(ret, (size_t)of[SPOKEI_KEY_FRAME_MAX]);
	spokei_link_limits_values(ret, (uint32_t)of[SPOKEI_KEY_VALUES_MAX]);
	ret->wire.value.cycles = of[SPOKEI_KEY_VALUES_CYCLES] != 0;
	ret->serving_max = (uint32_t)of[SPOKEI_KEY_REQUESTS_MAX];
	ret->serving_per_conn_max = (uint32_t)of[SPOKEI_KEY_REQUESTS_PER_CONNECTION_MAX];
	ret->queued_max = (size_t)of[SPOKEI_KEY_QUEUED_MAX];
	ret->pending_max = (uint32_t)of[SPOKEI_KEY_PUSHES_MAX];
}

/* Notes which texts come from options. */
static void mark_texts(const struct spoke_provider_options *options,
		       struct spokei_key_values *values)
{
	const struct {
		enum spokei_key key;
		const char *option;
	} rows[] = {
		{ SPOKEI_KEY_REGISTRY_URL, options->registry },
		{ SPOKEI_KEY_DEFAULT_SERVICE, options->default_service },
		{ SPOKEI_KEY_ADVERTISE, options->advertise },
		{ SPOKEI_KEY_APPLICATION, options->application },
		{ SPOKEI_KEY_ACCESS_LOG, options->access_log },
		{ SPOKEI_KEY_TOKEN, options->token },
		{ SPOKEI_KEY_TOKEN_FILE, options->token_file },
		{ SPOKEI_KEY_ACCESS_ID, options->access_id },
		{ SPOKEI_KEY_ACCESS_SECRET_FILE, options->access_secret_file },
		{ SPOKEI_KEY_HTTP_ORIGINS, options->http_origins },
		{ SPOKEI_KEY_HTTP_HOSTS, options->http_hosts },
		{ SPOKEI_KEY_ALLOW_FROM, options->allow_from },
		{ SPOKEI_KEY_DENY_FROM, options->deny_from },
		{ SPOKEI_KEY_ALLOW_USERS, options->allow_users },
		{ SPOKEI_KEY_ALLOW_CALLERS, options->allow_callers },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].option)
			spokei_keys_put(values, rows[i].key, 0, SPOKEI_FROM_CODE, 0);
}

static void read_served(const struct spoke_config *config,
			const struct spokei_provider_settings *settings,
			struct spokei_key_values *ret)
{
	spokei_keys_preset(ret);
	spokei_config_read(config, SPOKEI_IN_PROVIDER, no_name, ret);
	spokei_config_read(config, SPOKEI_IN_REGISTRY, no_name, ret);
	spokei_keys_lay(ret, &settings->options);
}

void spokei_settings_served(const struct spoke_config *config,
			    struct spokei_provider_settings *settings)
{
	struct spokei_key_values values;
	const uint64_t *of = settings->in_force.of;

	read_served(config, settings, &values);
	spokei_keys_renew(&settings->in_force, &values);
	fill_limits(of, &settings->limits);
	settings->connections = (struct spokei_quota_limits){
		.max = (uint32_t)of[SPOKEI_KEY_CONNECTIONS_MAX],
		.per_peer_max = (uint32_t)of[SPOKEI_KEY_CONNECTIONS_PER_PEER_MAX],
		.prefix6 = (uint32_t)of[SPOKEI_KEY_CONNECTIONS_PER_PEER_PREFIX6],
	};
	settings->weight = (uint32_t)of[SPOKEI_KEY_WEIGHT];
	settings->warmup_ns = of[SPOKEI_KEY_WARMUP];
	settings->registry_retry_ns = of[SPOKEI_KEY_REGISTRY_RETRY_PERIOD];
	settings->registry_retries = (uint32_t)of[SPOKEI_KEY_REGISTRY_RETRY_TIMES];
	settings->auth_failures_max = (uint32_t)of[SPOKEI_KEY_AUTH_FAILURES_MAX];
	settings->unproven_frame_max = (size_t)of[SPOKEI_KEY_UNPROVEN_FRAME_MAX];
	settings->token_publish = of[SPOKEI_KEY_TOKEN_PUBLISH] != 0;
	settings->fence_proven = of[SPOKEI_KEY_FENCE_PROVEN] != 0;
	settings->local_path = of[SPOKEI_KEY_LOCAL_PATH] == 0;
}

/* The lists of a file were checked when it was read. */
static int check_lists(struct spoke_engine *engine, const struct spoke_provider_options *options)
{
	const char *origins = options->http_origins;
	const char *names = options->http_hosts;
	char why[SPOKEI_GUARD_WHY];
	const char *wrong = origins ? spokei_guard_check_origins(origins, why) : NULL;
	const char *option = wrong ? "http_origins" : "http_hosts";

	if (wrong == NULL && names)
		wrong = spokei_guard_check_names(names, why);
	if (wrong == NULL)
		return SPOKE_OK;
	spokei_event(engine, SPOKE_EINVAL, "option %s: %s", option, wrong);
	return SPOKE_EINVAL;
}

int spokei_settings_provider(struct spoke_engine *engine,
			     const struct spoke_provider_options *options,
			     struct spokei_provider_settings *ret)
{
	int error;

	*ret = (struct spokei_provider_settings){ .weight = 0 };
	error = read_options(engine, options, &ret->options);
	if (error == SPOKE_OK)
		error = check_lists(engine, options);
	if (error)
		return error;
	mark_texts(options, &ret->options);
	spokei_link_limits_init(&ret->limits);
	read_served(options->config, ret, &ret->in_force);
	spokei_settings_served(options->config, ret);
	return SPOKE_OK;
}

/* --- texts */

static const char *text_of(const struct spoke_provider_options *options, const char *option,
			   enum spokei_section section, enum spokei_key key)
{
	return option ? option : spokei_config_text(options->config, section, no_name, key);
}

struct spokei_provider_texts spokei_settings_texts(const struct spoke_provider_options *options)
{
	return (struct spokei_provider_texts){
		.registry = text_of(options, options->registry, SPOKEI_IN_REGISTRY,
				    SPOKEI_KEY_REGISTRY_URL),
		.default_service = text_of(options, options->default_service, SPOKEI_IN_PROVIDER,
					   SPOKEI_KEY_DEFAULT_SERVICE),
		.advertise = text_of(options, options->advertise, SPOKEI_IN_PROVIDER,
				     SPOKEI_KEY_ADVERTISE),
		.application = text_of(options, options->application, SPOKEI_IN_PROVIDER,
				       SPOKEI_KEY_APPLICATION),
		.access_log = text_of(options, options->access_log, SPOKEI_IN_PROVIDER,
				      SPOKEI_KEY_ACCESS_LOG),
		.http_origins = text_of(options, options->http_origins, SPOKEI_IN_PROVIDER,
					SPOKEI_KEY_HTTP_ORIGINS),
		.http_hosts = text_of(options, options->http_hosts, SPOKEI_IN_PROVIDER,
				      SPOKEI_KEY_HTTP_HOSTS),
		/* Those of the file are read when they are needed, because a reload changes them.
		 */
		.allow_from = options->allow_from,
		.deny_from = options->deny_from,
		.allow_users = options->allow_users,
		.allow_callers = options->allow_callers,
	};
}

int spokei_settings_copy_texts(const struct spoke_env *env,
			       const struct spokei_provider_texts *texts,
			       struct spokei_provider_texts *ret, char **ret_block,
			       size_t *ret_size)
{
	const char *from[] = { texts->registry,    texts->default_service, texts->advertise,
			       texts->application, texts->access_log,      texts->http_origins,
			       texts->http_hosts,  texts->allow_from,      texts->deny_from,
			       texts->allow_users, texts->allow_callers };
	const char **copies[] = { &ret->registry,    &ret->default_service, &ret->advertise,
				  &ret->application, &ret->access_log,      &ret->http_origins,
				  &ret->http_hosts,  &ret->allow_from,      &ret->deny_from,
				  &ret->allow_users, &ret->allow_callers };

	return spokei_texts_copy(env, from, copies, sizeof(from) / sizeof(from[0]), ret_block,
				 ret_size);
}

const char *spokei_settings_list(const struct spokei_provider_settings *settings,
				 const struct spokei_provider_texts *texts,
				 const struct spoke_config *config, enum spokei_key key)
{
	if (!settings->options.said[key])
		return spokei_config_text(config, SPOKEI_IN_PROVIDER, no_name, key);
	switch ((int)key) {
	case SPOKEI_KEY_ALLOW_FROM:
		return texts->allow_from;
	case SPOKEI_KEY_DENY_FROM:
		return texts->deny_from;
	case SPOKEI_KEY_ALLOW_USERS:
		return texts->allow_users;
	default:
		return texts->allow_callers;
	}
}

struct spokei_provider_lists spokei_settings_lists(const struct spokei_provider_settings *settings,
						   const struct spokei_provider_texts *texts,
						   const struct spoke_config *config)
{
	return (struct spokei_provider_lists){
		.allow_from = spokei_settings_list(settings, texts, config, SPOKEI_KEY_ALLOW_FROM),
		.deny_from = spokei_settings_list(settings, texts, config, SPOKEI_KEY_DENY_FROM),
		.allow_users = spokei_settings_list(settings, texts, config,
						    SPOKEI_KEY_ALLOW_USERS),
		.allow_callers = spokei_settings_list(settings, texts, config,
						      SPOKEI_KEY_ALLOW_CALLERS),
	};
}

/* --- methods */

void spokei_settings_served_method(const struct spoke_config *config, struct spoke_span service,
				   const char *method, struct spokei_served_limit own,
				   struct spokei_key_values *ret)
{
	spokei_keys_preset(ret);
	spokei_config_read(config, SPOKEI_IN_PROVIDER, no_name, ret);
	spokei_config_read(config, SPOKEI_IN_SERVICE, service, ret);
	spokei_config_read_method(config, service, method, ret);
	spokei_keys_set(ret, SPOKEI_KEY_EXECUTES, own.executes);
	spokei_keys_set(ret, SPOKEI_KEY_EXECUTES_TPS, own.per_second);
}

struct spokei_served_limit spokei_settings_limit(const struct spoke_config *config,
						 struct spoke_span service, const char *method,
						 struct spokei_served_limit own)
{
	struct spokei_key_values values;

	spokei_settings_served_method(config, service, method, own, &values);
	return (struct spokei_served_limit){
		.slow_ns = values.of[SPOKEI_KEY_SLOW_AFTER],
		.executes = (uint32_t)values.of[SPOKEI_KEY_EXECUTES],
		.per_second = (uint32_t)values.of[SPOKEI_KEY_EXECUTES_TPS],
	};
}
