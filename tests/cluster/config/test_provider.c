/* SPDX-License-Identifier: Apache-2.0 */
/* Providers with a config file, and the settings that a reload changes. */
#include "cluster/call/caller.h"
#include "cluster/config/file.h"
#include "cluster/config/keys.h"
#include "cluster/filter/limit.h"
#include "cluster/provider/parts.h"
#include "cluster/serve/routes.h"
#include "tests/cluster/config/configrig.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/listen/quota.h"

#include <stdio.h>
#include <string.h>

#define rig clusterrig
#define HELD 64u
#define REGISTRY "/run/providers"
#define HERE "[provider]\nlisten = dubbo://127.0.0.1:20880\n"

static struct spoke_request *held[HELD];
static unsigned held_count;
static struct spoke_method *echo;
static struct spoke_method *other;

static struct rig_provider *it(void)
{
	return &rig.providers[0];
}

static void hold(struct spoke_request *request, void *arg)
{
	(void)arg;
	assert_true(held_count < HELD);
	held[held_count++] = request;
}

static void answer_all(void)
{
	while (held_count > 0)
		spoke_reply(held[--held_count], (struct spoke_value){ NULL, 0 });
	clusterrig_pass(MS);
}

static int tear_down(void **state)
{
	while (held_count > 0)
		spoke_reply(held[--held_count], (struct spoke_value){ NULL, 0 });
	return configrig_tear_down(state);
}

FIXTURE(configrig_set_up, tear_down);

/* Makes a provider that uses the file; `options` may be NULL. */
static void provide(const char *text, const struct spoke_provider_options *options)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = hold },
		{ .method = "other", .handle = hold, .executes = 2 },
		{ .handle = hold },
	};
	struct spoke_engine_options engine = { .env = &it()->process.env };
	struct spoke_provider_options with = { 0 };

	if (options)
		with = *options;
	configrig_load(text);
	with.config = configrig.config;
	rig.provider_count = 1;
	assert_int_equal(spoke_engine_new(&engine, &it()->engine), 0);
	assert_int_equal(spoke_provider_new(it()->engine, &with, &it()->provider), 0);
	assert_int_equal(spoke_provider_add(it()->provider, &service, handlers, 3), 0);
}

/* Makes a listening provider that uses the file, and a consumer without a file. */
static void begin(const char *text)
{
	provide(text, NULL);
	assert_int_equal(spoke_provider_listen_configured(it()->provider), 1);
	clusterrig_consume("cluster=failfast&eject.failures=0&timeout=100s", NULL);
	echo = clusterrig_method("echo", NULL);
	other = clusterrig_method("other", NULL);
}

/* Makes `calls` calls. Returns how many of them were accepted, after all of them have ended. */
static unsigned taken(struct spoke_method *method, unsigned calls)
{
	unsigned count;

	for (unsigned i = 0; i < calls; i++)
		(void)clusterrig_call(method);
	clusterrig_pass(10 * MS);
	count = held_count;
	answer_all();
	return count;
}

/* --- listening addresses */

TEST(provider_listens_at_addresses_of_file)
{
	char text[64];

	provide("[provider]\nlisten = dubbo://127.0.0.1:20880 , unix:/run/echo.sock\n", NULL);
	assert_int_equal(spoke_provider_listen_configured(it()->provider), 2);
	assert_true(spoke_provider_address(it()->provider, 0, text, sizeof(text)) > 0);
	assert_string_equal(text, "127.0.0.1:20880");
	assert_true(spoke_provider_address(it()->provider, 1, text, sizeof(text)) > 0);
	assert_string_equal(text, "unix:/run/echo.sock");
	assert_int_equal(configrig_try("[provider]\nlisten = dubbo://127.0.0.1:1\n"), SPOKE_OK);
	assert_string_equal(
		configrig.told,
		"a.conf:2: listen = dubbo://127.0.0.1:1: takes effect after a restart\n");
}

TEST(provider_listens_until_first_invalid_address)
{
	char text[64];

	provide("[provider]\nlisten = dubbo://127.0.0.1:1, dubbo://127.0.0.1:1\n", NULL);
	assert_int_equal(spoke_provider_listen_configured(it()->provider), SPOKE_ESYSTEM);
	assert_non_null(strstr(spoke_engine_why(it()->engine), "cannot listen at"));
	assert_true(spoke_provider_address(it()->provider, 0, text, sizeof(text)) > 0);
	assert_int_equal(spoke_provider_address(it()->provider, 1, text, sizeof(text)), 0);
}

