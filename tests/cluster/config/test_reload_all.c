/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All keys of the table, one at a time, on each road: in each section of the file that allows them,
 * in each field of options that sets them, and in the URL. Each road gives objects the same
 * setting. A reload gives running objects the setting that a fresh start has, and changes nothing
 * else. A key without a line in see_*() fails here.
 */
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/comet/parts.h"
#include "cluster/config/credentials.h"
#include "cluster/config/keys.h"
#include "cluster/consumer/parts.h"
#include "cluster/consumer/settings.h"
#include "cluster/endpoints/directory.h"
#include "cluster/filter/filter.h"
#include "cluster/filter/limit.h"
#include "cluster/lease/settings.h"
#include "cluster/lease/view.h"
#include "cluster/provider/parts.h"
#include "cluster/provider/proof.h"
#include "cluster/provider/registration.h"
#include "cluster/provider/settings.h"
#include "cluster/serve/routes.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "core/virtual/files.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"
#include "transport/conn/callers.h"
#include "transport/conn/link.h"
#include "transport/listen/group.h"
#include "transport/listen/quota.h"
#include "transport/listen/rules.h"
#include "transport/stream/tls/parts.h"

#include <spoke/config.h>
#include <spoke/consumer.h>
#include <spoke/issue.h>
#include <spoke/lease.h>
#include <spoke/provider.h>

#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define FILE_NAME "a.conf"
#define SERVICE "demo.A"
#define METHOD "echo"
#define URL "dubbo://127.0.0.1:1/" SERVICE

enum {
	SEEN_MAX = 256,
	TEXT_MAX = 2048,
};

/* Sections whose keys apply to an object. */
#define OF_CONSUMER (1u << SPOKEI_IN_CONSUMER | 1u << SPOKEI_IN_SERVICE | 1u << SPOKEI_IN_METHOD)
#define OF_PROVIDER (1u << SPOKEI_IN_PROVIDER | 1u << SPOKEI_IN_SERVICE | 1u << SPOKEI_IN_METHOD)
#define OF_GATEWAY (1u << SPOKEI_IN_COMET)
#define OF_REGISTRY (1u << SPOKEI_IN_REGISTRY)
#define OF_LEASES (1u << SPOKEI_IN_LEASE)
#define OF_ENGINE (1u << SPOKEI_IN_ENGINE)

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
};

/* What a program says. */
struct code {
	struct spoke_engine_options engine;
	struct spoke_consumer_options consumer;
	struct spoke_method_options method;
	struct spoke_provider_options provider;
	struct spoke_tls_options tls;
	struct spoke_comet_options gateway;
	struct spoke_leases_options leases;
	char url[512];
};

/* The value of a key at a place in a running object. */
struct seen {
	enum spokei_key key;
	unsigned sections;
	uint64_t number;
};

struct sight {
	struct seen at[SEEN_MAX];
	size_t count;
};

static struct spoke_issued issued;

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
	{ SPOKEI_IN_REGISTRY, "url", "file:///registry" },
	{ SPOKEI_IN_LEASE, "store", "redis://127.0.0.1:1" },
	{ SPOKEI_IN_COMET, "listen", "127.0.0.1:8080" },
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
	{ SPOKEI_KEY_VERSION, "2.0" },
	{ SPOKEI_KEY_GROUP, "east" },
	{ SPOKEI_KEY_ADVERTISE, "10.0.0.9" },
	{ SPOKEI_KEY_APPLICATION, "shop" },
	{ SPOKEI_KEY_DEFAULT_SERVICE, "demo.B" },
	{ SPOKEI_KEY_ACCESS_LOG, "true" },
	{ SPOKEI_KEY_HTTP_ORIGINS, "https://c.example" },
	{ SPOKEI_KEY_HTTP_HOSTS, "d.example" },
	{ SPOKEI_KEY_TLS_CERT, "other.cert" },
	{ SPOKEI_KEY_TLS_KEY, "other.key" },
	{ SPOKEI_KEY_TLS_CA, "cert" },
	{ SPOKEI_KEY_TLS_CRL, "crl" },
	{ SPOKEI_KEY_TLS_PEERS, "dns:e.example" },
	{ SPOKEI_KEY_LEASE_STORE, "redis://10.0.0.4:1" },
	{ SPOKEI_KEY_LEASE_USER, "ann" },
	{ SPOKEI_KEY_SPIN, "100us" },
};

