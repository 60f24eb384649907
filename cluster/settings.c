/* SPDX-License-Identifier: Apache-2.0 */
/* What consumers, methods and providers are told, as numbers and structs. */
#include "cluster/settings.h"

#include "cluster/catalog.h"
#include "core/option.h"

#define MUTE_INTERVALS 4u /* of silence before a peer's first byte */
#define HEARTBEAT_NS UINT64_C(60000000000)
#define PAUSE_CAP_NS UINT64_C(60000000000) /* of growing ones */
#define HEARTBEAT_MIN_NS UINT64_C(10000000)

static const char *first_text(const char *first, const char *second, const char *third)
{
	if (first && *first)
		return first;
	if (second && *second)
		return second;
	return third;
}

/* An interval: between two times, or none at all. */
static int overrule_interval(struct spoke_engine *engine, struct spokei_key_values *values,
			     enum spokei_key key, uint64_t option)
{
	uint64_t *value = &values->of[key];
	char text[32];
	int error = SPOKE_OK;

	if (option == SPOKE_OFF)
		*value = SPOKEI_IDLE_OFF;
	else
		error = spokei_keys_overrule(engine, values, key, option);
	if (error == SPOKE_OK && *value != SPOKEI_IDLE_OFF && *value < HEARTBEAT_MIN_NS) {
		spokei_option_print(SPOKEI_OPTION_DURATION, *value, text, sizeof(text));
		spokei_event(engine, SPOKE_ERANGE,
			     option ? "option %s=%s: 10ms at least, or SPOKE_OFF"
				    : "URL: %s=%s: 10ms at least, or 0 for none",
			     spokei_keys_name(key), text);
		error = SPOKE_ERANGE;
	}
	return error;
}

/* --- calls */

/* SPOKE_NONE is a number that says none. */
static int overrule_retries(struct spoke_engine *engine, struct spokei_key_values *values,
			    uint32_t option)
{
	if (option != SPOKE_NONE)
		return spokei_keys_overrule(engine, values, SPOKEI_KEY_RETRIES, option);
	values->of[SPOKEI_KEY_RETRIES] = 0;
	values->said[SPOKEI_KEY_RETRIES] = true;
	return SPOKE_OK;
}

static const struct spoke_policy *policy_at(uint64_t index)
{
	return spokei_catalog_policy(spokei_catalog_policy_name((unsigned)index));
}

static const struct spoke_balancer *balancer_at(uint64_t index)
{
	const char *name = spokei_catalog_balancer_name((unsigned)index);

	return name ? spokei_catalog_balancer(name) : NULL;
}

