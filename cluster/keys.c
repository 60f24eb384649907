/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/keys.h"

#include "cluster/catalog.h"
#include "core/option.h"

#include <string.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)
#define FRAME_MAX 8388608u
#define FRAME_MIN 1024u

/* clang-format off */
static const struct spokei_option keys[SPOKEI_KEYS] = {
	[SPOKEI_KEY_TIMEOUT] = { "timeout", SPOKEI_OPTION_DURATION,
		NS_PER_MS, SPOKEI_TIMEOUT_MAX_NS, SPOKEI_TIMEOUT_NS,
		"how long an attempt may take, all in all" },
	[SPOKEI_KEY_CLUSTER] = { "cluster", SPOKEI_OPTION_COUNT, 0, 0, 0,
		"what becomes of a call when an attempt fails" },
	[SPOKEI_KEY_LOADBALANCE] = { "loadbalance", SPOKEI_OPTION_COUNT, 0, 0, 0,
		"which of several providers takes a call" },
	[SPOKEI_KEY_RETRIES] = { "retries", SPOKEI_OPTION_COUNT,
		0, SPOKEI_RETRIES_MAX, 0, "attempts beside the first" },
	[SPOKEI_KEY_RETRY_PERIOD] = { "retry.period", SPOKEI_OPTION_DURATION,
		SPOKEI_PERIOD_MIN_NS, SPOKEI_TIMEOUT_MAX_NS, 5 * NS_PER_S,
		"pause before a failback call is tried again" },
	[SPOKEI_KEY_RETRY_BACKOFF] = { "retry.backoff", SPOKEI_OPTION_COUNT, 0, 1, 0,
		"whether these pauses grow" },
	[SPOKEI_KEY_RETRY_DEADLINE] = { "retry.deadline", SPOKEI_OPTION_DURATION,
		SPOKEI_PERIOD_MIN_NS, SPOKEI_TIMEOUT_MAX_NS, 0,
		"how long a failback call is tried, since it was made" },
	[SPOKEI_KEY_FORKS] = { "forks", SPOKEI_OPTION_COUNT, 1, 1024, 2,
		"providers that a forking call asks at a time" },
	[SPOKEI_KEY_FAIL_PERCENT] = { "broadcast.fail.percent", SPOKEI_OPTION_COUNT, 1, 100, 100,
		"share of failures at which a broadcast ends" },
	[SPOKEI_KEY_WAIT_READY] = { "wait.ready", SPOKEI_OPTION_BOOL, 0, 1, 0,
		"whether calls wait for a provider" },
	[SPOKEI_KEY_STICKY] = { "sticky", SPOKEI_OPTION_BOOL, 0, 1, 0,
		"whether calls stay with one provider" },
	[SPOKEI_KEY_IDEMPOTENT] = { "idempotent", SPOKEI_OPTION_BOOL, 0, 1, 0,
		"whether a request may be run more than once" },
	[SPOKEI_KEY_ACTIVES] = { "actives", SPOKEI_OPTION_COUNT, 0, UINT32_MAX / 2, 0,
		"calls of a method under way at a time; 0: no limit" },
	[SPOKEI_KEY_TPS] = { "tps", SPOKEI_OPTION_COUNT, 0, UINT32_MAX / 2, 0,
		"calls of a method a second; 0: no limit" },
	[SPOKEI_KEY_HEARTBEAT] = { "heartbeat", SPOKEI_OPTION_DURATION,
		0, SPOKEI_TIMEOUT_MAX_NS, 60 * NS_PER_S,
		"silence after which a peer is asked whether it lives" },
	[SPOKEI_KEY_IDLE_CLOSE] = { "idle.close", SPOKEI_OPTION_DURATION,
		0, SPOKEI_TIMEOUT_MAX_NS, 0,
		"silence that ends a connection of a wire without heartbeats" },
	[SPOKEI_KEY_PENDING_MAX] = { "pending.max", SPOKEI_OPTION_COUNT, 1, UINT32_MAX / 2, 65536,
		"calls that may wait for an answer" },
	[SPOKEI_KEY_FRAME_MAX] = { "frame.max", SPOKEI_OPTION_SIZE, FRAME_MIN, FRAME_MAX, FRAME_MAX,
		"bytes that a frame may have" },
	[SPOKEI_KEY_FAILBACK_TASKS] = { "failback.tasks", SPOKEI_OPTION_COUNT, 1, 1000000, 100,
		"failback calls that may wait" },
	[SPOKEI_KEY_FAILBACK_BYTES] = { "failback.bytes", SPOKEI_OPTION_SIZE,
		1024, UINT32_MAX, 1048576, "bytes that they may keep" },
	[SPOKEI_KEY_FAILBACK_OVERFLOW] = { "failback.overflow", SPOKEI_OPTION_COUNT, 0, 1, 0,
		"which failback call gives way when there are too many" },
	[SPOKEI_KEY_ENDPOINT_ACTIVES] = { "endpoint.actives", SPOKEI_OPTION_COUNT,
		0, UINT32_MAX / 2, 0, "calls under way at one provider; 0: no limit" },
	[SPOKEI_KEY_CONNECTIONS] = { "connections", SPOKEI_OPTION_COUNT, 1, 16, 1,
		"connections to each provider" },
	[SPOKEI_KEY_LAZY] = { "lazy", SPOKEI_OPTION_BOOL, 0, 1, 0,
		"whether the first call connects" },
	[SPOKEI_KEY_EJECT_FAILURES] = { "eject.failures", SPOKEI_OPTION_COUNT, 0, 1000000, 5,
		"failures in a row after which a provider is put aside; 0: it is not" },
	[SPOKEI_KEY_EJECT_TIME] = { "eject.time", SPOKEI_OPTION_DURATION,
		SPOKEI_PERIOD_MIN_NS, 3600 * NS_PER_S, 10 * NS_PER_S, "for how long, at first" },
	[SPOKEI_KEY_REGISTRY_RETRY_PERIOD] = { "registry.retry.period", SPOKEI_OPTION_DURATION,
		SPOKEI_PERIOD_MIN_NS, SPOKEI_TIMEOUT_MAX_NS, 5 * NS_PER_S,
		"pause before a registry is asked again" },
	[SPOKEI_KEY_REGISTRY_RETRY_TIMES] = { "registry.retry.times", SPOKEI_OPTION_COUNT,
		0, 1000000, 0, "how often in a row; 0: no limit" },
	[SPOKEI_KEY_REGISTRY_PROTECT] = { "registry.protect", SPOKEI_OPTION_BOOL, 0, 1, 1,
		"whether an empty list leaves the providers as they are" },
};
/* clang-format on */

