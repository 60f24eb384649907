/* SPDX-License-Identifier: Apache-2.0 */
/* Reloading a config file: messages, reloads without effect, and users freed meanwhile. */
#include "cluster/config/config.h"
#include "cluster/config/file.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "tests/cluster/config/configrig.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <signal.h>
#include <string.h>

#define rig clusterrig

static struct spoke_method *echo;

static void begin(const char *text)
{
	clusterrig_provide(1);
	rig.providers[0].manner = RIG_SILENT;
	configrig_load(text);
	configrig_consume("cluster=failfast");
	echo = clusterrig_method("echo", NULL);
}

/* Returns the present timeout of a call, in ms. */
static uint64_t timeout_now(void)
{
	uint64_t begun_ns = rig.world.now_ns;

	clusterrig_end(clusterrig_call(echo));
	return (rig.world.now_ns - begun_ns) / MS;
}

FIXTURE(configrig_set_up, configrig_tear_down);

TEST(invalid_file_changes_nothing)
{
	begin("[consumer]\ntimeout = 20ms\n");
	assert_int_equal(configrig_try("[consumer]\ntimeout = 1s\nfoo = 1\nretries = x\n"),
			 SPOKE_ESYNTAX);
	assert_string_equal(configrig.told,
			    "a.conf:3: foo = 1: no such key; see spoke config --explain\n"
			    "a.conf:4: retries = x: not a count; write a whole number, e.g. 8\n");
	assert_in_range(timeout_now(), 20, 22);
	assert_int_equal(configrig_try(NULL), SPOKE_ENOENT);
	assert_string_equal(configrig.told, "a.conf: no such file\n");
	spokei_vfiles_put(rig.world.files, CONFIGRIG_PATH, "[consumer]\ntimeout = 1s\n");
	spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_READ, 1, -5);
	assert_int_equal(spoke_config_reload(configrig.config, NULL, NULL), SPOKE_ESYSTEM);
	assert_in_range(timeout_now(), 20, 22);
	assert_string_equal(spoke_config_get(configrig.config, "consumer", "timeout"), "20ms");
	configrig_reload("[consumer]\ntimeout = 30ms\n");
	assert_in_range(timeout_now(), 30, 32);
}

TEST(keys_that_need_restart_are_reported)
{
	begin("[consumer]\nlazy = no\nconnections = 2\n[registry]\nurl = file:///a\n");
	assert_int_equal(configrig_try("[consumer]\nlazy = off\nconnections = 3\n"
				       "timeout = 30ms\n[engine]\ntick = 1ms\n"),
			 SPOKE_OK);
	assert_string_equal(
		configrig.told,
		"a.conf:3: connections = 3: takes effect after a restart\n"
		"a.conf:6: tick = 1ms: takes effect after a restart\n"
		"a.conf:5: url = file:///a: is removed, which takes effect after a restart\n");
	assert_in_range(timeout_now(), 30, 32);
}

TEST(level_of_the_log_changes_with_the_file)
{
	begin("[engine]\nlog = warn\n");
	assert_string_equal(spoke_config_get(configrig.config, "engine", "log"), "warn");
	configrig_reload("[engine]\nlog = off\n");
	assert_true(rig.engine->log->off);
	configrig_reload("[engine]\nlog = debug\n");
	assert_false(rig.engine->log->off);
	assert_int_equal(rig.engine->log->level_max, SPOKE_LOG_DEBUG);
	configrig_reload("");
	assert_int_equal(rig.engine->log->level_max, SPOKE_LOG_WARN);
	assert_int_equal(configrig_try("[engine]\nlog = loud\n"), SPOKE_ESYNTAX);
	assert_int_equal(spoke_engine_log(rig.engine, "error"), 0);
	assert_int_equal(rig.engine->log->level_max, SPOKE_LOG_ERROR);
	assert_int_equal(spoke_engine_log(rig.engine, "loud"), SPOKE_EINVAL);
	assert_int_equal(spoke_engine_log(rig.engine, NULL), SPOKE_EINVAL);
}

TEST(restart_report_hides_secrets)
{
	begin("[lease]\npassword = geheim\n[provider]\ntoken = geheimnis\n");
	assert_int_equal(configrig_try("[lease]\npassword = geheimer\nttl = 5s\n"), SPOKE_OK);
	assert_string_equal(configrig.told,
			    "a.conf:2: password = ***: takes effect after a restart\n"
			    "a.conf:3: ttl = 5s: takes effect after a restart\n");
}

TEST(restart_report_repeats_until_change_is_reverted)
{
	static const char waits[] = "a.conf:2: connections = 3: takes effect after a restart\n";

	begin("[consumer]\nconnections = 2\n");
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(configrig_try("[consumer]\nconnections = 3\n"), SPOKE_OK);
		assert_string_equal(configrig.told, waits);
	}
	configrig_reload("[consumer]\nconnections = 2\n");
	configrig_reload("[consumer]\ntimeout = 20ms\nconnections = 2\n");
	assert_in_range(timeout_now(), 20, 22);
}

