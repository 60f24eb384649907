/* SPDX-License-Identifier: Apache-2.0 */
/* The connections that listen: published messages and sentinels. */
#include "tests/cluster/lease/redisrig.h"
#include "tests/support/test.h"

#include <spoke/stats.h>

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
	(void)redisrig_open(rig);
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

REDIS_TEST(subscription_is_in_force_when_confirmed)
{
	int fd = start(rig);

	assert_int_equal(rig->subscribed, 0);
	redisrig_say(rig, fd, SUBSCRIBED("a"));
	assert_int_equal(rig->subscribed, 1);
	assert_ptr_equal(rig->channel, &a);
	redisrig_say(rig, fd, MESSAGE("a", "0"));
	assert_int_equal(rig->messages, 1);
	assert_string_equal(rig->payload, "0");
}

REDIS_TEST(second_channel_uses_the_same_connection)
{
	int fd = start(rig);

	spokei_redis_subscribe(rig->redis, &b);
	redisrig_expect(rig, fd, "SUBSCRIBE b");
	redisrig_say(rig, fd, SUBSCRIBED("a") SUBSCRIBED("b") MESSAGE("b", "0"));
	assert_int_equal(rig->subscribed, 2);
	assert_int_equal(rig->messages, 1);
	assert_ptr_equal(rig->channel, &b);
	assert_false(redisrig_called(rig));
}

