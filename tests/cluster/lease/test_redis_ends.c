/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of a connection: loss, patience, restart, freeing in a callback. */
#include "tests/cluster/lease/redisrig.h"
#include "tests/support/test.h"

/* --- the end of a connection */

FIXTURE(redisrig_set_up, redisrig_tear_down);

TEST(lost_connection_ends_asks_and_is_made_again)
{
	struct redisrig *rig = *state;
	struct redisask asks[2] = { { .done = 0 } };
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
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

TEST(next_connection_kills_the_one_before)
{
	struct redisrig *rig = *state;
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
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
TEST(connection_is_killed_by_the_next_that_is_ready)
{
	struct redisrig *rig = *state;
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
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

TEST(busy_server_is_asked_again_to_kill)
{
	struct redisrig *rig = *state;
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
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

TEST(restarted_server_has_no_connection_to_kill)
{
	struct redisrig *rig = *state;
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
	redisrig_hang_up(rig, fd);
	redisrig_run(rig, MS);
	fd = redisrig_welcome(rig); /* its id is 7 again */
	redisrig_expect_none(rig, fd);
	assert_int_equal(rig->ready, 2);
}

TEST(impatience_ends_the_connection)
{
	struct redisrig *rig = *state;
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

TEST(reply_that_has_come_wins_over_patience_in_a_late_turn)
{
	struct redisrig *rig = *state;
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

TEST(restart_is_reported_with_its_reason)
{
	struct redisrig *rig = *state;
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

TEST(flushed_scripts_are_loaded_again)
{
	struct redisrig *rig = *state;
	struct redisask ask = { .done = 0 };
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
	assert_int_equal(redisrig_run_script(rig, &ask, SPOKEI_SCRIPT_RENEW, 1, 3), SPOKE_OK);
	redisrig_expect(rig, fd, "EVALSHA *");
	redisrig_say(rig, fd, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
	redisrig_expect_end(rig, fd);
	assert_int_equal(ask.error, SPOKE_ELOST);
	assert_string_equal(rig->down_text, "renew: NOSCRIPT No matching script. Please use EVAL.");
	(void)redisrig_welcome(rig);
}

/* E.g. behind a proxy that sends each command to another server. */
TEST(scripts_that_are_never_loaded_cost_growing_pauses)
{
	struct redisrig *rig = *state;
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
TEST(ghost_is_killed_although_a_greeting_failed)
{
	struct redisrig *rig = *state;
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
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

TEST(demoted_server_is_left)
{
	struct redisrig *rig = *state;
	struct redisask ask = { .done = 0 };
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
	assert_int_equal(redisrig_run_script(rig, &ask, SPOKEI_SCRIPT_RELEASE, 2, 3), SPOKE_OK);
	redisrig_expect(rig, fd, "EVALSHA *");
	redisrig_say(rig, fd, "-READONLY You can't write against a read only replica.\r\n");
	redisrig_expect_end(rig, fd);
	assert_int_equal(ask.error, SPOKE_ELOST);
}

TEST(other_errors_are_answers)
{
	struct redisrig *rig = *state;
	struct redisask ask = { .done = 0 };
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
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

TEST(answered_ask_may_be_sent_again)
{
	struct redisrig *rig = *state;
	struct redisask ask = { .then = ask_again };
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
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
TEST(reply_stays_when_its_answer_ends_the_connection)
{
	struct redisrig *rig = *state;
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

TEST(store_may_be_freed_in_an_answer)
{
	struct redisrig *rig = *state;
	struct redisask asks[3] = { { .then = free_it } };
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
	for (int i = 0; i < 3; i++)
		assert_int_equal(redisrig_ask(rig, &asks[i], "a"), SPOKE_OK);
	redisrig_say(rig, fd, "$1\r\nx\r\n$1\r\ny\r\n$1");
	redisrig_expect_end(rig, fd);
	assert_int_equal(asks[0].done, 1);
	assert_int_equal(asks[1].done + asks[2].done, 0);
}

TEST(store_may_be_freed_when_an_ask_is_lost)
{
	struct redisrig *rig = *state;
	struct redisask asks[3] = { { .then = free_it } };
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
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

TEST(store_may_be_freed_when_it_is_down)
{
	struct redisrig *rig = *state;

	rig->on_down = free_rig;
	spokei_vnet_route(rig->world.net, REDISRIG_AT, SPOKEI_VNET_REFUSE);
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	redisrig_run(rig, SECOND);
	assert_int_equal(rig->down, 1);
	assert_null(rig->redis);
}

TEST(store_may_be_freed_when_it_is_ready)
{
	struct redisrig *rig = *state;
	int fd;

	rig->on_ready = free_rig;
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
	redisrig_expect_end(rig, fd);
}

TEST(queued_commands_are_written_when_freed)
{
	struct redisrig *rig = *state;
	struct redisask ask = { .done = 0 };
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
	assert_int_equal(redisrig_ask(rig, &ask, "last"), SPOKE_OK);
	free_rig(rig);
	redisrig_expect(rig, fd, "GET last");
	redisrig_expect_end(rig, fd);
	assert_int_equal(ask.done, 0);
}

TEST(store_may_be_freed_while_its_name_is_resolved)
{
	struct redisrig *rig = *state;

	rig->options.host = "redis.test";
	spokei_vnet_name(rig->world.net, "redis.test", "127.0.0.1");
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	(void)spokei_world_step(&rig->world, rig->world.now_ns + SECOND);
	free_rig(rig);
	redisrig_run(rig, SECOND);
	assert_int_equal(rig->ready + rig->down, 0);
}