TEST(parsed_text_cannot_be_reloaded)
{
	static const char text[] = "[consumer]\ntimeout = 20ms\n";

	assert_int_equal(spoke_config_parse(&rig.faulty.env, "a text",
					    (struct spoke_span){ text, sizeof(text) - 1 }, NULL,
					    NULL, &configrig.config),
			 SPOKE_OK);
	assert_int_equal(spoke_config_reload(configrig.config, NULL, NULL), SPOKE_ESTATE);
	assert_int_equal(spoke_config_reload_on_signal(configrig.config, rig.engine), SPOKE_ESTATE);
	clusterrig_provide(1);
	configrig_consume("");
}

/* --- signals */

static bool has_event(const char *text)
{
	return scene_events(rig.engine, text) > 0;
}

TEST(sighup_reloads_file)
{
	begin("[consumer]\ntimeout = 20ms\n");
	assert_int_equal(spoke_config_reload_on_signal(configrig.config, rig.engine), SPOKE_OK);
	assert_int_equal(spoke_config_reload_on_signal(configrig.config, rig.engine), SPOKE_EEXIST);
	spokei_vfiles_put(rig.world.files, CONFIGRIG_PATH,
			  "[consumer]\ntimeout = 40ms\nlazy = yes\n");
	assert_true(spokei_world_signal(&rig.process, SIGHUP));
	clusterrig_pass(MS);
	assert_in_range(timeout_now(), 40, 42);
	assert_true(has_event("a.conf:3: lazy = yes: takes effect after a restart"));
	assert_true(has_event("config: reloaded"));
	spokei_vfiles_put(rig.world.files, CONFIGRIG_PATH, "[consumer]\ntimeout = 60\nlazy = ?\n");
	assert_true(spokei_world_signal(&rig.process, SIGHUP));
	clusterrig_pass(MS);
	assert_in_range(timeout_now(), 40, 42);
	assert_true(
		has_event("a.conf:2: timeout = 60: a duration needs a unit; write 60ms or 60s"));
	assert_true(has_event("a.conf:3: lazy = ?: neither yes nor no; write true or false"));
	assert_true(has_event("config: nothing changed"));
	spoke_config_free(configrig.config);
	configrig.config = NULL;
	assert_false(spokei_world_signal(&rig.process, SIGHUP));
}

/* --- ends */

TEST(consumer_can_be_freed_before_config)
{
	begin("[consumer]\ntimeout = 20ms\n");
	(void)clusterrig_call(echo);
	clusterrig_free_consumer();
	assert_true(spokei_list_empty(&configrig.config->users));
	configrig_reload("[consumer]\ntimeout = 30ms\n");
	clusterrig_pass(SECOND);
	configrig_reload("[consumer]\ntimeout = 40ms\n");
}

TEST(config_can_be_freed_before_consumer)
{
	struct rig_call *call;

	begin("[consumer]\ntimeout = 20ms\n[service.demo.Echo]\nversion = 7\n");
	call = clusterrig_call(echo);
	spoke_config_free(configrig.config);
	configrig.config = NULL;
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ENOSERVICE);
	call = clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ENOSERVICE);
	assert_int_equal(spoke_engine_drain(rig.engine, SECOND), SPOKE_OK);
	clusterrig_pass(2 * SECOND);
}

TEST(config_can_outlive_engine)
{
	struct spoke_engine_options options = { .env = &rig.faulty.env };

	begin("[consumer]\ntimeout = 20ms\n");
	assert_int_equal(spoke_config_reload_on_signal(configrig.config, rig.engine), SPOKE_OK);
	spoke_engine_free(rig.engine);
	spoke_config_free(configrig.config);
	configrig.config = NULL;
	assert_int_equal(spoke_engine_new(&options, &rig.engine), SPOKE_OK);
}

TEST(config_can_move_to_another_engine)
{
	struct spoke_provider_options serving = { 0 };
	struct spokei_world_process other;
	struct spoke_provider *provider;
	struct spoke_engine *engine;

	begin("[provider]\nheartbeat = 5s\n");
	clusterrig_free_consumer();
	serving.config = configrig.config;
	for (unsigned i = 0; i < 2; i++) {
		engine = scene_engine(&rig.world, &other, NULL, NULL);
		assert_int_equal(spoke_provider_new(engine, &serving, &provider), SPOKE_OK);
		assert_int_equal(spoke_config_reload_on_signal(configrig.config, engine), SPOKE_OK);
		assert_ptr_equal(spokei_config_engine(configrig.config), engine);
		spoke_provider_free(provider);
		spoke_engine_free(engine);
		spokei_world_process_fini(&other);
		assert_null(spokei_config_engine(configrig.config));
		configrig_reload("[provider]\nheartbeat = 6s\n");
	}
}

