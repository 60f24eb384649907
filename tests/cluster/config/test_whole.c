/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reload is whole: settings, lists, tokens and the files of TLS of all users are replaced
 * together, or none of them is; and after a signal a thread of the pool reads the files.
 */
#include "cluster/config/config.h"
#include "cluster/config/credentials.h"
#include "cluster/config/file.h"
#include "cluster/consumer/parts.h"
#include "cluster/provider/parts.h"
#include "cluster/provider/settings.h"
#include "cluster/serve/access_control.h"
#include "core/engine/engine.h"
#include "core/text/secret.h"
#include "core/virtual/faults.h"
#include "core/virtual/files.h"
#include "core/virtual/world.h"
#include "examples/spoke/issue.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "transport/listen/group.h"

#include <spoke/admin.h>
#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <errno.h>
#include <signal.h>
#include <string.h>

#define FILE_NAME "a.conf"
#define OLD "correct-horse"
#define NEW "battery-staple"
#define FIRST                                                                                      \
	"[consumer]\ntoken.file = shown\n"                                                         \
	"[provider]\ntls = on\ntls.cert = cert\ntls.key = key\ntoken.file = token\n"
#define NEXT FIRST "connections.max = 7\nallow.from = 10.0.0.0/8\n"

static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	struct spoke_config *config;
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
	struct spoke_admin *page;
	struct issued first;
	struct issued second;
} rig;

static void put(const char *path, const char *text)
{
	spokei_vfiles_put(rig.world.files, path, text);
}

static void put_cert(const struct issued *issued)
{
	put("cert", issued->cert);
	put("key", issued->key);
}

static void issue(const char *name, struct issued *ret)
{
	const struct issue_options options = { .name = name, .key = ISSUE_ED25519 };

	assert_int_equal(issue_make(&rig.process.env, &options, ret), 0);
}

/* Changes everything, without a mistake. */
static void change_all(void)
{
	put(FILE_NAME, NEXT);
	put_cert(&rig.second);
	put("token", NEW "\n");
	put("shown", NEW "\n");
	put("page", NEW "\n");
}

/* Puts all back. */
static void change_nothing(void)
{
	put(FILE_NAME, FIRST);
	put_cert(&rig.first);
	put("token", OLD "\n");
	put("shown", OLD "\n");
	put("page", OLD "\n");
}

STEP(set_up)
{
	struct spoke_provider_options serving = { 0 };
	struct spoke_consumer_options calling = { .url = "dubbo://127.0.0.1:1/demo.A?tls=off" };
	const struct spoke_tls_options tls = { .cert = "cert", .key = "key" };
	struct spoke_admin_options showing = { .tls = &tls, .token_file = "page" };
	struct spoke_engine_options with = { .pool_queue = 1 };

	memset(&rig, 0, sizeof(rig));
	scene_open(&rig.world, 1);
	spokei_world_process_init(&rig.process, &rig.world);
	spokei_faults_init(&rig.faulty, &rig.process.env);
	with.env = &rig.faulty.env;
	assert_int_equal(spoke_engine_new(&with, &rig.engine), 0);
	issue("first", &rig.first);
	issue("second", &rig.second);
	change_nothing();
	assert_int_equal(spoke_config_load(&rig.faulty.env, FILE_NAME, NULL, NULL, &rig.config), 0);
	serving.config = rig.config;
	calling.config = rig.config;
	showing.config = rig.config;
	assert_int_equal(spoke_provider_new(rig.engine, &serving, &rig.provider), 0);
	assert_int_equal(spoke_consumer_new(rig.engine, &calling, &rig.consumer), 0);
	assert_int_equal(spoke_admin_new(rig.engine, &showing, &rig.page), 0);
	assert_int_equal(spoke_config_reload_on_signal(rig.config, rig.engine), 0);
}

STEP(tear_down)
{
	spokei_faults_heal(&rig.faulty);
	if (rig.engine) {
		spoke_admin_free(rig.page);
		spoke_consumer_free(rig.consumer);
		spoke_provider_free(rig.provider);
		spoke_engine_free(rig.engine);
	}
	spoke_config_free(rig.config);
	assert_int_equal(rig.faulty.blocks, 0);
	spokei_world_process_fini(&rig.process);
	spokei_world_fini(&rig.world);
}

