/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All keys of the table, one at a time, on each road: in each section of the file that allows them,
 * in each field of options that sets them, in URLs, and in a reload. Each road gives objects the
 * same setting. A reload gives running objects the setting that a fresh start has, and changes
 * nothing else. The values are seen in the settings in force, in the fields that rows name, and
 * where a line of see_*() says so. A key that a road does not set fails here by its name.
 */
#include "cluster/admin/parts.h"
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/comet/comet.h"
#include "cluster/config/credentials.h"
#include "cluster/config/keys.h"
#include "cluster/consumer/parts.h"
#include "cluster/consumer/settings.h"
#include "cluster/endpoints/directory.h"
#include "cluster/filter/filter.h"
#include "cluster/filter/limit.h"
#include "cluster/lease/parts.h"
#include "cluster/lease/redis.h"
#include "cluster/lease/settings.h"
#include "cluster/lease/view.h"
#include "cluster/provider/parts.h"
#include "cluster/provider/registration.h"
#include "cluster/provider/settings.h"
#include "cluster/serve/access_control.h"
#include "cluster/serve/dedupe.h"
#include "cluster/serve/routes.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "core/virtual/files.h"
#include "core/virtual/world.h"
#include "examples/spoke/issue.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "transport/conn/link.h"
#include "transport/listen/group.h"
#include "transport/listen/quota.h"
#include "transport/listen/rules.h"
#include "transport/stream/tls/parts.h"
#include "transport/trust/caller.h"

#include <spoke/admin.h>
#include <spoke/config.h>
#include <spoke/consumer.h>
#include <spoke/lease.h>
#include <spoke/provider.h>

#include <stdio.h>
#include <string.h>

#define FILE_NAME "a.conf"
#define SERVICE "demo.A"
#define METHOD "echo"
#define URL "dubbo://127.0.0.1:1/" SERVICE
#define STORE "redis://127.0.0.1:1"

enum {
	SEEN_MAX = 512,
	TEXT_MAX = 2048,
};

/* Sections whose keys apply to an object. */
#define OF_CONSUMER (1u << SPOKEI_IN_CONSUMER | 1u << SPOKEI_IN_SERVICE | 1u << SPOKEI_IN_METHOD)
#define OF_PROVIDER (1u << SPOKEI_IN_PROVIDER | 1u << SPOKEI_IN_SERVICE | 1u << SPOKEI_IN_METHOD)
#define OF_GATEWAY (1u << SPOKEI_IN_COMET)
#define OF_REGISTRY (1u << SPOKEI_IN_REGISTRY)
#define OF_LEASES (1u << SPOKEI_IN_LEASE)
#define OF_ENGINE (1u << SPOKEI_IN_ENGINE)
/* The page has the TLS of [provider], but no options of a provider. */
#define PAGE (1u << SPOKEI_SECTIONS)
#define OF_PAGE (PAGE | 1u << SPOKEI_IN_PROVIDER)

/* A process with all objects that use one file. */
struct cast {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_config *config;
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	struct spoke_provider *provider;
	struct spoke_comet *gateway;
	struct spoke_leases *leases;
	struct spoke_admin *page;
};

/* What a program says. */
struct code {
	struct spoke_engine_options engine;
	struct spoke_consumer_options consumer;
	struct spoke_method_options method;
	struct spoke_provider_options provider;
	struct spoke_tls_options tls;
	struct spoke_tls_options calling_tls;
	struct spoke_tls_options page_tls;
	struct spoke_comet_options gateway;
	struct spoke_leases_options leases;
	char url[512];
};

/* The value of a key at a place in a running object. */
struct seen {
	enum spokei_key key;
	unsigned sections;
	bool is_copy; /* not the settings in force */
	uint64_t number;
};

struct sight {
	struct seen at[SEEN_MAX];
	size_t count;
};

static struct issued issued;

/* --- lines of the file */

struct line {
	enum spokei_section section;
	const char *name;
	const char *value;
};

/* The file without a change; those of the service only with a key of a signature, because a section
 * has them together. */
static const struct line base[] = {
	{ SPOKEI_IN_CONSUMER, "token", "first-token" },
	{ SPOKEI_IN_CONSUMER, "auth", "accesskey" },
	{ SPOKEI_IN_CONSUMER, "access.id", "one" },
	{ SPOKEI_IN_CONSUMER, "access.secret.file", "secret" },
	{ SPOKEI_IN_SERVICE, "auth", "accesskey" },
	{ SPOKEI_IN_SERVICE, "access.id", "one" },
	{ SPOKEI_IN_SERVICE, "access.secret.file", "secret" },
	{ SPOKEI_IN_PROVIDER, "token", "first-token" },
	{ SPOKEI_IN_PROVIDER, "auth", "accesskey" },
	{ SPOKEI_IN_PROVIDER, "access.id", "one" },
	{ SPOKEI_IN_PROVIDER, "access.secret.file", "secret" },
	{ SPOKEI_IN_PROVIDER, "tls", "optional" },
	{ SPOKEI_IN_PROVIDER, "tls.cert", "cert" },
	{ SPOKEI_IN_PROVIDER, "tls.key", "key" },
	{ SPOKEI_IN_PROVIDER, "tls.ca", "cert" },
	{ SPOKEI_IN_CONSUMER, "tls.ca", "cert" },
	{ SPOKEI_IN_REGISTRY, "url", "file:///registry" },
	{ SPOKEI_IN_LEASE, "store", STORE },
	{ SPOKEI_IN_LEASE, "password", "shut" },
	{ SPOKEI_IN_COMET, "listen", "127.0.0.1:8080" },
	{ SPOKEI_IN_ENGINE, "log", "info" },
	{ SPOKEI_IN_ENGINE, "admin", "https://127.0.0.1:9090" },
};

