/* SPDX-License-Identifier: Apache-2.0 */
/* The first commands of a connection, and the ways in which it is not made. */
#include "tests/cluster/lease/redisrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

#define OK "+OK\r\n"
#define SIX_ERRORS                                                                                 \
	"-NOPERM\r\n-ERR\r\n-NOPERM\r\n-ERR unknown\r\n" /* SETNAME, ID, CONFIG, ROLE              \
							  */

/* --- the greeting */

FIXTURE(redisrig_set_up, redisrig_tear_down);

TEST(greeting_is_one_round_trip)
{
	struct redisrig *rig = *state;
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_accept(rig);
	redisrig_expect_greeting(rig, fd);
	redisrig_expect_none(rig, fd);
	assert_false(spokei_redis_is_ready(rig->redis));
	redisrig_answer_greeting(rig, fd, 1);
	assert_int_equal(rig->ready, 1);
	assert_int_equal(rig->down, 0);
	assert_string_equal(spokei_redis_address(rig->redis), REDISRIG_AT);
	assert_int_equal(redisrig_events(rig, "store " REDISRIG_AT ": connected"), 1);
}

TEST(password_user_and_number_come_first)
{
	struct redisrig *rig = *state;
	int fd;

	rig->options.user = "me";
	rig->options.password = "secret";
	rig->options.db = 3;
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_accept(rig);
	redisrig_expect(rig, fd, "AUTH me secret");
	redisrig_expect(rig, fd, "SELECT 3");
	redisrig_expect_greeting(rig, fd);
	redisrig_say(rig, fd, OK OK);
	redisrig_answer_greeting(rig, fd, 1);
	assert_int_equal(rig->ready, 1);
}

TEST(password_alone_is_sent_alone)
{
	struct redisrig *rig = *state;
	int fd;

	rig->options.password = "secret";
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_accept(rig);
	redisrig_expect(rig, fd, "AUTH secret");
	redisrig_say(rig, fd, "-WRONGPASS invalid username-password pair\r\n");
	redisrig_expect_end(rig, fd);
	assert_int_equal(rig->down, 1);
	assert_int_equal(rig->down_error, SPOKE_ESTORE);
	assert_string_equal(rig->down_text, "AUTH: WRONGPASS invalid username-password pair");
	assert_int_equal(redisrig_events(rig, "secret"), 0);
}

TEST(missing_password_is_reported_with_backoff)
{
	struct redisrig *rig = *state;
	uint64_t first_ns;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	first_ns = rig->world.now_ns;
	for (unsigned i = 0; i < 12; i++) {
		int fd = redisrig_accept(rig);

		redisrig_expect_greeting(rig, fd);
		for (int step = 0; step < 9; step++)
			redisrig_say(rig, fd,
				     step < 5 ? "-NOAUTH Authentication required.\r\n" : "");
		redisrig_expect_end(rig, fd);
		assert_int_equal(rig->down, i + 1);
		assert_string_equal(rig->down_text, "SCRIPT LOAD: NOAUTH Authentication required.");
	}
	/* 0.1, 0.16, 0.256, ... up to 5 s each, plus or minus a fifth. */
	assert_in_range(rig->world.now_ns - first_ns, 17 * SECOND, 27 * SECOND);
	assert_int_equal(rig->ready, 0);
	assert_int_equal(redisrig_events(rig, "NOAUTH"), 1);
	/* That is no matter of the list of the server. */
	assert_int_equal(redisrig_events(rig, "CONFIG GET"), 0);
}

TEST(optional_commands_may_be_forbidden)
{
	struct redisrig *rig = *state;
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_accept(rig);
	redisrig_expect_greeting(rig, fd);
	redisrig_say(rig, fd, SIX_ERRORS);
	for (int i = SPOKEI_SCRIPT_ACQUIRE; i < SPOKEI_SCRIPTS; i++)
		redisrig_say(rig, fd, "$40\r\n" REDISRIG_SHA "\r\n");
	assert_int_equal(rig->ready, 1);
	assert_int_equal(redisrig_events(rig, "CONFIG GET is not permitted"), 1);
}

TEST(eviction_is_warned_of_once)
{
	struct redisrig *rig = *state;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	for (int i = 0; i < 2; i++) {
		int fd = redisrig_accept(rig);

		redisrig_expect_greeting(rig, fd);
		redisrig_say(rig, fd, OK ":1\r\n*2\r\n$1\r\nx\r\n$11\r\nallkeys-lru\r\n");
		redisrig_hang_up(rig, fd);
	}
	redisrig_run(rig, MS);
	assert_int_equal(redisrig_events(rig, "it may evict leases"), 1);
}

TEST(replica_is_no_store)
{
	struct redisrig *rig = *state;
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_accept(rig);
	redisrig_expect_greeting(rig, fd);
	redisrig_say(rig, fd,
		     OK ":1\r\n-ERR\r\n*5\r\n$5\r\nslave\r\n$1\r\nx\r\n:1\r\n$1\r\ny\r\n:2\r\n");
	redisrig_expect_end(rig, fd);
	assert_int_equal(rig->down_error, SPOKE_ESTORE);
	assert_string_equal(rig->down_text, "the server is a replica; leases need the primary");
}