static const char *backoff_name(unsigned index)
{
	static const char *const names[] = { "fixed", "exponential", NULL };

	return index < 3 ? names[index] : NULL;
}

static const char *overflow_name(unsigned index)
{
	static const char *const names[] = { "reject", "drop-oldest", NULL };

	return index < 3 ? names[index] : NULL;
}

/* Of keys whose values are names. */
static const char *(*const choices[SPOKEI_KEYS])(unsigned index) = {
	[SPOKEI_KEY_CLUSTER] = spokei_catalog_policy_name,
	[SPOKEI_KEY_LOADBALANCE] = spokei_catalog_balancer_name,
	[SPOKEI_KEY_RETRY_BACKOFF] = backoff_name,
	[SPOKEI_KEY_FAILBACK_OVERFLOW] = overflow_name,
};

/* Keys that are texts and read elsewhere, and those of Dubbo's that say nothing to spoke. */
static const char *const other_keys[] = {
	"admin",
	"interface",
	"version",
	"group",
	"weight",
	"warmup",
	"side",
	"application",
	"dubbo",
	"release",
	"pid",
	"timestamp",
	"methods",
	"anyhost",
	"category",
	"serialization",
	"generic",
	"dynamic",
	"deprecated",
	"revision",
	"protocol",
	"prefer.serialization",
	"registry.cache",
	"bean.name",
	"check",
	"logger",
	"qos.enable",
	"service.name",
	"token",
};

const char *spokei_keys_name(enum spokei_key key)
{
	return keys[key].name;
}

bool spokei_keys_is_other(const char *key)
{
	for (size_t i = 0; i < sizeof(other_keys) / sizeof(other_keys[0]); i++)
		if (strcmp(key, other_keys[i]) == 0)
			return true;
	return false;
}

/* `name` is the key as it was written, of a method too. */
static int parse(enum spokei_key key, const char *name, const char *value, uint64_t *ret, char *why,
		 size_t size)
{
	struct spokei_option option = keys[key];

	option.name = name;
	if (choices[key])
		return spokei_option_choose(name, value, choices[key], ret, why, size);
	return spokei_option_parse(&option, value, true, ret, why, size);
}

/* The key that stands behind a method's name and a dot; SPOKEI_KEYS: none does. */
static enum spokei_key key_of_method(const char *text)
{
	size_t len = strlen(text);

	for (unsigned i = 0; i < SPOKEI_KEYS_OF_METHODS; i++) {
		size_t key_len = strlen(keys[i].name);

		if (len > key_len + 1 && text[len - key_len - 1] == '.' &&
		    strcmp(text + len - key_len, keys[i].name) == 0)
			return (enum spokei_key)i;
	}
	return SPOKEI_KEYS;
}

