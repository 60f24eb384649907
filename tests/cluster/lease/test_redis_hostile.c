/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers that break the protocol: each byte that was not asked for, or is no reply, ends the
 * connection; memory stays bounded, one line is logged, and pauses grow.
 */
#include "tests/cluster/lease/redisrig.h"
#include "tests/support/test.h"

#include <spoke/stats.h>

#define MEMORY_MAX ((size_t)2 * 1024 * 1024)

/* Says the same on each connection, in place of a greeting, for a minute. */
static void repeat(struct redisrig *rig, const char *bytes, const char *words)
{
	uint64_t until_ns = rig->world.now_ns + 60 * SECOND;
	unsigned conns = 0;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	while (rig->world.now_ns < until_ns) {
		int fd = redisrig_accept(rig);

		redisrig_say(rig, fd, bytes);
		redisrig_expect_end(rig, fd);
		conns++;
	}
	assert_in_range(conns, 12, 25);
	assert_int_equal(rig->down, conns);
	assert_int_equal(rig->down_error, SPOKE_EPROTOCOL);
	assert_non_null(strstr(rig->down_text, words));
	assert_int_equal(redisrig_events(rig, "store "), 1);
	assert_int_equal(rig->ready, 0);
	assert_in_range(rig->faulty.bytes_peak, 0, MEMORY_MAX);
}

FIXTURE(redisrig_set_up, redisrig_tear_down);

TEST(other_protocol_ends_the_connection)
{
	repeat(*state, "HTTP/1.1 400 Bad Request\r\n\r\n", "a byte that begins no reply");
}

TEST(long_length_ends_the_connection)
{
	repeat(*state, "$9223372036854775808\r\n", "a number");
}

TEST(large_string_ends_the_connection)
{
	repeat(*state, "$9223372036854775807\r\n", "more than 64 KiB");
}

TEST(deep_reply_ends_the_connection)
{
	repeat(*state, "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", "4 arrays");
}

TEST(many_elements_end_the_connection)
{
	repeat(*state, "*1000000\r\n", "1,024 elements");
}

TEST(wrong_reply_to_script_load_ends_the_connection)
{
	repeat(*state, "+OK\r\n:1\r\n*0\r\n*0\r\n+OK\r\n", "a wrong reply to SCRIPT LOAD");
}

TEST(bytes_after_the_greeting_end_the_connection)
{
	struct redisrig *rig = *state;
	uint64_t until_ns = rig->world.now_ns + 60 * SECOND;
	unsigned conns = 0;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	while (rig->world.now_ns < until_ns) {
		int fd = redisrig_welcome(rig);

		redisrig_say(rig, fd, "+");
		redisrig_expect_end(rig, fd);
		conns++;
	}
	/* The greeting alone does not make the server a good one. */
	assert_in_range(conns, 12, 25);
	assert_string_equal(rig->down_text, "the server sent bytes that were not asked for");
	assert_int_equal(redisrig_events(rig, "not asked for"), 1);
	assert_int_equal(redisrig_events(rig, "connected"), 1);
}

TEST(endless_reply_is_cut)
{
	struct redisrig *rig = *state;
	struct redisask ask = { .done = 0 };
	static char junk[4096];
	int fd;

	memset(junk, 'x', sizeof(junk));
	junk[0] = '+';
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
	assert_int_equal(redisrig_ask(rig, &ask, "a"), SPOKE_OK);
	for (size_t sent = 0; rig->down == 0; sent += sizeof(junk)) {
		assert_in_range(sent, 0, SPOKEI_RESP_BYTES);
		redisrig_say_bytes(rig, fd, junk, sizeof(junk));
		junk[0] = 'x';
	}
	assert_int_equal(ask.error, SPOKE_ELOST);
	assert_string_equal(rig->down_text, "the server sent a reply of more than 64 KiB");
	assert_in_range(rig->faulty.bytes_peak, 0, MEMORY_MAX);
}

