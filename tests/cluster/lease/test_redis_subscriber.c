/* SPDX-License-Identifier: Apache-2.0 */
/* The connection for messages: subscriptions, their order, reconnects, silence. */
#include "tests/cluster/lease/redisrig.h"
#include "tests/support/test.h"

#include <stdio.h>

#define SUBSCRIBED(name) "*3\r\n$9\r\nsubscribe\r\n$1\r\n" name "\r\n:1\r\n"
#define UNSUBSCRIBED(name) "*3\r\n$11\r\nunsubscribe\r\n$1\r\n" name "\r\n:0\r\n"
#define MESSAGE(name, text) "*3\r\n$7\r\nmessage\r\n$1\r\n" name "\r\n$1\r\n" text "\r\n"

static struct spokei_redis_channel a;
static struct spokei_redis_channel b;

/* Makes the store and both connections, with a subscription of "a" asked for. Returns the
 * connection for messages. */
static int start(struct redisrig *rig)
{
	int fd;

	a = (struct spokei_redis_channel){ .name = { "a", 1 } };
	b = (struct spokei_redis_channel){ .name = { "b", 1 } };
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	(void)redisrig_welcome(rig);
	redisrig_run(rig, SECOND);
	assert_false(redisrig_called(rig));
	spokei_redis_subscribe(rig->redis, &a);
	fd = redisrig_accept(rig);
	redisrig_expect(rig, fd, "CLIENT SETNAME spoke");
	redisrig_expect_none(rig, fd);
	redisrig_say(rig, fd, "+OK\r\n");
	redisrig_expect(rig, fd, "SUBSCRIBE a");
	return fd;
}

FIXTURE(redisrig_set_up, redisrig_tear_down);

TEST(subscription_is_in_force_when_confirmed)
{
	struct redisrig *rig = *state;
	int fd = start(rig);

	assert_int_equal(rig->subscribed, 0);
	redisrig_say(rig, fd, SUBSCRIBED("a"));
	assert_int_equal(rig->subscribed, 1);
	assert_ptr_equal(rig->channel, &a);
	redisrig_say(rig, fd, MESSAGE("a", "0"));
	assert_int_equal(rig->messages, 1);
	assert_string_equal(rig->payload, "0");
}

TEST(second_channel_uses_the_same_connection)
{
	struct redisrig *rig = *state;
	int fd = start(rig);

	spokei_redis_subscribe(rig->redis, &b);
	redisrig_expect(rig, fd, "SUBSCRIBE b");
	redisrig_say(rig, fd, SUBSCRIBED("a") SUBSCRIBED("b") MESSAGE("b", "0"));
	assert_int_equal(rig->subscribed, 2);
	assert_int_equal(rig->messages, 1);
	assert_ptr_equal(rig->channel, &b);
	assert_false(redisrig_called(rig));
}

TEST(left_channel_gets_no_message)
{
	struct redisrig *rig = *state;
	int fd = start(rig);

	redisrig_say(rig, fd, SUBSCRIBED("a"));
	spokei_redis_unsubscribe(rig->redis, &a);
	redisrig_expect(rig, fd, "UNSUBSCRIBE a");
	redisrig_say(rig, fd, MESSAGE("a", "0") UNSUBSCRIBED("a"));
	assert_int_equal(rig->messages, 0);
	redisrig_expect_none(rig, fd);
	assert_int_equal(redisrig_events(rig, "messages"), 0);
}

/* The first reply belongs to the first SUBSCRIBE, after which the channel was left. */
TEST(channel_joined_again_waits_for_its_own_reply)
{
	struct redisrig *rig = *state;
	int fd = start(rig);

	spokei_redis_unsubscribe(rig->redis, &a);
	spokei_redis_subscribe(rig->redis, &a);
	redisrig_expect(rig, fd, "UNSUBSCRIBE a");
	redisrig_expect(rig, fd, "SUBSCRIBE a");
	redisrig_say(rig, fd, SUBSCRIBED("a"));
	assert_int_equal(rig->subscribed, 0);
	redisrig_say(rig, fd, UNSUBSCRIBED("a"));
	assert_int_equal(rig->subscribed, 0);
	redisrig_say(rig, fd, SUBSCRIBED("a"));
	assert_int_equal(rig->subscribed, 1);
}

