/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of leases: the precedence of their sources, and their bounds. */
#include "cluster/config/config.h"
#include "cluster/lease/settings.h"
#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <spoke/call.h>
#include <spoke/config.h>
#include <spoke/engine.h>
#include <spoke/link.h>
#include <spoke/stats.h>

#include <stdio.h>
#include <string.h>

#define HERE "redis://127.0.0.1"

static struct spokei_world world;
static struct spokei_world_process process;
static struct spokei_world_process second; /* of another engine */
static struct spokei_faults faulty;
static struct spoke_engine *engine;
static struct spoke_config *config;
static struct spokei_lease_settings settings;

static int set_up(void **state)
{
	(void)state;
	scene_open(&world, 3);
	spokei_world_process_init(&process, &world);
	spokei_world_process_init(&second, &world);
	spokei_faults_init(&faulty, &process.env);
	config = NULL;
	return spoke_engine_new(&(struct spoke_engine_options){ .env = &faulty.env }, &engine);
}

static void drop(void)
{
	spokei_lease_settings_free(&faulty.env, &settings);
}

STEP(tear_down)
{
	drop();
	spoke_config_free(config);
	scene_leave(&process, NULL, &engine);
	spokei_world_process_fini(&second);
	spokei_world_fini(&world);
}

FIXTURE(set_up, tear_down);

/* Makes the file; NULL: none. */
static struct spoke_config *file(const char *text)
{
	spoke_config_free(config);
	config = NULL;
	if (text == NULL)
		return NULL;
	assert_int_equal(spoke_config_parse(&process.env, "a.conf",
					    (struct spoke_span){ text, strlen(text) }, NULL, NULL,
					    &config),
			 SPOKE_OK);
	return config;
}

static int read_from(const char *text, const struct spoke_leases_options *options)
{
	struct spoke_leases_options all = *options;

	drop();
	all.config = file(text);
	return spokei_lease_settings(engine, &all, &settings);
}

static const char *newest(void)
{
	static struct spoke_event event;
	struct spoke_event next;

	for (uint64_t i = 1; spoke_event_get(engine, i, &next) == SPOKE_OK; i++)
		event = next;
	return event.text;
}

static void assert_text(const char *text, const char *expected)
{
	if (expected == NULL)
		assert_null(text);
	else
		assert_string_equal(text, expected);
}

/* --- precedence */

TEST(defaults_are_those_of_the_header)
{
	assert_int_equal(read_from(NULL, &(struct spoke_leases_options){ .store = HERE }),
			 SPOKE_OK);
	assert_int_equal(settings.ttl_ns, 30 * SECOND);
	assert_int_equal(settings.wait_ns, 0);
	assert_int_equal(settings.guard_ns, 0);
	assert_int_equal(settings.max, 100000);
	assert_string_equal(settings.store.server.host, "127.0.0.1");
	assert_int_equal(settings.store.server.port, 6379);
	assert_int_equal(settings.store.db, 0);
	assert_null(settings.store.path);
	assert_null(settings.redis.user);
	assert_null(settings.redis.password);
	assert_int_equal(settings.store.sentinel_count, 0);
}

enum source {
	IN_FILE = 1,
	IN_URL = 2,
	IN_OPTIONS = 4,
};

/* Reads all numbers from these sources, each of which has its own. */
static void read_numbers(unsigned sources)
{
	struct spoke_leases_options options = { .store = HERE };

	if (sources & IN_URL)
		options.store = HERE "?lease.ttl=20s&lease.wait=21s&lease.guard=2s&lease.max=24";
	if (sources & IN_OPTIONS) {
		options.ttl_ns = 30 * SECOND;
		options.guard_ns = 3 * SECOND;
		options.leases_max = 34;
	}
	assert_int_equal(read_from(sources & IN_FILE ? "[lease]\nttl = 10s\nwait = 11s\n"
						       "guard = 1s\nmax = 14\n"
						     : NULL,
				   &options),
			 SPOKE_OK);
}

TEST(later_source_overrides_an_earlier_one)
{
	for (unsigned sources = 1; sources < 8; sources++) {
		uint64_t tens = sources & IN_OPTIONS ? 3 : sources & IN_URL ? 2 : 1;
		uint64_t wait = sources & IN_URL ? 21 : sources & IN_FILE ? 11 : 0;

		read_numbers(sources);
		assert_int_equal(settings.ttl_ns, tens * 10 * SECOND);
		assert_int_equal(settings.wait_ns, wait * SECOND);
		assert_int_equal(settings.guard_ns, tens * SECOND);
		assert_int_equal(settings.max, tens * 10 + 4);
	}
}