/* Keys that no object of this test has: the command `spoke` reads some, a listener, an admin page
 * or a handshake others. */
static const enum spokei_key elsewhere[] = {
	SPOKEI_KEY_LISTEN,
	SPOKEI_KEY_ADMIN,
	SPOKEI_KEY_COMET_LISTEN,
	SPOKEI_KEY_COMET_PAGE,
	SPOKEI_KEY_COMET_BACKEND,
	SPOKEI_KEY_TLS_CRL,
	SPOKEI_KEY_TLS_PEERS,
	SPOKEI_KEY_LEASE_USER,
	SPOKEI_KEY_LEASE_PASSWORD,
	SPOKEI_KEY_LEASE_SENTINEL_PASSWORD,
	SPOKEI_KEY_COMET_TICKET_LIFE,
	SPOKEI_KEY_COMET_QUERY_USER, /* each gateway here needs it */
};

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
		const char *heading = spokei_section_name((enum spokei_section)i);

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
	assert_true(spokei_world_init(&cast->world, 1));
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
	assert_int_equal(spoke_config_load(with.env, FILE_NAME, NULL, NULL, &cast->config), 0);
	calling.url = code->url;
	if (code->tls.cert)
		serving.tls = &code->tls;
	showing.query_user = true;
	serving.config = calling.config = showing.config = leasing.config = cast->config;
	spoke_config_engine(cast->config, &with);
	assert_int_equal(spoke_engine_new(&with, &cast->engine), 0);
	made(cast, spoke_provider_new(cast->engine, &serving, &cast->provider));
	made(cast, spoke_provider_add(cast->provider, &service, handlers, 1));
	made(cast, spoke_consumer_new(cast->engine, &calling, &cast->consumer));
	made(cast, spoke_consumer_method(cast->consumer, METHOD, &code->method, &cast->method));
	made(cast, spoke_comet_new(cast->engine, &showing, &cast->gateway));
	made(cast, spoke_leases_new(cast->engine, &leasing, &cast->leases));
}

static void begin(struct cast *cast, const char *text)
{
	static const struct code nothing = { .url = URL };

	begin_with(cast, text, &nothing);
}

static void end(struct cast *cast)
{
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
	sight->at[sight->count++] = (struct seen){ key, sections, number };
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
	return print_of(text, strlen(text), 1);
}

static uint64_t print_of_access(const struct spokei_credentials *of)
{
	return of->signs ? print_of(of->id, of->id_len, print_of(of->secret, of->secret_len, 2))
			 : 0;
}

static void see_calls(const struct cast *cast, struct sight *sight)
{
	const struct spoke_method *method = cast->method;
	const struct spokei_call_settings *calls = &method->settings;

#define SEE(key, number) add(sight, SPOKEI_KEY_##key, OF_CONSUMER, (uint64_t)(number))
	SEE(TIMEOUT, calls->timeout_ns);
	SEE(CLUSTER, print_of_text(calls->policy->name));
	SEE(LOADBALANCE, print_of_text(calls->balancer->name));
	SEE(LOADBALANCE, print_of_text(method->balancer_state->balancer->name));
	SEE(RETRIES, calls->retries);
	SEE(RETRY_PERIOD, calls->period_ns);
	SEE(RETRY_BACKOFF, calls->growing);
	SEE(RETRY_DEADLINE, calls->deadline_ns);
	SEE(FORKS, calls->forks);
	SEE(FAIL_PERCENT, calls->fail_percent);
	SEE(WAIT_READY, calls->wait_ready);
	SEE(STICKY, calls->sticky);
	SEE(IDEMPOTENT, calls->idempotent);
	SEE(HEDGE_AFTER, calls->hedge_ns);
	SEE(SLOW_AFTER, calls->slow_ns);
	SEE(SLOW_AFTER, method->figures->slow_ns);
	SEE(ACTIVES, method->limit.active_max);
	SEE(TPS, method->limit.bucket.rate);
	SEE(SERIALIZATION, calls->codec);
}

