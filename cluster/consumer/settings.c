/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the settings of a consumer and of its methods from defaults, URLs, the file and options. */
#include "cluster/consumer/settings.h"
#include "core/base/env.h"

#include "cluster/config/places.h"
#include "cluster/config/texts.h"
#include "core/engine/engine.h"

#include <spoke/consumer.h>

#define NO_PLACE "consumer" /* scheme of a URL that names a service without an address */

static const char *first_text(const char *first, const char *second, const char *third)
{
	if (first && *first)
		return first;
	if (second && *second)
		return second;
	return third;
}

/* --- sources */

static int read_options(struct spoke_engine *engine, const struct spoke_consumer_options *options,
			struct spokei_key_values *values)
{
	const struct {
		enum spokei_key key;
		uint64_t option;
	} rows[] = {
		{ SPOKEI_KEY_TIMEOUT, options->timeout_ns },
		{ SPOKEI_KEY_PENDING_MAX, options->pending_max },
		{ SPOKEI_KEY_FRAME_MAX, options->frame_max },
		{ SPOKEI_KEY_VALUES_MAX, options->values_max },
		{ SPOKEI_KEY_VALUES_CYCLES, options->values_cycles },
		{ SPOKEI_KEY_RETRY_PERIOD, options->retry_period_ns },
		{ SPOKEI_KEY_RETRY_DEADLINE, options->retry_deadline_ns },
		{ SPOKEI_KEY_FAILBACK_TASKS, options->failback_tasks_max },
		{ SPOKEI_KEY_FAILBACK_BYTES, options->failback_bytes_max },
		{ SPOKEI_KEY_FORKS, options->forks },
		{ SPOKEI_KEY_ENDPOINT_ACTIVES, options->endpoint_actives_max },
		{ SPOKEI_KEY_CONNECTIONS, options->connections },
		{ SPOKEI_KEY_WAIT_READY, options->wait_ready },
		{ SPOKEI_KEY_LAZY, options->lazy },
		{ SPOKEI_KEY_STICKY, options->sticky },
	};
	int error = spokei_keys_overrule_interval(engine, values, SPOKEI_KEY_HEARTBEAT,
						  options->heartbeat_ns);

	spokei_keys_set(values, SPOKEI_KEY_TOKEN_PLAIN, options->token_plain);
	if (error == 0)
		error = spokei_keys_overrule_interval(engine, values, SPOKEI_KEY_IDLE_CLOSE,
						      options->idle_close_ns);
	if (error == 0)
		error = spokei_keys_overrule_interval(engine, values, SPOKEI_KEY_HEDGE_AFTER,
						      options->hedge_after_ns);
	if (error == 0)
		error = spokei_keys_overrule_retries(engine, values, options->retries);
	if (error == 0)
		error = spokei_keys_overrule_serialization(engine, values, options->serialization);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && error == 0; i++)
		error = spokei_keys_overrule(engine, values, rows[i].key, rows[i].option);
	if (error)
		return error;
	if (options->failback_overflow > SPOKE_OVERFLOW_DROP_OLDEST) {
		spokei_event(
			engine, SPOKE_EINVAL,
			"option failback.overflow=%d: no value of enum spoke_consumer_overflow",
			(int)options->failback_overflow);
		return SPOKE_EINVAL;
	}
	if (options->failback_overflow == SPOKE_OVERFLOW_REJECT)
		spokei_keys_set_none(values, SPOKEI_KEY_FAILBACK_OVERFLOW);
	else if (options->failback_overflow)
		spokei_keys_set(values, SPOKEI_KEY_FAILBACK_OVERFLOW,
				options->failback_overflow - SPOKE_OVERFLOW_REJECT);
	return SPOKE_OK;
}

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

static int overrule_method(struct spoke_engine *engine, const struct spoke_method_options *options,
			   struct spokei_key_values *values)
{
	int error = spokei_keys_overrule(engine, values, SPOKEI_KEY_TIMEOUT, options->timeout_ns);