/* --- limits */

TEST(methods_have_limits_of_file)
{
	begin(HERE "executes = 3\n");
	assert_int_equal(taken(echo, 9), 3);
	assert_int_equal(taken(other, 9), 2); /* the handler's own limit */
	assert_int_equal(taken(clusterrig_method("any", NULL), 9), 3);
	configrig_reload(HERE "executes = 3\n[service.demo.Echo]\nexecutes = 4\n");
	assert_int_equal(taken(echo, 9), 4);
	configrig_reload(HERE "[service.demo.Echo]\nexecutes = 4\n[method.echo]\nexecutes = 5\n");
	assert_int_equal(taken(echo, 9), 5);
	configrig_reload(HERE "[method.demo.Echo.echo]\nexecutes = 6\n[method.echo]\nexecutes = "
			      "5\n");
	assert_int_equal(taken(echo, 9), 6);
	configrig_reload(HERE);
	assert_int_equal(taken(echo, 9), 9);
	assert_int_equal(taken(other, 9), 2);
	configrig_reload(HERE "executes.tps = 7\n");
	assert_int_equal(taken(echo, 9), 7);
	assert_int_equal(taken(echo, 9), 0);
	clusterrig_pass(SECOND);
	assert_int_equal(taken(echo, 9), 7);
}

/* Returns whether the first method has the limit of the deadlines. */
static bool has_admission(void)
{
	return spokei_routes_next(it()->provider->services, NULL)->routes[0].limit->admission;
}

TEST(limit_of_deadlines_follows_reload)
{
	begin(HERE "executes = auto\n");
	assert_true(has_admission());
	assert_int_equal(taken(echo, 9), 9);
	assert_int_equal(taken(other, 9), 2); /* the handler's own limit */
	configrig_reload(HERE "executes = 3\n");
	assert_false(has_admission());
	assert_int_equal(taken(echo, 9), 3);
	for (unsigned i = 0; i < 3; i++)
		(void)clusterrig_call(echo);
	clusterrig_pass(10 * MS);
	configrig_reload(HERE "[method.echo]\nexecutes = auto\n");
	assert_true(has_admission());
	answer_all();
	assert_int_equal(taken(echo, 9), 9);
	configrig_reload(HERE);
	assert_false(has_admission());
}

TEST(method_limit_follows_reload_while_requests_run)
{
	begin(HERE);
	for (unsigned i = 0; i < 5; i++)
		(void)clusterrig_call(echo);
	clusterrig_pass(10 * MS);
	configrig_reload(HERE "executes = 6\n");
	for (unsigned i = 0; i < 5; i++)
		(void)clusterrig_call(echo);
	clusterrig_pass(10 * MS);
	assert_int_equal(held_count, 6);
	answer_all();
	assert_int_equal(taken(echo, 9), 6);
}

TEST(requests_max_follows_file)
{
	begin(HERE "requests.max = 3\n");
	assert_int_equal(taken(echo, 9), 3);
	configrig_reload(HERE "requests.max = 5\n");
	assert_int_equal(taken(echo, 9), 5);
	configrig_reload(HERE "requests.max = 5\nrequests.per.connection.max = 4\n");
	assert_int_equal(taken(echo, 9), 4);
	configrig_reload(HERE);
	assert_int_equal(taken(echo, 9), 9);
}

TEST(connections_max_follows_file)
{
	begin(HERE "connections.max = 1\n");
	assert_int_equal(spoke_provider_connections(it()->provider), 1);
	clusterrig_free_consumer();
	clusterrig_pass(MS);
	clusterrig_consume("connections=3", NULL);
	clusterrig_pass(10 * SECOND);
	assert_int_equal(spoke_provider_connections(it()->provider), 1);
	configrig_reload(HERE "connections.max = 100\nconnections.per.peer.max = 2\n");
	clusterrig_pass(200 * SECOND);
	assert_int_equal(spoke_provider_connections(it()->provider), 2);
	configrig_reload(HERE);
	clusterrig_pass(200 * SECOND);
	assert_int_equal(spoke_provider_connections(it()->provider), 3);
}

static uint64_t preset(enum spokei_key key)
{
	return spokei_key_row(key)->option.preset;
}