static void see_consumer(const struct cast *cast, struct sight *sight)
{
	const struct spoke_consumer *consumer = cast->consumer;
	const struct spokei_link_limits *limits = &consumer->link->limits;
	const struct spokei_retry_queue *retry = &consumer->caller->retry;
	const struct spokei_directory_settings *directory = &consumer->directory->settings;
	const struct spokei_credentials *shown = consumer->shown;
	const struct spokei_key_values *values = &consumer->settings->in_force;
	const struct spokei_keeper_options *keeper = &consumer->settings->keeper;

	SEE(HEARTBEAT, limits->heartbeat_ns);
	SEE(IDLE_CLOSE, limits->idle_close_ns);
	SEE(PENDING_MAX, limits->pending_max);
	SEE(FRAME_MAX, limits->wire.frame_max);
	SEE(VALUES_MAX, limits->wire.value.items_max);
	SEE(VALUES_CYCLES, limits->wire.value.cycles);
	SEE(SHM_RING, limits->ring_bits);
	SEE(CONNECTIONS, directory->connections);
	SEE(LAZY, directory->lazy);
	SEE(LOCAL_PATH, directory->local_path);
	SEE(FAILBACK_TASKS, retry->tasks_max);
	SEE(FAILBACK_BYTES, retry->bytes_max);
	SEE(FAILBACK_OVERFLOW, retry->drops_oldest);
	SEE(ENDPOINT_ACTIVES, directory->actives_max);
	SEE(EJECT_FAILURES, directory->eject_failures);
	SEE(EJECT_TIME, directory->eject_ns);
	SEE(TOKEN, print_of_text(shown->token));
	SEE(TOKEN_PLAIN, consumer->caller->token_plain);
	SEE(VERSION, print_of_text(directory->version));
	SEE(GROUP, print_of_text(directory->group));
	SEE(APPLICATION, print_of_text(spokei_keys_text(values, SPOKEI_KEY_APPLICATION)));
	SEE(AUTH, print_of_access(shown));
#undef SEE
#define SEE(key, number) add(sight, SPOKEI_KEY_##key, OF_CONSUMER | OF_REGISTRY, (uint64_t)(number))
	SEE(REGISTRY_CACHE, print_of_text(keeper->cache ? keeper->cache : ""));
	SEE(REGISTRY_PROTECT, directory->protects);
	SEE(REGISTRY_RETRY_PERIOD, keeper->retry_ns);
	SEE(REGISTRY_RETRY_TIMES, keeper->retries_max);
#undef SEE
}