/* Values of keys that are texts. */
static const struct {
	enum spokei_key key;
	const char *value;
} texts[] = {
	{ SPOKEI_KEY_TOKEN, "other-token" },
	{ SPOKEI_KEY_TOKEN_FILE, "token" },
	{ SPOKEI_KEY_AUTH, "none" },
	{ SPOKEI_KEY_ACCESS_ID, "two" },
	{ SPOKEI_KEY_ACCESS_SECRET_FILE, "other" },
	{ SPOKEI_KEY_ALLOW_FROM, "10.0.0.0/8" },
	{ SPOKEI_KEY_DENY_FROM, "10.0.0.1,10.0.0.2" },
	{ SPOKEI_KEY_ALLOW_USERS, "1,2,3" },
	{ SPOKEI_KEY_ALLOW_CALLERS, "token" },
	{ SPOKEI_KEY_COMET_ORIGINS, "https://a.example" },
	{ SPOKEI_KEY_COMET_HOSTS, "b.example" },
	{ SPOKEI_KEY_COMET_PROXIES, "10.0.0.3" },
	{ SPOKEI_KEY_REGISTRY_URL, "file:///other" },
	{ SPOKEI_KEY_REGISTRY_CACHE, "/cache" },
	{ SPOKEI_KEY_JOURNAL, "/journal" },
	{ SPOKEI_KEY_VERSION, "2.0" },
	{ SPOKEI_KEY_GROUP, "east" },
	{ SPOKEI_KEY_ADVERTISE, "10.0.0.9" },
	{ SPOKEI_KEY_APPLICATION, "shop" },
	{ SPOKEI_KEY_TAG, "gray" },
	{ SPOKEI_KEY_DEFAULT_SERVICE, "demo.B" },
	{ SPOKEI_KEY_ACCESS_LOG, "true" },
	{ SPOKEI_KEY_HTTP_ORIGINS, "https://c.example" },
	{ SPOKEI_KEY_HTTP_HOSTS, "d.example" },
	{ SPOKEI_KEY_TLS_CERT, "other.cert" },
	{ SPOKEI_KEY_TLS_KEY, "other.key" },
	{ SPOKEI_KEY_TLS, "on" },
	{ SPOKEI_KEY_TLS_VERIFY, "none" },
	{ SPOKEI_KEY_TLS_CA, "other.cert" },
	{ SPOKEI_KEY_TLS_CRL, "crl" },
	{ SPOKEI_KEY_TLS_PEERS, "dns:e.example" },
	{ SPOKEI_KEY_LEASE_STORE, "redis://10.0.0.4:1" },
	{ SPOKEI_KEY_LEASE_USER, "ann" },
	{ SPOKEI_KEY_LEASE_PASSWORD, "open" },
	{ SPOKEI_KEY_LEASE_SENTINEL_PASSWORD, "sesame" },
	{ SPOKEI_KEY_LISTEN, "dubbo://127.0.0.1:20881" },
	{ SPOKEI_KEY_ADMIN_TOKEN_FILE, "token" },
	{ SPOKEI_KEY_ADMIN, "https://127.0.0.1:9091" },
	{ SPOKEI_KEY_COMET_LISTEN, "127.0.0.1:8081" },
	{ SPOKEI_KEY_COMET_PAGE, "page.html" },
	{ SPOKEI_KEY_COMET_BACKEND, "consumer://any/shop.Texts" },
	{ SPOKEI_KEY_SPIN, "100us" },
};

/* A list that is good for long, of an authority that signs nothing here. */
static const char revoked[] = "-----BEGIN X509 CRL-----\n"
			      "MIGUMEgCAQEwBQYDK2VwMAwxCjAIBgNVBAMMAWEXDTI2MTEyOTE1MjgyOFoYDzIx\n"
			      "MDkwMTE4MTUyODI4WqAOMAwwCgYDVR0UBAMCAQEwBQYDK2VwA0EA7cejcQfdb9/c\n"
			      "fC2MrnyGjPC6fMAG5BrRtRiIs0KyyhVBv8RMcxZv61LDbaaHiDdChxbNrFM3ELvq\n"
			      "xauhC+IyAg==\n"
			      "-----END X509 CRL-----\n";

static bool is_number(enum spokei_key key)
{
	const enum spokei_option_kind kind = spokei_key_row(key)->option.kind;

	return kind != SPOKEI_OPTION_TEXT && kind != SPOKEI_OPTION_LIST &&
	       kind != SPOKEI_OPTION_NAME && kind != SPOKEI_OPTION_SPIN;
}

/* Returns a value of a number that no other key has, and that is not the default. */
static uint64_t number_of(enum spokei_key key)
{
	const struct spokei_option *option = &spokei_key_row(key)->option;
	const bool is_time = option->kind == SPOKEI_OPTION_DURATION ||
			     option->kind == SPOKEI_OPTION_DELAY;
	const uint64_t step = ((uint64_t)key + 1) * (is_time ? MS : 1);

	if (option->kind == SPOKEI_OPTION_BOOL)
		return 1 - option->preset;
	if (option->preset + step > option->max)
		return option->max - step % (option->max - option->min);
	return option->preset + step < option->min ? option->min + step : option->preset + step;
}