TEST(documented_defaults_are_in_effect)
{
	struct spokei_link_limits limits;

	begin(HERE);
	spokei_link_limits_init(&limits);
	assert_int_equal(limits.pending_max, preset(SPOKEI_KEY_PENDING_MAX));
	assert_int_equal(limits.wire.frame_max, preset(SPOKEI_KEY_FRAME_MAX));
	limits = it()->provider->link->limits;
	assert_int_equal(limits.pending_max, preset(SPOKEI_KEY_PUSHES_MAX));
	assert_int_equal(limits.serving_max, preset(SPOKEI_KEY_REQUESTS_MAX));
	assert_int_equal(limits.serving_per_conn_max,
			 preset(SPOKEI_KEY_REQUESTS_PER_CONNECTION_MAX));
	assert_int_equal(limits.queued_max, preset(SPOKEI_KEY_QUEUED_MAX));
	assert_int_equal(limits.heartbeat_ns, preset(SPOKEI_KEY_HEARTBEAT));
	assert_int_equal(limits.wire.frame_max, preset(SPOKEI_KEY_FRAME_MAX));
	assert_int_equal(SPOKEI_QUOTA_MAX, preset(SPOKEI_KEY_CONNECTIONS_MAX));
	assert_int_equal(SPOKEI_QUOTA_PER_PEER_MAX, preset(SPOKEI_KEY_CONNECTIONS_PER_PEER_MAX));
}

TEST(open_links_use_reloaded_heartbeat)
{
	uint64_t written;

	begin(HERE);
	written = spoke_stat_get(it()->engine, SPOKE_STAT_PROBES_WRITTEN);
	clusterrig_pass(30 * SECOND);
	assert_int_equal(spoke_stat_get(it()->engine, SPOKE_STAT_PROBES_WRITTEN), written);
	configrig_reload(HERE "heartbeat = 1s\n");
	clusterrig_pass(10 * SECOND);
	assert_in_range(spoke_stat_get(it()->engine, SPOKE_STAT_PROBES_WRITTEN), written + 9,
			written + 11);
	assert_int_equal(it()->provider->link->limits.mute_ns, 240 * SECOND);
	configrig_reload(HERE "heartbeat = 2m\n");
	assert_int_equal(it()->provider->link->limits.mute_ns, 480 * SECOND);
}

TEST(options_in_code_override_file)
{
	const struct spoke_provider_options options = { .requests_max = 2, .heartbeat_ns = SECOND };

	provide(HERE "requests.max = 5\nheartbeat = 2s\n", &options);
	assert_int_equal(it()->provider->link->limits.serving_max, 2);
	assert_int_equal(it()->provider->link->limits.heartbeat_ns, SECOND);
	configrig_reload(HERE "requests.max = 6\nheartbeat = 3s\n");
	assert_int_equal(it()->provider->link->limits.serving_max, 2);
	assert_int_equal(it()->provider->link->limits.heartbeat_ns, SECOND);
}

/* --- registration */

static unsigned listed(const char *text)
{
	const char *all = spokei_vfiles_get(rig.world.files, REGISTRY);
	unsigned count = 0;

	for (; all && (all = strstr(all, text)); all++)
		count++;
	return count;
}

TEST(provider_is_published_as_file_specifies)
{
	provide("[registry]\nurl = file://" REGISTRY "\n" HERE
		"weight = 50\nwarmup = 0\napplication = echoes\nadvertise = echo.example\n",
		NULL);
	assert_int_equal(spoke_provider_listen_configured(it()->provider), 1);
	clusterrig_pass(SECOND);
	assert_int_equal(listed("dubbo://echo.example:20880/demo.Echo"), 1);
	assert_int_equal(listed("application=echoes"), 1);
	assert_int_equal(listed("weight=50"), 1);
	configrig_reload("[registry]\nurl = file://" REGISTRY "\n" HERE
			 "weight = 70\nwarmup = 2m\napplication = echoes\n"
			 "advertise = echo.example\n");
	clusterrig_pass(SECOND);
	assert_int_equal(listed("dubbo://"), 1);
	assert_int_equal(listed("weight=70"), 1);
	assert_int_equal(listed("warmup=120000"), 1);
	assert_int_equal(spoke_provider_registered(it()->provider, NULL), 1);
	configrig_reload("[registry]\nurl = file://" REGISTRY "\n" HERE
			 "weight = 0\nwarmup = 2m\napplication = echoes\n"
			 "advertise = echo.example\n");
	clusterrig_pass(SECOND);
	assert_int_equal(listed("dubbo://"), 1);
	assert_int_equal(listed("weight=0"), 1);
}