TEST(store_of_the_options_replaces_that_of_the_file)
{
	static const char text[] = "[lease]\nstore = redis://10.0.0.9:1/2\n";

	assert_int_equal(read_from(text, &(struct spoke_leases_options){ 0 }), SPOKE_OK);
	assert_string_equal(settings.store.server.host, "10.0.0.9");
	assert_int_equal(settings.store.server.port, 1);
	assert_int_equal(settings.store.db, 2);
	assert_int_equal(read_from(text,
				   &(struct spoke_leases_options){
					   .store = "redis+unix:///run/r?db=7" }),
			 SPOKE_OK);
	assert_null(settings.store.server.host);
	assert_string_equal(settings.store.path, "/run/r");
	assert_int_equal(settings.store.db, 7);
}

TEST(sentinels_become_places)
{
	assert_int_equal(read_from("[lease]\nstore = \"sentinel://u:p@[::1],b:5/main/3\"\n"
				   "sentinel.password = s\n",
				   &(struct spoke_leases_options){ 0 }),
			 SPOKE_OK);
	assert_int_equal(settings.store.sentinel_count, 2);
	assert_string_equal(settings.store.sentinels[0].host, "::1");
	assert_int_equal(settings.store.sentinels[0].port, 26379);
	assert_string_equal(settings.store.sentinels[1].host, "b");
	assert_int_equal(settings.store.sentinels[1].port, 5);
	assert_string_equal(settings.store.primary, "main");
	assert_int_equal(settings.store.db, 3);
	assert_null(settings.store.server.host);
	assert_string_equal(settings.redis.user, "u");
	assert_string_equal(settings.redis.password, "p");
	assert_string_equal(settings.redis.sentinel_password, "s");
}

/* --- user and passwords */