#define SEE(key, number) add(sight, SPOKEI_KEY_##key, OF_PROVIDER, (uint64_t)(number))
static void see_limits(const struct cast *cast, struct sight *sight)
{
	const struct spoke_provider *provider = cast->provider;
	const struct spokei_link_limits *limits = &provider->link->limits;
	const struct spokei_quota *quota = spokei_listen_group_quota(provider->listeners);
	const struct spokei_tls *tls = provider->tls;
	const struct spokei_key_values *values = &provider->settings->in_force;

	SEE(HEARTBEAT, limits->heartbeat_ns);
	SEE(IDLE_CLOSE, limits->idle_close_ns);
	SEE(FRAME_MAX, limits->wire.frame_max);
	SEE(VALUES_MAX, limits->wire.value.items_max);
	SEE(VALUES_CYCLES, limits->wire.value.cycles);
	SEE(HTTP_HOSTS, print_of_text(limits->wire.http->hosts));
	SEE(HTTP_ORIGINS, print_of_text(limits->wire.http->origins));
	SEE(LOCAL_PATH, provider->settings->local_path);
	SEE(DEFAULT_SERVICE, print_of_text(spokei_keys_text(values, SPOKEI_KEY_DEFAULT_SERVICE)));
	SEE(ADVERTISE, print_of_text(provider->registration->advertise));
	SEE(APPLICATION, print_of_text(provider->registration->application));
	SEE(ACCESS_LOG, provider->access_log != NULL);
	SEE(TOKEN_PUBLISH, values->of[SPOKEI_KEY_TOKEN_PUBLISH]);
	SEE(UNPROVEN_FRAME_MAX, limits->unproven_frame_max);
	SEE(UNPROVEN_FRAME_MAX, provider->link->unproven.frame_max);
	SEE(FENCE_PROVEN, provider->filters->fence_proven);
	SEE(AUTH_FAILURES_MAX,
	    provider->proof->settings->in_force.of[SPOKEI_KEY_AUTH_FAILURES_MAX]);
	SEE(CONNECTIONS_MAX, quota->limits.max);
	SEE(CONNECTIONS_PER_PEER_MAX, quota->limits.per_peer_max);
	SEE(CONNECTIONS_PER_PEER_PREFIX6, quota->limits.prefix6);
	SEE(CONNECTIONS_PER_PEER_PREFIX6, tls->peers.limits.prefix6);
	SEE(REQUESTS_MAX, limits->serving_max);
	SEE(REQUESTS_PER_CONNECTION_MAX, limits->serving_per_conn_max);
	SEE(PUSHES_MAX, limits->pending_max);
	SEE(PUSHES_MAX, provider->caller->calls.max);
	SEE(QUEUED_MAX, limits->queued_max);
	SEE(HALF_CLOSE, limits->half_ns);
	SEE(TLS, provider->tls_mode);
	SEE(TLS_CERT, print_of_text(spokei_keys_text(values, SPOKEI_KEY_TLS_CERT)));
	SEE(TLS_KEY, print_of_text(spokei_keys_text(values, SPOKEI_KEY_TLS_KEY)));
	SEE(TLS_CA, print_of_text(spokei_keys_text(values, SPOKEI_KEY_TLS_CA)));
	SEE(TLS_VERIFY, values->of[SPOKEI_KEY_TLS_VERIFY]);
	SEE(TLS_MIN, values->of[SPOKEI_KEY_TLS_MIN]);
	SEE(HANDSHAKE_TIMEOUT, limits->handshake_ns);
	SEE(HANDSHAKES_MAX, tls->places_max);
	SEE(HANDSHAKES_PER_PEER_MAX, tls->peers.limits.per_peer_max);
	SEE(HANDSHAKES_TPS, tls->begins.rate);
}

static void see_provider(const struct cast *cast, struct sight *sight)
{
	const struct spoke_provider *provider = cast->provider;
	const struct spokei_service *service = spoke_container_of(provider->services->all.next,
								  struct spokei_service, node);
	const struct spokei_route *route = &service->routes[0];
	const struct spokei_credentials *asked = spokei_proof_of(provider->proof, service);
	const struct spokei_rules *rules = spokei_listen_group_rules(provider->listeners);
	const struct spokei_callers *callers = service->callers ? service->callers
								: provider->callers;
	const struct spokei_key_values *values = &provider->settings->in_force;

	SEE(SLOW_AFTER, route->figures->slow_ns);
	SEE(EXECUTES, route->limit->active_max);
	SEE(EXECUTES_TPS, route->limit->bucket.rate);
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
#define SEE(key, number) add(sight, SPOKEI_KEY_##key, OF_PROVIDER | OF_REGISTRY, (uint64_t)(number))
	SEE(REGISTRY_URL, print_of_text(spokei_keys_text(values, SPOKEI_KEY_REGISTRY_URL)));
	SEE(REGISTRY_RETRY_PERIOD, values->of[SPOKEI_KEY_REGISTRY_RETRY_PERIOD]);
	SEE(REGISTRY_RETRY_TIMES, values->of[SPOKEI_KEY_REGISTRY_RETRY_TIMES]);
#undef SEE
}