FIXTURE(set_up, tear_down);

static void pass(void)
{
	spokei_world_run(&rig.world, rig.world.now_ns + 10 * MS);
}

static void send_signal(void)
{
	assert_true(spokei_world_signal(&rig.process, SIGHUP));
}

/* The pool has taken the work of a signal, and not begun it. */
static void hold_pool(void)
{
	rig.process.pool_is_busy = true;
	send_signal();
	pass();
	assert_true(rig.config->busy);
}

static void nothing_posted(struct spoke_post *post)
{
	(void)post;
}

/* The pool goes on at the next turn. */
static void release_pool(void)
{
	static struct spoke_post post;

	rig.process.pool_is_busy = false;
	post = (struct spoke_post){ .run = nothing_posted };
	spoke_engine_post(rig.engine, &post);
	pass();
}

static bool has_event(const char *text)
{
	return scene_events(rig.engine, text) > 0;
}

static bool asks_for(const char *token)
{
	unsigned char digest[SPOKEI_SHA256];

	spokei_sha256(token, strlen(token), digest);
	return spokei_tokens_has_digest(&rig.provider->access->own->tokens, digest);
}

static bool shows(const char *token)
{
	return strcmp(rig.consumer->shown->token, token) == 0;
}

static uint64_t stat_of(enum spoke_stat which)
{
	return spoke_stat_get(rig.engine, which);
}

static bool has_list(void)
{
	return spokei_listen_group_rules(rig.provider->listeners) != NULL;
}

static void assert_all_old(void)
{
	assert_int_not_equal(rig.provider->settings->connections.max, 7);
	assert_false(has_list());
	assert_true(asks_for(OLD));
	assert_false(asks_for(NEW));
	assert_true(shows(OLD));
	assert_string_equal(spoke_admin_token(rig.page), OLD);
	assert_int_equal(stat_of(SPOKE_STAT_TLS_RELOADS), 0);
}

static void assert_all_new(void)
{
	assert_int_equal(rig.provider->settings->connections.max, 7);
	assert_true(has_list());
	assert_true(asks_for(NEW));
	assert_false(asks_for(OLD));
	assert_true(shows(NEW));
	assert_string_equal(spoke_admin_token(rig.page), NEW);
	/* Of the provider, and of the page. */
	assert_int_equal(stat_of(SPOKE_STAT_TLS_RELOADS), 2);
}

static void change_all_but_key(void)
{
	change_all();
	put("key", rig.first.key);
}

static void change_all_and_spoil_token(void)
{
	change_all();
	put("token", "short\n");
}

static void change_all_and_spoil_consumer(void)
{
	change_all();
	put("shown", NEW "\n" OLD "\n");
}

static void change_all_and_expose_page(void)
{
	change_all();
	spokei_vfiles_expose(rig.world.files, "page", true);
}

static void change_all_and_spoil_list(void)
{
	change_all();
	put(FILE_NAME, NEXT "deny.from = 10.0.0.300\n");
}

static void change_all_and_remove_file(void)
{
	change_all();
	spokei_vfiles_remove(rig.world.files, FILE_NAME);
}

static const struct {
	void (*change)(void);
	int error;
	const char *why;
} mistakes[] = {
	{ change_all_but_key, SPOKE_EINVAL, "the changed files are not used: " },
	{ change_all_and_spoil_token, SPOKE_EINVAL, "token.file = token: " },
	{ change_all_and_spoil_consumer, SPOKE_EINVAL, "token.file = shown: only one token" },
	{ change_all_and_expose_page, SPOKE_EINVAL, "token.file = page: its group or others" },
	{ change_all_and_spoil_list, SPOKE_ESYNTAX, NULL },
	{ change_all_and_remove_file, SPOKE_ENOENT, NULL },
};

TEST(one_mistake_anywhere_changes_nothing)
{
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		spokei_vfiles_expose(rig.world.files, "page", false);
		mistakes[i].change();
		assert_int_equal(spoke_config_reload(rig.config, NULL, NULL), mistakes[i].error);
		assert_all_old();
		if (mistakes[i].why) {
			assert_true(has_event(mistakes[i].why));
			assert_non_null(
				strstr(spokei_config_look(rig.config).sentence, mistakes[i].why));
		}
		assert_int_equal(spokei_config_look(rig.config).error, mistakes[i].error);
	}
	change_all();
	assert_int_equal(spoke_config_reload(rig.config, NULL, NULL), 0);
	assert_all_new();
}

