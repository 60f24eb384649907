/* SPDX-License-Identifier: Apache-2.0 */
/* The table of keys, and what becomes of them. */
#include "cluster/settings.h"

#include "core/log.h"
#include "core/option.h"
#include "transport/catalog.h"

#include <stdio.h>

#define HEARTBEAT_NS UINT64_C(60000000000)
#define MUTE_INTERVALS 4u /* of silence before a peer's first byte */
#define HEARTBEAT_MIN_NS UINT64_C(10000000)
#define PORT_PRESET 20880
#define FRAME_MIN 1024u
#define URL_SHOWN 128u

#define NS_PER_MS UINT64_C(1000000)

enum key {
	KEY_TIMEOUT,
	KEY_HEARTBEAT,
	KEY_IDLE_CLOSE,
	KEY_PENDING_MAX,
	KEY_FRAME_MAX,
	KEYS,
};

static const struct spokei_option keys[KEYS] = {
	[KEY_TIMEOUT] = { "timeout", SPOKEI_OPTION_DURATION, NS_PER_MS, SPOKEI_TIMEOUT_MAX_NS,
			  SPOKEI_TIMEOUT_NS, "how long a call may take, all in all" },
	[KEY_HEARTBEAT] = { "heartbeat", SPOKEI_OPTION_DURATION, 0, SPOKEI_TIMEOUT_MAX_NS,
			    HEARTBEAT_NS, "silence after which a peer is asked whether it lives" },
	[KEY_IDLE_CLOSE] = { "idle.close", SPOKEI_OPTION_DURATION, 0, SPOKEI_TIMEOUT_MAX_NS, 0,
			     "silence that ends a connection of a wire without heartbeats" },
	[KEY_PENDING_MAX] = { "pending.max", SPOKEI_OPTION_COUNT, 1, UINT32_MAX / 2, 65536,
			      "calls that may wait for an answer" },
	[KEY_FRAME_MAX] = { "frame.max", SPOKEI_OPTION_SIZE, FRAME_MIN, SPOKEI_FRAME_MAX,
			    SPOKEI_FRAME_MAX, "bytes that a frame may have" },
};

/* Keys that are texts and read elsewhere, and those of Dubbo's that say nothing to spoke. */
static const char *const other_keys[] = {
	"interface",
	"version",
	"group",
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
};

static bool is_other_key(const char *key)
{
	for (size_t i = 0; i < sizeof(other_keys) / sizeof(other_keys[0]); i++)
		if (strcmp(key, other_keys[i]) == 0)
			return true;
	return false;
}

static int read_parameters(struct spoke_engine *engine, const struct spoke_url *url,
			   uint64_t values[KEYS])
{
	char why[SPOKEI_OPTION_WHY_MAX];

	for (int i = 0; i < KEYS; i++)
		values[i] = keys[i].preset;
	for (unsigned i = 0; i < url->parameter_count; i++) {
		const struct spoke_url_parameter *parameter = &url->parameters[i];
		const struct spokei_option *key;
		int error = SPOKE_EINVAL;

		if (is_other_key(parameter->key))
			continue;
		key = spokei_option_find(keys, KEYS, parameter->key, why, sizeof(why));
		if (key)
			error = spokei_option_parse(key, parameter->value, true,
						    &values[key - keys], why, sizeof(why));
		if (error) {
			spokei_event(engine, error, "URL: %s", why);
			return error;
		}
	}
	return SPOKE_OK;
}

int spokei_settings_url(struct spoke_engine *engine, const char *text, struct spoke_url *ret_url)
{
	struct spoke_url_error why;
	int error;

	if (text == NULL) {
		spokei_event(engine, SPOKE_EINVAL,
			     "URL: there is none; write one, as "
			     "dubbo://127.0.0.1:20880/demo.EchoService");
		return SPOKE_EINVAL;
	}
	error = spoke_url_parse(engine->env, text, strlen(text), ret_url, &why);
	if (error)
		spokei_event(engine, error, "URL, byte %zu: %s", why.at, why.text);
	return error;
}

static const char *first_text(const char *first, const char *second, const char *third)
{
	if (first && *first)
		return first;
	if (second && *second)
		return second;
	return third;
}

