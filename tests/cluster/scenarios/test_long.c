/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large messages are written at once without a copy, and partly before other output. Whatever part
 * the stream accepts, the peer reads the whole message and the call ends once.
 */
#include "tests/cluster/scenarios/earlyrig.h"
#include "tests/support/test.h"

#include <errno.h>

#define MS UINT64_C(1000000)

enum {
	AHEAD = 4096,
	LONG = 65536, /* bytes of a bin with its head */
};

static unsigned char long_bin[LONG] = { 0xc6, 0, 0, (LONG - 5) >> 8, (LONG - 5) & 0xff };
static const unsigned char short_bin[] = { 0xc4, 1, 'x' };

#define ROOMY                                                                                      \
	{                                                                                          \
		.capacity = 4 * LONG                                                               \
	}

static const struct spokei_vnet_link roomy = ROOMY;

/* Records writes from now on. The write with this index, from 0, returns `refusal`. */
static void note_writes(unsigned refused, ssize_t refusal)
{
	spokei_vnet_set_all(earlyrig.world.net, &roomy);
	earlyrig.write_count = 0;
	earlyrig.refused = refused;
	earlyrig.refusal = refusal;
}

/* Fills the bin with bytes that differ from the previous ones everywhere. */
static void make_long(unsigned number)
{
	for (size_t i = 5; i < LONG; i++)
		long_bin[i] = (unsigned char)(i * 7 + i / 256 + number);
}

static void take_long(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	struct spoke_span body = message->args;

	(void)arg;
	(void)conn;
	if (message->kind != SPOKEI_REQUEST && message->kind != SPOKEI_REPLY)
		return;
	if (message->kind == SPOKEI_REPLY)
		body = (struct spoke_span){ message->value.data, message->value.len };
	assert_int_equal(body.len, LONG);
	assert_memory_equal(body.data, long_bin, LONG);
	earlyrig.read++;
}

/* Asserts that the peer reads this many messages, each of them complete. */
static void assert_came(unsigned count)
{
	for (unsigned i = 0; i < 20 && earlyrig.read < count; i++) {
		peer_read(&earlyrig.conn, take_long, NULL);
		earlyrig_pass();
	}
	assert_int_equal(earlyrig.read, count);
}

static void ask_long(const char *wire)
{
	make_long(1);
	earlyrig_consume(wire);
}

static void assert_went_ahead(void)
{
	assert_in_range(earlyrig.writes[0], AHEAD + 1, AHEAD + 200);
}

static char dubbo[] = "dubbo";
static char other_wire[] = "msgpack-rpc";

FIXTURE(earlyrig_set_up, earlyrig_tear_down);

TEST(some_of_a_long_call_goes_ahead, .initial = dubbo)
{
	ask_long(*state);
	note_writes(0, 0);
	earlyrig_call(long_bin, LONG);
	assert_int_equal(earlyrig.write_count, 2);
	assert_went_ahead();
	assert_true(earlyrig.writes[1] >= LONG - AHEAD);
	earlyrig_pass();
	assert_int_equal(earlyrig.write_count, 2);
	assert_came(1);
	assert_int_equal(earlyrig.ended, 0);
}
TEST_AGAIN(some_of_a_long_call_goes_ahead, other_wire, .initial = other_wire);

TEST(short_call_is_written_at_end_of_turn)
{
	earlyrig_consume("dubbo");
	note_writes(0, 0);
	earlyrig_call(short_bin, sizeof(short_bin));
	assert_int_equal(earlyrig.write_count, 0);
	earlyrig_pass();
	assert_int_equal(earlyrig.write_count, 1);
}

TEST(a_long_call_waits_behind_others)
{
	ask_long("dubbo");
	note_writes(0, 0);
	earlyrig_call(short_bin, sizeof(short_bin));
	earlyrig_call(long_bin, LONG);
	earlyrig_call(short_bin, sizeof(short_bin));
	assert_int_equal(earlyrig.write_count, 0);
	earlyrig_pass();
	earlyrig_read(SPOKEI_REQUEST);
	assert_int_equal(earlyrig.read, 3);
}

