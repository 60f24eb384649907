/* SPDX-License-Identifier: Apache-2.0 */
/* Formats and parses the URLs of providers. */
#include "cluster/discovery/provider_url.h"
#include "core/base/log.h"
#include "transport/codec/codec.h"
#include "transport/wire/message.h"

#include "cluster/config/keys.h"
#include "cluster/config/places.h"
#include "cluster/registry/urls.h"
#include "cluster/route/router.h"
#include "core/engine/engine.h"
#include "core/text/option.h"
#include "transport/connect/place.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHOWN 200u
#define MS UINT64_C(1000000)

/* --- format */

#define NUMBER 24u /* bytes of a number in digits, with the NUL */

/* Parameters for consumers with spoke on the same host: the number of the host, and the address to
 * which they may connect in place of the URL's own. */
#define HOST_ID "spoke.host"
#define LOCAL "spoke.local"
#define HOST_ID_FORMAT "%016" PRIx64

/* Leaves the parameters that have a value. Returns how many. */
static unsigned drop_empty(struct spoke_url_parameter *keys, unsigned count)
{
	unsigned left = 0;

	for (unsigned i = 0; i < count; i++)
		if (*keys[i].value)
			keys[left++] = keys[i];
	return left;
}

static const char *print_number(char text[NUMBER], uint64_t number)
{
	(void)snprintf(text, NUMBER, "%" PRIu64, number);
	return text;
}

/* 0 becomes an empty text. */
static const char *print_id(char text[NUMBER], uint64_t id)
{
	(void)snprintf(text, NUMBER, HOST_ID_FORMAT, id);
	return id ? text : "";
}

int spokei_provider_url_format(const struct spokei_provider_parts *parts, struct spokei_buffer *out)
{
	char timestamp[NUMBER];
	char warmup[NUMBER];
	char weight[NUMBER];
	char host_id[NUMBER];
	struct spoke_url_parameter keys[] = {
		{ "admin", parts->admin },
		{ "anyhost", "false" },
		{ "application", parts->application },
		{ "dubbo", "2.0.2" },
		{ SPOKEI_ROUTE_TAG_KEY, parts->tag ? parts->tag : "" },
		{ "dynamic", "true" },
		{ "generic", "false" },
		{ "group", parts->group },
		{ "interface", parts->service },
		{ "methods", parts->methods },
		/* Consumers of Dubbo 3.x in Java encode heartbeats in the first one of the list,
		 * and fail if they do not have it. */
		{ "prefer.serialization", "hessian2,msgpack" },
		{ "serialization", "hessian2" },
		{ "side", "provider" },
		{ HOST_ID, print_id(host_id, parts->host_id) },
		{ LOCAL, parts->host_id ? parts->local : "" },
		{ "spoke.serialization", "msgpack" },
		{ "timestamp", print_number(timestamp, parts->timestamp_ms) },
		{ "token", parts->token },
		{ "version", parts->version },
		{ "warmup", print_number(warmup, parts->warmup_ms) },
		{ "weight", print_number(weight, parts->weight) },
	};
	struct spoke_url url = {
		.scheme = "dubbo",
		.path = parts->socket ? "" : parts->service,
		.host = parts->socket ? NULL : parts->host,
		.port = parts->socket ? -1 : parts->port,
		.socket = parts->socket,
		.shm = parts->shm,
		.parameters = keys,
		.parameter_count = drop_empty(keys, sizeof(keys) / sizeof(keys[0])),
	};

	return spokei_urls_put(out, &url);
}

int spokei_consumer_url_format(const struct spokei_provider_parts *parts, uint64_t id,
			       struct spokei_buffer *out)
{
	char timestamp[NUMBER];
	char name[NUMBER];
	struct spoke_url_parameter keys[] = {
		{ "application", parts->application },
		{ "category", "consumers" },
		{ "check", "false" },
		{ "dubbo", "2.0.2" },
		{ "id", print_id(name, id) },
		{ "interface", parts->service },
		{ "side", "consumer" },
		{ "timestamp", print_number(timestamp, parts->timestamp_ms) },
		{ "group", parts->group },
		{ "version", parts->version },
	};
	struct spoke_url url = {
		.scheme = "consumer",
		.host = "0.0.0.0",
		.port = -1,
		.path = parts->service,
		.parameters = keys,
		.parameter_count = drop_empty(keys, sizeof(keys) / sizeof(keys[0])),
	};

