/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the settings of a consumer and of its methods from defaults, URLs, the file and options. */
#include "cluster/consumer/settings.h"
#include "core/base/env.h"

#include "cluster/call/method.h"
#include "cluster/config/places.h"
#include "cluster/config/tls.h"
#include "core/engine/engine.h"

#include <spoke/consumer.h>

#define NO_PLACE "consumer" /* scheme of a URL that names a service without an address */

/* --- sources */

static struct spoke_span span_of(const char *text)
{
	return (struct spoke_span){ (const unsigned char *)text, strlen(text) };
}

/* Reads the values that apply to all methods of a service; `provided` may be NULL. */
static int read_wide(struct spoke_engine *engine, const struct spokei_consumer_settings *settings,
		     const struct spoke_url *provided, struct spoke_span service,
		     struct spokei_key_values *ret)
{
	const struct spoke_config *config = settings->file.config;
	int error;

	spokei_keys_preset(ret);
	if (provided)
		spokei_keys_read_provided(provided, SPOKEI_FROM_PROVIDER, ret);
	spokei_config_read(config, SPOKEI_IN_CONSUMER, span_of(""), ret);
	spokei_config_read(config, SPOKEI_IN_REGISTRY, span_of(""), ret);
	spokei_config_read(config, SPOKEI_IN_SERVICE, service, ret);
	error = spokei_keys_read(engine, &settings->url, ret);
	spokei_keys_lay(ret, &settings->options);
	spokei_keys_read_provided(&settings->ruled, SPOKEI_FROM_RULE, ret);
	return error;
}

/* Options for all methods yield to values for this method. */
static void choose_tables(const struct spokei_consumer_settings *settings,
			  const struct spokei_key_values *values, struct spokei_call_settings *ret)
{
	if (settings->policy && !values->said[SPOKEI_KEY_CLUSTER])
		ret->policy = settings->policy;
	if (settings->balancer && !values->said[SPOKEI_KEY_LOADBALANCE])
		ret->balancer = settings->balancer;
}

/* Objects of the program that are a policy or a balancer come from code, too. */
static void mark_tables(const void *policy, const void *balancer, struct spokei_key_values *values)
{
	if (policy)
		values->from[SPOKEI_KEY_CLUSTER] = SPOKEI_FROM_CODE;
	if (balancer)
		values->from[SPOKEI_KEY_LOADBALANCE] = SPOKEI_FROM_CODE;
}

int spokei_settings_method_values(struct spoke_engine *engine,
				  const struct spokei_consumer_settings *settings,
				  const struct spoke_url *provided,
				  const struct spokei_method_name *name,
				  const struct spoke_method_options *options,
				  struct spokei_key_values *ret)
{
	int error = read_wide(engine, settings, provided, name->service, ret);

	if (error)
		return error;
	mark_tables(settings->policy, settings->balancer, ret);
	ret->said[SPOKEI_KEY_CLUSTER] = false;
	ret->said[SPOKEI_KEY_LOADBALANCE] = false;
	spokei_keys_read_method(provided, name->method, SPOKEI_FROM_PROVIDER, ret);
	spokei_config_read_method(settings->file.config, name->service, name->method, ret);
	spokei_keys_read_method(&settings->url, name->method, SPOKEI_FROM_URL, ret);
	error = spokei_keys_read_code(engine, ret, SPOKEI_AT_METHOD, options);
	if (error)
		return error;
	spokei_keys_read_method(&settings->ruled, name->method, SPOKEI_FROM_RULE, ret);
	mark_tables(options->policy, options->balancer, ret);
	return SPOKE_OK;
}

int spokei_settings_method(struct spoke_engine *engine,
			   const struct spokei_consumer_settings *settings,
			   const struct spoke_url *provided, const struct spokei_method_name *name,
			   const struct spoke_method_options *options,
			   struct spokei_call_settings *ret)
{
	struct spokei_key_values values;
	int error = spokei_settings_method_values(engine, settings, provided, name, options,
						  &values);