/* However much the stream accepts, at once or in the end, the following output stays in order. */
TEST(the_rest_of_a_long_call_follows_when_there_is_room, .initial = dubbo)
{
	static const struct {
		unsigned refused;
		ssize_t refusal;
		struct spokei_vnet_link link;
	} ways[] = {
		{ 0, -EAGAIN, ROOMY },
		{ 1, -EAGAIN, ROOMY },
		{ 0, -EINTR, ROOMY },
		{ 1, -EINTR, ROOMY },
		{ 0, 0, { .capacity = 20 } },
		{ 0, 0, { .capacity = 2000 } },
		{ 0, 0, { .capacity = AHEAD + 100 } },
		{ 0, 0, { .capacity = 20000 } },
		{ 0, 0, { .capacity = LONG + 1 } },
		{ 0, 0, { .capacity = 4 * LONG, .write_max = 40 } },
		{ 0, 0, { .capacity = 4 * LONG, .write_max = 3000 } },
		{ 0, 0, { .capacity = 4 * LONG, .write_max = 60000 } },
	};

	ask_long(*state);
	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		make_long(i);
		note_writes(ways[i].refused, ways[i].refusal);
		spokei_vnet_set_all(earlyrig.world.net, &ways[i].link);
		for (unsigned j = 0; j < 3; j++)
			earlyrig_call(long_bin, LONG);
		earlyrig_pass();
		spokei_vnet_set_all(earlyrig.world.net, &roomy);
		assert_came(3 * (i + 1));
	}
	assert_int_equal(earlyrig.ended, 0);
}
TEST_AGAIN(the_rest_of_a_long_call_follows_when_there_is_room, other_wire, .initial = other_wire);

TEST(a_long_call_ends_once_where_the_stream_breaks)
{
	static const int errors[] = { SPOKE_ETIMEOUT_UNSENT, SPOKE_ETIMEOUT };

	for (unsigned broken = 0; broken < 2; broken++) {
		ask_long("dubbo");
		note_writes(broken, -EPIPE);
		earlyrig_call(long_bin, LONG);
		assert_int_equal(earlyrig.ended, broken);
		earlyrig.refused = earlyrig.write_count;
		spokei_world_run(&earlyrig.world, earlyrig.world.now_ns + 60000 * MS);
		assert_int_equal(earlyrig.ended, broken + 1);
		assert_int_equal(earlyrig.error, errors[broken]);
		peer_close(&earlyrig.conn);
	}
}

TEST(a_long_answer_is_written_from_where_it_lies)
{
	earlyrig_serve();
	make_long(1);
	note_writes(0, 0);
	earlyrig_request(1, long_bin, LONG);
	for (unsigned i = 0; i < 20 && spokei_buffer_len(&earlyrig.conn.out) > 0; i++) {
		assert_int_equal(peer_write(&earlyrig.conn, SIZE_MAX), 0);
		earlyrig_pass();
	}
	assert_int_equal(earlyrig.handled, 1);
	assert_int_equal(earlyrig.write_count, 2);
	assert_went_ahead();
	assert_came(1);
}

/* The output belongs to the parent, which continues. */
TEST(the_child_of_a_fork_writes_nothing)
{
	earlyrig_serve();
	make_long(1);
	earlyrig.keeps = true;
	earlyrig_request(1, short_bin, sizeof(short_bin));
	assert_int_equal(peer_write(&earlyrig.conn, SIZE_MAX), 0);
	earlyrig_pass();
	assert_int_equal(earlyrig.handled, 1);
	note_writes(0, 0);
	earlyrig.forks++;
	spoke_reply(earlyrig.kept, (struct spoke_value){ long_bin, LONG });
	assert_int_equal(earlyrig.write_count, 0);
	earlyrig.forks--;
	earlyrig_pass();
	assert_came(1);
}

static void work(void)
{
	earlyrig_call(long_bin, LONG);
	spokei_world_hold(&earlyrig.process, 300 * MS);
}

static void worked(void *arg, const struct spoke_result *result)
{
	(void)arg;
	assert_int_equal(result->error, SPOKE_OK);
	work();
}

static void timed_out(void *arg, const struct spoke_result *result)
{
	*(int *)arg = result->error;
}

/* Makes a call on another connection in the same turn, before or after. */
TEST(other_work_during_a_long_write_does_not_shorten_deadlines)
{
	const struct spoke_call_options one_way = { .one_way = true };
	const struct spoke_call_options short_time = { .timeout_ns = 200 * MS };
	const struct spoke_span args = { short_bin, sizeof(short_bin) };
	struct peer_conn first;
	struct spoke_method *echo;
	int error = 0;

	ask_long("dubbo");
	first = earlyrig.conn;
	echo = earlyrig.echo;
	earlyrig_consume("dubbo");
	assert_int_equal(spoke_call(earlyrig.echo, args, &one_way, worked, NULL, NULL), 0);
	assert_int_equal(spoke_call(echo, args, &short_time, timed_out, &error, NULL), 0);
	assert_int_equal(spoke_call(earlyrig.echo, args, &short_time, timed_out, &error, NULL), 0);
	spokei_world_run(&earlyrig.world, earlyrig.world.now_ns + 450 * MS);
	assert_int_equal(error, 0);
	spokei_world_run(&earlyrig.world, earlyrig.world.now_ns + 100 * MS);
	assert_int_equal(error, SPOKE_ETIMEOUT);
	peer_close(&first);
}