	return spokei_urls_put(out, &url);
}

/* --- parse */

/* When a provider was started, according to its URL; not a configuration key. */
static const struct spokei_option timestamp = {
	.name = "timestamp",
	.kind = SPOKEI_OPTION_COUNT,
	.max = INT64_MAX / 2,
	.sentence = "when a provider was started, in ms since 1970",
};

static uint64_t read_number(struct spoke_engine *engine, const struct spoke_url *url,
			    const struct spokei_option *option)
{
	const char *text = spoke_url_get(url, option->name);
	char why[SPOKEI_OPTION_WHY_MAX];
	uint64_t value = option->preset;
	int error;

	if (text == NULL)
		return value;
	error = spokei_option_parse(option, text, true, &value, why, sizeof(why));
	if (error)
		spokei_event(engine, error, "provider URL: %s; parameter ignored", why);
	return value;
}

/* Shorter intervals count as this one: a provider that pauses for a moment must not lose its
 * connections, and the content of a registry may be hostile. */
#define HEARTBEAT_MIN_NS (1000 * MS)

static uint64_t read_heartbeat(struct spoke_engine *engine, const struct spoke_url *url)
{
	struct spokei_option option = spokei_key_row(SPOKEI_KEY_HEARTBEAT)->option;
	uint64_t interval_ns;

	option.min = 1;
	option.preset = 0;
	interval_ns = read_number(engine, url, &option);
	return interval_ns > 0 && interval_ns < HEARTBEAT_MIN_NS ? HEARTBEAT_MIN_NS : interval_ns;
}

/* Dubbo writes "0.0.0" if there is no version. */
static const char *version_of(const char *version)
{
	return strcmp(version, "0.0.0") == 0 ? "" : version;
}

/* A provider's own "*" means none. */
static const char *one_of(const char *text)
{
	return strcmp(text, "*") == 0 ? "" : text;
}

/* Appends a text with its NUL. Returns where it begins; SIZE_MAX if there is no room. */
static size_t put(struct spokei_provider_url *provider, const char *text)
{
	size_t at = provider->key_len;
	size_t len = strlen(text) + 1;

	if (len > sizeof(provider->key) - at)
		return SIZE_MAX;
	memcpy(provider->key + at, text, len);
	provider->key_len += len;
	return at;
}

static int make_key(struct spokei_provider_url *provider, const struct spoke_url *url,
		    const char *name)
{
	size_t wire_at = put(provider, provider->options.wire->name);

	provider->name_at = put(provider, name);
	provider->group_at = put(provider, one_of(spokei_urls_value(url, "group")));
	provider->version_at = put(provider, one_of(version_of(spokei_urls_value(url, "version"))));
	return wire_at == SIZE_MAX || provider->name_at == SIZE_MAX ||
			       provider->group_at == SIZE_MAX || provider->version_at == SIZE_MAX
		       ? SPOKE_ETOOLARGE
		       : SPOKE_OK;
}

/* --- serialization */

/* Of a provider that asks for none. Java's providers of Dubbo 2.7 and 3.x expect hessian2, which
 * programs with spoke understand, too; the URLs of the latter ask for msgpack. */
#define CODEC_UNSAID SPOKEI_CODEC_HESSIAN2

/* Returns the first serialization of a list that spoke has; 0: none. */
static uint8_t first_known(const char *list)
{
	static const struct {
		const char *name;
		uint8_t id;
	} known[] = {
		{ "hessian2", SPOKEI_CODEC_HESSIAN2 },
		{ "msgpack", SPOKEI_CODEC_MSGPACK },
	};
	struct spoke_span name;

	while (spokei_option_item(&list, &name))
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (spokei_span_is(name, known[i].name))
				return known[i].id;
	return 0;
}

/* The first key is for consumers with spoke; those in Java read the others in this order. */
static uint8_t read_codec(const struct spoke_url *url)
{
	static const char *const keys[] = { "spoke.serialization", "prefer.serialization",
					    "serialization" };
	uint8_t codec = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && codec == 0; i++)
		codec = first_known(spokei_urls_value(url, keys[i]));
	return codec ? codec : CODEC_UNSAID;
}

/* --- path and token */