/* Returns whether the test has a value for the key, and writes it. */
static bool print_value(enum spokei_key key, char *out, size_t size)
{
	const struct spokei_key_row *row = spokei_key_row(key);
	unsigned name = 0;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].key == key)
			return snprintf(out, size, "%s", texts[i].value) > 0;
	if (row->option.kind == SPOKEI_OPTION_NAME) {
		/* The last name, or the one before if that is the default. */
		while (row->option.names(name + 1))
			name++;
		if (row->preset ? strcmp(row->option.names(name), row->preset) == 0
				: row->option.preset == name)
			name--;
		return snprintf(out, size, "%s", row->option.names(name)) > 0;
	}
	if (!is_number(key))
		return false;
	spokei_option_print(row->option.kind, number_of(key), out, size);
	return true;
}

/* Returns the key at whose places a key is seen. */
static enum spokei_key seen_as(enum spokei_key key)
{
	if (key == SPOKEI_KEY_TOKEN_FILE)
		return SPOKEI_KEY_TOKEN;
	if (key == SPOKEI_KEY_ACCESS_ID || key == SPOKEI_KEY_ACCESS_SECRET_FILE)
		return SPOKEI_KEY_AUTH;
	return key;
}

/* Returns whether a line stands in a file with this change, beside the line of the change itself.
 */
static bool stands(const struct line *line, enum spokei_section section, enum spokei_key key)
{
	const char *name = key == SPOKEI_KEYS ? "" : spokei_key_in_file(key);
	const bool signs = key == SPOKEI_KEY_ACCESS_WINDOW || seen_as(key) == SPOKEI_KEY_AUTH;

	if (line->section == SPOKEI_IN_SERVICE && !(section == SPOKEI_IN_SERVICE && signs))
		return false;
	if (line->section != section)
		return true;
	return strcmp(line->name, name) != 0 &&
	       !(key == SPOKEI_KEY_TOKEN_FILE && strcmp(line->name, "token") == 0);
}

/* Writes the file, with one key changed in one section; SPOKEI_KEYS: none. */
static void print_file(enum spokei_section section, enum spokei_key key, const char *value,
		       char *text, size_t size)
{
	size_t len = 0;

	for (unsigned i = 0; i < SPOKEI_SECTIONS; i++) {
		const char *heading = spokei_section_word((enum spokei_section)i);

		if (i == SPOKEI_IN_SERVICE)
			heading = "service." SERVICE;
		if (i == SPOKEI_IN_METHOD)
			heading = "method." SERVICE "." METHOD;
		len += (size_t)snprintf(text + len, size - len, "[%s]\n", heading);
		for (size_t k = 0; k < sizeof(base) / sizeof(base[0]); k++) {
			if (base[k].section == i && stands(&base[k], section, key))
				len += (size_t)snprintf(text + len, size - len, "%s = %s\n",
							base[k].name, base[k].value);
		}
		if (key != SPOKEI_KEYS && i == section)
			len += (size_t)snprintf(text + len, size - len, "%s = %s\n",
						spokei_key_in_file(key), value);
	}
	assert_true(len < size);
}

/* --- running objects */

static void handle(struct spoke_request *request, void *arg)
{
	(void)request;
	(void)arg;
}

static void put(struct cast *cast, const char *path, const char *text)
{
	spokei_vfiles_put(cast->world.files, path, text);
}

static void made(const struct cast *cast, int error)
{
	if (error)
		fail_msg("%s", spoke_engine_why(cast->engine));
}

static void authorize(void *arg, struct spoke_comet_entry entry,
		      const struct spoke_comet_request *request)
{
	(void)arg;
	(void)entry;
	(void)request;
}

/* Opens the page as a program does. */
static void open_page(struct cast *cast, const struct spoke_tls_options *tls)
{
	const struct spoke_admin_options showing = {
		.listen = spoke_config_get(cast->config, "engine", "admin"),
		.config = cast->config,
		.tls = tls->cert ? tls : NULL,
	};

	made(cast, spoke_admin_new(cast->engine, &showing, &cast->page));
}

static void begin_with(struct cast *cast, const char *text, const struct code *code)
{
	struct spoke_provider_options serving = code->provider;
	struct spoke_consumer_options calling = code->consumer;
	struct spoke_comet_options showing = code->gateway;
	struct spoke_leases_options leasing = code->leases;
	const struct spoke_handler handlers[] = { { .method = METHOD, .handle = handle } };
	const struct spoke_service_options service = { .name = SERVICE };
	struct spoke_engine_options with = code->engine;

	memset(cast, 0, sizeof(*cast));
	scene_open(&cast->world, 1);
	spokei_world_process_init(&cast->process, &cast->world);
	with.env = &cast->process.env;
	put(cast, FILE_NAME, text);
	put(cast, "cert", issued.cert);
	put(cast, "key", issued.key);
	put(cast, "other.cert", issued.cert);
	put(cast, "other.key", issued.key);
	put(cast, "token", "third-token\n");
	put(cast, "secret", "battery-staple\n");
	put(cast, "other", "correct-horse\n");
	put(cast, "crl", revoked);
	assert_int_equal(spoke_config_load(with.env, FILE_NAME, NULL, NULL, &cast->config), 0);
	calling.url = code->url;
	if (code->tls.cert)
		serving.tls = &code->tls;
	if (code->calling_tls.cert)
		calling.tls = &code->calling_tls;
	showing.authorize = authorize;
	serving.config = calling.config = showing.config = leasing.config = cast->config;
	spoke_config_engine(cast->config, &with);
	assert_int_equal(spoke_engine_new(&with, &cast->engine), 0);
	made(cast, spoke_provider_new(cast->engine, &serving, &cast->provider));
	made(cast, spoke_provider_add(cast->provider, &service, handlers, 1));
	assert_true(spoke_provider_listen_configured(cast->provider) >= 0);
	made(cast, spoke_consumer_new(cast->engine, &calling, &cast->consumer));
	made(cast, spoke_consumer_method(cast->consumer, METHOD, &code->method, &cast->method));
	made(cast, spoke_comet_new(cast->engine, &showing, &cast->gateway));
	made(cast, spoke_leases_new(cast->engine, &leasing, &cast->leases));
	open_page(cast, &code->page_tls);
}