REDIS_TEST(left_channel_gets_no_message)
{
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
REDIS_TEST(channel_joined_again_waits_for_its_own_reply)
{
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

REDIS_TEST(subscription_is_made_again_after_a_loss)
{
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

REDIS_TEST(channel_may_be_left_while_there_is_no_connection)
{
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

REDIS_TEST(silent_connection_is_probed)
{
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

REDIS_TEST(password_is_sent_on_this_connection_too)
{
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

REDIS_TEST(forbidden_channel_leaves_the_others)
{
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

REDIS_TEST(store_may_be_freed_in_a_message)
{
	int fd = start(rig);

	rig->on_message = free_in_message;
	redisrig_say(rig, fd, SUBSCRIBED("a") MESSAGE("a", "0") MESSAGE("a", "0"));
	assert_int_equal(rig->messages, 1);
	redisrig_expect_end(rig, fd);
}

REDIS_TEST(channel_left_in_its_message_ends_there)
{
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
REDIS_TEST(many_subscriptions_wait_for_room)
{
	enum {
		MANY = 3000
	};
	static struct spokei_redis_channel channels[MANY];
	static char names[MANY][40];
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

REDIS_TEST(channel_without_memory_is_never_in_force)
{
	a = (struct spokei_redis_channel){ .name = { "a", 1 } };
	(void)redisrig_open(rig);
	rig->faulty.rules[SPOKEI_FAULTS_MEMORY] = (struct spokei_faults_rule){ .error = -1 };
	spokei_redis_subscribe(rig->redis, &a);
	redisrig_run(rig, SECOND);
	assert_false(redisrig_called(rig));
	spokei_redis_unsubscribe(rig->redis, &a);
}

/* --- Sentinels: the primary is asked for, checked, followed when it changes */

#define ADDRESS(port) "*2\r\n$9\r\n127.0.0.1\r\n$4\r\n" port "\r\n"
#define LISTENS "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n"

static struct spokei_redis_channel channel;

/* Two sentinels and a second server. */
struct group {
	struct redisrig *rig;
	int sentinels[2];
	int other;
};

static struct group group_of(struct redisrig *rig)
{
	static const struct spokei_store_host places[] = {
		{ .host = "127.0.0.1", .port = 26379 },
		{ .host = "127.0.0.1", .port = 26380 },
	};
	struct group group = { .rig = rig };

	memcpy(rig->store.sentinels, places, sizeof(places));
	rig->store.sentinel_count = 2;
	rig->store.primary = "mymaster";
	rig->store.server.host = NULL;
	rig->options.connect_ns = SECOND;
	group.sentinels[0] = redisrig_listen(rig, "127.0.0.1:26379");
	group.sentinels[1] = redisrig_listen(rig, "127.0.0.1:26380");
	group.other = redisrig_listen(rig, "127.0.0.1:6380");
	return group;
}

/* Accepts the store at a sentinel, and answers. */
static int answer_at(const struct group *group, int sentinel, const char *bytes)
{
	struct redisrig *rig = group->rig;
	int fd = redisrig_accept_at(rig, group->sentinels[sentinel]);

	redisrig_expect(rig, fd, "SENTINEL get-master-addr-by-name mymaster");
	redisrig_expect(rig, fd, "SUBSCRIBE +switch-master");
	redisrig_say(rig, fd, bytes);
	return fd;
}

static void greet(struct redisrig *rig, int fd)
{
	redisrig_expect_greeting(rig, fd);
	redisrig_answer_greeting(rig, fd, 1);
}

static void say_switch(struct redisrig *rig, int fd, const char *text)
{
	char bytes[256];

	(void)snprintf(bytes, sizeof(bytes),
		       "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$%u\r\n%s\r\n",
		       (unsigned)strlen(text), text);
	redisrig_say(rig, fd, bytes);
}

REDIS_TEST(first_sentinel_names_the_primary)
{
	struct group group = group_of(rig);

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	assert_string_equal(spokei_redis_address(rig->redis), "mymaster");
	(void)answer_at(&group, 0, ADDRESS("6379") LISTENS);
	greet(rig, redisrig_accept(rig));
	assert_int_equal(rig->ready, 1);
	assert_int_equal(rig->down, 0);
	assert_string_equal(spokei_redis_address(rig->redis), REDISRIG_AT);
}

REDIS_TEST(next_sentinel_is_asked_at_once)
{
	struct group group = group_of(rig);
	uint64_t before_ns;
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	before_ns = rig->world.now_ns;
	fd = answer_at(&group, 0, "*-1\r\n");
	redisrig_expect_end(rig, fd);
	(void)answer_at(&group, 1, ADDRESS("6379") LISTENS);
	greet(rig, redisrig_accept(rig));
	assert_int_equal(rig->ready, 1);
	assert_int_equal(rig->down, 0);
	assert_in_range(rig->world.now_ns - before_ns, 0, 50 * MS);
}

REDIS_TEST(unknown_primary_is_reported_after_all_sentinels)
{
	struct group group = group_of(rig);
	uint64_t before_ns;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	before_ns = rig->world.now_ns;
	for (unsigned i = 0; i < 10; i++) {
		redisrig_expect_end(rig, answer_at(&group, 0, "*-1\r\n"));
		assert_int_equal(rig->down, i);
		redisrig_expect_end(rig, answer_at(&group, 1, "-ERR no\r\n"));
		assert_int_equal(rig->down, i + 1);
	}
	assert_int_equal(rig->down_error, SPOKE_ESTORE);
	assert_string_equal(rig->down_text, "sentinel 127.0.0.1:26380: SENTINEL: ERR no");
	assert_int_equal(redisrig_events(rig, "store mymaster: sentinel"), 1);
	assert_in_range(rig->world.now_ns - before_ns, 10 * SECOND, 60 * SECOND);
}

REDIS_TEST(silent_sentinel_is_passed_over)
{
	struct group group = group_of(rig);

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	(void)redisrig_accept_at(rig, group.sentinels[0]);
	(void)answer_at(&group, 1, ADDRESS("6379") LISTENS);
	greet(rig, redisrig_accept(rig));
	assert_int_equal(rig->ready, 1);
}

REDIS_TEST(invalid_addresses_are_refused)
{
	static const char *const rows[] = {
		"*2\r\n$0\r\n\r\n$4\r\n6379\r\n",
		"*2\r\n$3\r\na b\r\n$4\r\n6379\r\n",
		"*2\r\n$1\r\na\r\n$1\r\n0\r\n",
		"*2\r\n$1\r\na\r\n$5\r\n65536\r\n",
		"*2\r\n$1\r\na\r\n$1\r\nx\r\n",
		"*2\r\n$-1\r\n$-1\r\n",
		"*2\r\n*1\r\n:1\r\n:2\r\n",
		"*1\r\n$1\r\na\r\n",
		"+OK\r\n",
	};
	struct group group = group_of(rig);

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		redisrig_expect_end(rig, answer_at(&group, (int)(i % 2), rows[i]));
	assert_int_equal(rig->ready, 0);
	assert_int_equal(rig->down_error, SPOKE_EPROTOCOL);
}

/* The old primary does not know yet that it is none. */
REDIS_TEST(replica_is_left_and_asked_for_again)
{
	struct group group = group_of(rig);
	int sentinel;
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	sentinel = answer_at(&group, 0, ADDRESS("6379") LISTENS);
	fd = redisrig_accept(rig);
	redisrig_expect_greeting(rig, fd);
	redisrig_say(rig, fd, "+OK\r\n:1\r\n-ERR\r\n*1\r\n$5\r\nslave\r\n");
	redisrig_expect_end(rig, fd);
	assert_int_equal(rig->down, 1);
	redisrig_expect_end(rig, sentinel);
	(void)answer_at(&group, 0, ADDRESS("6380") LISTENS);
	greet(rig, redisrig_accept_at(rig, group.other));
	assert_int_equal(rig->ready, 1);
	assert_string_equal(spokei_redis_address(rig->redis), "127.0.0.1:6380");
}

REDIS_TEST(message_of_a_switch_moves_both_connections)
{
	struct group group = group_of(rig);
	struct redisask ask = { .done = 0 };
	int sentinel;
	int ears;
	int fd;

	channel = (struct spokei_redis_channel){ .name = { "c", 1 } };
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	spokei_redis_subscribe(rig->redis, &channel);
	sentinel = answer_at(&group, 0, ADDRESS("6379") LISTENS);
	fd = redisrig_accept(rig);
	greet(rig, fd);
	ears = redisrig_accept(rig);
	redisrig_expect(rig, ears, "CLIENT SETNAME spoke");
	redisrig_say(rig, ears, "+OK\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
	assert_int_equal(redisrig_ask(rig, &ask, "a"), SPOKE_OK);
	say_switch(rig, sentinel, "another 127.0.0.1 6379 127.0.0.1 6380");
	say_switch(rig, sentinel, "mymaster 127.0.0.1 6379 127.0.0.1 6379");
	say_switch(rig, sentinel, "mymaster 127.0.0.1");
	assert_int_equal(rig->down, 0);
	say_switch(rig, sentinel, "mymaster 127.0.0.1 6379 127.0.0.1 6380");
	assert_int_equal(rig->down, 1);
	assert_int_equal(ask.error, SPOKE_ELOST);
	assert_string_equal(rig->down_text, "the primary is now 127.0.0.1:6380");
	redisrig_expect_end(rig, fd);
	(void)answer_at(&group, 0, ADDRESS("6380") LISTENS);
	greet(rig, redisrig_accept_at(rig, group.other));
	redisrig_expect_end(rig, ears);
	ears = redisrig_accept_at(rig, group.other);
	redisrig_expect(rig, ears, "CLIENT SETNAME spoke");
	redisrig_say(rig, ears, "+OK\r\n");
	redisrig_expect(rig, ears, "SUBSCRIBE c");
}

REDIS_TEST(lost_sentinel_does_not_disturb_the_store)
{
	struct group group = group_of(rig);
	struct redisask ask = { .done = 0 };
	int sentinel;
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	sentinel = answer_at(&group, 0, ADDRESS("6379") LISTENS);
	fd = redisrig_accept(rig);
	greet(rig, fd);
	redisrig_hang_up(rig, sentinel);
	sentinel = answer_at(&group, 1, ADDRESS("6379") LISTENS);
	assert_int_equal(redisrig_ask(rig, &ask, "a"), SPOKE_OK);
	redisrig_say(rig, fd, "$1\r\nx\r\n");
	assert_int_equal(ask.done, 1);
	assert_int_equal(rig->down, 0);
	redisrig_hang_up(rig, sentinel);
	(void)answer_at(&group, 0, ADDRESS("6380") LISTENS);
	assert_int_equal(rig->down, 1);
	assert_string_equal(rig->down_text, "the primary is now 127.0.0.1:6380");
}

REDIS_TEST(silent_sentinel_is_probed)
{
	struct group group = group_of(rig);
	int sentinel;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	sentinel = answer_at(&group, 0, ADDRESS("6379") LISTENS);
	greet(rig, redisrig_accept(rig));
	redisrig_run(rig, 10500 * MS);
	redisrig_expect(rig, sentinel, "PING");
	redisrig_say(rig, sentinel, "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
	redisrig_run(rig, 10500 * MS);
	redisrig_expect(rig, sentinel, "PING");
	redisrig_expect_end(rig, sentinel);
	(void)answer_at(&group, 1, ADDRESS("6379") LISTENS);
	assert_int_equal(rig->down, 0);
}

REDIS_TEST(password_of_sentinels_is_their_own)
{
	struct group group = group_of(rig);
	int fd;

	rig->options.sentinel_password = "other";
	rig->options.password = "secret";
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_accept_at(rig, group.sentinels[0]);
	redisrig_expect(rig, fd, "AUTH other");
	redisrig_expect(rig, fd, "SENTINEL get-master-addr-by-name mymaster");
	redisrig_say(rig, fd, "-WRONGPASS no\r\n");
	redisrig_expect_end(rig, fd);
	fd = redisrig_accept_at(rig, group.sentinels[1]);
	redisrig_expect(rig, fd, "AUTH other");
	redisrig_say(rig, fd, "+OK\r\n" ADDRESS("6379") LISTENS);
	fd = redisrig_accept(rig);
	redisrig_expect(rig, fd, "AUTH secret");
}

REDIS_TEST(hostile_sentinel_is_left_with_pauses)
{
	struct group group = group_of(rig);
	uint64_t until_ns = rig->world.now_ns + 60 * SECOND;
	unsigned conns = 0;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	redisrig_expect_end(rig, answer_at(&group, (int)conns++, ADDRESS("6379") LISTENS ":1\r\n"));
	greet(rig, redisrig_accept(rig));
	while (rig->world.now_ns < until_ns) {
		int fd = answer_at(&group, (int)(conns++ % 2), ADDRESS("6379") LISTENS ":1\r\n");

		redisrig_expect_end(rig, fd);
	}
	assert_in_range(conns, 12, 25);
	assert_int_equal(rig->down, 0);
}

REDIS_TEST(store_may_be_freed_while_a_sentinel_is_asked)
{
	struct group group = group_of(rig);
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_accept_at(rig, group.sentinels[0]);
	spokei_redis_free(rig->redis);
	rig->redis = NULL;
	redisrig_expect_end(rig, fd);
}