TEST(reply_of_the_wrong_form_ends_the_connection)
{
	static const struct {
		enum spokei_script script;
		unsigned keys;
		unsigned count;
		const char *reply;
	} rows[] = {
		{ SPOKEI_SCRIPT_ACQUIRE, 2, 4, "+OK\r\n" },
		{ SPOKEI_SCRIPT_ACQUIRE, 2, 4, "*1\r\n:0\r\n" },
		{ SPOKEI_SCRIPT_ACQUIRE, 2, 4, "*2\r\n:0\r\n$-1\r\n" },
		{ SPOKEI_SCRIPT_ACQUIRE, 2, 4, "*2\r\n:0\r\n$3\r\nabc\r\n" },
		{ SPOKEI_SCRIPT_ACQUIRE, 2, 4, "*2\r\n:0\r\n*1\r\n:1\r\n" },
		{ SPOKEI_SCRIPT_RENEW, 2, 6, "*1\r\n:1\r\n" },
		{ SPOKEI_SCRIPT_RENEW, 2, 6, "*3\r\n:1\r\n:1\r\n:1\r\n" },
		{ SPOKEI_SCRIPT_RENEW, 2, 6, "*2\r\n:1\r\n$1\r\n1\r\n" },
		{ SPOKEI_SCRIPT_RENEW, 2, 6, "$-1\r\n" },
		{ SPOKEI_SCRIPT_RELEASE, 2, 3, "$1\r\n1\r\n" },
	};
	struct redisrig *rig = *state;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct redisask ask = { .done = 0 };
		int fd = redisrig_welcome(rig);

		assert_int_equal(redisrig_run_script(rig, &ask, rows[i].script, rows[i].keys,
						     rows[i].count),
				 SPOKE_OK);
		redisrig_expect(rig, fd, "EVALSHA *");
		redisrig_say(rig, fd, rows[i].reply);
		assert_int_equal(ask.done, 1);
		assert_int_equal(ask.error, SPOKE_ELOST);
		assert_int_equal(rig->down, i + 1);
		assert_int_equal(rig->down_error, SPOKE_EPROTOCOL);
		redisrig_hang_up(rig, fd);
	}
	assert_int_equal(redisrig_events(rig, "a wrong reply to"), 1);
}

TEST(good_replies_have_their_form)
{
	static const struct {
		enum spokei_script script;
		unsigned keys;
		unsigned count;
		const char *reply;
	} rows[] = {
		{ SPOKEI_SCRIPT_ACQUIRE, 2, 4, "*2\r\n:0\r\n$2\r\n17\r\n" },
		{ SPOKEI_SCRIPT_ACQUIRE, 2, 4, "*2\r\n:1\r\n:-1\r\n" },
		{ SPOKEI_SCRIPT_RENEW, 2, 6, "*2\r\n:1\r\n:0\r\n" },
		{ SPOKEI_SCRIPT_RELEASE, 2, 3, ":1\r\n" },
	};
	struct redisrig *rig = *state;
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct redisask ask = { .done = 0 };

		assert_int_equal(redisrig_run_script(rig, &ask, rows[i].script, rows[i].keys,
						     rows[i].count),
				 SPOKE_OK);
		redisrig_expect(rig, fd, "EVALSHA *");
		redisrig_say(rig, fd, rows[i].reply);
		assert_int_equal(ask.done, 1);
		assert_int_equal(ask.error, SPOKE_OK);
	}
}

TEST(wrong_messages_end_the_connection_for_them)
{
	static const char *const rows[] = {
		":1\r\n",
		"+PONG\r\n",
		"*1\r\n:1\r\n",
		"*2\r\n$4\r\npong\r\n$0\r\n\r\n",
		"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n:1\r\n",
		"*2\r\n$7\r\nmessage\r\n$1\r\na\r\n",
		"*3\r\n$7\r\nmessage\r\n$1\r\nz\r\n$1\r\n0\r\n",
		"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n",
		"*4\r\n$8\r\npmessage\r\n$1\r\na\r\n$1\r\na\r\n$1\r\n0\r\n",
		"-ERR\r\n",
		"*2\r\n*2\r\n*2\r\n*2\r\n*2\r\n",
	};
	struct redisrig *rig = *state;
	static struct spokei_redis_channel channel;

	channel = (struct spokei_redis_channel){ .name = { "a", 1 } };
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	(void)redisrig_welcome(rig);
	spokei_redis_subscribe(rig->redis, &channel);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int fd = redisrig_accept(rig);

		redisrig_expect(rig, fd, "CLIENT SETNAME spoke");
		redisrig_say(rig, fd, "+OK\r\n");
		redisrig_expect(rig, fd, "SUBSCRIBE a");
		redisrig_say(rig, fd, "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
		assert_int_equal(rig->subscribed, i + 1);
		redisrig_say(rig, fd, rows[i]);
		redisrig_expect_end(rig, fd);
	}
	assert_int_equal(rig->messages, 0);
	assert_int_equal(rig->down, 0);
	assert_int_equal(redisrig_events(rig, "connection for messages"), 1);
}

TEST(flood_of_good_replies_ends_the_connection)
{
	struct redisrig *rig = *state;
	struct redisask ask = { .done = 0 };
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
	assert_int_equal(redisrig_ask(rig, &ask, "a"), SPOKE_OK);
	redisrig_say(rig, fd, ":1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n");
	assert_int_equal(ask.done, 1);
	assert_int_equal(ask.error, SPOKE_OK);
	assert_int_equal(rig->down, 1);
	redisrig_expect_end(rig, fd);
}

TEST(own_bytes_are_no_greeting)
{
	struct redisrig *rig = *state;

	spokei_vnet_route(rig->world.net, REDISRIG_AT, SPOKEI_VNET_SELF);
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	redisrig_run(rig, 60 * SECOND);
	assert_int_equal(rig->ready, 0);
	assert_in_range(rig->down, 12, 25);
	assert_int_equal(redisrig_events(rig, "store "), 1);
}