static void begin(struct cast *cast, const char *text)
{
	static const struct code nothing = { .url = URL };

	begin_with(cast, text, &nothing);
}

static void end(struct cast *cast)
{
	spoke_admin_free(cast->page);
	spoke_leases_free(cast->leases);
	spoke_comet_free(cast->gateway);
	spoke_consumer_free(cast->consumer);
	spoke_provider_free(cast->provider);
	spoke_engine_free(cast->engine);
	spoke_config_free(cast->config);
	spokei_world_process_fini(&cast->process);
	spokei_world_fini(&cast->world);
}

/* --- what can be seen of them */

static void add(struct sight *sight, enum spokei_key key, unsigned sections, uint64_t number)
{
	assert_true(sight->count < SEEN_MAX);
	sight->at[sight->count++] = (struct seen){ key, sections, true, number };
}

static uint64_t print_of(const void *bytes, size_t len, uint64_t seed)
{
	const unsigned char *byte = bytes;

	for (size_t i = 0; i < len; i++)
		seed = (seed ^ byte[i]) * UINT64_C(1099511628211);
	return seed;
}

static uint64_t print_of_text(const char *text)
{
	return text ? print_of(text, strlen(text), 1) : 0;
}

static uint64_t print_of_access(const struct spokei_credentials *of)
{
	return of->signs ? print_of(of->id, of->id_len, print_of(of->secret, of->secret_len, 2))
			 : 0;
}

/* All fields of a struct in use that rows name. */
static void see_fields(struct sight *sight, unsigned sections, enum spokei_fields_of of,
		       const void *at)
{
	for (unsigned k = 0; k < SPOKEI_KEYS; k++) {
		const enum spokei_key key = (enum spokei_key)k;
		const struct spokei_field *field = spokei_key_field(key, of);

		if (field == NULL || (spokei_key_row(key)->sections & sections) == 0)
			continue;
		if (field->type == SPOKEI_FIELD_TEXT)
			add(sight, key, sections, print_of_text(spokei_field_pointer(field, at)));
		else if (field->type == SPOKEI_FIELD_OBJECT)
			add(sight, key, sections, (uintptr_t)spokei_field_pointer(field, at));
		else
			add(sight, key, sections, spokei_field_get(field, at));
	}
}

/* All settings in force of an owner, but for secrets, whose texts are not kept. */
static void see_settings(struct sight *sight, const struct spokei_settings *settings)
{
	const unsigned sections = settings->kind->sections;
	struct spokei_key_values all;
	const struct spokei_key_values *values = &all;

	spokei_settings_look(settings, &all);
	for (unsigned k = 0; k < SPOKEI_KEYS; k++) {
		const enum spokei_key key = (enum spokei_key)k;
		const struct spokei_key_row *row = spokei_key_row(key);

		if ((row->sections & sections) == 0 || row->secret)
			continue;
		add(sight, key, sections,
		    spokei_key_is_text(key) ? print_of_text(values->text[key])
		    : values->object[key]   ? (uintptr_t)values->object[key]
		    : row->object           ? (uintptr_t)row->object((unsigned)values->of[key])
					    : values->of[key]);
		sight->at[sight->count - 1].is_copy = false;
	}
}

#define SEE(key, number) add(sight, SPOKEI_KEY_##key, OF_CONSUMER, (uint64_t)(number))
static void see_consumer(const struct cast *cast, struct sight *sight)
{
	const struct spoke_consumer *consumer = cast->consumer;
	const struct spoke_method *method = cast->method;
	const struct spokei_retry_queue *retry = &consumer->caller->retry;
	const struct spokei_credentials *shown = consumer->shown;
	const struct spokei_keeper_options *keeper = &consumer->settings->keeper;

	see_settings(sight, &consumer->settings->keys);
	see_fields(sight, OF_CONSUMER, SPOKEI_AT_CALL, &method->settings);
	see_fields(sight, OF_CONSUMER, SPOKEI_AT_LINK, &consumer->link->limits);
	see_fields(sight, OF_CONSUMER, SPOKEI_AT_JOURNAL, &consumer->settings->journal);
	see_fields(sight, OF_CONSUMER | OF_REGISTRY, SPOKEI_AT_DIRECTORY,
		   &consumer->directory->settings);
	SEE(LOADBALANCE, (uintptr_t)method->balancer_state->balancer);
	SEE(SERIALIZATION, method->settings.codec);
	SEE(SLOW_AFTER, method->figures->slow_ns);
	SEE(ACTIVES, method->limit.active_max);
	SEE(TPS, method->limit.bucket.rate);
	SEE(SHM_RING, consumer->link->limits.ring_bits);
	SEE(VALUES_MAX, consumer->link->limits.wire.free_len);
	SEE(FAILBACK_TASKS, retry->tasks_max);
	SEE(FAILBACK_BYTES, retry->bytes_max);
	SEE(FAILBACK_OVERFLOW, retry->drops_oldest);
	SEE(TOKEN, print_of_text(shown->token));
	SEE(TOKEN_PLAIN, consumer->caller->token_plain);
	SEE(TAG, print_of_text(consumer->caller->tag));
	SEE(TAG_FORCE, consumer->caller->tag_force);
	SEE(AUTH, print_of_access(shown));
	SEE(TLS, consumer->tls != NULL);
	SEE(VERSION, print_of_text(consumer->directory->settings.version));
	SEE(GROUP, print_of_text(consumer->directory->settings.group));
#undef SEE
#define SEE(key, number) add(sight, SPOKEI_KEY_##key, OF_CONSUMER | OF_REGISTRY, (uint64_t)(number))
	SEE(REGISTRY_CACHE, print_of_text(keeper->cache));
	SEE(REGISTRY_RETRY_PERIOD, keeper->retry_ns);
	SEE(REGISTRY_RETRY_TIMES, keeper->retries_max);
#undef SEE
}