TEST(subscription_is_made_again_after_a_loss)
{
	struct redisrig *rig = *state;
	int fd = start(rig);

	redisrig_say(rig, fd, SUBSCRIBED("a"));
	redisrig_hang_up(rig, fd);
	fd = redisrig_accept(rig);
	redisrig_expect(rig, fd, "CLIENT SETNAME spoke");
	spokei_redis_subscribe(rig->redis, &b);
	redisrig_say(rig, fd, "+OK\r\n");
	redisrig_expect(rig, fd, "SUBSCRIBE a");
	redisrig_expect(rig, fd, "SUBSCRIBE b");
	redisrig_say(rig, fd, SUBSCRIBED("a") SUBSCRIBED("b"));
	assert_int_equal(rig->subscribed, 3);
	assert_int_equal(rig->down, 0);
	assert_int_equal(redisrig_events(rig, "connection for messages: the server closed"), 1);
}

TEST(channel_may_be_left_while_there_is_no_connection)
{
	struct redisrig *rig = *state;
	int fd = start(rig);

	redisrig_say(rig, fd, SUBSCRIBED("a"));
	redisrig_hang_up(rig, fd);
	redisrig_run(rig, MS);
	spokei_redis_unsubscribe(rig->redis, &a);
	spokei_redis_subscribe(rig->redis, &b);
	fd = redisrig_accept(rig);
	redisrig_expect(rig, fd, "CLIENT SETNAME spoke");
	redisrig_say(rig, fd, "+OK\r\n");
	redisrig_expect(rig, fd, "SUBSCRIBE b");
	redisrig_expect_none(rig, fd);
}

TEST(silent_connection_is_probed)
{
	struct redisrig *rig = *state;
	int fd = start(rig);

	redisrig_say(rig, fd, SUBSCRIBED("a"));
	for (int i = 0; i < 3; i++) {
		redisrig_run(rig, 9 * SECOND);
		redisrig_expect_none(rig, fd);
		redisrig_run(rig, 2 * SECOND);
		redisrig_expect(rig, fd, "PING");
		redisrig_say(rig, fd, i ? "*2\r\n$4\r\npong\r\n$0\r\n\r\n" : "+PONG\r\n");
	}
	redisrig_run(rig, 11 * SECOND);
	redisrig_expect(rig, fd, "PING");
	redisrig_run(rig, 3 * SECOND);
	redisrig_expect_none(rig, fd);
	redisrig_run(rig, 3 * SECOND);
	redisrig_expect_end(rig, fd);
	assert_int_equal(redisrig_events(rig, "connection for messages: the server is silent"), 1);
	(void)redisrig_accept(rig);
}

TEST(password_is_sent_on_this_connection_too)
{
	struct redisrig *rig = *state;
	int fd;

	rig->options.password = "secret";
	a = (struct spokei_redis_channel){ .name = { "a", 1 } };
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	(void)redisrig_accept(rig);
	spokei_redis_subscribe(rig->redis, &a);
	fd = redisrig_accept(rig);
	redisrig_expect(rig, fd, "AUTH secret");
	redisrig_expect(rig, fd, "CLIENT SETNAME spoke");
	redisrig_say(rig, fd, "-WRONGPASS no\r\n");
	redisrig_expect_end(rig, fd);
	assert_int_equal(redisrig_events(rig, "AUTH: WRONGPASS no"), 1);
	fd = redisrig_accept(rig);
	redisrig_expect(rig, fd, "AUTH secret");
	redisrig_expect(rig, fd, "CLIENT SETNAME spoke");
	redisrig_say(rig, fd, "+OK\r\n-NOPERM no\r\n");
	redisrig_expect(rig, fd, "SUBSCRIBE a");
	redisrig_say(rig, fd, SUBSCRIBED("a"));
	assert_int_equal(rig->subscribed, 1);
}

