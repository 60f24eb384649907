/* SPDX-License-Identifier: Apache-2.0 */
/* The settings in force, with the source of each value and the last reload. */
#include "cluster/admin/settings.h"
#include "tests/support/test.h"

#include "core/engine/engine.h"
#include "core/memory/buffer.h"
#include "tests/cluster/config/configrig.h"
#include "tests/cluster/fakereg.h"
#include "tests/core/json/jsonread.h"

#include <spoke/comet.h>
#include <spoke/lease.h>

#include <stdio.h>
#include <string.h>

#define rig clusterrig

static struct spokei_buffer out;

static int set_up(void **state)
{
	if (configrig_set_up(state))
		return -1;
	spokei_buffer_init(&out, &rig.faulty.env, 1u << 22);
	return 0;
}

static int tear_down(void **state)
{
	spokei_buffer_fini(&out);
	return configrig_tear_down(state);
}

FIXTURE(set_up, tear_down);

/* Valid until the next call. */
static struct jsonread look(void)
{
	const char *text;
	size_t len;
	size_t at;

	spokei_buffer_truncate(&out, 0);
	assert_int_equal(spokei_admin_settings_write(rig.engine, &out), SPOKE_OK);
	len = spokei_buffer_len(&out);
	assert_int_equal(spokei_buffer_append(&out, "", 1), SPOKE_OK);
	text = (const char *)spokei_buffer_data(&out);
	assert_null(jsonread_check(text, len, &at));
	return jsonread_of(text, len);
}

/* Returns the owner of a kind and a name; NULL: any name. */
static struct jsonread owner_of(struct jsonread settings, const char *kind, const char *name)
{
	size_t count = jsonread_count(jsonread_get(settings, "owners"));

	for (size_t i = 0; i < count; i++) {
		char path[32];
		struct jsonread owner;

		(void)snprintf(path, sizeof(path), "owners[%zu]", i);
		owner = jsonread_get(settings, path);
		if (strcmp(jsonread_text(owner, "kind"), kind) == 0 &&
		    (name == NULL || strcmp(jsonread_text(owner, "name"), name) == 0))
			return owner;
	}
	return (struct jsonread){ NULL, NULL };
}

/* Returns "value origin" or "value line" of a key; "": the owner does not have it. */
static const char *setting(struct jsonread owner, const char *key)
{
	static char text[512];
	size_t count = jsonread_count(jsonread_get(owner, "settings"));

	for (size_t i = 0; i < count; i++) {
		char path[32];
		char value[256];
		struct jsonread one;

		(void)snprintf(path, sizeof(path), "settings[%zu]", i);
		one = jsonread_get(owner, path);
		if (strcmp(jsonread_text(one, "key"), key) != 0)
			continue;
		(void)snprintf(value, sizeof(value), "%s", jsonread_text(one, "value"));
		if (jsonread_get(one, "line").at) {
			(void)snprintf(text, sizeof(text), "%s %s %u", value,
				       jsonread_text(owner, "file"),
				       (unsigned)jsonread_u64(one, "line"));
		} else {
			(void)snprintf(text, sizeof(text), "%s %s", value,
				       jsonread_text(one, "origin"));
		}
		return text;
	}
	return "";
}

TEST(each_setting_of_a_consumer_names_its_source)
{
	struct spoke_consumer_options options = { .retry_period_ns = 3 * SECOND };
	struct jsonread consumer;

	clusterrig_provide(1);
	configrig_load("[consumer]\n"
		       "timeout = 2s\n"
		       "heartbeat = 20s\n"
		       "application = shop\n"
		       "[service.demo.Echo]\n"
		       "tls.peers = dns:a.test\n"
		       "timeout = 3s\n"
		       "[consumer]\n"
		       "tls.ca = certs/ca.pem\n"
		       "tls.peers = dns:b.test\n");
	options.config = configrig.config;
	clusterrig_consume("cluster=failback&connections=2", &options);
	consumer = owner_of(look(), "consumer", "demo.Echo");
	assert_string_equal(setting(consumer, "timeout"), "3s a.conf 7");
	assert_string_equal(setting(consumer, "heartbeat"), "20s a.conf 3");
	assert_string_equal(setting(consumer, "application"), "shop a.conf 4");
	assert_string_equal(setting(consumer, "tls.ca"), "certs/ca.pem a.conf 9");
	assert_string_equal(setting(consumer, "tls.peers"), "dns:a.test a.conf 6");
	assert_string_equal(setting(consumer, "tls.cert"), " default");
	assert_string_equal(setting(consumer, "cluster"), "failback URL");
	assert_string_equal(setting(consumer, "connections"), "2 URL");
	assert_string_equal(setting(consumer, "retry.period"), "3s code");
	assert_string_equal(setting(consumer, "retries"), "3 default");
	assert_string_equal(setting(consumer, "loadbalance"), "random default");
	assert_string_equal(setting(consumer, "weight"), "");
}

