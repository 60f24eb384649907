/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes to much is written before all that was read is looked at: by a provider that answers,
 * by a consumer that asks again. What was read before is no answer to what was written after. What
 * is long is written at once, from where it lies, and some of it ahead of the rest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/cluster/peer.h"
#include "transport/catalog.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define AT "127.0.0.1:20880"

enum {
	CALLS = 100,
	LEN = 200, /* of a bin with its head */
	AHEAD = 4096,
	LONG = 65536,
	WRITES = 8, /* at most so many are noted */
};

static struct {
	struct virtual_world world;
	struct virtual_process process;
	struct spoke_engine *engine;
	struct spoke_method *echo;
	struct peer peer;
	struct peer_conn conn;
	uint64_t id;            /* of the request that the peer has read last */
	unsigned read;          /* messages, by the peer */
	unsigned handled;       /* by the provider */
	unsigned ended;         /* calls of the consumer */
	int error;              /* of the one that has ended last */
	bool again;             /* whoever ends is followed by another one */
	uint64_t first_ns;      /* the turn in which the first of these was handled, or ended */
	uint64_t bytes_then;    /* written then ... */
	uint64_t bytes_last;    /* ... and when the last one of that turn was */
	ssize_t writes[WRITES]; /* what the calls of write() have given since noting began */
	unsigned write_count;
	unsigned refused; /* which of them gives ... */
	ssize_t refusal;  /* ... this instead; 0: none does */
	struct spoke_net net;
} rig;

static unsigned char bin[LEN] = { 0xc4, LEN - 2 };
static unsigned char long_bin[LONG] = { 0xc6, 0, 0, (LONG - 5) >> 8, (LONG - 5) & 0xff };

static void pass(void)
{
	virtual_run(&rig.world, rig.world.now_ns + 10 * MS);
}

static ssize_t noted_write(void *ctx, int fd, const struct iovec *parts, int count)
{
	bool refuses = rig.refusal != 0 && rig.write_count == rig.refused;
	ssize_t len = refuses ? rig.refusal : virtual_env.net->write(ctx, fd, parts, count);

	if (rig.write_count < WRITES)
		rig.writes[rig.write_count] = len;
	rig.write_count++;
	return len;
}

static int set_up(void **state)
{
	struct spoke_engine_options with = { .env = &rig.process.env };

	(void)state;
	memset(&rig, 0, sizeof(rig));
	rig.conn.fd = -1;
	assert_true(virtual_world_init(&rig.world, 3));
	virtual_process_init(&rig.process, &rig.world);
	rig.net = *virtual_env.net;
	rig.net.write = noted_write;
	rig.process.env.net = &rig.net;
	peer_init(&rig.peer, &rig.world);
	assert_int_equal(spoke_engine_new(&with, &rig.engine), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	spoke_engine_free(rig.engine);
	assert_int_equal(rig.process.blocks, 0);
	peer_close(&rig.conn);
	peer_fini(&rig.peer);
	virtual_process_fini(&rig.process);
	virtual_world_fini(&rig.world);
	return 0;
}

static void note_turn(void)
{
	uint64_t bytes = spoke_stat_get(rig.engine, SPOKE_STAT_BYTES_WRITTEN);

	if (rig.first_ns == 0) {
		rig.first_ns = spoke_engine_now(rig.engine);
		rig.bytes_then = bytes;
	}
	if (rig.first_ns == spoke_engine_now(rig.engine))
		rig.bytes_last = bytes;
}

static void open_conn(int fd, const char *wire)
{
	assert_true(fd >= 0);
	peer_open(&rig.peer, &rig.conn, fd, spokei_catalog_wire(wire));
	pass();
}

static void take(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	enum spokei_kind *kind = arg;

	(void)conn;
	if (message->kind != *kind)
		return;
	rig.id = message->id;
	rig.read++;
}

static void read_all(enum spokei_kind kind)
{
	peer_read(&rig.conn, take, &kind);
	pass();
}

/* --- who answers */

static void echo(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value;

	(void)arg;
	rig.handled++;
	note_turn();
	assert_true(spoke_cursor_next(&args, &value));
	spoke_reply(request, value);
}

static void serve(void)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo };
	struct spoke_provider *provider;

	assert_int_equal(spoke_provider_new(rig.engine, NULL, &provider), 0);
	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(provider, "dubbo://" AT), 0);
	open_conn(peer_connect(&rig.peer, AT), "dubbo");
}