	if (error)
		return error;
	spokei_call_settings_fill(&values, ret);
	choose_tables(settings, &values, ret);
	if (options->policy)
		ret->policy = options->policy;
	if (options->balancer)
		ret->balancer = options->balancer;
	return SPOKE_OK;
}

/* Applies the values in force. */
static void fill(struct spokei_consumer_settings *settings)
{
	const struct spokei_key_values *values = &settings->in_force;

	spokei_keys_fill(values, SPOKEI_IN_CONSUMER, SPOKEI_AT_LINK, &settings->limits);
	spokei_keys_fill(values, SPOKEI_IN_CONSUMER, SPOKEI_AT_DIRECTORY, &settings->directory);
	spokei_call_settings_fill(values, &settings->calls);
	if (settings->policy)
		settings->calls.policy = settings->policy;
	if (settings->balancer)
		settings->calls.balancer = settings->balancer;
}

void spokei_settings_inherit(struct spoke_engine *engine, struct spokei_consumer_settings *settings,
			     const struct spoke_url *provided)
{
	struct spokei_key_values values;

	/* Cannot fail: the options were accepted by new(), and a loaded file is valid. */
	if (read_wide(engine, settings, provided, span_of(settings->service), &values))
		return;
	mark_tables(settings->policy, settings->balancer, &values);
	spokei_keys_renew(&settings->in_force, &values);
	fill(settings);
}

/* --- consumers */

/* Returns the registry: the option's, or the file's if the URL names no address. */
static const char *find_registry(const struct spoke_consumer_options *options,
				 const struct spokei_consumer_settings *settings)
{
	if (options->registry && *options->registry == '\0')
		return "";
	if (options->registry == NULL && strcmp(settings->url.scheme, NO_PLACE) != 0)
		return NULL;
	return settings->in_force.text[SPOKEI_KEY_REGISTRY_URL];
}

/* Returns the log2 of a size, rounded up. */
static uint8_t bits_of(uint64_t size)
{
	uint8_t bits = 0;

	while (UINT64_C(1) << bits < size)
		bits++;
	return bits;
}

static void fill_consumer(const struct spoke_consumer_options *options,
			  struct spokei_consumer_settings *ret)
{
	const struct spokei_key_values *values = &ret->in_force;

	ret->changed = options->changed;
	ret->changed_arg = options->changed_arg;
	ret->settled = options->settled;
	ret->settled_arg = options->settled_arg;
	spokei_link_limits_init(&ret->limits);
	spokei_link_limits_frame(&ret->limits, (size_t)values->of[SPOKEI_KEY_FRAME_MAX]);
	spokei_link_limits_values(&ret->limits, spokei_keys_u32(values, SPOKEI_KEY_VALUES_MAX));
	ret->limits.ring_bits = bits_of(values->of[SPOKEI_KEY_SHM_RING]);
	ret->directory = (struct spokei_directory_settings){
		.service = ret->service,
		.version = spokei_keys_text(values, SPOKEI_KEY_VERSION),
		.group = spokei_keys_text(values, SPOKEI_KEY_GROUP),
		.protects = values->of[SPOKEI_KEY_REGISTRY_PROTECT] != 0,
	};
	ret->keeper = (struct spokei_keeper_options){
		.registry = find_registry(options, ret),
		.kind = options->registry_kind,
		.retry_ns = values->of[SPOKEI_KEY_REGISTRY_RETRY_PERIOD],
		.retries_max = spokei_keys_u32(values, SPOKEI_KEY_REGISTRY_RETRY_TIMES),
		.cache = values->text[SPOKEI_KEY_REGISTRY_CACHE],
	};
	fill(ret);
}

static const char *find_text(const struct spokei_consumer_settings *settings,
			     struct spoke_span service, enum spokei_key key)
{
	const char *text = spoke_url_get(&settings->url, spokei_keys_name(key));

	if (text == NULL || *text == '\0')
		text = spokei_config_text(settings->file.config, SPOKEI_IN_SERVICE, service, key);
	return text ? text : "";
}