static void see_gateway(const struct cast *cast, struct sight *sight)
{
	const struct spoke_comet *gateway = cast->gateway;
	const struct spoke_comet_options *with = &gateway->with;

#define SEE(key, number) add(sight, SPOKEI_KEY_COMET_##key, OF_GATEWAY, (uint64_t)(number))
	SEE(ORIGINS, print_of_text(with->origins));
	SEE(HOSTS, print_of_text(with->hosts));
	SEE(PROXIES, print_of_text(with->proxies));
	SEE(ANY_CLIENT, with->any_client);
	SEE(HEAD_TIME, with->head_ns);
	SEE(HEAD_TIME, gateway->http.limits.request_ns);
	SEE(KEEPALIVE, with->keepalive_ns);
	SEE(POLL, with->poll_ns);
	SEE(LIFE, with->life_ns);
	SEE(KEEP, with->keep_ns);
	SEE(SLOW, with->slow_ns);
	SEE(SLOW, gateway->http.limits.slow_ns - with->authorize_ns);
	SEE(RETRY_MIN, with->retry_min_ns);
	SEE(RETRY_MAX, with->retry_max_ns);
	SEE(DRAIN, with->drain_ns);
	SEE(ACCEPT_RATE, with->accept_rate);
	SEE(ACCEPT_RATE, gateway->rate.rate);
	SEE(CONNECTIONS_MAX, with->connections_max);
	SEE(CONNECTIONS_MAX, gateway->ask_slab.max);
	SEE(CONNECTIONS_MAX, gateway->quota.limits.max);
	SEE(CONNECTIONS_PER_PEER_MAX, with->connections_per_peer_max);
	SEE(CONNECTIONS_PER_PEER_MAX, gateway->quota.limits.per_peer_max);
	SEE(CONNECTIONS_PER_PEER_PREFIX6, with->connections_per_peer_prefix6);
	SEE(CONNECTIONS_PER_PEER_PREFIX6, gateway->quota.limits.prefix6);
	SEE(CONNECTIONS_PER_USER_MAX, with->connections_per_user_max);
	SEE(USERS_MAX, with->users_max);
	SEE(FRAMES_PER_SECOND, with->frames_per_second);
	SEE(FRAME_MAX, with->frame_max);
	SEE(FRAME_MAX, gateway->http.limits.body_max);
	SEE(MESSAGE_MAX, with->message_max);
	SEE(RING_MESSAGES, with->ring_messages);
	SEE(RING_BYTES, with->ring_bytes);
	SEE(RING_TIME, with->ring_ns);
	SEE(ALL_MESSAGES, with->all_messages);
	SEE(ALL_BYTES, with->all_bytes);
	SEE(BYTES_MAX, with->bytes_max);
	SEE(SEND_BUFFER, with->send_buffer);
#undef SEE
}

static void see_leases(const struct cast *cast, struct sight *sight)
{
	const struct spokei_lease_settings *settings = spokei_leases_settings(cast->leases);
	struct spoke_leases_look look;

	spoke_leases_look(cast->leases, &look);
#define SEE(key, number) add(sight, SPOKEI_KEY_LEASE_##key, OF_LEASES, (uint64_t)(number))
	SEE(STORE, print_of_text(look.store));
	SEE(TTL, settings->ttl_ns);
	SEE(WAIT, settings->wait_ns);
	SEE(GUARD, settings->guard_ns);
	SEE(MAX, settings->max);
#undef SEE
}

static void see_engine(const struct cast *cast, struct sight *sight)
{
	const struct spoke_engine_options *options = spokei_engine_options(cast->engine);

#define SEE(key, number) add(sight, SPOKEI_KEY_##key, OF_ENGINE, (uint64_t)(number))
	SEE(TICK, options->tick_ns);
	SEE(TIMERS_MAX, options->timers_max);
	SEE(LATE, options->late_ns);
	SEE(SPIN, options->spin_ns);
	SEE(POOL_THREADS, options->pool_threads);
	SEE(POOL_QUEUE, options->pool_queue);
	SEE(LOG, cast->engine->log->off ? UINT64_MAX : cast->engine->log->level_max);
#undef SEE
}