TEST(signal_with_one_mistake_changes_nothing)
{
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		spokei_vfiles_expose(rig.world.files, "page", false);
		mistakes[i].change();
		send_signal();
		pass();
		assert_all_old();
		assert_int_equal(spokei_config_look(rig.config).error, mistakes[i].error);
		assert_false(has_event("config: reloaded"));
	}
	assert_true(has_event("config: nothing changed; fix the file"));
	change_all();
	send_signal();
	pass();
	assert_all_new();
	assert_true(has_event("tls: new connections use the changed tls.cert = cert, and others"));
	assert_true(has_event("config: reloaded"));
}

/* Without memory a file of a token is read later, so not each failure is an error. */
TEST(reload_without_memory_changes_all_or_nothing)
{
	unsigned failures = 0;
	uint64_t taken = 0;

	for (uint64_t nth = 1; nth < 300; nth++) {
		int error;

		change_all();
		spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		error = spoke_config_reload(rig.config, NULL, NULL);
		spokei_faults_heal(&rig.faulty);
		failures += error != SPOKE_OK;
		taken += error == SPOKE_OK ? 2 : 0;
		assert_int_equal(stat_of(SPOKE_STAT_TLS_RELOADS), taken);
		assert_int_equal(asks_for(NEW), error == SPOKE_OK);
		assert_int_equal(asks_for(OLD), error != SPOKE_OK);
		assert_int_equal(shows(NEW), error == SPOKE_OK);
		assert_int_equal(has_list(), error == SPOKE_OK);
		assert_string_equal(spoke_admin_token(rig.page), error ? OLD : NEW);
		change_nothing();
		assert_int_equal(spoke_config_reload(rig.config, NULL, NULL), 0);
		taken = stat_of(SPOKE_STAT_TLS_RELOADS);
	}
	assert_in_range(failures, 5, 290);
}

/* The look of each minute is not due; changed files of TLS are read twice, to compare and to use.
 */
TEST(files_are_read_by_the_pool_and_once)
{
	unsigned begun;

	change_all();
	begun = spokei_vfiles_calls(rig.world.files, SPOKEI_VFILES_READ);
	hold_pool();
	assert_int_equal(spokei_vfiles_calls(rig.world.files, SPOKEI_VFILES_READ), begun);
	assert_all_old();
	release_pool();
	assert_false(rig.config->busy);
	assert_all_new();
	/* The file, three of tokens, two of TLS for two users. */
	assert_int_equal(spokei_vfiles_calls(rig.world.files, SPOKEI_VFILES_READ), begun + 12);
}

static void nothing(struct spoke_work *work)
{
	(void)work;
}

/* The pool takes no work until release_pool(). */
static void fill_pool(void)
{
	static struct spoke_work other = { .run = nothing, .done = nothing };

	rig.process.pool_is_busy = true;
	assert_int_equal(rig.process.env.loop->offload(rig.engine->loop, &other), 0);
}

TEST(full_pool_does_not_prevent_a_reload)
{
	change_all();
	fill_pool();
	send_signal();
	pass();
	assert_all_new();
	release_pool();
}

static void pass_a_minute(void)
{
	spokei_world_run(&rig.world, rig.world.now_ns + 61000 * MS);
}

TEST(look_after_a_full_pool_finds_what_has_changed)
{
	pass_a_minute();
	change_all();
	fill_pool();
	pass_a_minute();
	assert_all_old();
	release_pool();
	pass_a_minute();
	assert_int_equal(stat_of(SPOKE_STAT_TLS_RELOADS), 2);
	assert_true(asks_for(NEW));
	assert_true(shows(NEW));
	assert_string_equal(spoke_admin_token(rig.page), NEW);
}

TEST(further_signals_meanwhile_reload_once_more)
{
	hold_pool();
	send_signal();
	pass();
	send_signal();
	pass();
	assert_int_equal(spoke_config_reload(rig.config, NULL, NULL), SPOKE_ESTATE);
	assert_int_equal(spokei_config_look(rig.config).reloads, 0);
	release_pool();
	assert_int_equal(spokei_config_look(rig.config).reloads, 2);
}