/* Returns the path if it is not the name of the service. */
static const char *read_path(const struct spoke_url *url)
{
	const char *interface = spokei_urls_value(url, "interface");
	const char *path = url->path ? url->path : "";

	return *interface && strcmp(path, interface) != 0 ? path : "";
}

/* Returns a text of the URL, or "" with an event if it is too long. */
static const char *bounded(struct spoke_engine *engine, const char *name, const char *text,
			   size_t max)
{
	if (strlen(text) <= max)
		return text;
	spokei_event(engine, SPOKE_ETOOLARGE, "provider URL: %s exceeds %zu bytes; ignored", name,
		     max);
	return "";
}

/* --- the path on this host */

#define UNIX "unix:"

/* Returns whether the URL comes from this host and from the same view of its files. */
static bool is_of_host(const struct spoke_url *url, uint64_t host_id)
{
	char here[24];

	if (host_id == 0)
		return false;
	(void)snprintf(here, sizeof(here), HOST_ID_FORMAT, host_id);
	return strcmp(spokei_urls_value(url, HOST_ID), here) == 0;
}

/* Returns the path of the provider's unix socket on this host. Anything else than an absolute path
 * is dropped: a relative one depends on the folder of this process. */
static const char *read_local(struct spoke_engine *engine, const struct spoke_url *url,
			      uint64_t host_id)
{
	const struct spoke_env *env = engine->env;
	const char *text = spokei_urls_value(url, LOCAL);
	struct spoke_address address;
	char shown[SHOWN];

	if (*text == '\0' || !is_of_host(url, host_id))
		return "";
	if (strncmp(text, UNIX "/", strlen(UNIX "/")) == 0 &&
	    env->net->parse(env->ctx, text, &address) == 0)
		return text + strlen(UNIX);
	spokei_count(engine, SPOKE_STAT_LOCAL_REFUSED);
	(void)spokei_log_escape(shown, sizeof(shown), text, strlen(text));
	spokei_event(engine, SPOKE_EINVAL,
		     "provider URL: " LOCAL "=%s is no absolute path of a unix "
		     "socket; ignored",
		     shown);
	return "";
}

/* --- admin page */

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static bool is_port(const char *text)
{
	size_t len = strspn(text, DIGITS);
	unsigned port = 0;

	if (len == 0 || len > 5 || text[len] != '\0')
		return false;
	for (size_t i = 0; i < len; i++)
		port = 10 * port + (unsigned)(text[i] - '0');
	return port > 0 && port <= UINT16_MAX;
}

bool spokei_provider_url_is_admin(const char *text)
{
	bool bracket = *text == '[';
	size_t len;

	if (strlen(text) >= SPOKEI_PROVIDER_URL_ADMIN)
		return false;
	text += bracket;
	len = strspn(text, bracket ? "abcdefABCDEF:." DIGITS : ".-" LETTERS DIGITS);
	if (len == 0)
		return false;
	text += len;
	if (bracket && *text++ != ']')
		return false;
	return *text == ':' && is_port(text + 1);
}

/* An invalid address is dropped, because a link to it could lead anywhere. */
static const char *read_admin(const struct spoke_url *url)
{
	const char *admin = spokei_urls_value(url, "admin");

	return spokei_provider_url_is_admin(admin) ? admin : "";
}

/* Returns the time of the start; 0 if it is missing or invalid. */
static uint64_t peek_timestamp(const struct spoke_url *url)
{
	const char *text = spoke_url_get(url, timestamp.name);
	char why[SPOKEI_OPTION_WHY_MAX];
	uint64_t value;

	if (text == NULL || spokei_option_parse(&timestamp, text, true, &value, why, sizeof(why)))
		return 0;
	return value;
}

int spokei_provider_url_identify(struct spoke_engine *engine, const struct spoke_url *url,
				 struct spokei_provider_url *ret)
{
	struct spokei_place place = { .port = 0 };
	int error;