	if (error == 0)
		error = spokei_keys_overrule_retries(engine, values, options->retries);
	if (error == 0)
		error = spokei_keys_overrule_serialization(engine, values, options->serialization);
	if (error == 0)
		error = spokei_keys_overrule_interval(engine, values, SPOKEI_KEY_HEDGE_AFTER,
						      options->hedge_after_ns);
	if (error == 0)
		error = spokei_keys_overrule_interval(engine, values, SPOKEI_KEY_SLOW_AFTER,
						      options->slow_after_ns);
	if (error == 0)
		error = spokei_keys_overrule(engine, values, SPOKEI_KEY_ACTIVES, options->actives);
	if (error == 0)
		error = spokei_keys_overrule(engine, values, SPOKEI_KEY_TPS, options->per_second);
	return error;
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
	error = overrule_method(engine, options, ret);
	if (error)
		return error;
	spokei_keys_read_method(&settings->ruled, name->method, SPOKEI_FROM_RULE, ret);
	mark_tables(options->policy, options->balancer, ret);
	if (options->idempotent)
		spokei_keys_set(ret, SPOKEI_KEY_IDEMPOTENT, 1);
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

static void fill_inherited(struct spokei_consumer_settings *settings,
			   struct spokei_key_values *values)
{
	spokei_call_settings_fill(values, &settings->calls);
	values->said[SPOKEI_KEY_CLUSTER] = false;
	values->said[SPOKEI_KEY_LOADBALANCE] = false;
	choose_tables(settings, values, &settings->calls);
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
	fill_inherited(settings, &values);
}

/* --- consumers */

/* Applies values that a reload may change. */
static void fill_live(const struct spokei_key_values *values, struct spokei_consumer_settings *ret)
{
	const uint64_t *of = values->of;

	ret->tasks_max = (uint32_t)of[SPOKEI_KEY_FAILBACK_TASKS];
	ret->bytes_max = (size_t)of[SPOKEI_KEY_FAILBACK_BYTES];
	ret->drops_oldest = of[SPOKEI_KEY_FAILBACK_OVERFLOW] != 0;
	ret->limits.heartbeat_ns = of[SPOKEI_KEY_HEARTBEAT];
	ret->limits.idle_close_ns = of[SPOKEI_KEY_IDLE_CLOSE];
	ret->token_plain = of[SPOKEI_KEY_TOKEN_PLAIN] != 0;
	ret->limits.pending_max = (uint32_t)of[SPOKEI_KEY_PENDING_MAX];
	ret->directory.actives_max = (uint32_t)of[SPOKEI_KEY_ENDPOINT_ACTIVES];
	ret->directory.eject_failures = (uint32_t)of[SPOKEI_KEY_EJECT_FAILURES];
	ret->directory.eject_ns = of[SPOKEI_KEY_EJECT_TIME];
}

void spokei_settings_renew(struct spoke_engine *engine, struct spokei_consumer_settings *settings)
{
	struct spokei_key_values values;

	if (read_wide(engine, settings, NULL, span_of(settings->service), &values) == SPOKE_OK)
		fill_live(&values, settings);
}

/* Returns the registry: the option's, or the file's if the URL names no address. */
static const char *find_registry(const struct spoke_consumer_options *options,
				 const struct spokei_consumer_settings *settings)
{
	if (options->registry || strcmp(settings->url.scheme, NO_PLACE) != 0)
		return options->registry;
	return spokei_config_text(settings->file.config, SPOKEI_IN_REGISTRY, span_of(""),
				  SPOKEI_KEY_REGISTRY_URL);
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
			  struct spokei_key_values *values, struct spokei_consumer_settings *ret)
{
	const uint64_t *of = values->of;