#define SEE(key, number) add(sight, SPOKEI_KEY_##key, sections, (uint64_t)(number))
static void see_tls(struct sight *sight, unsigned sections, const struct spokei_tls *tls)
{
	SEE(TLS_VERIFY, tls->verify);
	SEE(TLS_CRL,
	    sk_X509_OBJECT_num(X509_STORE_get0_objects(SSL_CTX_get_cert_store(tls->context))));
	SEE(TLS_MIN, SSL_CTX_get_min_proto_version(tls->context));
	SEE(CONNECTIONS_PER_PEER_PREFIX6, tls->peers.limits.prefix6);
	SEE(HANDSHAKES_MAX, tls->slots_max);
	SEE(HANDSHAKES_PER_PEER_MAX, tls->peers.limits.per_peer_max);
	SEE(HANDSHAKES_TPS, tls->begins.rate);
}
#undef SEE

#define SEE(key, number) add(sight, SPOKEI_KEY_##key, OF_PROVIDER, (uint64_t)(number))
static void see_limits(const struct cast *cast, struct sight *sight)
{
	const struct spoke_provider *provider = cast->provider;
	const struct spokei_link_limits *limits = &provider->link->limits;

	see_fields(sight, OF_PROVIDER, SPOKEI_AT_LINK, limits);
	see_fields(sight, OF_PROVIDER, SPOKEI_AT_QUOTA,
		   &spokei_listen_group_quota(provider->listeners)->limits);
	SEE(VALUES_MAX, limits->wire.free_len);
	SEE(HTTP_HOSTS, print_of_text(limits->wire.http->hosts));
	SEE(HTTP_ORIGINS, print_of_text(limits->wire.http->origins));
	SEE(UNPROVEN_FRAME_MAX, limits->unproven_frame_max);
	SEE(UNPROVEN_FRAME_MAX, provider->link->unproven.frame_max);
	SEE(PUSHES_MAX, provider->caller->calls.max);
	SEE(TLS, provider->tls_mode);
	see_tls(sight, OF_PROVIDER, provider->tls);
}

static void see_provider(const struct cast *cast, struct sight *sight)
{
	const struct spoke_provider *provider = cast->provider;
	const struct spokei_service *service = spoke_container_of(provider->services->all.next,
								  struct spokei_service, node);
	const struct spokei_route *route = &service->routes[0];
	const struct spokei_credentials *asked = spokei_access_of(provider->access, service);
	const struct spokei_rules *rules = spokei_listen_group_rules(provider->listeners);
	const struct spokei_callers *callers = service->callers ? service->callers
								: provider->access->callers;
	char address[64] = "";

	(void)spoke_provider_address(provider, 0, address, sizeof(address));
	see_settings(sight, &provider->settings->keys);
	SEE(LISTEN, print_of_text(address));
	SEE(LOCAL_PATH, provider->settings->local_path);
	SEE(ADVERTISE, print_of_text(provider->registration->advertise));
	SEE(APPLICATION, print_of_text(provider->registration->application));
	SEE(ACCESS_LOG, provider->access_log != NULL);
	SEE(FENCE_PROVEN, provider->filters->fence_proven);
	SEE(SLOW_AFTER, route->figures->slow_ns);
	SEE(EXECUTES, route->limit->active_max);
	SEE(EXECUTES_TPS, route->limit->bucket.rate);
	SEE(DEDUPE, route->dedupe->keep_ns);
	SEE(DEDUPE_UNKNOWN, route->dedupe->runs_unknown);
	SEE(DEDUPE_MAX, provider->dedupe->table.count_max);
	SEE(DEDUPE_BYTES, provider->dedupe->table.bytes_max);
	SEE(TAG, print_of_text(spokei_settings_text(&provider->settings->keys, SPOKEI_KEY_TAG)));
	SEE(WEIGHT, provider->registration->weight);
	SEE(WARMUP, provider->registration->warmup_ms * MS);
	SEE(TOKEN, print_of(asked->tokens.digests, asked->tokens.count * SPOKEI_SHA256, 3));
	SEE(AUTH, print_of_access(asked));
	SEE(ACCESS_WINDOW, asked->window_ns);
	SEE(ALLOW_FROM, rules ? rules->allow_count : 0);
	SEE(DENY_FROM, rules ? rules->deny_count : 0);
	SEE(ALLOW_USERS, rules ? rules->user_count : 0);
	SEE(ALLOW_USERS, provider->link->users_prove);
	SEE(ALLOW_CALLERS, callers ? callers->count : 0);
#undef SEE
}

static void see_gateway(const struct cast *cast, struct sight *sight)
{
	const struct spoke_comet *gateway = cast->gateway;
	const struct spoke_comet_options *with = &gateway->with;
	char address[64] = "";

	(void)spoke_comet_address(gateway, 0, address, sizeof(address));
	see_settings(sight, gateway->settings);
	see_fields(sight, OF_GATEWAY, SPOKEI_AT_COMET, with);
	see_fields(sight, OF_GATEWAY, SPOKEI_AT_QUOTA, &gateway->quota.limits);
#define SEE(key, number) add(sight, SPOKEI_KEY_COMET_##key, OF_GATEWAY, (uint64_t)(number))
	SEE(LISTEN, print_of_text(address));
	SEE(HEAD_TIME, gateway->http.limits.request_ns);
	SEE(SLOW, gateway->http.limits.slow_ns - with->authorize_ns);
	SEE(ACCEPT_RATE, gateway->rate.rate);
	SEE(CONNECTIONS_MAX, gateway->ask_slab.max);
	SEE(FRAME_MAX, gateway->http.limits.body_max);
#undef SEE
}

