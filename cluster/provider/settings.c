/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the settings of a provider and of its methods from defaults, the file and options. */
#include "cluster/provider/settings.h"

#include "cluster/config/config.h"
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
	int error = spokei_tls_overrule(engine, SPOKEI_IN_PROVIDER, values, options->tls);

	return error ? error : spokei_keys_read_code(engine, values, SPOKEI_AT_PROVIDER, options);
}

static void fill_limits(const struct spokei_key_values *values, struct spokei_link_limits *ret)
{
	spokei_keys_fill(values, SPOKEI_IN_PROVIDER, SPOKEI_AT_LINK, ret);
	ret->mute_ns = MUTE_INTERVALS * ret->heartbeat_ns;
	if (ret->mute_ns < MUTE_NS)
		ret->mute_ns = MUTE_NS;
	spokei_link_limits_frame(ret, (size_t)values->of[SPOKEI_KEY_FRAME_MAX]);
	spokei_link_limits_values(ret, (uint32_t)values->of[SPOKEI_KEY_VALUES_MAX]);
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

	read_served(config, settings, &values);
	spokei_keys_renew(&settings->in_force, &values);
	fill_limits(&settings->in_force, &settings->limits);
	spokei_keys_fill(&settings->in_force, SPOKEI_IN_PROVIDER, SPOKEI_AT_QUOTA,
			 &settings->connections);
	settings->local_path = settings->in_force.of[SPOKEI_KEY_LOCAL_PATH] == 0;
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

	*ret = (struct spokei_provider_settings){ .local_path = false };
	error = read_options(engine, options, &ret->options);
	if (error == SPOKE_OK)
		error = check_lists(engine, options);
	if (error)
		return error;
	spokei_link_limits_init(&ret->limits);
	read_served(options->config, ret, &ret->in_force);
	spokei_settings_served(options->config, ret);
	return spokei_keys_own(engine->env, &ret->in_force, &ret->options);
}

void spokei_settings_provider_fini(const struct spoke_env *env,
				   struct spokei_provider_settings *settings)
{
	spokei_keys_disown(env, &settings->in_force);
}

/* --- lists */

static const char *list_of(const struct spokei_provider_settings *settings,
			   const struct spoke_config *config, enum spokei_key key)
{
	return settings->options.said[key]
		       ? settings->options.text[key]
		       : spokei_config_text(config, SPOKEI_IN_PROVIDER, no_name, key);
}

struct spokei_provider_lists spokei_settings_lists(const struct spokei_provider_settings *settings,
						   const struct spoke_config *config)
{
	return (struct spokei_provider_lists){
		.allow_from = list_of(settings, config, SPOKEI_KEY_ALLOW_FROM),
		.deny_from = list_of(settings, config, SPOKEI_KEY_DENY_FROM),
		.allow_users = list_of(settings, config, SPOKEI_KEY_ALLOW_USERS),
		.allow_callers = list_of(settings, config, SPOKEI_KEY_ALLOW_CALLERS),
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