void spokei_settings_which(const struct spokei_consumer_settings *settings,
			   struct spoke_span service, const char **ret_version,
			   const char **ret_group)
{
	*ret_version = find_text(settings, service, SPOKEI_KEY_VERSION);
	*ret_group = find_text(settings, service, SPOKEI_KEY_GROUP);
}

static int read_consumer(struct spoke_engine *engine, const struct spoke_consumer_options *options,
			 struct spokei_consumer_settings *ret)
{
	int error;

	ret->file.config = options->config;
	ret->policy = options->policy;
	ret->balancer = options->balancer;
	ret->service = spokei_places_service(&ret->url);
	error = read_wide(engine, ret, NULL, span_of(ret->service), &ret->in_force);
	if (error == 0)
		error = spokei_keys_read_code(engine, &ret->options, SPOKEI_AT_CONSUMER, options);
	if (error == 0)
		error = spokei_tls_overrule(engine, SPOKEI_IN_CONSUMER, &ret->options,
					    options->tls);
	spokei_keys_lay(&ret->in_force, &ret->options);
	if (error)
		return error;
	if ((options->policy && options->policy->next == NULL) ||
	    (options->balancer && options->balancer->pick == NULL)) {
		spokei_event(engine, SPOKE_EINVAL, "option policy or balancer: function missing");
		return SPOKE_EINVAL;
	}
	mark_tables(ret->policy, ret->balancer, &ret->in_force);
	error = spokei_keys_own(engine->env, &ret->in_force, &ret->options);
	if (error)
		return error;
	fill_consumer(options, ret);
	error = spokei_places_check(engine, &ret->url, ret->keeper.registry != NULL);
	if (error)
		return error;
	if (ret->keeper.registry && *ret->service == '\0') {
		spokei_event(engine, SPOKE_EINVAL,
			     "URL: with a registry it must name the service, e.g. "
			     "consumer://any/demo.EchoService");
		return SPOKE_EINVAL;
	}
	return SPOKE_OK;
}

int spokei_settings_consumer(struct spoke_engine *engine,
			     const struct spoke_consumer_options *options,
			     struct spokei_consumer_settings *ret)
{
	int error;

	*ret = (struct spokei_consumer_settings){ 0 };
	error = spokei_places_url(engine, options->url, &ret->url);
	if (error)
		return error;
	error = read_consumer(engine, options, ret);
	if (error)
		spokei_settings_consumer_fini(engine->env, ret);
	return error;
}

int spokei_settings_further(struct spoke_engine *engine,
			    const struct spokei_consumer_settings *settings,
			    const struct spoke_url *url)
{
	const char *service = spokei_places_service(url);
	struct spokei_key_values values;
	struct spokei_key_values first;
	int error;

	spokei_keys_preset(&values);
	spokei_keys_preset(&first);
	error = spokei_keys_read(engine, url, &values);
	if (error == 0)
		error = spokei_keys_read(engine, &settings->url, &first);
	for (unsigned i = 0; i < SPOKEI_KEYS && error == 0; i++) {
		if (!values.said[i] || values.of[i] == first.of[i])
			continue;
		spokei_event(engine, SPOKE_EINVAL,
			     "URL: %s applies to the whole consumer; set it in the first URL",
			     spokei_keys_name((enum spokei_key)i));
		error = SPOKE_EINVAL;
	}
	if (error == 0 && *service && strcmp(service, settings->service) != 0) {
		spokei_event(engine, SPOKE_EINVAL,
			     "URL: names another service than the first URL; make another consumer "
			     "for it");
		error = SPOKE_EINVAL;
	}
	return error;
}

void spokei_settings_consumer_fini(const struct spoke_env *env,
				   struct spokei_consumer_settings *settings)
{
	spokei_config_leave(&settings->file);
	spokei_keys_disown(env, &settings->in_force);
	spoke_url_fini(&settings->ruled);
	spoke_url_fini(&settings->url);
}