static void see_leases(const struct cast *cast, struct sight *sight)
{
	const struct spokei_lease_settings *settings = spokei_leases_settings(cast->leases);
	const struct spokei_redis_options *redis = &settings->redis;
	struct spoke_leases_look look;

	spoke_leases_look(cast->leases, &look);
#define SEE(key, number) add(sight, SPOKEI_KEY_LEASE_##key, OF_LEASES, (uint64_t)(number))
	SEE(STORE, print_of_text(look.store));
	SEE(USER, print_of_text(redis->user));
	SEE(PASSWORD, print_of_text(redis->password));
	SEE(SENTINEL_PASSWORD, print_of_text(redis->sentinel_password));
	SEE(TTL, settings->ttl_ns);
	SEE(WAIT, settings->wait_ns);
	SEE(GUARD, settings->guard_ns);
	SEE(MAX, settings->max);
#undef SEE
}

static void see_engine(const struct cast *cast, struct sight *sight)
{
	const struct spokei_log *log = cast->engine->log;

	see_fields(sight, OF_ENGINE, SPOKEI_AT_ENGINE, spokei_engine_options(cast->engine));
	add(sight, SPOKEI_KEY_LOG, OF_ENGINE, log->off ? UINT64_MAX : log->level_max);
}

static void see_page(const struct cast *cast, struct sight *sight)
{
	const struct spoke_admin *page = cast->page;

	add(sight, SPOKEI_KEY_ADMIN, OF_ENGINE, print_of_text(spoke_admin_address(page)));
	/* A random token differs from one start to the next. */
	add(sight, SPOKEI_KEY_ADMIN_TOKEN_FILE, OF_ENGINE, strcmp(page->token, "third-token") == 0);
	add(sight, SPOKEI_KEY_HANDSHAKE_TIMEOUT, OF_PAGE, page->http.limits.open_ns);
	see_tls(sight, OF_PAGE, page->tls);
}

static void look(const struct cast *cast, struct sight *sight)
{
	sight->count = 0;
	see_consumer(cast, sight);
	see_limits(cast, sight);
	see_provider(cast, sight);
	see_gateway(cast, sight);
	see_leases(cast, sight);
	see_engine(cast, sight);
	see_page(cast, sight);
}

/* Returns whether a change of a key shows at a place. */
static bool shows(const struct seen *seen, enum spokei_key key)
{
	return seen->key == (seen->is_copy ? seen_as(key) : key);
}

/* Looks at objects that begin with a file. */
static void look_at(const char *text, struct sight *ret)
{
	static struct cast fresh;

	begin(&fresh, text);
	look(&fresh, ret);
	end(&fresh);
}

/* --- the file */

static const char *name_of(enum spokei_key key)
{
	return spokei_key_row(key)->option.name;
}

static bool stands_in(enum spokei_key key, enum spokei_section section)
{
	return spokei_key_row(key)->sections & 1u << section;
}

/* Writes a file with a key in a section, and looks at objects that begin with it. */
static void look_at_line(enum spokei_section section, enum spokei_key key, const char *value,
			 char text[TEXT_MAX], struct sight *ret)
{
	print_file(section, key, value, text, TEXT_MAX);
	look_at(text, ret);
}

/* Asserts that a line of the file changes the key at all places of its section. */
static void assert_set(const struct sight *plain, const struct sight *by_file,
		       enum spokei_section section, enum spokei_key key)
{
	unsigned places = 0;

	for (size_t i = 0; i < plain->count; i++) {
		if (!shows(&plain->at[i], key) || !(plain->at[i].sections & 1u << section))
			continue;
		places++;
		if (by_file->at[i].number == plain->at[i].number)
			fail_msg("%s of [%s]: place %zu stays as it was", name_of(key),
				 spokei_section_word(section), i);
	}
	if (places == 0)
		fail_msg("%s of [%s]: add a field to its row, or a line to see_*()", name_of(key),
			 spokei_section_word(section));
}

/* --- a reload */

static int reload(struct cast *cast, const char *text)
{
	put(cast, FILE_NAME, text);
	return spoke_config_reload(cast->config, NULL, NULL);
}

/* Asserts that a reload changes a live key, and nothing else, as a fresh start does. */
static void assert_reloaded(struct cast *running, const struct sight *plain,
			    const struct sight *fresh, enum spokei_section section,
			    enum spokei_key key)
{
	static struct sight after;

	look(running, &after);
	for (size_t i = 0; i < after.count; i++) {
		const struct seen *seen = &after.at[i];
		const bool meant = shows(seen, key) && seen->sections & 1u << section;

		if (seen->number != fresh->at[i].number)
			fail_msg("%s: place %zu, of %s, differs from a fresh start", name_of(key),
				 i, name_of(seen->key));
		if ((seen->number != plain->at[i].number) != meant)
			fail_msg("%s: place %zu, of %s, is %s", name_of(key), i, name_of(seen->key),
				 meant ? "the same" : "changed");
		if (meant && is_number(key))
			assert_int_equal(seen->number, number_of(key));
	}
}