	*ret = (struct spokei_provider_url){ .key_len = 0 };
	error = spokei_places_endpoint(engine, url, &ret->options);
	if (error)
		return error;
	error = spokei_place_set(&place, engine->env, ret->options.host, ret->options.port,
				 ret->options.path);
	if (error) {
		spokei_event(engine, error,
			     "URL: invalid address; write a host or digits, of at most %u bytes, "
			     "or the path of a socket, of at most %u",
			     SPOKEI_PLACE_HOST_MAX, SPOKEI_PLACE_PATH_MAX);
		return error;
	}
	if (ret->options.shm)
		spokei_place_share(&place);
	error = make_key(ret, url, place.name);
	if (error) {
		spokei_event(engine, error, "URL: group and version together exceed %u bytes",
			     SPOKEI_PROVIDER_URL_KEY - 400u);
		return error;
	}
	ret->timestamp_ms = peek_timestamp(url);
	return SPOKE_OK;
}

int spokei_provider_url_parse(struct spoke_engine *engine, const struct spoke_url *url,
			      uint64_t host_id, struct spokei_provider_url *ret)
{
	int error = spokei_provider_url_identify(engine, url, ret);

	if (error)
		return error;
	ret->heartbeat_ns = read_heartbeat(engine, url);
	ret->codec = read_codec(url);
	ret->path = bounded(engine, "the path", read_path(url), SPOKEI_PROVIDER_URL_KEY);
	ret->token = bounded(engine, "token", spokei_urls_value(url, "token"),
			     SPOKEI_PROVIDER_URL_TOKEN);
	ret->local = read_local(engine, url, host_id);
	ret->admin = read_admin(url);
	ret->application = spokei_urls_value(url, "application");
	ret->tag = spokei_urls_value(url, SPOKEI_ROUTE_TAG_KEY);
	ret->weight = (uint32_t)read_number(engine, url,
					    &spokei_key_row(SPOKEI_KEY_WEIGHT)->option);
	ret->warmup_ms = read_number(engine, url, &spokei_key_row(SPOKEI_KEY_WARMUP)->option) / MS;
	ret->timestamp_ms = read_number(engine, url, &timestamp);
	return SPOKE_OK;
}

/* --- filter */

static bool fits(const char *wanted, const char *offered)
{
	return strcmp(wanted, "*") == 0 || strcmp(wanted, offered) == 0;
}

/* A consumer may name several groups, with commas between. */
static bool is_in_group(const char *wanted, const char *offered)
{
	struct spoke_span group;

	if (fits(wanted, offered))
		return true;
	while (*offered && spokei_option_item(&wanted, &group))
		if (spokei_span_is(group, offered))
			return true;
	return false;
}

static void pass_over(struct spoke_engine *engine, const struct spoke_url *url, const char *why)
{
	char text[SHOWN];
	char shown[2 * SHOWN];

	(void)spoke_url_print(url, SPOKE_URL_DISPLAY, text, sizeof(text));
	(void)spokei_log_escape(shown, sizeof(shown), text, strlen(text));
	spokei_event(engine, SPOKE_EUNSUPPORTED, "provider ignored because %s: %s", why, shown);
}

bool spokei_provider_url_serves(const struct spoke_url *url, const char *service)
{
	return strcmp(spokei_places_service(url), service) == 0;
}

bool spokei_provider_url_concerns(const struct spoke_url *url, const struct spokei_wanted *wanted)
{
	return spokei_provider_url_serves(url, wanted->service) &&
	       is_in_group(wanted->group, spokei_urls_value(url, "group")) &&
	       fits(version_of(wanted->version), version_of(spokei_urls_value(url, "version")));
}

bool spokei_provider_url_is_disabled(const struct spoke_url *url)
{
	const char *disabled = spokei_urls_value(url, "disabled");

	return *disabled ? strcmp(disabled, "true") == 0
			 : strcmp(spokei_urls_value(url, "enabled"), "false") == 0;
}

bool spokei_provider_url_matches(struct spoke_engine *engine, const struct spoke_url *url,
				 const struct spokei_wanted *wanted)
{
	const char *category = spokei_urls_value(url, "category");
	const char *why = NULL;

	if (strcmp(url->scheme, "empty") == 0)
		why = "its scheme is empty";
	else if (*category && strcmp(category, "providers") != 0)
		why = "its category is not providers";
	else if (spokei_provider_url_is_disabled(url))
		why = "it is disabled";
	else if (spokei_places_wire(url->scheme) == NULL)
		why = "spoke does not have its protocol";
	if (why) {
		pass_over(engine, url, why);
		return false;
	}
	return spokei_provider_url_concerns(url, wanted);
}