static void reload_in_callback(struct rig_call *call)
{
	(void)call;
	configrig_reload("[consumer]\ntimeout = 70ms\n");
}

TEST(callback_of_consumer_can_reload)
{
	begin("[consumer]\ntimeout = 20ms\n");
	rig.in_done = reload_in_callback;
	assert_in_range(timeout_now(), 20, 22);
	assert_in_range(timeout_now(), 70, 72);
}

static void free_all(void)
{
	clusterrig_free_consumer();
	spoke_config_free(configrig.config);
	configrig.config = NULL;
}

TEST(callback_of_reload_can_free_config)
{
	begin("[consumer]\ntimeout = 20ms\n");
	configrig.in_told = free_all;
	assert_int_equal(configrig_try("[consumer]\nlazy = yes\n"), SPOKE_OK);
	assert_null(configrig.config);
}

static void reload_again(void)
{
	assert_int_equal(spoke_config_reload(configrig.config, NULL, NULL), SPOKE_ESTATE);
}

TEST(callback_of_reload_cannot_reload)
{
	begin("[consumer]\ntimeout = 20ms\n");
	configrig.in_told = reload_again;
	assert_int_equal(configrig_try("[consumer]\nlazy = yes\n"), SPOKE_OK);
	assert_int_equal(configrig_try("[consumer]\nlazy = ye\n"), SPOKE_ESYNTAX);
}

TEST(config_belongs_to_one_engine)
{
	struct spoke_consumer_options options = { .url = "dubbo://127.0.0.1:1/S" };
	struct spokei_world_process other;
	struct spoke_consumer *consumer;
	struct spoke_engine *engine;

	begin("");
	engine = scene_engine(&rig.world, &other, NULL, NULL);
	options.config = configrig.config;
	assert_int_equal(spoke_consumer_new(engine, &options, &consumer), SPOKE_EINVAL);
	assert_string_equal(spoke_engine_why(engine),
			    "option config: belongs to another engine; load one config per engine");
	scene_leave(&other, NULL, &engine);
}

/* --- without memory */

TEST(reload_with_enomem_changes_nothing)
{
	unsigned failed = 0;
	int error = SPOKE_ENOMEM;

	begin("[consumer]\ntimeout = 20ms\n");
	for (unsigned i = 0; error == SPOKE_ENOMEM; i++, failed++) {
		rig.faulty.rules[SPOKEI_FAULTS_MEMORY] =
			(struct spokei_faults_rule){ .skip = i, .error = -12 };
		error = configrig_try("[consumer]\ntimeout = 50ms\n[registry]\nurl = file:///a\n");
		if (error)
			assert_in_range(timeout_now(), 20, 22);
	}
	rig.faulty.rules[SPOKEI_FAULTS_MEMORY] = (struct spokei_faults_rule){ 0 };
	assert_int_equal(error, SPOKE_OK);
	assert_true(failed > 4);
	assert_in_range(timeout_now(), 50, 52);
}

static int make_both(void)
{
	struct spoke_consumer_options options = {
		.url = "dubbo://127.0.0.1:20880/demo.Echo",
		.config = configrig.config,
	};
	struct spoke_provider_options serving = { .config = configrig.config };
	struct spoke_provider *provider = NULL;
	int error = spoke_consumer_new(rig.engine, &options, &rig.consumer);

	if (error == SPOKE_OK)
		error = spoke_consumer_method(rig.consumer, "echo", NULL, &echo);
	if (error == SPOKE_OK)
		error = spoke_provider_new(rig.engine, &serving, &provider);
	if (error == SPOKE_OK)
		error = spoke_provider_listen_configured(provider);
	if (error == SPOKE_OK)
		error = configrig_try("[consumer]\nheartbeat = 2s\n[provider]\nheartbeat = 2s\n");
	spoke_provider_free(provider);
	clusterrig_free_consumer();
	return error;
}

TEST(enomem_leaks_nothing)
{
	static const char text[] = "[consumer]\nheartbeat = 1s\n[provider]\nheartbeat = 1s\n"
				   "access.log = true\ndefault.service = demo.Echo\n";
	unsigned failed = 0;
	int error = SPOKE_ENOMEM;

	for (unsigned i = 0; error == SPOKE_ENOMEM; i++, failed++) {
		configrig_load(text);
		rig.faulty.rules[SPOKEI_FAULTS_MEMORY] =
			(struct spokei_faults_rule){ .skip = i, .error = -12 };
		error = make_both();
		rig.faulty.rules[SPOKEI_FAULTS_MEMORY] = (struct spokei_faults_rule){ 0 };
		clusterrig_pass(MS);
		if (error)
			spoke_config_free(configrig.config);
	}
	assert_int_equal(error, SPOKE_OK);
	assert_true(failed > 5);
}