	ret->changed = options->changed;
	ret->changed_arg = options->changed_arg;
	ret->settled = options->settled;
	ret->settled_arg = options->settled_arg;
	spokei_link_limits_init(&ret->limits);
	spokei_link_limits_frame(&ret->limits, (size_t)of[SPOKEI_KEY_FRAME_MAX]);
	spokei_link_limits_values(&ret->limits, (uint32_t)of[SPOKEI_KEY_VALUES_MAX]);
	ret->limits.ring_bits = bits_of(of[SPOKEI_KEY_SHM_RING]);
	ret->limits.wire.value.cycles = of[SPOKEI_KEY_VALUES_CYCLES] != 0;
	ret->directory = (struct spokei_directory_settings){
		.service = ret->service,
		.version = ret->version,
		.group = ret->group,
		.connections = (uint32_t)of[SPOKEI_KEY_CONNECTIONS],
		.lazy = of[SPOKEI_KEY_LAZY] != 0,
		.local_path = of[SPOKEI_KEY_LOCAL_PATH] == 0,
		.protects = of[SPOKEI_KEY_REGISTRY_PROTECT] != 0,
	};
	ret->keeper = (struct spokei_keeper_options){
		.registry = ret->registry,
		.kind = options->registry_kind,
		.retry_ns = of[SPOKEI_KEY_REGISTRY_RETRY_PERIOD],
		.retries_max = (uint32_t)of[SPOKEI_KEY_REGISTRY_RETRY_TIMES],
		.cache = ret->cache,
		.takes_empty = of[SPOKEI_KEY_REGISTRY_PROTECT] == 0,
	};
	fill_live(values, ret);
	fill_inherited(ret, values);
}

void spokei_settings_which(const struct spokei_consumer_settings *settings,
			   struct spoke_span service, const char **ret_version,
			   const char **ret_group)
{
	const struct spoke_config *config = settings->file.config;

	*ret_version = first_text(spoke_url_get(&settings->url, "version"),
				  spokei_config_text(config, SPOKEI_IN_SERVICE, service,
						     SPOKEI_KEY_VERSION),
				  "");
	*ret_group = first_text(spoke_url_get(&settings->url, "group"),
				spokei_config_text(config, SPOKEI_IN_SERVICE, service,
						   SPOKEI_KEY_GROUP),
				"");
}

static const char *find_application(const struct spoke_consumer_options *options,
				    const struct spokei_consumer_settings *settings)
{
	return first_text(options->application, spoke_url_get(&settings->url, "application"),
			  spokei_config_text(settings->file.config, SPOKEI_IN_CONSUMER, span_of(""),
					     SPOKEI_KEY_APPLICATION));
}

static const char *find_cache(const struct spoke_consumer_options *options,
			      const struct spokei_consumer_settings *settings)
{
	return first_text(options->registry_cache, spoke_url_get(&settings->url, "registry.cache"),
			  spokei_config_text(settings->file.config, SPOKEI_IN_REGISTRY, span_of(""),
					     SPOKEI_KEY_REGISTRY_CACHE));
}

/* Copies the texts, because the file may be reloaded. */
static int copy_texts(struct spoke_engine *engine, const struct spoke_consumer_options *options,
		      struct spokei_consumer_settings *ret)
{
	const char *texts[] = { "", "", first_text(find_application(options, ret), "", ""),
				find_registry(options, ret), find_cache(options, ret) };
	const char **copies[] = { &ret->version, &ret->group, &ret->application, &ret->registry,
				  &ret->cache };

	spokei_settings_which(ret, span_of(ret->service), &texts[0], &texts[1]);
	return spokei_texts_copy(engine->env, texts, copies, sizeof(texts) / sizeof(texts[0]),
				 &ret->texts, &ret->texts_size);
}

/* Notes which texts come from options and from the URL. */
static void mark_texts(const struct spoke_consumer_options *options, const struct spoke_url *url,
		       struct spokei_key_values *values)
{
	const struct {
		enum spokei_key key;
		const char *option;
	} rows[] = {
		{ SPOKEI_KEY_REGISTRY_URL, options->registry },
		{ SPOKEI_KEY_REGISTRY_CACHE, options->registry_cache },
		{ SPOKEI_KEY_VERSION, NULL },
		{ SPOKEI_KEY_GROUP, NULL },
		{ SPOKEI_KEY_APPLICATION, options->application },
		{ SPOKEI_KEY_TOKEN, options->token },
		{ SPOKEI_KEY_TOKEN_FILE, options->token_file },
		{ SPOKEI_KEY_ACCESS_ID, options->access_id },
		{ SPOKEI_KEY_ACCESS_SECRET_FILE, options->access_secret_file },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *of_url = spoke_url_get(url, spokei_keys_name(rows[i].key));

		if (rows[i].option && *rows[i].option)
			spokei_keys_put(values, rows[i].key, 0, SPOKEI_FROM_CODE, 0);
		else if (of_url && *of_url)
			spokei_keys_put(values, rows[i].key, 0, SPOKEI_FROM_URL, 0);
	}
}

static int read_consumer(struct spoke_engine *engine, const struct spoke_consumer_options *options,
			 struct spokei_consumer_settings *ret)
{
	struct spokei_key_values values;
	int error;

	ret->file.config = options->config;
	ret->policy = options->policy;
	ret->balancer = options->balancer;
	ret->service = spokei_places_service(&ret->url);
	error = read_wide(engine, ret, NULL, span_of(ret->service), &values);
	if (error == 0)
		error = read_options(engine, options, &ret->options);
	spokei_keys_lay(&values, &ret->options);
	if (error == 0)
		error = copy_texts(engine, options, ret);
	if (error)
		return error;
	if ((options->policy && options->policy->next == NULL) ||
	    (options->balancer && options->balancer->pick == NULL)) {
		spokei_event(engine, SPOKE_EINVAL, "option policy or balancer: function missing");
		return SPOKE_EINVAL;
	}
	mark_texts(options, &ret->url, &values);
	mark_tables(ret->policy, ret->balancer, &values);
	ret->in_force = values;
	fill_consumer(options, &values, ret);
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
	spokei_free(env, settings->texts, 1, settings->texts_size);
	settings->texts = NULL;
	spoke_url_fini(&settings->ruled);
	spoke_url_fini(&settings->url);
}