static void look(const struct cast *cast, struct sight *sight)
{
	sight->count = 0;
	see_calls(cast, sight);
	see_consumer(cast, sight);
	see_limits(cast, sight);
	see_provider(cast, sight);
	see_gateway(cast, sight);
	see_leases(cast, sight);
	see_engine(cast, sight);
}

/* --- the comparison */

static void reload(struct cast *cast, const char *text)
{
	put(cast, FILE_NAME, text);
	if (spoke_config_reload(cast->config, NULL, NULL) != SPOKE_OK)
		fail_msg("%s\n%s", spoke_engine_why(cast->engine), text);
}

/* Changes a live key, and returns at how many places the change is seen. */
static unsigned change_live(struct cast *running, const struct sight *before,
			    enum spokei_section section, enum spokei_key key, const char *text)
{
	static struct cast fresh;
	static struct sight after;
	static struct sight of_fresh;
	unsigned places = 0;

	reload(running, text);
	begin(&fresh, text);
	look(running, &after);
	look(&fresh, &of_fresh);
	end(&fresh);
	for (size_t i = 0; i < after.count; i++) {
		const struct seen *seen = &after.at[i];
		const char *name = spokei_key_row(seen->key)->option.name;
		const bool meant = seen->key == seen_as(key) && seen->sections & 1u << section;

		if (seen->number != of_fresh.at[i].number)
			fail_msg("%s: place %zu, of %s, differs from a fresh start\n%s",
				 spokei_key_row(key)->option.name, i, name, text);
		if ((seen->number != before->at[i].number) != meant)
			fail_msg("%s: place %zu, of %s, is %s\n%s",
				 spokei_key_row(key)->option.name, i, name,
				 meant ? "the same" : "changed", text);
		if (meant && is_number(key))
			assert_int_equal(seen->number, number_of(key));
		places += meant;
	}
	return places;
}

TEST(live_keys_change_running_objects_as_a_fresh_start)
{
	static struct cast running;
	static struct sight before;
	char plain[TEXT_MAX];
	char text[TEXT_MAX];
	char value[128];

	print_file(SPOKEI_IN_ENGINE, SPOKEI_KEYS, "", plain, sizeof(plain));
	begin(&running, plain);
	look(&running, &before);
	for (unsigned k = 0; k < SPOKEI_KEYS; k++) {
		const enum spokei_key key = (enum spokei_key)k;
		const struct spokei_key_row *row = spokei_key_row(key);

		for (unsigned i = 0; row->live && i < SPOKEI_SECTIONS; i++) {
			if ((row->sections & 1u << i) == 0)
				continue;
			if (!print_value(key, value, sizeof(value)))
				fail_msg("%s: add a value to texts[]", row->option.name);
			print_file((enum spokei_section)i, key, value, text, sizeof(text));
			if (change_live(&running, &before, (enum spokei_section)i, key, text) == 0)
				fail_msg("%s of [%s]: add a line to see_*()", row->option.name,
					 spokei_section_name((enum spokei_section)i));
			reload(&running, plain);
		}
	}
	end(&running);
}

TEST(other_keys_change_no_running_object)
{
	static struct cast running;
	static struct sight before;
	static struct sight after;
	char text[TEXT_MAX];
	char value[128];

	print_file(SPOKEI_IN_ENGINE, SPOKEI_KEYS, "", text, sizeof(text));
	begin(&running, text);
	look(&running, &before);
	for (unsigned k = 0; k < SPOKEI_KEYS; k++) {
		const enum spokei_key key = (enum spokei_key)k;
		const struct spokei_key_row *row = spokei_key_row(key);

		for (unsigned i = 0; !row->live && i < SPOKEI_SECTIONS; i++) {
			if ((row->sections & 1u << i) == 0 || i == SPOKEI_IN_LEASE ||
			    !print_value(key, value, sizeof(value)))
				continue;
			print_file((enum spokei_section)i, key, value, text, sizeof(text));
			put(&running, FILE_NAME, text);
			(void)!spoke_config_reload(running.config, NULL, NULL);
			look(&running, &after);
			for (size_t at = 0; at < after.count; at++)
				if (after.at[at].number != before.at[at].number)
					fail_msg("%s changes place %zu", row->option.name, at);
		}
	}
	end(&running);
}

