/* SPDX-License-Identifier: Apache-2.0 */
/* The connection for commands: its greeting, asks and ends. */
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

REDIS_TEST(greeting_is_one_round_trip)
{
	int fd = redisrig_greeted(rig);

	redisrig_expect_none(rig, fd);
	assert_false(spokei_redis_is_ready(rig->redis));
	redisrig_answer_greeting(rig, fd, 1);
	assert_int_equal(rig->ready, 1);
	assert_int_equal(rig->down, 0);
	assert_string_equal(spokei_redis_address(rig->redis), REDISRIG_AT);
	assert_int_equal(redisrig_events(rig, "store " REDISRIG_AT ": connected"), 1);
}

REDIS_TEST(password_user_and_number_come_first)
{
	int fd;

	rig->options.user = "me";
	rig->options.password = "secret";
	rig->store.db = 3;
	fd = redisrig_begin(rig);
	redisrig_expect(rig, fd, "AUTH me secret");
	redisrig_expect(rig, fd, "SELECT 3");
	redisrig_expect_greeting(rig, fd);
	redisrig_say(rig, fd, OK OK);
	redisrig_answer_greeting(rig, fd, 1);
	assert_int_equal(rig->ready, 1);
}

REDIS_TEST(password_alone_is_sent_alone)
{
	int fd;

	rig->options.password = "secret";
	fd = redisrig_begin(rig);
	redisrig_expect(rig, fd, "AUTH secret");
	redisrig_say(rig, fd, "-WRONGPASS invalid username-password pair\r\n");
	redisrig_expect_end(rig, fd);
	assert_int_equal(rig->down, 1);
	assert_int_equal(rig->down_error, SPOKE_ESTORE);
	assert_string_equal(rig->down_text, "AUTH: WRONGPASS invalid username-password pair");
	assert_int_equal(redisrig_events(rig, "secret"), 0);
}

