/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers whose URLs name the path of a unix socket and a host: the path is used by consumers of
 * the same host only, and TCP whenever the path cannot be used.
 */
#include "tests/cluster/endpoints/dirrig.h"
#include "tests/cluster/securerig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PATH "unix:/run/a.sock"
#define HERE "0005907e0000001" /* SPOKEI_WORLD_HOST, without its first digit */
#define OF_PATH "&spoke.local=" PATH
#define LOCAL A "?spoke.host=0" HERE OF_PATH

static const struct spoke_consumer_options presets;

static void start_at_path(const char *url)
{
	dirrig_start(0);
	assert_int_equal(spoke_provider_listen(dirrig.sides[0].provider, url), 0);
}

static uint64_t stat_of(enum spoke_stat stat)
{
	return spoke_stat_get(dirrig.engine, stat);
}

/* Asserts that calls work, by this way. */
static void assert_way(bool local)
{
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), SPOKE_OK);
	assert_int_equal(dirrig_info(0).state, SPOKE_ENDPOINT_READY);
	assert_int_equal(dirrig_info(0).local, local);
	assert_string_equal(dirrig_info(0).name, "127.0.0.1:20880");
}

FIXTURE(dirrig_set_up, dirrig_tear_down);

TEST(consumer_of_the_same_host_uses_the_path)
{
	start_at_path(PATH);
	dirrig_consume("", &presets);
	LIST(LOCAL);
	assert_way(true);
	assert_int_equal(stat_of(SPOKE_STAT_CONNECTED_LOCAL), 1);
	assert_int_equal(stat_of(SPOKE_STAT_CONNECTED), 1);
}

TEST(any_doubt_about_the_host_means_tcp)
{
	static const char *const urls[] = {
		A "?spoke.local=" PATH,
		A "?spoke.host=" OF_PATH,
		A "?spoke.host=10005907e000000" OF_PATH,
		A "?spoke.host=" HERE OF_PATH,
		A "?spoke.host=00" HERE OF_PATH,
		A "?spoke.host=0005907E0000001" OF_PATH,
		A "?spoke.host=%200" HERE OF_PATH,
	};

	start_at_path(PATH);
	dirrig_consume("", &presets);
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		LIST(urls[i]);
		assert_way(false);
	}
	assert_int_equal(stat_of(SPOKE_STAT_CONNECTED_LOCAL), 0);
	assert_int_equal(stat_of(SPOKE_STAT_LOCAL_FAILED), 0);
}

TEST(consumer_of_another_host_uses_tcp)
{
	start_at_path(PATH);
	dirrig.process.host_id = 2;
	dirrig_consume("", &presets);
	LIST(LOCAL);
	assert_way(false);
	assert_int_equal(stat_of(SPOKE_STAT_LOCAL_FAILED), 0);
}

TEST(consumer_of_an_unknown_host_uses_tcp)
{
	start_at_path(PATH);
	dirrig.process.host_id = 0;
	dirrig_consume("", &presets);
	LIST(LOCAL);
	assert_way(false);
}

TEST(consumer_with_local_path_off_uses_tcp)
{
	start_at_path(PATH);
	dirrig_consume("?local.path=off", &presets);
	LIST(LOCAL);
	assert_way(false);
}

/* At the path plain bytes are accepted. */
TEST(consumer_that_wants_tls_never_uses_the_path)
{
	struct spoke_consumer_options options = { .tls = NULL };
	struct secure secure;

	if (!secure_begin(&secure, &dirrig.world, "/tls"))
		skip();
	options.tls = &secure.consumer;
	start_at_path(PATH);
	dirrig_consume("", &options);
	LIST(LOCAL);
	dirrig_pass(SECOND);
	assert_int_equal(stat_of(SPOKE_STAT_CONNECTED_LOCAL), 0);
	assert_int_equal(stat_of(SPOKE_STAT_LOCAL_FAILED), 0);
	assert_int_equal(stat_of(SPOKE_STAT_CONNECTED), 0);
	assert_true(stat_of(SPOKE_STAT_CONNECTS) > 0);
}