TEST(method_has_only_what_differs_from_its_consumer)
{
	const struct spoke_method_options options = { .timeout_ns = 80 * MS };
	struct jsonread settings;
	struct jsonread method;

	clusterrig_provide(1);
	configrig_load("[method.echo]\nretries = 1\n");
	configrig_consume("echo.tps=9");
	(void)clusterrig_method("plain", NULL);
	(void)clusterrig_method("echo", &options);
	settings = look();
	assert_null(owner_of(settings, "method", "demo.Echo.plain").at);
	method = owner_of(settings, "method", "demo.Echo.echo");
	assert_int_equal(jsonread_count(jsonread_get(method, "settings")), 3);
	assert_string_equal(setting(method, "timeout"), "80ms code");
	assert_string_equal(setting(method, "retries"), "1 a.conf 2");
	assert_string_equal(setting(method, "tps"), "9 URL");
}

TEST(reload_shows_its_result_and_the_values_it_applied)
{
	struct jsonread settings;
	struct jsonread consumer;

	clusterrig_provide(1);
	configrig_load("[consumer]\ntimeout = 2s\nconnections = 2\n");
	configrig_consume("");
	settings = look();
	assert_int_equal(jsonread_u64(settings, "files[0].reloads"), 0);
	assert_true(jsonread_is_null(settings, "files[0].ago_ms"));
	assert_int_equal(configrig_try("[consumer]\n\n\ntimeout = 5s\nconnections = 3\n"), 0);
	clusterrig_pass(4 * SECOND);
	settings = look();
	assert_string_equal(jsonread_text(settings, "files[0].name"), CONFIGRIG_PATH);
	assert_int_equal(jsonread_u64(settings, "files[0].reloads"), 1);
	assert_int_equal(jsonread_u64(settings, "files[0].ago_ms"), 4000);
	assert_string_equal(jsonread_text(settings, "files[0].error"), "");
	assert_int_equal(jsonread_u64(settings, "files[0].messages"), 1);
	assert_non_null(strstr(jsonread_text(settings, "files[0].text"), "after a restart"));
	consumer = owner_of(settings, "consumer", NULL);
	assert_string_equal(setting(consumer, "timeout"), "5s a.conf 4");
	assert_string_equal(setting(consumer, "connections"), "2 a.conf 3");
	assert_int_equal(configrig_try("[consumer]\ntimeout = soon\n"), SPOKE_ESYNTAX);
	settings = look();
	assert_int_equal(jsonread_u64(settings, "files[0].reloads"), 2);
	assert_string_equal(jsonread_text(settings, "files[0].error"), "ESYNTAX");
	assert_non_null(strstr(jsonread_text(settings, "files[0].text"), "a.conf:2"));
	consumer = owner_of(settings, "consumer", NULL);
	assert_string_equal(setting(consumer, "timeout"), "5s a.conf 4");
}