TEST(consumer_without_address_uses_registry_of_file)
{
	struct spoke_consumer_options options = { .url = "consumer://any/demo.Echo" };
	struct spoke_config *own;

	provide("[registry]\nurl = file://" REGISTRY "\n" HERE, NULL);
	assert_int_equal(spoke_provider_listen_configured(it()->provider), 1);
	assert_int_equal(spoke_config_load(&rig.faulty.env, CONFIGRIG_PATH, NULL, NULL, &own), 0);
	options.config = own;
	assert_int_equal(spoke_consumer_new(rig.engine, &options, &rig.consumer), 0);
	clusterrig_pass(SECOND);
	assert_int_equal(spoke_consumer_ready(rig.consumer), 1);
	clusterrig_free_consumer();
	/* A consumer whose URL has an address does not use the registry. */
	options.url = "dubbo://127.0.0.1:1/demo.Echo";
	assert_int_equal(spoke_consumer_new(rig.engine, &options, &rig.consumer), 0);
	clusterrig_pass(SECOND);
	assert_int_equal(spoke_consumer_ready(rig.consumer), 0);
	spoke_config_free(own);
}

/* --- ends */

TEST(config_and_users_can_be_freed_in_any_order)
{
	begin(HERE "executes = 3\n");
	spoke_config_free(configrig.config);
	configrig.config = NULL;
	assert_int_equal(taken(echo, 9), 3);
	clusterrig_free_consumer();
	clusterrig_kill(0);
	provide(HERE, NULL);
	spoke_provider_free(it()->provider);
	assert_true(spokei_list_empty(&configrig.config->users));
	configrig_reload(HERE "executes = 3\n");
	clusterrig_pass(MS);
	configrig_reload(HERE "executes = 4\n");
}

TEST(passed_socket_is_named_without_anything_else)
{
	static const char *const bad[] = { "fd://rpc:1", "fd://rpc/demo.Echo", "fd://me@rpc",
					   "fd:/rpc" };
	static const char fine[] = "[provider]\nlisten = fd://rpc, fd://a.socket?shared=turns\n";

	provide(fine, NULL);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[80];

		(void)snprintf(text, sizeof(text), "[provider]\nlisten = %s\n", bad[i]);
		assert_int_equal(configrig_try(text), SPOKE_ESYNTAX);
		assert_non_null(strstr(configrig.told, ":2: listen"));
	}
}

TEST(provider_without_its_passed_socket_says_which)
{
	provide("[provider]\nlisten = fd://rpc\n", NULL);
	assert_int_equal(spoke_provider_listen_configured(it()->provider), SPOKE_ESYSTEM);
	assert_non_null(strstr(spoke_engine_why(it()->engine),
			       "no socket named rpc was passed to this process"));
	assert_int_equal(spoke_provider_listen(it()->provider, "fd://rpc/demo.Echo"), SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(it()->engine), "e.g. fd://rpc"));
	assert_int_equal(spoke_provider_listen(it()->provider, "fd://rpc?heartbeat=1s"),
			 SPOKE_EINVAL);
}

/* Other keys of the table are refused or ignored there; a secret must not be without effect. */
TEST(address_refuses_each_secret_key)
{
	unsigned secrets = 0;
	char url[128];

	provide("[provider]\nlisten = fd://rpc\n", NULL);
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		const struct spokei_key_row *row = spokei_key_row((enum spokei_key)i);

		if (spokei_keys_is_secret(row->option.name))
			secrets++;
		if (!row->secret)
			continue;
		assert_true(spokei_keys_is_secret(row->option.name));
		(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:20880?%s=a-long-secret",
			       row->option.name);
		assert_int_equal(spoke_provider_listen(it()->provider, url), SPOKE_EINVAL);
		assert_non_null(strstr(spoke_engine_why(it()->engine), "is not allowed here"));
		assert_null(strstr(spoke_engine_why(it()->engine), "a-long-secret"));
	}
	assert_int_equal(secrets, 3);
	assert_false(spokei_keys_is_secret("token.file"));
}