/* Asserts that a reload changes nothing. */
static void assert_kept(struct cast *running, const struct sight *plain, enum spokei_key key)
{
	static struct sight after;

	look(running, &after);
	for (size_t i = 0; i < after.count; i++)
		if (after.at[i].number != plain->at[i].number)
			fail_msg("%s changes place %zu, of %s", name_of(key), i,
				 name_of(after.at[i].key));
}

/* --- code and URLs */

/* Structs of options, each with the section that sets the same. */
static const struct {
	enum spokei_fields_of of;
	enum spokei_section section;
	size_t at;
	unsigned page; /* PAGE, or 0 */
} structs[] = {
	{ SPOKEI_AT_CONSUMER, SPOKEI_IN_CONSUMER, offsetof(struct code, consumer), 0 },
	{ SPOKEI_AT_METHOD, SPOKEI_IN_METHOD, offsetof(struct code, method), 0 },
	{ SPOKEI_AT_PROVIDER, SPOKEI_IN_PROVIDER, offsetof(struct code, provider), 0 },
	{ SPOKEI_AT_TLS, SPOKEI_IN_PROVIDER, offsetof(struct code, tls), 0 },
	{ SPOKEI_AT_TLS, SPOKEI_IN_CONSUMER, offsetof(struct code, calling_tls), 0 },
	{ SPOKEI_AT_TLS, SPOKEI_IN_PROVIDER, offsetof(struct code, page_tls), PAGE },
	{ SPOKEI_AT_LEASES, SPOKEI_IN_LEASE, offsetof(struct code, leases), 0 },
	{ SPOKEI_AT_COMET, SPOKEI_IN_COMET, offsetof(struct code, gateway), 0 },
	{ SPOKEI_AT_ENGINE, SPOKEI_IN_ENGINE, offsetof(struct code, engine), 0 },
};

/* Sets a field of options to the value that a file has as `value`. */
static void say(const struct spokei_field *field, void *options, enum spokei_key key,
		const char *value)
{
	const struct spokei_key_row *row = spokei_key_row(key);
	char why[SPOKEI_OPTION_WHY_MAX];
	uint64_t number;

	if (field->type == SPOKEI_FIELD_TEXT) {
		spokei_field_set_pointer(field, options, value);
		return;
	}
	assert_int_equal(spokei_option_parse(&row->option, value, true, &number, why, sizeof(why)),
			 0);
	if (field->type == SPOKEI_FIELD_OBJECT) {
		spokei_field_set_pointer(field, options, row->object((unsigned)number));
		return;
	}
	if (row->words)
		number++;
	spokei_field_set(field, options, field->inverts ? !number : number);
	/* A number that the field cannot hold would be cut. */
	assert_int_equal(spokei_field_get(field, options), field->inverts ? !number : number);
}

/* Sets the other half of a signature's key, because options have both. */
static void say_other_half(enum spokei_fields_of of, void *options, enum spokei_key key)
{
	const bool is_id = key == SPOKEI_KEY_ACCESS_ID;
	const enum spokei_key other = is_id ? SPOKEI_KEY_ACCESS_SECRET_FILE : SPOKEI_KEY_ACCESS_ID;

	if (is_id || key == SPOKEI_KEY_ACCESS_SECRET_FILE)
		say(spokei_key_field(other, of), options, other, is_id ? "secret" : "one");
}

/* Asserts that code or a URL sets what a line of the file sets in `section`. `page`: PAGE, if it is
 * of the page, or 0. */
static void assert_same_road(const struct sight *plain, enum spokei_section section, unsigned page,
			     enum spokei_key key, const char *value, const struct code *code)
{
	static struct cast of_code;
	static struct sight by_file;
	static struct sight by_code;
	const unsigned owner = section == SPOKEI_IN_METHOD ? OF_CONSUMER : 1u << section;
	enum spokei_section in = section;
	char text[TEXT_MAX];
	unsigned places = 0;

	if (!stands_in(key, section))
		in = stands_in(key, SPOKEI_IN_SERVICE) ? SPOKEI_IN_SERVICE : SPOKEI_IN_REGISTRY;
	look_at_line(in, key, value, text, &by_file);
	print_file(SPOKEI_IN_ENGINE, SPOKEI_KEYS, "", text, sizeof(text));
	begin_with(&of_code, text, code);
	look(&of_code, &by_code);
	end(&of_code);
	for (size_t i = 0; i < plain->count; i++) {
		const struct seen *seen = &plain->at[i];

		if (!shows(seen, key) || (seen->sections & owner) != owner ||
		    (seen->sections & PAGE) != page)
			continue;
		places++;
		if (by_code.at[i].number != by_file.at[i].number)
			fail_msg("%s = %s: place %zu: %s sets another value than the file",
				 name_of(key), value, i, code->url);
		if (by_code.at[i].number == seen->number)
			fail_msg("%s = %s: place %zu: %s sets nothing", name_of(key), value, i,
				 code->url);
	}
	if (places == 0)
		fail_msg("%s: add a field to its row, or a line to see_*()", name_of(key));
}

/* Returns whether the key is seen at a place with this flag. */
static bool is_seen(const struct sight *sight, unsigned flag, enum spokei_key key)
{
	for (size_t i = 0; i < sight->count; i++)
		if (sight->at[i].sections & flag && shows(&sight->at[i], key))
			return true;
	return false;
}