static void put_request(uint64_t id, const unsigned char *value, size_t len)
{
	const struct spokei_message message = {
		.kind = SPOKEI_REQUEST,
		.id = id,
		.two_way = true,
		.codec = 27,
		.service = { "demo.Echo", 9 },
		.method = { "echo", 4 },
		.args = { value, len },
		.arg_count = 1,
	};

	peer_put(&rig.conn, &message);
}

static void answers_are_written_while_requests_are_read(void **state)
{
	(void)state;
	serve();
	for (unsigned i = 0; i < CALLS; i++)
		put_request(i, bin, LEN);
	assert_int_equal(peer_write(&rig.conn, SIZE_MAX), 0);
	pass();
	read_all(SPOKEI_REPLY);
	assert_int_equal(rig.handled, CALLS);
	assert_int_equal(rig.read, CALLS);
	assert_true(rig.bytes_last > rig.bytes_then);
}

/* --- who asks */

static void call(void);

static void call_done(void *arg, const struct spoke_result *result)
{
	(void)arg;
	rig.ended++;
	rig.error = result->error;
	note_turn();
	if (rig.again && result->error == 0)
		call();
}

static void call_with(const unsigned char *value, size_t len)
{
	const struct spoke_span args = { value, len };

	assert_int_equal(spoke_call(rig.echo, args, NULL, call_done, NULL, NULL), 0);
}

static void call(void)
{
	call_with(bin, LEN);
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

	peer_put(&rig.conn, &message);
}

static void connect_consumer(const char *wire)
{
	int listener = peer_listen(&rig.peer, AT);
	struct spoke_consumer *consumer;
	char url[64];

	(void)snprintf(url, sizeof(url), "%s://" AT "/demo.Echo", wire);
	assert_int_equal(spoke_consumer_new(rig.engine,
					    &(struct spoke_consumer_options){ .url = url },
					    &consumer),
			 0);
	assert_int_equal(spoke_consumer_method(consumer, "echo", NULL, &rig.echo), 0);
	pass();
	open_conn(peer_accept(&rig.peer, listener), wire);
	rig.peer.process.env.net->close(rig.peer.process.env.ctx, listener);
}

/* All calls wait at the peer. */
static void ask(void)
{
	connect_consumer("dubbo");
	for (unsigned i = 0; i < CALLS; i++)
		call();
	pass();
	read_all(SPOKEI_REQUEST);
	assert_int_equal(rig.read, CALLS);
}

static void calls_are_written_while_answers_are_read(void **state)
{
	(void)state;
	ask();
	rig.again = true;
	for (unsigned i = 0; i < CALLS; i++)
		put_reply(rig.id - i);
	assert_int_equal(peer_write(&rig.conn, SIZE_MAX), 0);
	pass();
	assert_int_equal(rig.ended, CALLS);
	assert_true(rig.bytes_last > rig.bytes_then);
	read_all(SPOKEI_REQUEST);
	assert_int_equal(rig.read, 2 * CALLS);
}

/* The first of the new calls is written before the guess is looked at, which lies behind. */
static void an_answer_cannot_lie_before_its_question(void **state)
{
	uint64_t guess;

	(void)state;
	ask();
	rig.again = true;
	guess = rig.id + 1;
	for (unsigned i = 0; i < CALLS; i++)
		put_reply(rig.id - i);
	put_reply(guess);
	assert_int_equal(peer_write(&rig.conn, SIZE_MAX), 0);
	pass();
	assert_true(rig.bytes_last > rig.bytes_then);
	assert_int_equal(rig.ended, CALLS);
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_REPLIES_UNKNOWN), 1);
	rig.again = false;
	put_reply(guess);
	assert_int_equal(peer_write(&rig.conn, SIZE_MAX), 0);
	pass();
	assert_int_equal(rig.ended, CALLS + 1);
}

/* --- what is long */

#define ROOMY                                                                                      \
	{                                                                                          \
		.capacity = 4 * LONG                                                               \
	}

static const struct memnet_link roomy = ROOMY;

/* From here on writes are noted, of which that one, counted from 0, gives `refusal`. */
static void note_writes(unsigned refused, ssize_t refusal)
{
	memnet_set_all(rig.world.net, &roomy);
	rig.write_count = 0;
	rig.refused = refused;
	rig.refusal = refusal;
}

/* Each of them differs everywhere from the one before. */
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
	rig.read++;
}