static void nop(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

TEST(provider_and_handlers_show_no_secret)
{
	static const struct spoke_handler handlers[] = { { .method = "a", .handle = nop },
							 { .method = "b", .handle = nop } };
	struct spoke_provider_options options = { .weight = 7, .default_service = "demo.A" };
	const struct spoke_service_options service = { .name = "demo.A" };
	struct spoke_provider *provider = NULL;
	struct jsonread settings;
	struct jsonread of;

	configrig_load("[provider]\ntoken = open-sesame\nheartbeat = 30s\nexecutes = 50\n"
		       "[method.demo.A.b]\nexecutes = 3\n");
	options.config = configrig.config;
	assert_int_equal(spoke_provider_new(rig.engine, &options, &provider), SPOKE_OK);
	assert_int_equal(spoke_provider_add(provider, &service, handlers, 2), SPOKE_OK);
	settings = look();
	of = owner_of(settings, "provider", NULL);
	assert_string_equal(setting(of, "token"), "*** a.conf 2");
	assert_string_equal(setting(of, "heartbeat"), "30s a.conf 3");
	assert_string_equal(setting(of, "weight"), "7 code");
	assert_string_equal(setting(of, "default.service"), "demo.A code");
	assert_string_equal(setting(of, "pushes.max"), "65536 default");
	assert_null(owner_of(settings, "handler", "demo.A.a").at);
	of = owner_of(settings, "handler", "demo.A.b");
	assert_int_equal(jsonread_count(jsonread_get(of, "settings")), 1);
	assert_string_equal(setting(of, "executes"), "3 a.conf 6");
	assert_null(strstr((const char *)spokei_buffer_data(&out), "sesame"));
	spoke_provider_free(provider);
}

TEST(password_of_a_registry_is_not_shown)
{
	struct spoke_consumer_options options = {
		.url = "consumer://any/demo.Echo",
		.registry = "fake://me:geheim@10.0.0.1:1?password=geheim",
		.registry_kind = &fakereg_kind,
	};
	struct spoke_consumer *consumer = NULL;

	assert_int_equal(spoke_consumer_new(rig.engine, &options, &consumer), SPOKE_OK);
	assert_non_null(
		strstr(setting(owner_of(look(), "consumer", NULL), "registry.url"), "code"));
	assert_null(strstr((const char *)spokei_buffer_data(&out), "geheim"));
	spoke_consumer_free(consumer);
}

TEST(engine_shows_numbers_of_file_and_code)
{
	struct jsonread of;

	clusterrig_provide(1);
	configrig_load("[engine]\npool.threads = 4\n");
	configrig_consume("");
	of = owner_of(look(), "engine", "");
	assert_string_equal(setting(of, "log"), "warn default");
	assert_string_equal(setting(of, "pool.queue"), "256 default");
	assert_string_equal(setting(of, "admin"), "");
}

TEST(level_of_the_log_names_its_source_after_reloads)
{
	clusterrig_provide(1);
	configrig_load("[engine]\nadmin = 127.0.0.1:1\n");
	configrig_consume("");
	assert_string_equal(setting(owner_of(look(), "engine", ""), "admin"),
			    "127.0.0.1:1 a.conf 2");
	configrig_reload("[engine]\nadmin = 127.0.0.1:1\nlog = debug\n");
	assert_string_equal(setting(owner_of(look(), "engine", ""), "log"), "debug a.conf 3");
	configrig_reload("[engine]\nlog = off\nadmin = 127.0.0.1:1\n");
	assert_string_equal(setting(owner_of(look(), "engine", ""), "log"), "off a.conf 2");
	configrig_reload("[engine]\nadmin = 127.0.0.1:1\n");
	assert_string_equal(setting(owner_of(look(), "engine", ""), "log"), "warn default");
	assert_int_equal(spoke_engine_log(rig.engine, "error"), 0);
	assert_string_equal(setting(owner_of(look(), "engine", ""), "log"), "error code");
}

TEST(service_has_only_what_differs_from_its_provider)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handlers[] = { { .method = "a", .handle = nop } };
	struct spoke_provider_options options = { 0 };
	struct spoke_provider *provider = NULL;
	struct jsonread settings;
	struct jsonread of;

	configrig_load("[provider]\nlisten = dubbo://127.0.0.1:7\nauth = none\n"
		       "[service.demo.Echo]\nallow.callers = dns:nobody.test\n"
		       "token = open-sesame\naccess.window = 77s\nexecutes = 5\ntimeout = 3s\n");
	options.config = configrig.config;
	assert_int_equal(spoke_provider_new(rig.engine, &options, &provider), SPOKE_OK);
	assert_int_equal(spoke_provider_add(provider, &service, handlers, 1), SPOKE_OK);
	settings = look();
	of = owner_of(settings, "provider", NULL);
	assert_string_equal(setting(of, "listen"), "dubbo://127.0.0.1:7 a.conf 2");
	assert_string_equal(setting(of, "access.window"), "5m default");
	of = owner_of(settings, "service", "demo.Echo");
	assert_int_equal(jsonread_count(jsonread_get(of, "settings")), 4);
	assert_string_equal(setting(of, "allow.callers"), "dns:nobody.test a.conf 5");
	assert_string_equal(setting(of, "token"), "*** a.conf 6");
	assert_string_equal(setting(of, "access.window"), "77s a.conf 7");
	assert_string_equal(setting(of, "executes"), "5 a.conf 8");
	assert_null(owner_of(settings, "handler", NULL).at);
	spoke_provider_free(provider);
	clusterrig_provide(1);
	configrig_consume("");
	of = owner_of(look(), "consumer", NULL);
	assert_string_equal(setting(of, "timeout"), "3s a.conf 9");
	assert_string_equal(setting(of, "access.window"), "");
	assert_string_equal(setting(of, "allow.callers"), "");
}

