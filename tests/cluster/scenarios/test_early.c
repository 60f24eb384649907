/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large output is written before all input is handled, by a provider that replies and by a consumer
 * that calls again. Input read before a request was written is no reply to it.
 */
#include "tests/cluster/scenarios/earlyrig.h"
#include "tests/support/test.h"

#include <spoke/stats.h>

enum {
	CALLS = 100,
	LEN = 200, /* bytes of a bin with its head */
};

static unsigned char bin[LEN] = { 0xc4, LEN - 2 };

FIXTURE(earlyrig_set_up, earlyrig_tear_down);

TEST(answers_are_written_while_requests_are_read)
{
	earlyrig_serve();
	for (unsigned i = 0; i < CALLS; i++)
		earlyrig_request(i, bin, LEN);
	assert_int_equal(peer_write(&earlyrig.conn, SIZE_MAX), 0);
	earlyrig_pass();
	earlyrig_read(SPOKEI_REPLY);
	assert_int_equal(earlyrig.handled, CALLS);
	assert_int_equal(earlyrig.read, CALLS);
	assert_true(earlyrig.bytes_last > earlyrig.bytes_then);
}

static void call(void)
{
	earlyrig_call(bin, LEN);
}

static void put_reply(uint64_t id)
{
	const struct spokei_message message = {
		.kind = SPOKEI_REPLY,
		.id = id,
		.codec = 27,
		.bare = true,
		.value = { bin, LEN },
	};

	peer_put(&earlyrig.conn, &message);
}

/* Makes calls until all of them wait at the peer. */
static void ask(void)
{
	earlyrig_consume("dubbo");
	for (unsigned i = 0; i < CALLS; i++)
		call();
	earlyrig_pass();
	earlyrig_read(SPOKEI_REQUEST);
	assert_int_equal(earlyrig.read, CALLS);
}

TEST(calls_are_written_while_answers_are_read)
{
	ask();
	earlyrig.then = call;
	for (unsigned i = 0; i < CALLS; i++)
		put_reply(earlyrig.id - i);
	assert_int_equal(peer_write(&earlyrig.conn, SIZE_MAX), 0);
	earlyrig_pass();
	assert_int_equal(earlyrig.ended, CALLS);
	assert_true(earlyrig.bytes_last > earlyrig.bytes_then);
	earlyrig_read(SPOKEI_REQUEST);
	assert_int_equal(earlyrig.read, 2 * CALLS);
}

/* The first new call is written before the forged reply, which follows in the input, is handled. */
TEST(an_answer_cannot_lie_before_its_question)
{
	uint64_t guess;

	ask();
	earlyrig.then = call;
	guess = earlyrig.id + 1;
	for (unsigned i = 0; i < CALLS; i++)
		put_reply(earlyrig.id - i);
	put_reply(guess);
	assert_int_equal(peer_write(&earlyrig.conn, SIZE_MAX), 0);
	earlyrig_pass();
	assert_true(earlyrig.bytes_last > earlyrig.bytes_then);
	assert_int_equal(earlyrig.ended, CALLS);
	assert_int_equal(spoke_stat_get(earlyrig.engine, SPOKE_STAT_REPLIES_UNKNOWN), 1);
	earlyrig.then = NULL;
	put_reply(guess);
	assert_int_equal(peer_write(&earlyrig.conn, SIZE_MAX), 0);
	earlyrig_pass();
	assert_int_equal(earlyrig.ended, CALLS + 1);
}
