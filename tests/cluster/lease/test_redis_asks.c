/* SPDX-License-Identifier: Apache-2.0 */
/* Asks and their answers: order, replicas, bounds of the output. */
#include "tests/cluster/lease/redisrig.h"
#include "tests/support/test.h"

/* --- asks */

FIXTURE(redisrig_set_up, redisrig_tear_down);

TEST(ask_is_answered_once)
{
	struct redisrig *rig = *state;
	struct redisask ask = { .done = 0 };
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
	assert_int_equal(redisrig_ask(rig, &ask, "a"), SPOKE_OK);
	redisrig_expect(rig, fd, "GET a");
	redisrig_say(rig, fd, "$1\r\nx\r\n");
	assert_int_equal(ask.done, 1);
	assert_int_equal(ask.error, SPOKE_OK);
	assert_string_equal(ask.reply, "'x'");
}

TEST(answers_come_in_order_however_cut)
{
	static const char replies[] = "$1\r\nx\r\n-ERR no\r\n*2\r\n:1\r\n$-1\r\n";
	struct redisrig *rig = *state;
	struct redisask asks[3] = { { .done = 0 } };
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
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

TEST(script_is_called_by_its_id)
{
	struct redisrig *rig = *state;
	struct redisask ask = { .done = 0 };
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
	assert_int_equal(redisrig_run_script(rig, &ask, SPOKEI_SCRIPT_ACQUIRE, 2, 4), SPOKE_OK);
	redisrig_expect(rig, fd, "EVALSHA " REDISRIG_SHA " 2 k0 k1 k2 k3");
	redisrig_say(rig, fd, "*2\r\n:0\r\n$2\r\n17\r\n");
	assert_string_equal(ask.reply, "*2 0 '17'");
}

TEST(turn_writes_once)
{
	struct redisrig *rig = *state;
	static struct redisask asks[5];
	uint64_t writes;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	(void)redisrig_welcome(rig);
	writes = spoke_stat_get(rig->engine, SPOKE_STAT_WRITES);
	for (int i = 0; i < 5; i++)
		assert_int_equal(redisrig_ask(rig, &asks[i], "a"), SPOKE_OK);
	redisrig_run(rig, MS);
	assert_int_equal(spoke_stat_get(rig->engine, SPOKE_STAT_WRITES), writes + 1);
}

TEST(steady_state_allocates_nothing)
{
	struct redisrig *rig = *state;
	struct redisask ask = { .done = 0 };
	uint64_t demands = 0;
	int fd;

	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
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

TEST(ask_is_refused_until_the_store_is_ready)
{
	struct redisrig *rig = *state;
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

TEST(output_is_bounded)
{
	struct redisrig *rig = *state;
	static struct redisask asks[100];
	static char name[40000];
	unsigned sent = 0;
	int error = SPOKE_OK;
	size_t before;

	memset(asks, 0, sizeof(asks));
	memset(name, 'n', sizeof(name) - 1);
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	(void)redisrig_welcome(rig);
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

TEST(failed_command_leaves_no_bytes)
{
	struct redisrig *rig = *state;
	struct redisask ask = { .done = 0 };
	struct redisask big = { .done = 0 };
	static char name[SPOKEI_REDIS_OUT_MAX];
	int fd;

	memset(name, 'n', sizeof(name) - 1);
	assert_int_equal(redisrig_start(rig), SPOKE_OK);
	fd = redisrig_welcome(rig);
	assert_int_equal(redisrig_ask(rig, &big, name), SPOKE_ELIMIT);
	assert_int_equal(redisrig_ask(rig, &ask, "a"), SPOKE_OK);
	redisrig_expect(rig, fd, "GET a");
	redisrig_say(rig, fd, "$-1\r\n");
	assert_string_equal(ask.reply, "nil");
}
