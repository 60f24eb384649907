/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile servers, bytes in pieces, and allocations that fail. */
#include "cluster/lease/redis.h"
#include "cluster/lease/script.h"
#include "core/engine/engine.h"
#include "core/virtual/faults.h"
#include "tests/cluster/lease/redisrig.h"
#include "tests/support/redis/redis.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <spoke/engine.h>
#include <spoke/stats.h>

#include <errno.h>
#include <string.h>

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

REDIS_TEST(bytes_after_the_greeting_end_the_connection)
{
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

REDIS_TEST(endless_reply_is_cut)
{
	struct redisask ask = { .done = 0 };
	static char junk[4096];
	int fd;

	memset(junk, 'x', sizeof(junk));
	junk[0] = '+';
	fd = redisrig_open(rig);
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

REDIS_TEST(reply_of_the_wrong_form_ends_the_connection)
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

REDIS_TEST(good_replies_have_their_form)
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
	int fd = redisrig_open(rig);

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

REDIS_TEST(wrong_messages_end_the_connection_for_them)
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
	static struct spokei_redis_channel channel;

	channel = (struct spokei_redis_channel){ .name = { "a", 1 } };
	(void)redisrig_open(rig);
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

REDIS_TEST(flood_of_good_replies_ends_the_connection)
{
	struct redisask ask = { .done = 0 };
	int fd = redisrig_open(rig);

	assert_int_equal(redisrig_ask(rig, &ask, "a"), SPOKE_OK);
	redisrig_say(rig, fd, ":1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n");
	assert_int_equal(ask.done, 1);
	assert_int_equal(ask.error, SPOKE_OK);
	assert_int_equal(rig->down, 1);
	redisrig_expect_end(rig, fd);
}

REDIS_TEST(own_bytes_are_no_greeting)
{
	spokei_vnet_route(rig->world.net, REDISRIG_AT, SPOKEI_VNET_SELF);
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	redisrig_run(rig, 60 * SECOND);
	assert_int_equal(rig->ready, 0);
	assert_in_range(rig->down, 12, 25);
	assert_int_equal(redisrig_events(rig, "store "), 1);
}

/* --- A store and a server in memory while each call of the environment fails once. No ask is lost
 * or answered twice, nothing leaks, and in the end the store works */

#define AT "127.0.0.1:6379"
#define HOLDER "5ca21d8f-8d0a-4b41-b5cc-12d9dcbe71e6:1"
#define TOKEN "redisson_lock_token:{n}"
#define CHANNEL "redisson_lock__channel:{n}"

enum {
	ASKS = 3,
	CALLS_MAX = 400
};

struct play {
	struct spokei_world world;
	struct spokei_world_process client;
	struct spokei_faults faulty;
	struct fakeredis server;
	struct spoke_engine *engine;
	struct spokei_redis *redis;
	struct spokei_redis_ask asks[ASKS];
	unsigned sent[ASKS];
	unsigned done[ASKS];
	unsigned good[ASKS];
	struct spokei_redis_channel channel;
	unsigned subscribed;
	unsigned messages;
};

static struct play play;

static void put(const char *text)
{
	spokei_redis_text(play.redis, (struct spoke_span){ text, strlen(text) });
}

/* Sends each ask that is not under way. */
static void ask_all(void)
{
	static const enum spokei_script scripts[ASKS] = { SPOKEI_SCRIPT_ACQUIRE,
							  SPOKEI_SCRIPT_RENEW,
							  SPOKEI_SCRIPT_RELEASE };

	for (unsigned i = 0; i < ASKS; i++) {
		if (play.asks[i].node.next)
			continue;
		spokei_redis_begin(play.redis, scripts[i], i == 1 ? 1 : 2, i == 0 ? 4 : 3);
		put("n");
		if (i != 1)
			put(i == 2 ? CHANNEL : TOKEN);
		if (i == 0)
			put("30000");
		put(HOLDER);
		if (i == 1)
			put("30000");
		if (spokei_redis_send(play.redis, &play.asks[i]) == SPOKE_OK)
			play.sent[i]++;
	}
}

static void note_done(struct spokei_redis_ask *ask, int error, struct spokei_resp_cursor reply)
{
	unsigned i = (unsigned)(ask - play.asks);

	(void)reply;
	play.done[i]++;
	assert_int_equal(play.done[i], play.sent[i]);
	assert_true(error == SPOKE_OK || error == SPOKE_ELOST);
	if (error)
		return;
	play.good[i]++;
}

static void note_ready(void *arg)
{
	(void)arg;
	ask_all();
}

static void note_down(void *arg, int error, struct spoke_span text)
{
	(void)arg;
	assert_true(error < 0);
	assert_true(text.len > 0);
}

static void note_subscribed(void *arg, struct spokei_redis_channel *channel)
{
	(void)arg;
	assert_ptr_equal(channel, &play.channel);
	play.subscribed++;
}

static void note_message(void *arg, struct spokei_redis_channel *channel, struct spoke_span payload)
{
	(void)arg;
	assert_ptr_equal(channel, &play.channel);
	assert_int_equal(payload.len, 1);
	play.messages++;
}

static const struct spokei_redis_up up = {
	.ready = note_ready,
	.down = note_down,
	.subscribed = note_subscribed,
	.message = note_message,
};

static void pass(uint64_t ns)
{
	spokei_world_run(&play.world, play.world.now_ns + ns);
}

/* Asks again until all asks were answered well since the call. */
static void ask_until_good(void)
{
	unsigned before = play.good[2];

	for (int i = 0; i < 60 && play.good[2] == before; i++) {
		ask_all();
		pass(SECOND);
	}
	assert_true(play.good[2] > before);
}

static uint64_t faults(void)
{
	uint64_t count = 0;

	for (int i = 0; i < SPOKEI_FAULTS_KINDS; i++)
		count += play.faulty.failed[i];
	return count;
}

/* A message arrives, unless it is the read of this message that fails. */
static void publish_once(void)
{
	unsigned messages = play.messages;
	uint64_t before = faults();

	assert_true(play.subscribed > 0);
	assert_int_equal(fakeredis_publish(&play.server, CHANNEL, "0"), 1);
	pass(100 * MS);
	if (faults() == before)
		assert_int_equal(play.messages, messages + 1);
}

static void run_store(void)
{
	static const struct spokei_store store = { .server = { "redis.test", 6379 } };
	const struct spokei_redis_options options = { .store = &store, .password = "secret" };

	if (spokei_redis_new(play.engine, &options, &up, NULL, &play.redis))
		return;
	spokei_redis_patience(play.redis, SECOND);
	spokei_redis_subscribe(play.redis, &play.channel);
	ask_until_good();
	(void)fakeredis_publish(&play.server, CHANNEL, "0");
	pass(100 * MS);
	fakeredis_reset_all(&play.server);
	ask_until_good();
	spokei_redis_restart(play.redis, "the test wants it");
	ask_until_good();
	fakeredis_kill(&play.server);
	pass(500 * MS);
	fakeredis_start(&play.server, &play.world, AT);
	ask_until_good();
	pass(10 * SECOND);
	if (play.channel.known) {
		publish_once();
		spokei_redis_unsubscribe(play.redis, &play.channel);
	}
	pass(100 * MS);
	ask_all();
	spokei_redis_free(play.redis);
}

/* Returns whether the fault happened. */
static bool run_with_fault(enum spokei_faults_kind kind, uint64_t nth, int error)
{
	bool failed;

	memset(&play, 0, sizeof(play));
	scene_open(&play.world, nth);
	play.engine = scene_engine(&play.world, &play.client, &play.faulty, NULL);
	spokei_vnet_name(play.world.net, "redis.test", "127.0.0.1");
	play.server.password = "secret";
	fakeredis_start(&play.server, &play.world, AT);
	play.channel.name = (struct spoke_span){ CHANNEL, sizeof(CHANNEL) - 1 };
	for (int i = 0; i < ASKS; i++)
		play.asks[i].done = note_done;
	spokei_faults_fail(&play.faulty, kind, nth, error, false);
	run_store();
	failed = play.faulty.failed[kind] > 0;
	pass(MS);
	scene_leave(&play.client, &play.faulty, &play.engine);
	assert_int_equal(play.server.protocol_errors, 0);
	assert_int_equal(play.server.unknown_commands, 0);
	fakeredis_stop(&play.server);
	spokei_world_fini(&play.world);
	return failed;
}

/* Lets each call of this kind fail, one in each run. */
static void torture(enum spokei_faults_kind kind, int error)
{
	uint64_t nth = 1;

	while (run_with_fault(kind, nth, error))
		assert_in_range(++nth, 1, CALLS_MAX);
	assert_in_range(nth, 2, CALLS_MAX);
}

TEST(store_survives_missing_memory, .bare = true)
{
	torture(SPOKEI_FAULTS_MEMORY, -ENOMEM);
}

TEST(store_survives_failed_connects, .bare = true)
{
	torture(SPOKEI_FAULTS_CONNECT, -ENETUNREACH);
	torture(SPOKEI_FAULTS_FINISH, -ECONNREFUSED);
	torture(SPOKEI_FAULTS_FINISH, -EINTR);
}

TEST(store_survives_failed_reads, .bare = true)
{
	torture(SPOKEI_FAULTS_READ, -ECONNRESET);
	torture(SPOKEI_FAULTS_READ, -EINTR);
}

TEST(store_survives_failed_writes, .bare = true)
{
	torture(SPOKEI_FAULTS_WRITE, -EPIPE);
	torture(SPOKEI_FAULTS_WRITE, -EAGAIN);
}

TEST(store_survives_failed_lookups, .bare = true)
{
	torture(SPOKEI_FAULTS_RESOLVE, -ENOENT);
	torture(SPOKEI_FAULTS_LOCAL, -EINVAL);
	torture(SPOKEI_FAULTS_GUARD, -EINVAL);
}