/* --- roads */

static bool is_elsewhere(enum spokei_key key)
{
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		if (elsewhere[i] == key)
			return true;
	return false;
}

/* Structs of options, each with the section that sets the same. */
static const struct {
	enum spokei_fields_of of;
	enum spokei_section section;
	size_t at;
} structs[] = {
	{ SPOKEI_AT_CONSUMER, SPOKEI_IN_CONSUMER, offsetof(struct code, consumer) },
	{ SPOKEI_AT_METHOD, SPOKEI_IN_METHOD, offsetof(struct code, method) },
	{ SPOKEI_AT_PROVIDER, SPOKEI_IN_PROVIDER, offsetof(struct code, provider) },
	{ SPOKEI_AT_TLS, SPOKEI_IN_PROVIDER, offsetof(struct code, tls) },
	{ SPOKEI_AT_LEASES, SPOKEI_IN_LEASE, offsetof(struct code, leases) },
	{ SPOKEI_AT_COMET, SPOKEI_IN_COMET, offsetof(struct code, gateway) },
	{ SPOKEI_AT_ENGINE, SPOKEI_IN_ENGINE, offsetof(struct code, engine) },
};

/* Sets a field of options to the value that a file has as `value`. */
static void say(const struct spokei_field *field, void *options, enum spokei_key key,
		const char *value)
{
	const struct spokei_key_row *row = spokei_key_row(key);
	char why[SPOKEI_OPTION_WHY_MAX];
	uint64_t number;

	if (field->type == SPOKEI_FIELD_TEXT) {
		spokei_field_set_text(field, options, value);
		return;
	}
	assert_int_equal(spokei_option_parse(&row->option, value, true, &number, why, sizeof(why)),
			 0);
	if (row->words)
		number++;
	spokei_field_set(field, options, field->inverts ? !number : number);
	/* A number that the field cannot hold would be cut. */
	assert_int_equal(spokei_field_get(field, options), field->inverts ? !number : number);
}

/* Asserts that a fresh start has at all places of a key in `section` what one with the line of a
 * file has, and that this is not the default. */
static void assert_same_road(enum spokei_section section, enum spokei_key key, const char *value,
			     const char *road, const struct code *code)
{
	static struct cast plain;
	static struct cast of_file;
	static struct cast of_code;
	static struct sight before;
	static struct sight by_file;
	static struct sight by_code;
	const char *name = spokei_key_row(key)->option.name;
	const bool stands_here = spokei_key_row(key)->sections & 1u << section;
	const unsigned owner = 1u << (section == SPOKEI_IN_METHOD ? SPOKEI_IN_CONSUMER : section);
	char text[TEXT_MAX];
	unsigned places = 0;

	print_file(stands_here ? section : SPOKEI_IN_REGISTRY, key, value, text, sizeof(text));
	begin(&of_file, text);
	print_file(SPOKEI_IN_ENGINE, SPOKEI_KEYS, "", text, sizeof(text));
	begin(&plain, text);
	begin_with(&of_code, text, code);
	look(&plain, &before);
	look(&of_file, &by_file);
	look(&of_code, &by_code);
	end(&plain);
	end(&of_file);
	end(&of_code);
	for (size_t i = 0; i < before.count; i++) {
		const struct seen *seen = &before.at[i];

		if (seen->key != seen_as(key) || !(seen->sections & owner))
			continue;
		places++;
		if (by_code.at[i].number != by_file.at[i].number)
			fail_msg("%s = %s: %s sets another value than the file", name, value, road);
		if (by_code.at[i].number == seen->number)
			fail_msg("%s = %s: %s sets nothing", name, value, road);
	}
	if (places == 0)
		fail_msg("%s: add a line to see_*()", name);
}