static int check_option(struct spoke_engine *engine, enum key key, uint64_t value)
{
	char min[32];
	char max[32];

	if (value >= keys[key].min && value <= keys[key].max)
		return SPOKE_OK;
	spokei_option_print(keys[key].kind, keys[key].min, min, sizeof(min));
	spokei_option_print(keys[key].kind, keys[key].max, max, sizeof(max));
	spokei_event(engine, SPOKE_ERANGE, "option %s: not between %s and %s", keys[key].name, min,
		     max);
	return SPOKE_ERANGE;
}

static int overrule(struct spoke_engine *engine, uint64_t values[KEYS], enum key key,
		    uint64_t option)
{
	if (option == 0)
		return SPOKE_OK;
	values[key] = option;
	return check_option(engine, key, option);
}

/* An interval: between two times, or none at all. */
static int overrule_interval(struct spoke_engine *engine, uint64_t values[KEYS], enum key key,
			     uint64_t option)
{
	int error = SPOKE_OK;

	if (option == SPOKE_OFF)
		values[key] = SPOKEI_IDLE_OFF;
	else
		error = overrule(engine, values, key, option);
	if (error == SPOKE_OK && values[key] != SPOKEI_IDLE_OFF && values[key] < HEARTBEAT_MIN_NS) {
		spokei_event(engine, SPOKE_ERANGE,
			     option ? "option %s: 10 ms at least, or SPOKE_OFF"
				    : "URL, %s: 10 ms at least, or 0 for none",
			     keys[key].name);
		error = SPOKE_ERANGE;
	}
	return error;
}

static int read_consumer(struct spoke_engine *engine, const struct spoke_consumer_options *options,
			 struct spokei_consumer_settings *ret)
{
	uint64_t values[KEYS];
	int error = read_parameters(engine, &ret->url, values);

	if (error == 0)
		error = overrule(engine, values, KEY_TIMEOUT, options->timeout_ns);
	if (error == 0)
		error = overrule_interval(engine, values, KEY_HEARTBEAT, options->heartbeat_ns);
	if (error == 0)
		error = overrule_interval(engine, values, KEY_IDLE_CLOSE, options->idle_close_ns);
	if (error == 0)
		error = overrule(engine, values, KEY_PENDING_MAX, options->pending_max);
	if (error == 0)
		error = overrule(engine, values, KEY_FRAME_MAX, options->frame_max);
	if (error)
		return error;
	ret->service = first_text(spoke_url_get(&ret->url, "interface"), ret->url.path, "");
	ret->version = first_text(spoke_url_get(&ret->url, "version"), NULL, "");
	ret->group = first_text(spoke_url_get(&ret->url, "group"), NULL, "");
	ret->timeout_ns = values[KEY_TIMEOUT];
	spokei_link_limits_init(&ret->limits);
	ret->changed = options->changed;
	ret->changed_arg = options->changed_arg;
	ret->limits.heartbeat_ns = values[KEY_HEARTBEAT];
	ret->limits.idle_close_ns = values[KEY_IDLE_CLOSE];
	ret->limits.pending_max = (uint32_t)values[KEY_PENDING_MAX];
	ret->limits.wire.frame_max = (size_t)values[KEY_FRAME_MAX];
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
	const char *service = first_text(spoke_url_get(url, "interface"), url->path, "");
	uint64_t values[KEYS];
	uint64_t first[KEYS];
	int error = read_parameters(engine, url, values);