TEST(loading_server_is_asked_again)
{
	struct redisrig *rig = *state;
	int fd;

	rig->options.db = 1;
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_accept(rig);
	redisrig_expect(rig, fd, "SELECT 1");
	redisrig_say(rig, fd, "-LOADING Redis is loading the dataset in memory\r\n");
	redisrig_expect_end(rig, fd);
	assert_string_equal(rig->down_text,
			    "SELECT: LOADING Redis is loading the dataset in memory");
	fd = redisrig_accept(rig);
	redisrig_expect(rig, fd, "SELECT 1");
	redisrig_expect_greeting(rig, fd);
	redisrig_say(rig, fd, OK);
	redisrig_answer_greeting(rig, fd, 1);
	assert_int_equal(rig->ready, 1);
}

TEST(reason_of_a_refused_connection_is_reported)
{
	struct redisrig *rig = *state;
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_accept(rig);
	redisrig_say(rig, fd, "-ERR max number of clients reached\r\n");
	redisrig_hang_up(rig, fd);
	redisrig_run(rig, MS);
	assert_int_equal(rig->down, 1);
	assert_string_equal(rig->down_text, "ERR max number of clients reached");
}

TEST(silent_greeting_ends_after_its_time)
{
	struct redisrig *rig = *state;
	int fd;

	rig->options.connect_ns = 2 * SECOND;
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_accept(rig);
	redisrig_run(rig, 1990 * MS);
	assert_int_equal(rig->down, 0);
	redisrig_run(rig, 20 * MS);
	assert_int_equal(rig->down, 1);
	assert_int_equal(rig->down_error, SPOKE_ESILENT);
	redisrig_hang_up(rig, fd);
}

TEST(refused_connection_is_reported)
{
	struct redisrig *rig = *state;

	spokei_vnet_route(rig->world.net, REDISRIG_AT, SPOKEI_VNET_REFUSE);
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	redisrig_run(rig, 10 * MS);
	assert_int_equal(rig->down, 1);
	assert_int_equal(rig->down_error, SPOKE_ECONNECT);
	assert_string_equal(rig->down_text, "Connection refused");
	redisrig_run(rig, 60 * SECOND);
	assert_in_range(rig->down, 12, 25);
	assert_int_equal(redisrig_events(rig, "Connection refused"), 1);
}

TEST(silent_address_is_given_up_after_its_time)
{
	struct redisrig *rig = *state;

	rig->options.connect_ns = SECOND;
	spokei_vnet_route(rig->world.net, REDISRIG_AT, SPOKEI_VNET_SILENT);
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	redisrig_run(rig, 990 * MS);
	assert_int_equal(rig->down, 0);
	redisrig_run(rig, 30 * MS);
	assert_int_equal(rig->down, 1);
	assert_string_equal(rig->down_text, strerror(ETIMEDOUT));
}

TEST(name_is_resolved_and_each_address_tried)
{
	struct redisrig *rig = *state;
	int fd;

	rig->options.host = "redis.test";
	spokei_vnet_name(rig->world.net, "redis.test", "127.0.0.2 127.0.0.1 127.0.0.3");
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
	assert_int_equal(rig->down, 0);
	assert_string_equal(spokei_redis_address(rig->redis), "redis.test:6379");
	redisrig_hang_up(rig, fd);
}

/* --- options */

TEST(invalid_options_are_refused)
{
	struct redisrig *rig = *state;
	const struct spokei_redis_place sentinel = { .host = "s.test", .port = 1 };
	char text[SPOKEI_REDIS_TEXT_MAX + 2];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	rig->options.host = NULL;
	assert_int_equal(redisrig_start(rig), SPOKE_EINVAL);
	rig->options.host = "redis.test";
	rig->options.password = text;
	assert_int_equal(redisrig_start(rig), SPOKE_ETOOLARGE);
	rig->options.password = text + 1;
	rig->options.sentinels = &sentinel;
	rig->options.sentinel_count = 1;
	assert_int_equal(redisrig_start(rig), SPOKE_EINVAL);
	rig->options.primary = "p";
	rig->options.sentinel_count = SPOKEI_REDIS_SENTINELS_MAX + 1;
	assert_int_equal(redisrig_start(rig), SPOKE_ETOOLARGE);
}

TEST(making_fails_cleanly_without_memory)
{
	struct redisrig *rig = *state;
	const struct spokei_redis_place sentinel = { .host = "s.test", .port = 1 };

	rig->options.sentinels = &sentinel;
	rig->options.sentinel_count = 1;
	rig->options.primary = "p";
	for (unsigned skip = 0; skip < 2; skip++) {
		rig->faulty.rules[SPOKEI_FAULTS_MEMORY] =
			(struct spokei_faults_rule){ .skip = skip, .error = -1, .for_ever = true };
		assert_int_equal(redisrig_start(rig), SPOKE_ENOMEM);
	}
	rig->faulty.rules[SPOKEI_FAULTS_MEMORY] = (struct spokei_faults_rule){ .error = 0 };
}