TEST(look_of_each_minute_takes_what_is_right)
{
	change_all_but_key();
	pass_a_minute();
	assert_int_equal(stat_of(SPOKE_STAT_TLS_RELOADS), 0);
	assert_string_equal(spoke_admin_token(rig.page), NEW);
	assert_true(asks_for(NEW));
	assert_true(shows(NEW));
	put("page", "short\n");
	put("key", rig.second.key);
	pass_a_minute();
	assert_int_equal(stat_of(SPOKE_STAT_TLS_RELOADS), 2);
	assert_string_equal(spoke_admin_token(rig.page), NEW);
	assert_true(has_event("page: the token stays as it was"));
}

/* Called by the first sentence of a report, which may free anything. */
static void free_all(void *arg, const char *sentence)
{
	assert_non_null(sentence);
	assert_null(arg);
	assert_non_null(rig.engine); /* called once */
	spoke_admin_free(rig.page);
	spoke_consumer_free(rig.consumer);
	spoke_provider_free(rig.provider);
	spoke_engine_free(rig.engine);
	spoke_config_free(rig.config);
	rig.engine = NULL;
	rig.config = NULL;
}

TEST(report_may_free_all)
{
	change_all();
	put(FILE_NAME, NEXT "nonsense = 1\nnonsense = 2\n");
	assert_int_equal(spoke_config_reload(rig.config, free_all, NULL), SPOKE_ESYNTAX);
	assert_null(rig.engine);
}

TEST(report_of_changes_may_free_all)
{
	change_all();
	put(FILE_NAME, NEXT "tls.min = 1.2\ntls.verify = none\n");
	(void)!spoke_config_reload(rig.config, free_all, NULL);
	assert_null(rig.engine);
}

/* The files that a refused file names are not those in use. */
TEST(refused_reload_keeps_looks_at_files_in_use)
{
	put("other", OLD "\n");
	put(FILE_NAME,
	    "[consumer]\ntoken.file = missing\n"
	    "[provider]\ntls = on\ntls.cert = cert\ntls.key = key\ntoken.file = other\n");
	assert_int_equal(spoke_config_reload(rig.config, NULL, NULL), SPOKE_ESYSTEM);
	pass_a_minute();
	put("token", NEW "\n");
	pass_a_minute();
	assert_true(asks_for(NEW));
	assert_false(asks_for(OLD));
}

/* A reload that has read the files before would undo it. */
TEST(look_leaves_tokens_to_a_reload_meanwhile)
{
	pass_a_minute();
	change_all_but_key();
	rig.config->busy = true;
	pass_a_minute();
	assert_all_old();
	rig.config->busy = false;
	assert_int_equal(spoke_config_reload(rig.config, NULL, NULL), SPOKE_EINVAL);
	pass_a_minute();
	assert_true(asks_for(NEW));
	assert_true(shows(NEW));
	assert_string_equal(spoke_admin_token(rig.page), NEW);
}

TEST(users_may_be_freed_while_files_are_read)
{
	change_all();
	hold_pool();
	spoke_consumer_free(rig.consumer);
	spoke_provider_free(rig.provider);
	spoke_admin_free(rig.page);
	rig.consumer = NULL;
	rig.provider = NULL;
	rig.page = NULL;
	release_pool();
	assert_int_equal(stat_of(SPOKE_STAT_TLS_RELOADS), 0);
	assert_true(has_event("config: reloaded"));
}

TEST(config_may_be_freed_while_files_are_read)
{
	change_all();
	hold_pool();
	spoke_config_free(rig.config);
	rig.config = NULL;
	release_pool();
	assert_all_old();
	assert_false(has_event("config: reloaded"));
}

TEST(engine_may_be_freed_while_files_are_read)
{
	change_all();
	hold_pool();
	spoke_admin_free(rig.page);
	spoke_consumer_free(rig.consumer);
	spoke_provider_free(rig.provider);
	spoke_engine_free(rig.engine);
	rig.engine = NULL;
	assert_false(rig.config->busy);
	put(FILE_NAME, FIRST);
	assert_int_equal(spoke_config_reload(rig.config, NULL, NULL), 0);
}