/* Sets the other half of a signature's key, because options have both. */
static void say_other_half(enum spokei_fields_of of, void *options, enum spokei_key key)
{
	const bool is_id = key == SPOKEI_KEY_ACCESS_ID;
	const enum spokei_key other = is_id ? SPOKEI_KEY_ACCESS_SECRET_FILE : SPOKEI_KEY_ACCESS_ID;

	if (is_id || key == SPOKEI_KEY_ACCESS_SECRET_FILE)
		say(spokei_key_field(other, of), options, other, is_id ? "secret" : "one");
}

TEST(each_field_of_options_sets_what_the_file_sets)
{
	static const struct code nothing = { .url = URL };
	char value[128];

	for (unsigned k = 0; k < SPOKEI_KEYS; k++) {
		const enum spokei_key key = (enum spokei_key)k;

		for (size_t i = 0; i < sizeof(structs) / sizeof(structs[0]); i++) {
			const struct spokei_field *field = spokei_key_field(key, structs[i].of);
			struct code code = nothing;

			/* A consumer with an address has no registry. */
			if (field == NULL || is_elsewhere(key) ||
			    (key == SPOKEI_KEY_REGISTRY_URL && structs[i].of == SPOKEI_AT_CONSUMER))
				continue;
			if (!print_value(key, value, sizeof(value)))
				fail_msg("%s: add a value to texts[]",
					 spokei_key_row(key)->option.name);
			if (structs[i].of == SPOKEI_AT_TLS)
				code.tls = (struct spoke_tls_options){ .cert = "cert",
								       .key = "key",
								       .optional = true };
			say_other_half(structs[i].of, (char *)&code + structs[i].at, key);
			say(field, (char *)&code + structs[i].at, key, value);
			assert_same_road(structs[i].section, key, value, "code", &code);
		}
	}
}

TEST(each_key_of_a_url_sets_what_the_file_sets)
{
	struct code code = { .url = URL };
	char value[128];

	for (unsigned k = 0; k < SPOKEI_KEYS_OF_URLS; k++) {
		const enum spokei_key key = (enum spokei_key)k;
		const char *name = spokei_keys_name(key);

		assert_true(print_value(key, value, sizeof(value)));
		(void)snprintf(code.url, sizeof(code.url), "%s?%s=%s", URL, name, value);
		assert_same_road(SPOKEI_IN_CONSUMER, key, value, "the URL", &code);
		if (k >= SPOKEI_KEYS_OF_METHODS)
			continue;
		(void)snprintf(code.url, sizeof(code.url), "%s?" METHOD ".%s=%s", URL, name, value);
		assert_same_road(SPOKEI_IN_METHOD, key, value, "the URL", &code);
	}
}

/* Each key is seen somewhere, or known to be read elsewhere. */
TEST(each_key_is_seen)
{
	static struct cast cast;
	static struct sight sight;
	char text[TEXT_MAX];

	print_file(SPOKEI_IN_ENGINE, SPOKEI_KEYS, "", text, sizeof(text));
	begin(&cast, text);
	look(&cast, &sight);
	end(&cast);
	for (unsigned k = 0; k < SPOKEI_KEYS; k++) {
		const enum spokei_key key = (enum spokei_key)k;
		bool seen = is_elsewhere(key);

		for (size_t i = 0; i < sight.count; i++)
			seen |= sight.at[i].key == seen_as(key);
		if (!seen)
			fail_msg("%s: add a line to see_*()", spokei_key_row(key)->option.name);
	}
}

static int issue(void **state)
{
	const struct spoke_issue_options options = { .name = "a", .key = SPOKE_ISSUE_ED25519 };
	struct spokei_world world;
	struct spokei_world_process process;
	int error;

	(void)state;
	if (!spokei_world_init(&world, 1))
		return -1;
	spokei_world_process_init(&process, &world);
	error = spoke_issue(&process.env, &options, &issued);
	spokei_world_process_fini(&process);
	spokei_world_fini(&world);
	return error;
}

GROUP(issue, NULL);