TEST(invalid_paths_are_refused_with_a_reason)
{
	static const char *const paths[] = {
		"run/a.sock",
		"unix:run/a.sock",
		"unix:@a",
		"unix:",
		"unix",
		"127.0.0.1:1234",
		"/run/a.sock",
		"shm:/x",
		"unix:%0a/x",
		"unix:/"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	};
	struct spoke_event event = { .number = 0 };
	unsigned events = 0;

	start_at_path(PATH);
	dirrig_consume("", &presets);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		char url[512];

		(void)snprintf(url, sizeof(url), A "?spoke.host=0" HERE "&spoke.local=%s",
			       paths[i]);
		LIST(url);
		assert_way(false);
		assert_true(stat_of(SPOKE_STAT_LOCAL_REFUSED) > i);
	}
	while (spoke_event_get(dirrig.engine, event.number + 1, &event) == 0)
		events += strstr(event.text, "is no absolute path of a unix socket") != NULL;
	assert_true(events >= sizeof(paths) / sizeof(paths[0]));
	assert_int_equal(stat_of(SPOKE_STAT_CONNECTED_LOCAL), 0);
}

TEST(calls_wait_for_tcp_when_the_path_is_missing)
{
	dirrig_start(0);
	dirrig_consume("", &presets);
	LIST(LOCAL);
	assert_int_equal(dirrig_try(SECOND), 0);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig.calls[0].error, SPOKE_OK);
	assert_int_equal(dirrig_served(0), 1);
	assert_int_equal(stat_of(SPOKE_STAT_LOCAL_FAILED), 1);
	assert_false(dirrig_info(0).local);
}

TEST(user_that_the_path_refuses_uses_tcp_and_loses_no_call)
{
	start_at_path(PATH "?deny.from=unix");
	dirrig_consume("", &presets);
	LIST(LOCAL);
	for (int i = 0; i < 5; i++)
		assert_int_equal(dirrig_try(SECOND), 0);
	dirrig_pass(10 * MS);
	for (int i = 0; i < 5; i++)
		assert_int_equal(dirrig.calls[i].error, SPOKE_OK);
	assert_int_equal(dirrig_served(0), 5);
	assert_way(false);
	assert_int_equal(stat_of(SPOKE_STAT_LOCAL_FAILED), 1);
}

TEST(path_is_taken_again_by_a_later_connection)
{
	dirrig_start(0);
	dirrig_consume("", &presets);
	LIST(LOCAL);
	assert_way(false);
	dirrig_stop(0);
	dirrig_pass(SECOND);
	start_at_path(PATH);
	dirrig_pass(40 * SECOND);
	assert_way(true);
	dirrig_stop(0);
	dirrig_pass(SECOND);
	dirrig_start(0);
	dirrig_pass(40 * SECOND);
	assert_way(false);
}

TEST(other_path_in_the_list_makes_another_endpoint)
{
	start_at_path(PATH);
	dirrig_consume("", &presets);
	LIST(A);
	assert_way(false);
	LIST(LOCAL);
	assert_way(true);
	LIST(LOCAL);
	assert_way(true);
	assert_int_equal(stat_of(SPOKE_STAT_CONNECTED), 2);
	LIST(A);
	assert_way(false);
}

TEST(lack_of_descriptors_does_not_change_the_host)
{
	start_at_path(PATH);
	dirrig_consume("", &presets);
	LIST(LOCAL);
	assert_way(true);
	spokei_faults_fail(&dirrig.faulty, SPOKEI_FAULTS_HOST_ID, 1, -EMFILE, true);
	LIST(LOCAL);
	assert_way(true);
	assert_int_equal(stat_of(SPOKE_STAT_CONNECTED), 1);
}

TEST(token_of_ones_own_is_judged_by_the_host_alone)
{
	static const char far[] = "dubbo://10.0.0.1:20880/demo.Echo?spoke.host=0" HERE OF_PATH;
	const struct spoke_consumer_options options = { .token = "a-long-secret-token" };

	dirrig.sides[0].token = "a-long-secret-token";
	start_at_path(PATH);
	dirrig_consume("", &options);
	LIST(LOCAL);
	assert_way(true);
	/* The call may have to go by TCP, so it is put together without the token. */
	LIST(far);
	dirrig_pass(10 * MS);
	assert_int_not_equal(dirrig_call(), SPOKE_OK);
}