static void fill_calls(const struct spokei_key_values *values, struct spokei_call_settings *ret)
{
	const uint64_t *of = values->of;

	*ret = (struct spokei_call_settings){
		.policy = policy_at(of[SPOKEI_KEY_CLUSTER]),
		.balancer = balancer_at(of[SPOKEI_KEY_LOADBALANCE]),
		.timeout_ns = of[SPOKEI_KEY_TIMEOUT],
		.period_ns = of[SPOKEI_KEY_RETRY_PERIOD],
		.deadline_ns = of[SPOKEI_KEY_RETRY_DEADLINE],
		.retries = values->said[SPOKEI_KEY_RETRIES] ? (uint32_t)of[SPOKEI_KEY_RETRIES]
							    : SPOKEI_RETRIES_OF_POLICY,
		.forks = (uint32_t)of[SPOKEI_KEY_FORKS],
		.fail_percent = (uint32_t)of[SPOKEI_KEY_FAIL_PERCENT],
		.actives = (uint32_t)of[SPOKEI_KEY_ACTIVES],
		.per_second = (uint32_t)of[SPOKEI_KEY_TPS],
		.growing = of[SPOKEI_KEY_RETRY_BACKOFF] != 0,
		.wait_ready = of[SPOKEI_KEY_WAIT_READY] != 0,
		.sticky = of[SPOKEI_KEY_STICKY] != 0,
		.idempotent = of[SPOKEI_KEY_IDEMPOTENT] != 0,
	};
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
		/* Growing pauses may last a fifth longer. */
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

/* What is said in code for all methods yields to what a URL says of this one. */
static void choose_tables(const struct spokei_consumer_settings *settings,
			  const struct spokei_key_values *values, struct spokei_call_settings *ret)
{
	if (settings->policy && !values->said[SPOKEI_KEY_CLUSTER])
		ret->policy = settings->policy;
	if (settings->balancer && !values->said[SPOKEI_KEY_LOADBALANCE])
		ret->balancer = settings->balancer;
}

int spokei_settings_method(struct spoke_engine *engine,
			   const struct spokei_consumer_settings *settings,
			   const struct spoke_url *provided, const char *name,
			   const struct spoke_method_options *options,
			   struct spokei_call_settings *ret)
{
	struct spokei_key_values values = settings->values;
	int error;

	spokei_keys_read_provided(provided, &values);
	values.said[SPOKEI_KEY_CLUSTER] = false;
	values.said[SPOKEI_KEY_LOADBALANCE] = false;
	spokei_keys_read_method(provided, name, &values);
	spokei_keys_read_method(&settings->url, name, &values);
	error = spokei_keys_overrule(engine, &values, SPOKEI_KEY_TIMEOUT, options->timeout_ns);
	if (error == 0)
		error = overrule_retries(engine, &values, options->retries);
	if (error == 0)
		error = spokei_keys_overrule(engine, &values, SPOKEI_KEY_ACTIVES, options->actives);
	if (error == 0)
		error = spokei_keys_overrule(engine, &values, SPOKEI_KEY_TPS, options->per_second);
	if (error)
		return error;
	fill_calls(&values, ret);
	choose_tables(settings, &values, ret);
	if (options->policy)
		ret->policy = options->policy;
	if (options->balancer)
		ret->balancer = options->balancer;
	ret->idempotent |= options->idempotent;
	return SPOKE_OK;
}

void spokei_settings_inherit(struct spokei_consumer_settings *settings,
			     const struct spoke_url *provided)
{
	struct spokei_key_values values = settings->values;

	spokei_keys_read_provided(provided, &values);
	fill_calls(&values, &settings->calls);
	values.said[SPOKEI_KEY_CLUSTER] = false;
	values.said[SPOKEI_KEY_LOADBALANCE] = false;
	choose_tables(settings, &values, &settings->calls);
}

/* --- consumers */

static int overrule_consumer(struct spoke_engine *engine,
			     const struct spoke_consumer_options *options,
			     struct spokei_key_values *values)
{
	const struct {
		enum spokei_key key;
		uint64_t option;
	} rows[] = {
		{ SPOKEI_KEY_TIMEOUT, options->timeout_ns },
		{ SPOKEI_KEY_PENDING_MAX, options->pending_max },
		{ SPOKEI_KEY_FRAME_MAX, options->frame_max },
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
	int error = overrule_interval(engine, values, SPOKEI_KEY_HEARTBEAT, options->heartbeat_ns);

	if (error == 0)
		error = overrule_interval(engine, values, SPOKEI_KEY_IDLE_CLOSE,
					  options->idle_close_ns);
	if (error == 0)
		error = overrule_retries(engine, values, options->retries);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && error == 0; i++)
		error = spokei_keys_overrule(engine, values, rows[i].key, rows[i].option);
	if (error)
		return error;
	if (options->failback_overflow > SPOKE_OVERFLOW_DROP_OLDEST) {
		spokei_event(engine, SPOKE_EINVAL,
			     "option failback.overflow=%d: no value of enum spoke_overflow",
			     (int)options->failback_overflow);
		return SPOKE_EINVAL;
	}
	if (options->failback_overflow)
		values->of[SPOKEI_KEY_FAILBACK_OVERFLOW] = options->failback_overflow -
							   SPOKE_OVERFLOW_REJECT;
	return SPOKE_OK;
}

static void fill_consumer(const struct spoke_consumer_options *options,
			  struct spokei_consumer_settings *ret)
{
	static const struct spoke_url nothing;
	const uint64_t *of = ret->values.of;

	ret->policy = options->policy;
	ret->balancer = options->balancer;
	spokei_settings_inherit(ret, &nothing);
	ret->changed = options->changed;
	ret->changed_arg = options->changed_arg;
	ret->settled = options->settled;
	ret->settled_arg = options->settled_arg;
	ret->tasks_max = (uint32_t)of[SPOKEI_KEY_FAILBACK_TASKS];
	ret->bytes_max = (size_t)of[SPOKEI_KEY_FAILBACK_BYTES];
	ret->drops_oldest = of[SPOKEI_KEY_FAILBACK_OVERFLOW] != 0;
	spokei_link_limits_init(&ret->limits);
	ret->limits.heartbeat_ns = of[SPOKEI_KEY_HEARTBEAT];
	ret->limits.idle_close_ns = of[SPOKEI_KEY_IDLE_CLOSE];
	ret->limits.pending_max = (uint32_t)of[SPOKEI_KEY_PENDING_MAX];
	ret->limits.wire.frame_max = (size_t)of[SPOKEI_KEY_FRAME_MAX];
	ret->directory = (struct spokei_directory_settings){
		.service = ret->service,
		.version = ret->version,
		.group = ret->group,
		.connections = (uint32_t)of[SPOKEI_KEY_CONNECTIONS],
		.actives_max = (uint32_t)of[SPOKEI_KEY_ENDPOINT_ACTIVES],
		.eject_failures = (uint32_t)of[SPOKEI_KEY_EJECT_FAILURES],
		.eject_ns = of[SPOKEI_KEY_EJECT_TIME],
		.lazy = of[SPOKEI_KEY_LAZY] != 0,
		.protects = of[SPOKEI_KEY_REGISTRY_PROTECT] != 0,
	};
	ret->keeper = (struct spokei_keeper_options){
		.registry = options->registry,
		.kind = options->registry_kind,
		.retry_ns = of[SPOKEI_KEY_REGISTRY_RETRY_PERIOD],
		.retries_max = (uint32_t)of[SPOKEI_KEY_REGISTRY_RETRY_TIMES],
		.cache = first_text(options->registry_cache,
				    spoke_url_get(&ret->url, "registry.cache"), NULL),
		.takes_empty = of[SPOKEI_KEY_REGISTRY_PROTECT] == 0,
	};
}

static int read_consumer(struct spoke_engine *engine, const struct spoke_consumer_options *options,
			 struct spokei_consumer_settings *ret)
{
	int error = spokei_keys_read(engine, &ret->url, &ret->values);

	if (error == 0)
		error = overrule_consumer(engine, options, &ret->values);
	if (error)
		return error;
	ret->service = spokei_settings_service(&ret->url);
	ret->version = first_text(spoke_url_get(&ret->url, "version"), NULL, "");
	ret->group = first_text(spoke_url_get(&ret->url, "group"), NULL, "");
	if ((options->policy && options->policy->next == NULL) ||
	    (options->balancer && options->balancer->pick == NULL)) {
		spokei_event(engine, SPOKE_EINVAL, "option policy or balancer: without functions");
		return SPOKE_EINVAL;
	}
	fill_consumer(options, ret);
	if (options->registry && *ret->service == '\0') {
		spokei_event(engine, SPOKE_EINVAL,
			     "URL: with a registry it names the service, as "
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
	error = spokei_settings_url(engine, options->url, &ret->url);
	if (error)
		return error;
	error = read_consumer(engine, options, ret);
	if (error)
		spokei_settings_consumer_fini(ret);
	return error;
}

int spokei_settings_further(struct spoke_engine *engine,
			    const struct spokei_consumer_settings *settings,
			    const struct spoke_url *url)
{
	const char *service = spokei_settings_service(url);
	struct spokei_key_values values;
	struct spokei_key_values first;
	int error = spokei_keys_read(engine, url, &values);

	if (error == 0)
		error = spokei_keys_read(engine, &settings->url, &first);
	for (unsigned i = 0; i < SPOKEI_KEYS && error == 0; i++) {
		if (!values.said[i] || values.of[i] == first.of[i])
			continue;
		spokei_event(engine, SPOKE_EINVAL,
			     "URL: %s counts for the whole consumer; say it in the first URL",
			     spokei_keys_name((enum spokei_key)i));
		error = SPOKE_EINVAL;
	}
	if (error == 0 && *service && strcmp(service, settings->service) != 0) {
		spokei_event(engine, SPOKE_EINVAL,
			     "URL: another service than the first URL's; make a consumer for it");
		error = SPOKE_EINVAL;
	}
	return error;
}

void spokei_settings_consumer_fini(struct spokei_consumer_settings *settings)
{
	spoke_url_fini(&settings->url);
}

/* --- providers */

int spokei_settings_provider(struct spoke_engine *engine,
			     const struct spoke_provider_options *options,
			     struct spokei_link_limits *ret)
{
	struct spokei_key_values values = { .of[SPOKEI_KEY_HEARTBEAT] = HEARTBEAT_NS };
	uint64_t *heartbeat_ns = &values.of[SPOKEI_KEY_HEARTBEAT];
	int error = spokei_keys_overrule(engine, &values, SPOKEI_KEY_FRAME_MAX, options->frame_max);

	if (error == 0)
		error = overrule_interval(engine, &values, SPOKEI_KEY_HEARTBEAT,
					  options->heartbeat_ns);
	if (error == 0)
		error = overrule_interval(engine, &values, SPOKEI_KEY_IDLE_CLOSE,
					  options->idle_close_ns);
	if (error)
		return error;
	spokei_link_limits_init(ret);
	ret->heartbeat_ns = *heartbeat_ns;
	ret->idle_close_ns = values.of[SPOKEI_KEY_IDLE_CLOSE];
	ret->mute_ns = MUTE_INTERVALS *
		       (*heartbeat_ns == SPOKEI_IDLE_OFF ? HEARTBEAT_NS : *heartbeat_ns);
	if (options->frame_max)
		ret->wire.frame_max = options->frame_max;
	if (options->requests_max)
		ret->serving_max = options->requests_max;
	if (options->requests_per_connection_max)
		ret->serving_per_conn_max = options->requests_per_connection_max;
	if (options->queued_max)
		ret->queued_max = options->queued_max;
	return SPOKE_OK;
}