REDIS_TEST(missing_password_is_reported_with_backoff)
{
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

REDIS_TEST(optional_commands_may_be_forbidden)
{
	int fd = redisrig_greeted(rig);

	redisrig_say(rig, fd, SIX_ERRORS);
	for (int i = SPOKEI_SCRIPT_ACQUIRE; i < SPOKEI_SCRIPTS; i++)
		redisrig_say(rig, fd, "$40\r\n" REDISRIG_SHA "\r\n");
	assert_int_equal(rig->ready, 1);
	assert_int_equal(redisrig_events(rig, "CONFIG GET is not permitted"), 1);
}

REDIS_TEST(eviction_is_warned_of_once)
{
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

REDIS_TEST(replica_is_no_store)
{
	int fd = redisrig_greeted(rig);

	redisrig_say(rig, fd,
		     OK ":1\r\n-ERR\r\n*5\r\n$5\r\nslave\r\n$1\r\nx\r\n:1\r\n$1\r\ny\r\n:2\r\n");
	redisrig_expect_end(rig, fd);
	assert_int_equal(rig->down_error, SPOKE_ESTORE);
	assert_string_equal(rig->down_text, "the server is a replica; leases need the primary");
}

REDIS_TEST(loading_server_is_asked_again)
{
	int fd;

	rig->store.db = 1;
	fd = redisrig_begin(rig);
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

REDIS_TEST(reason_of_a_refused_connection_is_reported)
{
	int fd = redisrig_begin(rig);

	redisrig_say(rig, fd, "-ERR max number of clients reached\r\n");
	redisrig_hang_up(rig, fd);
	redisrig_run(rig, MS);
	assert_int_equal(rig->down, 1);
	assert_string_equal(rig->down_text, "ERR max number of clients reached");
}

REDIS_TEST(silent_greeting_ends_after_its_time)
{
	int fd;

	rig->options.connect_ns = 2 * SECOND;
	fd = redisrig_begin(rig);
	redisrig_run(rig, 1990 * MS);
	assert_int_equal(rig->down, 0);
	redisrig_run(rig, 20 * MS);
	assert_int_equal(rig->down, 1);
	assert_int_equal(rig->down_error, SPOKE_ESILENT);
	redisrig_hang_up(rig, fd);
}

REDIS_TEST(refused_connection_is_reported)
{
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

REDIS_TEST(silent_address_is_given_up_after_its_time)
{
	rig->options.connect_ns = SECOND;
	spokei_vnet_route(rig->world.net, REDISRIG_AT, SPOKEI_VNET_SILENT);
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	redisrig_run(rig, 990 * MS);
	assert_int_equal(rig->down, 0);
	redisrig_run(rig, 30 * MS);
	assert_int_equal(rig->down, 1);
	assert_string_equal(rig->down_text, strerror(ETIMEDOUT));
}

REDIS_TEST(name_is_resolved_and_each_address_tried)
{
	int fd;

	rig->store.server.host = "redis.test";
	spokei_vnet_name(rig->world.net, "redis.test", "127.0.0.2 127.0.0.1 127.0.0.3");
	fd = redisrig_open(rig);
	assert_int_equal(rig->down, 0);
	assert_string_equal(spokei_redis_address(rig->redis), "redis.test:6379");
	redisrig_hang_up(rig, fd);
}

/* --- options */

REDIS_TEST(invalid_options_are_refused)
{
	const struct spokei_store_host sentinel = { .host = "s.test", .port = 1 };

	rig->store.server.host = NULL;
	assert_int_equal(redisrig_start(rig), SPOKE_EINVAL);
	rig->store.server.host = "redis.test";
	rig->store.sentinels[0] = sentinel;
	rig->store.sentinel_count = 1;
	assert_int_equal(redisrig_start(rig), SPOKE_EINVAL);
	rig->store.primary = "p";
}

REDIS_TEST(making_fails_cleanly_without_memory)
{
	const struct spokei_store_host sentinel = { .host = "s.test", .port = 1 };

	rig->store.sentinels[0] = sentinel;
	rig->store.sentinel_count = 1;
	rig->store.primary = "p";
	for (unsigned skip = 0; skip < 2; skip++) {
		rig->faulty.rules[SPOKEI_FAULTS_MEMORY] =
			(struct spokei_faults_rule){ .skip = skip, .error = -1, .for_ever = true };
		assert_int_equal(redisrig_start(rig), SPOKE_ENOMEM);
	}
	rig->faulty.rules[SPOKEI_FAULTS_MEMORY] = (struct spokei_faults_rule){ .error = 0 };
}

/* --- Asks and their answers: order, replicas, bounds of the output */

/* --- asks */

REDIS_TEST(ask_is_answered_once)
{
	struct redisask ask = { .done = 0 };
	int fd = redisrig_open(rig);

	assert_int_equal(redisrig_ask(rig, &ask, "a"), SPOKE_OK);
	redisrig_expect(rig, fd, "GET a");
	redisrig_say(rig, fd, "$1\r\nx\r\n");
	assert_int_equal(ask.done, 1);
	assert_int_equal(ask.error, SPOKE_OK);
	assert_string_equal(ask.reply, "'x'");
}

REDIS_TEST(answers_come_in_order_however_cut)
{
	static const char replies[] = "$1\r\nx\r\n-ERR no\r\n*2\r\n:1\r\n$-1\r\n";
	struct redisask asks[3] = { { .done = 0 } };
	int fd = redisrig_open(rig);

	for (int i = 0; i < 3; i++)
		assert_int_equal(redisrig_ask(rig, &asks[i], "a"), SPOKE_OK);
	for (size_t i = 0; i < sizeof(replies) - 1; i++)
		redisrig_say_bytes(rig, fd, replies + i, 1);
	assert_string_equal(asks[0].reply, "'x'");
	assert_string_equal(asks[1].reply, "-ERR no");
	assert_string_equal(asks[2].reply, "*2 1 nil");
	assert_int_equal(asks[0].done + asks[1].done + asks[2].done, 3);
	assert_int_equal(rig->down, 0);
}

REDIS_TEST(script_is_called_by_its_id)
{
	struct redisask ask = { .done = 0 };
	int fd = redisrig_open(rig);

	assert_int_equal(redisrig_run_script(rig, &ask, SPOKEI_SCRIPT_ACQUIRE, 2, 4), SPOKE_OK);
	redisrig_expect(rig, fd, "EVALSHA " REDISRIG_SHA " 2 k0 k1 k2 k3");
	redisrig_say(rig, fd, "*2\r\n:0\r\n$2\r\n17\r\n");
	assert_string_equal(ask.reply, "*2 0 '17'");
}

REDIS_TEST(turn_writes_once)
{
	static struct redisask asks[5];
	uint64_t writes;

	(void)redisrig_open(rig);
	writes = spoke_stat_get(rig->engine, SPOKE_STAT_WRITES);
	for (int i = 0; i < 5; i++)
		assert_int_equal(redisrig_ask(rig, &asks[i], "a"), SPOKE_OK);
	redisrig_run(rig, MS);
	assert_int_equal(spoke_stat_get(rig->engine, SPOKE_STAT_WRITES), writes + 1);
}

REDIS_TEST(steady_state_allocates_nothing)
{
	struct redisask ask = { .done = 0 };
	uint64_t demands = 0;
	int fd = redisrig_open(rig);

	for (int i = 0; i < 100; i++) {
		if (i == 10)
			demands = rig->faulty.calls[SPOKEI_FAULTS_MEMORY];
		assert_int_equal(redisrig_run_script(rig, &ask, SPOKEI_SCRIPT_ACQUIRE, 2, 4),
				 SPOKE_OK);
		redisrig_expect(rig, fd, "EVALSHA *");
		redisrig_say(rig, fd, "*2\r\n:0\r\n$");
		redisrig_say(rig, fd, "2\r\n17\r\n");
	}
	assert_int_equal(ask.done, 100);
	assert_int_equal(rig->faulty.calls[SPOKEI_FAULTS_MEMORY], demands);
}

REDIS_TEST(ask_is_refused_until_the_store_is_ready)
{
	struct redisask ask = { .done = 0 };
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	assert_int_equal(redisrig_ask(rig, &ask, "a"), SPOKE_ESTATE);
	fd = redisrig_accept(rig);
	assert_int_equal(redisrig_ask(rig, &ask, "a"), SPOKE_ESTATE);
	redisrig_expect_greeting(rig, fd);
	redisrig_expect_none(rig, fd);
	assert_int_equal(ask.done, 0);
}

REDIS_TEST(output_is_bounded)
{
	static struct redisask asks[100];
	static char name[40000];
	unsigned sent = 0;
	int error = SPOKE_OK;
	size_t before;

	memset(asks, 0, sizeof(asks));
	memset(name, 'n', sizeof(name) - 1);
	(void)redisrig_open(rig);
	while (error == SPOKE_OK && sent < 100) {
		before = rig->faulty.bytes;
		error = redisrig_ask(rig, &asks[sent++], name);
	}
	assert_int_equal(error, SPOKE_ELIMIT);
	assert_int_equal(rig->faulty.bytes, before);
	assert_int_equal(sent, SPOKEI_REDIS_OUT_MAX / sizeof(name) + 1);
	assert_in_range(rig->faulty.bytes_peak, 0, 8 * SPOKEI_REDIS_OUT_MAX);
	assert_true(spokei_redis_is_ready(rig->redis));
	spokei_engine_refresh(rig->engine);
	spokei_redis_restart(rig->redis, "the test is over");
	redisrig_run(rig, MS);
	for (unsigned i = 0; i < sent - 1; i++)
		assert_int_equal(asks[i].error, SPOKE_ELOST);
	assert_int_equal(asks[sent - 1].done, 0);
}

REDIS_TEST(failed_command_leaves_no_bytes)
{
	struct redisask ask = { .done = 0 };
	struct redisask big = { .done = 0 };
	static char name[SPOKEI_REDIS_OUT_MAX];
	int fd;

	memset(name, 'n', sizeof(name) - 1);
	fd = redisrig_open(rig);
	assert_int_equal(redisrig_ask(rig, &big, name), SPOKE_ELIMIT);
	assert_int_equal(redisrig_ask(rig, &ask, "a"), SPOKE_OK);
	redisrig_expect(rig, fd, "GET a");
	redisrig_say(rig, fd, "$-1\r\n");
	assert_string_equal(ask.reply, "nil");
}

/* --- The ends of a connection: loss, patience, restart, freeing in a callback */

/* --- the end of a connection */

REDIS_TEST(lost_connection_ends_asks_and_is_made_again)
{
	struct redisask asks[2] = { { .done = 0 } };
	int fd = redisrig_open(rig);

	for (int i = 0; i < 2; i++)
		assert_int_equal(redisrig_ask(rig, &asks[i], "a"), SPOKE_OK);
	redisrig_expect(rig, fd, "GET a");
	redisrig_say(rig, fd, "$1\r\nx\r\n");
	redisrig_hang_up(rig, fd);
	redisrig_run(rig, MS);
	assert_int_equal(asks[0].error, SPOKE_OK);
	assert_int_equal(asks[1].done, 1);
	assert_int_equal(asks[1].error, SPOKE_ELOST);
	assert_string_equal(asks[1].reply, "");
	assert_int_equal(rig->down, 1);
	assert_int_equal(rig->down_error, SPOKE_ELOST);
	redisrig_run(rig, 70 * MS);
	assert_false(redisrig_called(rig));
	redisrig_run(rig, 60 * MS);
	assert_true(redisrig_called(rig));
}

REDIS_TEST(next_connection_kills_the_one_before)
{
	int fd = redisrig_open(rig);

	spokei_engine_refresh(rig->engine);
	spokei_redis_restart(rig->redis, "the test wants it");
	redisrig_expect_end(rig, fd);
	fd = redisrig_accept(rig);
	redisrig_expect_greeting(rig, fd);
	redisrig_answer_greeting(rig, fd, 9);
	redisrig_expect(rig, fd, "CLIENT KILL ID 7 ADDR 127.0.0.1:*");
	assert_int_equal(rig->ready, 1);
	redisrig_say(rig, fd, ":0\r\n");
	assert_int_equal(rig->ready, 2);
}

/* The KILL itself may be lost with the connection that has sent it. */
REDIS_TEST(connection_is_killed_by_the_next_that_is_ready)
{
	int fd = redisrig_open(rig);

	redisrig_hang_up(rig, fd);
	fd = redisrig_accept(rig);
	redisrig_expect_greeting(rig, fd);
	redisrig_answer_greeting(rig, fd, 8);
	redisrig_expect(rig, fd, "CLIENT KILL ID 7 ADDR 127.0.0.1:*");
	redisrig_hang_up(rig, fd);
	fd = redisrig_accept(rig);
	redisrig_expect_greeting(rig, fd);
	redisrig_answer_greeting(rig, fd, 9);
	redisrig_expect(rig, fd, "CLIENT KILL ID 7 ADDR 127.0.0.1:*");
	redisrig_say(rig, fd, ":1\r\n");
	assert_int_equal(rig->ready, 2);
}

REDIS_TEST(busy_server_is_asked_again_to_kill)
{
	int fd = redisrig_open(rig);

	redisrig_hang_up(rig, fd);
	fd = redisrig_accept(rig);
	redisrig_expect_greeting(rig, fd);
	redisrig_answer_greeting(rig, fd, 8);
	redisrig_expect(rig, fd, "CLIENT KILL ID 7 ADDR 127.0.0.1:*");
	redisrig_say(rig, fd, "-BUSY Redis is busy running a script.\r\n");
	assert_int_equal(rig->ready, 1);
	redisrig_expect_end(rig, fd);
	fd = redisrig_accept(rig);
	redisrig_expect_greeting(rig, fd);
	redisrig_answer_greeting(rig, fd, 9);
	redisrig_expect(rig, fd, "CLIENT KILL ID 7 ADDR 127.0.0.1:*");
	redisrig_say(rig, fd, "-NOPERM this user has no permissions\r\n");
	assert_int_equal(rig->ready, 2);
}

REDIS_TEST(restarted_server_has_no_connection_to_kill)
{
	int fd = redisrig_open(rig);

	redisrig_hang_up(rig, fd);
	redisrig_run(rig, MS);
	fd = redisrig_welcome(rig); /* its id is 7 again */
	redisrig_expect_none(rig, fd);
	assert_int_equal(rig->ready, 2);
}

REDIS_TEST(impatience_ends_the_connection)
{
	struct redisask asks[2] = { { .done = 0 } };
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	spokei_redis_patience(rig->redis, 2 * SECOND);
	fd = redisrig_welcome(rig);
	assert_int_equal(redisrig_ask(rig, &asks[0], "a"), SPOKE_OK);
	redisrig_expect(rig, fd, "GET a");
	redisrig_run(rig, 1900 * MS);
	redisrig_say(rig, fd, "$1\r\nx\r\n");
	redisrig_run(rig, 10 * SECOND);
	assert_int_equal(rig->down, 0);
	assert_int_equal(redisrig_ask(rig, &asks[0], "a"), SPOKE_OK);
	redisrig_run(rig, 1000 * MS);
	assert_int_equal(redisrig_ask(rig, &asks[1], "a"), SPOKE_OK);
	redisrig_run(rig, 1002 * MS);
	assert_int_equal(rig->down, 1);
	assert_int_equal(rig->down_error, SPOKE_ESILENT);
	assert_int_equal(asks[0].error, SPOKE_ELOST);
	assert_int_equal(asks[1].error, SPOKE_ELOST);
}

/* --- limits in late turns */

static struct {
	struct redisrig *rig;
	struct spoke_alarm stall;
	struct spoke_alarm answer;
	int fd;
} late;

static void stall_due(struct spoke_alarm *alarm)
{
	(void)alarm;
	spokei_world_stall(&late.rig->world, 500 * MS);
}

/* The sockets of the turn have been read when the wheel calls this. */
static void answer_due(struct spoke_alarm *alarm)
{
	const struct spoke_env *env = &late.rig->server.env;
	static char bytes[] = "$1\r\nx\r\n";
	const struct iovec reply = { bytes, sizeof(bytes) - 1 };

	(void)alarm;
	assert_int_equal(env->net->write(env->ctx, late.fd, &reply, 1), 7);
	spokei_world_stall(&late.rig->world, 5 * MS);
}

REDIS_TEST(reply_that_has_come_wins_over_patience_in_a_late_turn)
{
	struct redisask ask = { .done = 0 };

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	spokei_redis_patience(rig->redis, 2 * SECOND);
	late.rig = rig;
	late.fd = redisrig_welcome(rig);
	assert_int_equal(redisrig_ask(rig, &ask, "a"), SPOKE_OK);
	redisrig_expect(rig, late.fd, "GET a");
	assert_int_equal(spoke_alarm_after(rig->engine, &late.stall, 1700 * MS, stall_due), 0);
	assert_int_equal(spoke_alarm_after(rig->engine, &late.answer, 1800 * MS, answer_due), 0);
	redisrig_run(rig, 3 * SECOND);
	assert_int_equal(rig->down, 0);
	assert_int_equal(ask.done, 1);
	assert_string_equal(ask.reply, "'x'");
}

REDIS_TEST(restart_is_reported_with_its_reason)
{
	struct redisask ask = { .done = 0 };
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	spokei_engine_refresh(rig->engine);
	spokei_redis_restart(rig->redis, "too early");
	fd = redisrig_welcome(rig);
	assert_int_equal(redisrig_ask(rig, &ask, "a"), SPOKE_OK);
	spokei_engine_refresh(rig->engine);
	spokei_redis_restart(rig->redis, "the test wants it");
	assert_false(spokei_redis_is_ready(rig->redis));
	assert_int_equal(ask.done, 0);
	assert_int_equal(rig->down, 0);
	redisrig_expect_end(rig, fd);
	assert_int_equal(ask.error, SPOKE_ELOST);
	assert_int_equal(rig->down, 1);
	assert_string_equal(rig->down_text, "the test wants it");
	(void)redisrig_accept(rig);
}

REDIS_TEST(flushed_scripts_are_loaded_again)
{
	struct redisask ask = { .done = 0 };
	int fd = redisrig_open(rig);

	assert_int_equal(redisrig_run_script(rig, &ask, SPOKEI_SCRIPT_RENEW, 1, 3), SPOKE_OK);
	redisrig_expect(rig, fd, "EVALSHA *");
	redisrig_say(rig, fd, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
	redisrig_expect_end(rig, fd);
	assert_int_equal(ask.error, SPOKE_ELOST);
	assert_string_equal(rig->down_text, "renew: NOSCRIPT No matching script. Please use EVAL.");
	(void)redisrig_welcome(rig);
}

/* E.g. behind a proxy that sends each command to another server. */
REDIS_TEST(scripts_that_are_never_loaded_cost_growing_pauses)
{
	uint64_t until_ns = rig->world.now_ns + 60 * SECOND;
	unsigned conns = 0;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	while (rig->world.now_ns < until_ns) {
		struct redisask asks[2] = { { .done = 0 } };
		int fd = redisrig_welcome(rig);

		assert_int_equal(redisrig_ask(rig, &asks[0], "a"), SPOKE_OK);
		assert_int_equal(redisrig_run_script(rig, &asks[1], SPOKEI_SCRIPT_RENEW, 1, 3),
				 SPOKE_OK);
		redisrig_say(rig, fd, "$1\r\nx\r\n-NOSCRIPT No matching script.\r\n");
		assert_int_equal(asks[0].error, SPOKE_OK);
		assert_int_equal(asks[1].error, SPOKE_ELOST);
		redisrig_hang_up(rig, fd);
		conns++;
	}
	assert_in_range(conns, 12, 25);
	assert_int_equal(redisrig_events(rig, "NOSCRIPT"), 1);
	assert_int_equal(redisrig_events(rig, "answers again"), 1);
}

/* The connection that was to kill the first one has ended before. */
REDIS_TEST(ghost_is_killed_although_a_greeting_failed)
{
	int fd = redisrig_open(rig);

	redisrig_hang_up(rig, fd);
	for (unsigned id = 9; id < 11; id++) {
		fd = redisrig_accept(rig);
		redisrig_expect_greeting(rig, fd);
		redisrig_answer_greeting(rig, fd, id);
		redisrig_expect(rig, fd, "CLIENT KILL ID 7 ADDR 127.0.0.1:*");
		redisrig_hang_up(rig, fd);
	}
	assert_int_equal(rig->ready, 1);
}

REDIS_TEST(demoted_server_is_left)
{
	struct redisask ask = { .done = 0 };
	int fd = redisrig_open(rig);

	assert_int_equal(redisrig_run_script(rig, &ask, SPOKEI_SCRIPT_RELEASE, 2, 3), SPOKE_OK);
	redisrig_expect(rig, fd, "EVALSHA *");
	redisrig_say(rig, fd, "-READONLY You can't write against a read only replica.\r\n");
	redisrig_expect_end(rig, fd);
	assert_int_equal(ask.error, SPOKE_ELOST);
}

REDIS_TEST(other_errors_are_answers)
{
	struct redisask ask = { .done = 0 };
	int fd = redisrig_open(rig);

	assert_int_equal(redisrig_run_script(rig, &ask, SPOKEI_SCRIPT_ACQUIRE, 2, 4), SPOKE_OK);
	redisrig_expect(rig, fd, "EVALSHA *");
	redisrig_say(rig, fd, "-WRONGTYPE Operation against a key\r\n");
	assert_int_equal(ask.error, SPOKE_OK);
	assert_string_equal(ask.reply, "-WRONGTYPE Operation against a key");
	assert_int_equal(rig->down, 0);
}

/* --- the owner does something in a report */

static void ask_again(struct redisask *told)
{
	assert_int_equal(redisrig_ask(told->rig, told, "a"), told->error ? SPOKE_ESTATE : SPOKE_OK);
	told->then = NULL;
}

REDIS_TEST(answered_ask_may_be_sent_again)
{
	struct redisask ask = { .then = ask_again };
	int fd = redisrig_open(rig);

	assert_int_equal(redisrig_ask(rig, &ask, "a"), SPOKE_OK);
	redisrig_expect(rig, fd, "GET a");
	redisrig_say(rig, fd, "$1\r\nx\r\n");
	redisrig_expect(rig, fd, "GET a");
	ask.then = ask_again;
	redisrig_hang_up(rig, fd);
	redisrig_run(rig, MS);
	assert_int_equal(ask.done, 2);
	assert_int_equal(ask.error, SPOKE_ELOST);
}

static void free_it(struct redisask *told)
{
	spokei_redis_free(told->rig->redis);
	told->rig->redis = NULL;
}

static void restart_it(struct redisask *told)
{
	spokei_redis_restart(told->rig->redis, "the test wants it");
}

/* Also if it came in parts, and lies in a buffer of the connection. */
REDIS_TEST(reply_stays_when_its_answer_ends_the_connection)
{
	struct redisask asks[2] = { { .first = restart_it }, { .first = free_it } };

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	for (int i = 0; i < 2; i++) {
		int fd = redisrig_welcome(rig);

		assert_int_equal(redisrig_ask(rig, &asks[i], "a"), SPOKE_OK);
		redisrig_say(rig, fd, "$1\r\n");
		redisrig_say(rig, fd, "x\r\n:1\r\n");
		assert_string_equal(asks[i].reply, "'x'");
		redisrig_hang_up(rig, fd);
	}
}

REDIS_TEST(store_may_be_freed_in_an_answer)
{
	struct redisask asks[3] = { { .then = free_it } };
	int fd = redisrig_open(rig);

	for (int i = 0; i < 3; i++)
		assert_int_equal(redisrig_ask(rig, &asks[i], "a"), SPOKE_OK);
	redisrig_say(rig, fd, "$1\r\nx\r\n$1\r\ny\r\n$1");
	redisrig_expect_end(rig, fd);
	assert_int_equal(asks[0].done, 1);
	assert_int_equal(asks[1].done + asks[2].done, 0);
}

REDIS_TEST(store_may_be_freed_when_an_ask_is_lost)
{
	struct redisask asks[3] = { { .then = free_it } };
	int fd = redisrig_open(rig);

	for (int i = 0; i < 3; i++)
		assert_int_equal(redisrig_ask(rig, &asks[i], "a"), SPOKE_OK);
	redisrig_hang_up(rig, fd);
	redisrig_run(rig, MS);
	assert_int_equal(asks[0].done, 1);
	assert_int_equal(asks[1].done + asks[2].done, 0);
	assert_int_equal(rig->down, 0);
}

static void free_rig(struct redisrig *rig)
{
	spokei_redis_free(rig->redis);
	rig->redis = NULL;
}

REDIS_TEST(store_may_be_freed_when_it_is_down)
{
	rig->on_down = free_rig;
	spokei_vnet_route(rig->world.net, REDISRIG_AT, SPOKEI_VNET_REFUSE);
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	redisrig_run(rig, SECOND);
	assert_int_equal(rig->down, 1);
	assert_null(rig->redis);
}

REDIS_TEST(store_may_be_freed_when_it_is_ready)
{
	int fd;

	rig->on_ready = free_rig;
	fd = redisrig_open(rig);
	redisrig_expect_end(rig, fd);
}

REDIS_TEST(queued_commands_are_written_when_freed)
{
	struct redisask ask = { .done = 0 };
	int fd = redisrig_open(rig);

	assert_int_equal(redisrig_ask(rig, &ask, "last"), SPOKE_OK);
	free_rig(rig);
	redisrig_expect(rig, fd, "GET last");
	redisrig_expect_end(rig, fd);
	assert_int_equal(ask.done, 0);
}

REDIS_TEST(store_may_be_freed_while_its_name_is_resolved)
{
	rig->store.server.host = "redis.test";
	spokei_vnet_name(rig->world.net, "redis.test", "127.0.0.1");
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	(void)spokei_world_step(&rig->world, rig->world.now_ns + SECOND);
	free_rig(rig);
	redisrig_run(rig, SECOND);
	assert_int_equal(rig->ready + rig->down, 0);
}
