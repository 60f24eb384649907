/* SPDX-License-Identifier: Apache-2.0 */
/* Sentinels: the primary is asked for, checked, followed when it changes. */
#include "tests/cluster/lease/redisrig.h"
#include "tests/support/test.h"

#include <spoke/stats.h>

#include <stdio.h>

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
	static const struct spokei_redis_place places[] = {
		{ .host = "127.0.0.1", .port = 26379 },
		{ .host = "127.0.0.1", .port = 26380 },
	};
	struct group group = { .rig = rig };

	rig->options.sentinels = places;
	rig->options.sentinel_count = 2;
	rig->options.primary = "mymaster";
	rig->options.host = NULL;
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

FIXTURE(redisrig_set_up, redisrig_tear_down);

TEST(first_sentinel_names_the_primary)
{
	struct redisrig *rig = *state;
	struct group group = group_of(rig);

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	assert_string_equal(spokei_redis_address(rig->redis), "mymaster");
	(void)answer_at(&group, 0, ADDRESS("6379") LISTENS);
	greet(rig, redisrig_accept(rig));
	assert_int_equal(rig->ready, 1);
	assert_int_equal(rig->down, 0);
	assert_string_equal(spokei_redis_address(rig->redis), REDISRIG_AT);
}

TEST(next_sentinel_is_asked_at_once)
{
	struct redisrig *rig = *state;
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

TEST(unknown_primary_is_reported_after_all_sentinels)
{
	struct redisrig *rig = *state;
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

TEST(silent_sentinel_is_passed_over)
{
	struct redisrig *rig = *state;
	struct group group = group_of(rig);

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	(void)redisrig_accept_at(rig, group.sentinels[0]);
	(void)answer_at(&group, 1, ADDRESS("6379") LISTENS);
	greet(rig, redisrig_accept(rig));
	assert_int_equal(rig->ready, 1);
}

TEST(invalid_addresses_are_refused)
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
	struct redisrig *rig = *state;
	struct group group = group_of(rig);

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		redisrig_expect_end(rig, answer_at(&group, (int)(i % 2), rows[i]));
	assert_int_equal(rig->ready, 0);
	assert_int_equal(rig->down_error, SPOKE_EPROTOCOL);
}

/* The old primary does not know yet that it is none. */
TEST(replica_is_left_and_asked_for_again)
{
	struct redisrig *rig = *state;
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

TEST(message_of_a_switch_moves_both_connections)
{
	struct redisrig *rig = *state;
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

TEST(lost_sentinel_does_not_disturb_the_store)
{
	struct redisrig *rig = *state;
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

TEST(silent_sentinel_is_probed)
{
	struct redisrig *rig = *state;
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

TEST(password_of_sentinels_is_their_own)
{
	struct redisrig *rig = *state;
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

TEST(hostile_sentinel_is_left_with_pauses)
{
	struct redisrig *rig = *state;
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

TEST(store_may_be_freed_while_a_sentinel_is_asked)
{
	struct redisrig *rig = *state;
	struct group group = group_of(rig);
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_accept_at(rig, group.sentinels[0]);
	spokei_redis_free(rig->redis);
	rig->redis = NULL;
	redisrig_expect_end(rig, fd);
}