static int read_parameter(const struct spoke_url_parameter *parameter,
			  struct spokei_key_values *values, char *why, size_t size)
{
	const struct spokei_option *found;
	enum spokei_key key;
	uint64_t unused;
	int error;

	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		if (strcmp(keys[i].name, parameter->key) != 0)
			continue;
		error = parse((enum spokei_key)i, parameter->key, parameter->value, &values->of[i],
			      why, size);
		values->said[i] = error == SPOKE_OK;
		return error;
	}
	if (spokei_keys_is_other(parameter->key))
		return SPOKE_OK;
	key = key_of_method(parameter->key);
	if (key != SPOKEI_KEYS)
		return parse(key, parameter->key, parameter->value, &unused, why, size);
	found = spokei_option_find(keys, SPOKEI_KEYS, parameter->key, why, size);
	SPOKE_ASSERT(found == NULL);
	return SPOKE_EINVAL;
}

/* A key that URLs have no default for stands for what the catalog's default is. */
static uint64_t preset_of(enum spokei_key key)
{
	const char *wanted = key == SPOKEI_KEY_CLUSTER ? "failover" : "random";

	if (key != SPOKEI_KEY_CLUSTER && key != SPOKEI_KEY_LOADBALANCE)
		return keys[key].preset;
	for (unsigned i = 0; choices[key](i); i++)
		if (strcmp(choices[key](i), wanted) == 0)
			return i;
	return 0;
}

int spokei_keys_read(struct spoke_engine *engine, const struct spoke_url *url,
		     struct spokei_key_values *ret)
{
	char why[SPOKEI_OPTION_WHY_MAX];

	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		ret->of[i] = preset_of((enum spokei_key)i);
		ret->said[i] = false;
	}
	for (unsigned i = 0; i < url->parameter_count; i++) {
		int error = read_parameter(&url->parameters[i], ret, why, sizeof(why));

		if (error) {
			spokei_event(engine, error, "URL: %s", why);
			return error;
		}
	}
	return SPOKE_OK;
}

void spokei_keys_read_method(const struct spoke_url *url, const char *method,
			     struct spokei_key_values *values)
{
	size_t len = strlen(method);
	char why[SPOKEI_OPTION_WHY_MAX];

	for (unsigned i = 0; i < url->parameter_count; i++) {
		const struct spoke_url_parameter *parameter = &url->parameters[i];
		enum spokei_key key = key_of_method(parameter->key);

		if (key == SPOKEI_KEYS || strncmp(parameter->key, method, len) != 0 ||
		    parameter->key[len] != '.' ||
		    strcmp(parameter->key + len + 1, keys[key].name) != 0)
			continue;
		if (parse(key, parameter->key, parameter->value, &values->of[key], why,
			  sizeof(why)) == SPOKE_OK)
			values->said[key] = true;
	}
}

/* How much a consumer calls is its own affair. */
static bool is_provided(unsigned key)
{
	return key < SPOKEI_KEYS_OF_METHODS && key != SPOKEI_KEY_ACTIVES && key != SPOKEI_KEY_TPS &&
	       key != SPOKEI_KEY_WAIT_READY;
}

void spokei_keys_read_provided(const struct spoke_url *url, struct spokei_key_values *values)
{
	char why[SPOKEI_OPTION_WHY_MAX];

	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		const char *value = is_provided(i) ? spoke_url_get(url, keys[i].name) : NULL;

		if (value && !values->said[i] &&
		    parse((enum spokei_key)i, keys[i].name, value, &values->of[i], why,
			  sizeof(why)) == SPOKE_OK)
			values->said[i] = true;
	}
}

int spokei_keys_overrule(struct spoke_engine *engine, struct spokei_key_values *values,
			 enum spokei_key key, uint64_t option)
{
	char min[32];
	char max[32];
	char value[32];

	if (option == 0)
		return SPOKE_OK;
	if (option >= keys[key].min && option <= keys[key].max) {
		values->of[key] = option;
		values->said[key] = true;
		return SPOKE_OK;
	}
	spokei_option_print(keys[key].kind, keys[key].min, min, sizeof(min));
	spokei_option_print(keys[key].kind, keys[key].max, max, sizeof(max));
	spokei_option_print(keys[key].kind, option, value, sizeof(value));
	spokei_event(engine, SPOKE_ERANGE, "option %s=%s: not between %s and %s", keys[key].name,
		     value, min, max);
	return SPOKE_ERANGE;
}