TEST(owners_beyond_the_limit_are_counted)
{
	struct spoke_method_options options = { .timeout_ns = 80 * MS };
	char name[16];

	clusterrig_provide(1);
	configrig_load("");
	configrig_consume("");
	for (unsigned i = 0; i < SPOKEI_SETTINGS_OWNERS + 3; i++) {
		(void)snprintf(name, sizeof(name), "m%u", i);
		(void)clusterrig_method(name, &options);
	}
	assert_int_equal(jsonread_u64(look(), "more"), 3);
}

TEST(lack_of_memory_leaves_nothing_behind)
{
	clusterrig_provide(1);
	configrig_load("[consumer]\ntimeout = 2s\n");
	configrig_consume("");
	spokei_buffer_fini(&out);
	spokei_buffer_init(&out, &rig.faulty.env, 200);
	assert_int_equal(spokei_admin_settings_write(rig.engine, &out), SPOKE_ENOMEM);
	assert_int_equal(spokei_buffer_len(&out), 0);
}

TEST(gateways_and_leases_name_their_sources)
{
	struct spoke_comet_options showing = { .query_user = true, .poll_ns = 3 * SECOND };
	struct spoke_leases_options leasing = {
		.store = "redis://ann:hidden@127.0.0.1:1/3?lease.wait=2s",
		.leases_max = 9,
	};
	struct spoke_leases *leases = NULL;
	struct spoke_comet *comet = NULL;
	struct jsonread of;

	configrig_load("[comet]\nslow = 5s\norigins = https://a.example\nkeep = 7s\n"
		       "[lease]\nttl = 20s\npassword = hush-hush\n");
	showing.config = leasing.config = configrig.config;
	assert_int_equal(spoke_comet_new(rig.engine, &showing, &comet), 0);
	assert_int_equal(spoke_leases_new(rig.engine, &leasing, &leases), 0);
	of = owner_of(look(), "leases", NULL);
	assert_string_equal(setting(of, "lease.ttl"), "20s a.conf 6");
	assert_string_equal(setting(of, "lease.wait"), "2s URL");
	assert_string_equal(setting(of, "lease.max"), "9 code");
	assert_string_equal(setting(of, "lease.guard"), "ttl / 10 default");
	assert_string_equal(setting(of, "lease.password"), "*** a.conf 7");
	assert_null(strstr(of.at, "hidden"));
	assert_null(strstr(of.at, "hush"));
	assert_int_equal(configrig_try("[comet]\n\n\nslow = 6s\nkeep = 8s\n"), 0);
	of = owner_of(look(), "gateway", NULL);
	assert_string_equal(setting(of, "comet.slow"), "6s a.conf 4");
	assert_string_equal(setting(of, "comet.keep"), "7s a.conf 4");
	assert_string_equal(setting(of, "comet.origins"), " default");
	assert_string_equal(setting(of, "comet.poll"), "3s code");
	assert_string_equal(setting(of, "comet.query.user"), "true code");
	assert_string_equal(setting(of, "comet.frames.per.second"), "10 default");
	spoke_leases_free(leases);
	spoke_comet_free(comet);
}