	if (error == 0)
		error = read_parameters(engine, &settings->url, first);
	for (int i = 0; i < KEYS && error == 0; i++) {
		if (spoke_url_get(url, keys[i].name) == NULL || values[i] == first[i])
			continue;
		spokei_event(engine, SPOKE_EINVAL,
			     "URL: %s counts for the whole consumer; say it in the first URL",
			     keys[i].name);
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

/* NULL: there is an event that says why. */
static const struct spokei_wire *wire_of(struct spoke_engine *engine, const struct spoke_url *url)
{
	const char *scheme = *url->scheme ? url->scheme : "dubbo";
	const struct spokei_wire *wire = spokei_catalog_wire(scheme);
	char shown[URL_SHOWN];

	if (wire)
		return wire;
	(void)spokei_log_escape(shown, sizeof(shown), scheme, strlen(scheme));
	spokei_event(engine, SPOKE_EUNSUPPORTED,
		     "URL: scheme %s is not known; use dubbo or msgpack-rpc", shown);
	return NULL;
}

int spokei_settings_endpoint(struct spoke_engine *engine, const struct spoke_url *url,
			     struct spokei_connector_options *ret)
{
	const struct spokei_wire *wire = wire_of(engine, url);

	if (wire == NULL)
		return SPOKE_EUNSUPPORTED;
	if (url->host && url->port == 0) {
		spokei_event(engine, SPOKE_ERANGE, "URL: nobody can be called at port 0");
		return SPOKE_ERANGE;
	}
	*ret = (struct spokei_connector_options){
		.host = url->host,
		.port = (uint16_t)(url->port < 0 ? PORT_PRESET : url->port),
		.path = url->socket,
		.wire = wire,
	};
	return SPOKE_OK;
}

int spokei_settings_provider(struct spoke_engine *engine,
			     const struct spoke_provider_options *options,
			     struct spokei_link_limits *ret)
{
	uint64_t values[KEYS] = { [KEY_HEARTBEAT] = HEARTBEAT_NS };
	int error = overrule(engine, values, KEY_FRAME_MAX, options->frame_max);

	if (error == 0)
		error = overrule_interval(engine, values, KEY_HEARTBEAT, options->heartbeat_ns);
	if (error == 0)
		error = overrule_interval(engine, values, KEY_IDLE_CLOSE, options->idle_close_ns);
	if (error)
		return error;
	spokei_link_limits_init(ret);
	ret->heartbeat_ns = values[KEY_HEARTBEAT];
	ret->idle_close_ns = values[KEY_IDLE_CLOSE];
	ret->mute_ns = MUTE_INTERVALS *
		       (ret->heartbeat_ns == SPOKEI_IDLE_OFF ? HEARTBEAT_NS : ret->heartbeat_ns);
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

/* What a provider is told is told in its options: one place of several cannot have its own. */
static int refuse_parameters(struct spoke_engine *engine, const struct spoke_url *url)
{
	char shown[URL_SHOWN];

	for (unsigned i = 0; i < url->parameter_count; i++) {
		const char *key = url->parameters[i].key;

		if (is_other_key(key))
			continue;
		(void)spokei_log_escape(shown, sizeof(shown), key, strlen(key));
		spokei_event(engine, SPOKE_EINVAL,
			     "listen: %s is not said here; say it in the provider's options",
			     shown);
		return SPOKE_EINVAL;
	}
	return SPOKE_OK;
}

static int read_place(struct spoke_engine *engine, const struct spoke_url *url,
		      struct spoke_address *ret)
{
	const struct spoke_env *env = engine->env;
	char place[SPOKE_URL_HOST_MAX + 16];
	char path[sizeof(((struct spoke_address *)0)->bytes) + 8];
	bool is_v6 = url->host && strchr(url->host, ':') != NULL;
	int error = -1;

	if (url->socket) {
		int len = snprintf(path, sizeof(path), "unix:%s", url->socket);

		if (len < (int)sizeof(path))
			error = env->net->parse(env->ctx, path, ret);
	} else {
		(void)snprintf(place, sizeof(place), "%s%s%s:%d", is_v6 ? "[" : "", url->host,
			       is_v6 ? "]" : "", url->port < 0 ? PORT_PRESET : url->port);
		error = env->net->parse(env->ctx, place, ret);
	}
	if (error == 0)
		return SPOKE_OK;
	spokei_event(engine, SPOKE_EINVAL,
		     "listen: not an address in digits, or a path that is too long; write "
		     "one, as dubbo://0.0.0.0:20880 or unix:/run/echo.sock");
	return SPOKE_EINVAL;
}

int spokei_settings_listen(struct spoke_engine *engine, const char *text, struct spoke_address *ret)
{
	struct spoke_url url;
	int error = spokei_settings_url(engine, text, &url);

	if (error)
		return error;
	if (wire_of(engine, &url) == NULL)
		error = SPOKE_EUNSUPPORTED;
	if (error == 0)
		error = refuse_parameters(engine, &url);
	if (error == 0)
		error = read_place(engine, &url, ret);
	spoke_url_fini(&url);
	return error;
}