TEST(forbidden_channel_leaves_the_others)
{
	struct redisrig *rig = *state;
	int fd = start(rig);

	spokei_redis_subscribe(rig->redis, &b);
	redisrig_expect(rig, fd, "SUBSCRIBE b");
	redisrig_say(rig, fd, "-NOPERM no\r\n" SUBSCRIBED("b") MESSAGE("b", "0"));
	assert_int_equal(rig->subscribed, 1);
	assert_ptr_equal(rig->channel, &b);
	assert_int_equal(rig->messages, 1);
	assert_int_equal(redisrig_events(rig, "SUBSCRIBE: NOPERM no"), 1);
	redisrig_expect_none(rig, fd);
}

static void free_in_message(struct redisrig *rig)
{
	spokei_redis_free(rig->redis);
	rig->redis = NULL;
}

TEST(store_may_be_freed_in_a_message)
{
	struct redisrig *rig = *state;
	int fd = start(rig);

	rig->on_message = free_in_message;
	redisrig_say(rig, fd, SUBSCRIBED("a") MESSAGE("a", "0") MESSAGE("a", "0"));
	assert_int_equal(rig->messages, 1);
	redisrig_expect_end(rig, fd);
}

TEST(channel_left_in_its_message_ends_there)
{
	struct redisrig *rig = *state;
	int fd = start(rig);

	redisrig_say(rig, fd, SUBSCRIBED("a"));
	spokei_redis_unsubscribe(rig->redis, &a);
	redisrig_say(rig, fd, MESSAGE("a", "0") MESSAGE("a", "0"));
	redisrig_expect(rig, fd, "UNSUBSCRIBE a");
	redisrig_say(rig, fd, UNSUBSCRIBED("a") MESSAGE("a", "0"));
	redisrig_expect_end(rig, fd);
	assert_int_equal(rig->messages, 0);
	assert_int_equal(redisrig_events(rig, "messages that were not asked for"), 1);
}

/* More SUBSCRIBEs than the output is to hold at once; each reply makes room for more. */
TEST(many_subscriptions_wait_for_room)
{
	enum {
		MANY = 3000
	};
	static struct spokei_redis_channel channels[MANY];
	static char names[MANY][40];
	struct redisrig *rig = *state;
	int fd = start(rig);

	redisrig_say(rig, fd, SUBSCRIBED("a"));
	memset(channels, 0, sizeof(channels));
	for (int i = 0; i < MANY; i++) {
		int len = snprintf(names[i], sizeof(names[i]), "channel-%027d", i);

		channels[i].name = (struct spoke_span){ names[i], (size_t)len };
		spokei_redis_subscribe(rig->redis, &channels[i]);
	}
	assert_in_range(rig->faulty.bytes_peak, 0, 3 * SPOKEI_REDIS_OUT_MAX);
	for (int i = 0; i < MANY; i++) {
		char line[160];

		(void)snprintf(line, sizeof(line), "SUBSCRIBE channel-%027d", i);
		redisrig_expect(rig, fd, line);
		(void)snprintf(line, sizeof(line),
			       "*3\r\n$9\r\nsubscribe\r\n$35\r\nchannel-%027d\r\n:1\r\n", i);
		redisrig_say(rig, fd, line);
	}
	assert_int_equal(rig->subscribed, MANY + 1);
}

TEST(channel_without_memory_is_never_in_force)
{
	struct redisrig *rig = *state;

	a = (struct spokei_redis_channel){ .name = { "a", 1 } };
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	(void)redisrig_welcome(rig);
	rig->faulty.rules[SPOKEI_FAULTS_MEMORY] = (struct spokei_faults_rule){ .error = -1 };
	spokei_redis_subscribe(rig->redis, &a);
	redisrig_run(rig, SECOND);
	assert_false(redisrig_called(rig));
	spokei_redis_unsubscribe(rig->redis, &a);
}