static void try_code(const struct sight *plain, enum spokei_key key, const char *value)
{
	for (size_t i = 0; i < sizeof(structs) / sizeof(structs[0]); i++) {
		const enum spokei_fields_of of = structs[i].of;
		const struct spokei_field *field = spokei_key_field(key, of);
		struct code code = { .url = URL };
		void *options = (char *)&code + structs[i].at;

		/* A consumer with an address has no registry. */
		if (field == NULL || (key == SPOKEI_KEY_REGISTRY_URL && of == SPOKEI_AT_CONSUMER))
			continue;
		if (of == SPOKEI_AT_TLS && !stands_in(key, structs[i].section))
			continue;
		/* What is seen of the certificates of the page is in its context. */
		if (structs[i].page && !is_seen(plain, PAGE, key))
			continue;
		if (of == SPOKEI_AT_TLS) {
			*(struct spoke_tls_options *)options = (struct spoke_tls_options){
				.cert = "cert",
				.key = "key",
				/* Nothing of the file lies below those of the page. */
				.ca = structs[i].page ? "cert" : NULL,
				.optional = structs[i].section == SPOKEI_IN_PROVIDER &&
					    !structs[i].page,
			};
		}
		say_other_half(of, options, key);
		say(field, options, key, value);
		assert_same_road(plain, structs[i].section, structs[i].page, key, value, &code);
	}
}

/* Options that are copied from a file, for a gateway that the program makes. */
static void try_copies(enum spokei_key key, const char *value, const char *text)
{
	const struct spokei_field *field = spokei_key_field(key, SPOKEI_AT_COMET);
	struct spoke_comet_options expected = { .listen = NULL };
	struct spoke_comet_options with = { .listen = NULL };
	struct spoke_config *config;

	if (field == NULL)
		return;
	assert_int_equal(spoke_config_parse(NULL, FILE_NAME, spokei_span(text, strlen(text)), NULL,
					    NULL, &config),
			 0);
	spoke_config_comet(config, &with);
	say(field, &expected, key, value);
	if (field->type != SPOKEI_FIELD_TEXT)
		assert_int_equal(spokei_field_get(field, &with),
				 spokei_field_get(field, &expected));
	else
		assert_string_equal(spokei_field_pointer(field, &with), value);
	spoke_config_free(config);
}

static void try_urls(const struct sight *plain, enum spokei_key key, const char *value)
{
	const struct spokei_key_row *row = spokei_key_row(key);
	struct code code = { .url = URL };
	char store[512];

	(void)snprintf(code.url, sizeof(code.url), "%s?%s=%s", URL, name_of(key), value);
	if ((unsigned)key < SPOKEI_KEYS_OF_URLS ||
	    (row->of_urls && spokei_key_is_text(key) && !row->secret))
		assert_same_road(plain, SPOKEI_IN_CONSUMER, 0, key, value, &code);
	(void)snprintf(code.url, sizeof(code.url), "%s?" METHOD ".%s=%s", URL, name_of(key), value);
	if ((unsigned)key < SPOKEI_KEYS_OF_METHODS)
		assert_same_road(plain, SPOKEI_IN_METHOD, 0, key, value, &code);
	code = (struct code){ .url = URL, .leases.store = store };
	(void)snprintf(store, sizeof(store), "%s?%s=%s", STORE, name_of(key), value);
	if (key >= SPOKEI_KEY_LEASE_TTL && key <= SPOKEI_KEY_LEASE_MAX)
		assert_same_road(plain, SPOKEI_IN_LEASE, 0, key, value, &code);
}

/* Live keys of which the settings in force are read each time, so that a reload needs no copy. */
static bool is_read_each_time(enum spokei_key key)
{
	return key == SPOKEI_KEY_AUTH_FAILURES_MAX;
}

static void assert_copied(const struct sight *plain, enum spokei_key key)
{
	bool is_copied = false;

	for (size_t i = 0; i < plain->count; i++)
		is_copied |= plain->at[i].is_copy && shows(&plain->at[i], key);
	if (spokei_key_row(key)->live && is_copied == is_read_each_time(key))
		fail_msg("%s: add a field to its row, or a line to see_*()", name_of(key));
}

TEST(each_road_of_each_key_sets_the_same)
{
	static struct cast running;
	static struct sight plain;
	static struct sight fresh;
	char base_text[TEXT_MAX];
	char text[TEXT_MAX];
	char value[128];

	print_file(SPOKEI_IN_ENGINE, SPOKEI_KEYS, "", base_text, sizeof(base_text));
	begin(&running, base_text);
	look(&running, &plain);
	for (unsigned k = 0; k < SPOKEI_KEYS; k++) {
		const enum spokei_key key = (enum spokei_key)k;

		if (!print_value(key, value, sizeof(value)))
			fail_msg("%s: add a value to texts[]", name_of(key));
		assert_copied(&plain, key);
		for (unsigned i = 0; i < SPOKEI_SECTIONS; i++) {
			const enum spokei_section section = (enum spokei_section)i;

			if (!stands_in(key, section))
				continue;
			look_at_line(section, key, value, text, &fresh);
			assert_set(&plain, &fresh, section, key);
			try_copies(key, value, text);
			if (reload(&running, text) != SPOKE_OK)
				fail_msg("%s\n%s", spoke_engine_why(running.engine), text);
			if (spokei_key_row(key)->live)
				assert_reloaded(&running, &plain, &fresh, section, key);
			else
				assert_kept(&running, &plain, key);
			assert_int_equal(reload(&running, base_text), SPOKE_OK);
		}
		try_code(&plain, key, value);
		try_urls(&plain, key, value);
	}
	end(&running);
}

static int issue(void **state)
{
	const struct issue_options options = { .name = "a", .key = ISSUE_ED25519 };
	struct spokei_world world;
	struct spokei_world_process process;
	int error;

	(void)state;
	scene_open(&world, 1);
	spokei_world_process_init(&process, &world);
	error = issue_make(&process.env, &options, &issued);
	spokei_world_process_fini(&process);
	spokei_world_fini(&world);
	return error;
}

GROUP(issue, NULL);