/* The peer has read so many, each of them whole. */
static void assert_came(unsigned count)
{
	for (unsigned i = 0; i < 20 && rig.read < count; i++) {
		peer_read(&rig.conn, take_long, NULL);
		pass();
	}
	assert_int_equal(rig.read, count);
}

static void ask_long(const char *wire)
{
	make_long(1);
	connect_consumer(wire);
}

static void assert_went_ahead(void)
{
	assert_in_range(rig.writes[0], AHEAD + 1, AHEAD + 200);
}

static void some_of_a_long_call_goes_ahead(void **state)
{
	ask_long(*state);
	note_writes(0, 0);
	call_with(long_bin, LONG);
	assert_int_equal(rig.write_count, 2);
	assert_went_ahead();
	assert_true(rig.writes[1] >= LONG - AHEAD);
	pass();
	assert_int_equal(rig.write_count, 2);
	assert_came(1);
	assert_int_equal(rig.ended, 0);
}

static void what_is_not_long_goes_when_the_turn_ends(void **state)
{
	(void)state;
	connect_consumer("dubbo");
	note_writes(0, 0);
	call();
	assert_int_equal(rig.write_count, 0);
	pass();
	assert_int_equal(rig.write_count, 1);
}

static void a_long_call_waits_behind_others(void **state)
{
	(void)state;
	ask_long("dubbo");
	note_writes(0, 0);
	call();
	call_with(long_bin, LONG);
	call();
	assert_int_equal(rig.write_count, 0);
	pass();
	read_all(SPOKEI_REQUEST);
	assert_int_equal(rig.read, 3);
}

/* However much of it the stream takes, at once or in the end: what lies behind is in order. */
static void the_rest_of_a_long_call_follows_when_there_is_room(void **state)
{
	static const struct {
		unsigned refused;
		ssize_t refusal;
		struct memnet_link link;
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
		memnet_set_all(rig.world.net, &ways[i].link);
		for (unsigned j = 0; j < 3; j++)
			call_with(long_bin, LONG);
		pass();
		memnet_set_all(rig.world.net, &roomy);
		assert_came(3 * (i + 1));
	}
	assert_int_equal(rig.ended, 0);
}

static void a_long_call_ends_once_where_the_stream_breaks(void **state)
{
	static const int errors[] = { SPOKE_ETIMEOUT_UNSENT, SPOKE_ETIMEOUT };

	(void)state;
	for (unsigned broken = 0; broken < 2; broken++) {
		ask_long("dubbo");
		note_writes(broken, -EPIPE);
		call_with(long_bin, LONG);
		assert_int_equal(rig.ended, broken);
		rig.refused = rig.write_count;
		virtual_run(&rig.world, rig.world.now_ns + 60000 * MS);
		assert_int_equal(rig.ended, broken + 1);
		assert_int_equal(rig.error, errors[broken]);
		peer_close(&rig.conn);
	}
}

static void a_long_answer_is_written_from_where_it_lies(void **state)
{
	(void)state;
	serve();
	make_long(1);
	note_writes(0, 0);
	put_request(1, long_bin, LONG);
	for (unsigned i = 0; i < 20 && spokei_buffer_len(&rig.conn.out) > 0; i++) {
		assert_int_equal(peer_write(&rig.conn, SIZE_MAX), 0);
		pass();
	}
	assert_int_equal(rig.handled, 1);
	assert_int_equal(rig.write_count, 2);
	assert_went_ahead();
	assert_came(1);
}

#define LONG_TEST(test, wire)                                                                      \
	{                                                                                          \
#test, test, set_up, tear_down, wire                                               \
	}

int main(void)
{
	static char dubbo[] = "dubbo";
	static char msgpack_rpc[] = "msgpack-rpc";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(answers_are_written_while_requests_are_read, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(calls_are_written_while_answers_are_read, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(an_answer_cannot_lie_before_its_question, set_up,
						tear_down),
		LONG_TEST(some_of_a_long_call_goes_ahead, dubbo),
		LONG_TEST(some_of_a_long_call_goes_ahead, msgpack_rpc),
		LONG_TEST(what_is_not_long_goes_when_the_turn_ends, NULL),
		LONG_TEST(a_long_call_waits_behind_others, NULL),
		LONG_TEST(the_rest_of_a_long_call_follows_when_there_is_room, dubbo),
		LONG_TEST(the_rest_of_a_long_call_follows_when_there_is_room, msgpack_rpc),
		LONG_TEST(a_long_call_ends_once_where_the_stream_breaks, NULL),
		LONG_TEST(a_long_answer_is_written_from_where_it_lies, NULL),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