TEST(credentials_come_from_the_last_source)
{
	static const char both[] = "[lease]\nuser = fu\npassword = fp\n";
	static const struct {
		const char *file;
		struct spoke_leases_options options;
		const char *user;
		const char *password;
	} rows[] = {
		{ both, { .store = HERE }, "fu", "fp" },
		{ "[lease]\npassword = fp\n", { .store = HERE }, NULL, "fp" },
		/* User and password of a URL belong together. */
		{ both, { .store = "redis://uu:up@h" }, "uu", "up" },
		{ both, { .store = "redis://:up@h" }, NULL, "up" },
		{ both, { .store = "redis://uu:up@h", .password = "op" }, "uu", "op" },
		{ both, { .store = "redis://uu@h", .password = "op" }, "uu", "op" },
		{ both, { .store = HERE, .user = "ou" }, "ou", "fp" },
		{ both, { .store = HERE, .user = "ou", .password = "op" }, "ou", "op" },
		{ NULL, { .store = HERE, .user = "", .password = "" }, NULL, NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(read_from(rows[i].file, &rows[i].options), SPOKE_OK);
		assert_text(settings.redis.user, rows[i].user);
		assert_text(settings.redis.password, rows[i].password);
	}
}

TEST(credentials_of_a_file_stay_with_its_store)
{
	static const char text[] = "[lease]\nstore = redis://10.0.0.1\nuser = fu\npassword = fp\n"
				   "sentinel.password = fs\n";
	struct spoke_leases_options options = { .store = "redis://10.0.0.2" };

	assert_int_equal(read_from(text, &options), SPOKE_OK);
	assert_null(settings.redis.user);
	assert_null(settings.redis.password);
	assert_null(settings.redis.sentinel_password);
	options.store = "redis://10.0.0.1";
	assert_int_equal(read_from(text, &options), SPOKE_OK);
	assert_string_equal(settings.redis.user, "fu");
	assert_string_equal(settings.redis.password, "fp");
	assert_string_equal(settings.redis.sentinel_password, "fs");
}

TEST(user_needs_a_password)
{
	assert_int_equal(read_from(NULL,
				   &(struct spoke_leases_options){ .store = "redis://geheim@h" }),
			 SPOKE_EINVAL);
	assert_string_equal(newest(),
			    "store of leases: a user without a password; write redis://USER:"
			    "PASSWORD@HOST, or redis://:PASSWORD@HOST without a user");
}

TEST(long_credentials_are_refused)
{
	char text[300];

	memset(text, 'p', 256);
	text[256] = '\0';
	assert_int_equal(read_from(NULL, &(struct spoke_leases_options){ .store = HERE,
									 .password = text }),
			 SPOKE_ETOOLARGE);
	assert_string_equal(newest(), "store of leases: user and passwords have at most 255 bytes "
				      "each");
	assert_int_equal(read_from(NULL,
				   &(struct spoke_leases_options){ .store = HERE,
								   .sentinel_password = text }),
			 SPOKE_ETOOLARGE);
	text[255] = '\0';
	assert_int_equal(read_from(NULL, &(struct spoke_leases_options){ .store = HERE,
									 .password = text }),
			 SPOKE_OK);
}

/* --- errors */

TEST(each_error_has_its_sentence)
{
	static const struct {
		struct spoke_leases_options options;
		int error;
		const char *sentence;
	} rows[] = {
		{ { .store = NULL },
		  SPOKE_EINVAL,
		  "store of leases: missing; write e.g. redis://127.0.0.1:6379/0" },
		{ { .store = "redis://me:geheim@h:0?lease.ttl=1s" },
		  SPOKE_ERANGE,
		  "store of leases h:0, byte 0: port 0 is not valid for a store" },
		{ { .store = "redis://me:geheim@h/x" },
		  SPOKE_ESYNTAX,
		  "store of leases h/x, byte 21: a database is a number, e.g. "
		  "redis://127.0.0.1:6379/0" },
		{ { .store = "redis://h?password=geheim" },
		  SPOKE_EINVAL,
		  "store of leases redis://h, byte 9: user and password are no parameters; write "
		  "redis://USER:PASSWORD@HOST, or set them in the section [lease] or in the "
		  "options" },
		{ { .store = "rediss://:geheim@h" },
		  SPOKE_EUNSUPPORTED,
		  "store of leases h, byte 0: TLS to a store is not supported; use redis:// in a "
		  "private network, a unix socket, or a tunnel" },
		{ { .store = HERE, .ttl_ns = 99 * MS },
		  SPOKE_ERANGE,
		  "option lease.ttl=99ms: not between 100ms and 24h" },
		{ { .store = HERE, .ttl_ns = SECOND, .guard_ns = SECOND / 2 },
		  SPOKE_ERANGE,
		  "option lease.guard=500ms: not less than half of the time to live, which is 1s" },
		{ { .store = HERE "?lease.guard=15s" },
		  SPOKE_ERANGE,
		  "option lease.guard=15s: not less than half of the time to live, which is 30s" },
		{ { .store = HERE, .leases_max = 10000001 },
		  SPOKE_ERANGE,
		  "option lease.max=10000001: not between 1 and 10000000" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(read_from("[lease]\nttl = 30s\n", &rows[i].options),
				 rows[i].error);
		assert_string_equal(newest(), rows[i].sentence);
		assert_null(strstr(newest(), "geheim"));
	}
}

static int engine_with(struct spoke_engine **ret)
{
	return spoke_engine_new(&(struct spoke_engine_options){ .env = &second.env }, ret);
}

TEST(settings_leave_the_file_to_other_engines)
{
	struct spoke_leases_options options = { .config = file("[lease]\nstore = " HERE "\n") };
	struct spoke_engine *other;

	assert_int_equal(engine_with(&other), SPOKE_OK);
	assert_int_equal(spokei_lease_settings(other, &options, &settings), SPOKE_OK);
	spokei_lease_settings_free(&second.env, &settings);
	assert_int_equal(spokei_lease_settings(engine, &options, &settings), SPOKE_OK);
	spoke_engine_free(other);
}

TEST(file_in_use_by_another_engine_is_refused)
{
	struct spoke_leases_options options = { .config = file("[lease]\nstore = " HERE "\n") };
	struct spokei_config_user user = { .config = config };
	struct spoke_engine *other;

	assert_int_equal(engine_with(&other), SPOKE_OK);
	assert_int_equal(spokei_config_join(&user, other), SPOKE_OK);
	assert_int_equal(spokei_lease_settings(engine, &options, &settings), SPOKE_EINVAL);
	assert_string_equal(newest(), "option config: belongs to another engine; load one config "
				      "per engine");
	spokei_config_leave(&user);
	spoke_engine_free(other);
}

TEST(reading_without_memory_frees_everything)
{
	struct spoke_leases_options options = { .store = "sentinel://u:p@a,b/m?lease.max=1" };
	unsigned failed = 0;
	int error;

	do {
		faulty.rules[SPOKEI_FAULTS_MEMORY] = (struct spokei_faults_rule){ .skip = failed++,
										  .error = -12 };
		error = spokei_lease_settings(engine, &options, &settings);
		faulty.rules[SPOKEI_FAULTS_MEMORY] = (struct spokei_faults_rule){ 0 };
		assert_true(error == SPOKE_OK || error == SPOKE_ENOMEM);
	} while (error);
	assert_int_equal(failed, 5);
}

TEST(guard_can_be_switched_off)
{
	assert_int_equal(read_from("[lease]\nguard = 0\n",
				   &(struct spoke_leases_options){ .store = HERE }),
			 SPOKE_OK);
	assert_int_equal(settings.guard_ns, 1);
	assert_int_equal(read_from("[lease]\nguard = 1s\n",
				   &(struct spoke_leases_options){ .store = HERE,
								   .guard_ns = SPOKE_OFF }),
			 SPOKE_OK);
	assert_int_equal(settings.guard_ns, 1);
}
