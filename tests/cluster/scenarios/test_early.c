/* SPDX-License-Identifier: Apache-2.0 */
/* Large output is written at once without a copy, and before all input is handled. */
#include "tests/cluster/peer.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "transport/wire/catalog.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * --- fixture: an engine in the virtual world whose writes are recorded, with a provider or a
 * consumer, and a peer controlled by the test
 */

#define EARLYRIG_WRITES 8 /* maximum number of recorded writes */

struct earlyrig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_method *echo;
	struct peer peer;
	struct peer_conn conn;
	uint64_t id;        /* of the last request that the peer has read */
	unsigned read;      /* messages read by the peer */
	unsigned handled;   /* requests handled by the provider */
	unsigned ended;     /* ended calls of the consumer */
	int error;          /* of the last ended call */
	void (*then)(void); /* called after a successful call; may be NULL */
	bool keeps;         /* the provider does not answer, but keeps the request */
	struct spoke_request *kept;
	uint64_t first_ns;   /* time of the turn in which the first of these was handled or ended */
	uint64_t bytes_then; /* bytes written at that moment */
	uint64_t bytes_last; /* bytes written at the last one of that turn */
	ssize_t writes[EARLYRIG_WRITES]; /* results of write() */
	unsigned write_count;
	unsigned refused; /* index of the write that is replaced */
	ssize_t refusal;  /* its result; 0: none is replaced */
	struct spoke_net net;
	unsigned forks; /* fork counter of the environment */
};

/* --- the fixture of early writes: */

#define AT "127.0.0.1:20880"

static struct earlyrig earlyrig;

static void earlyrig_pass(void)
{
	spokei_world_run(&earlyrig.world, earlyrig.world.now_ns + 10 * MS);
}

static ssize_t noted_write(void *ctx, int fd, const struct iovec *parts, int count)
{
	bool refuses = earlyrig.refusal != 0 && earlyrig.write_count == earlyrig.refused;
	ssize_t len = refuses ? earlyrig.refusal : spokei_vnet_table.write(ctx, fd, parts, count);

	if (earlyrig.write_count < EARLYRIG_WRITES)
		earlyrig.writes[earlyrig.write_count] = len;
	earlyrig.write_count++;
	return len;
}

STEP(earlyrig_set_up)
{
	struct spoke_engine_options with = { .env = &earlyrig.process.env };

	memset(&earlyrig, 0, sizeof(earlyrig));
	earlyrig.conn.fd = -1;
	scene_open(&earlyrig.world, 3);
	spokei_world_process_init(&earlyrig.process, &earlyrig.world);
	earlyrig.net = spokei_vnet_table;
	earlyrig.net.write = noted_write;
	earlyrig.process.env.net = &earlyrig.net;
	earlyrig.process.env.forks = &earlyrig.forks;
	peer_init(&earlyrig.peer, &earlyrig.world);
	assert_int_equal(spoke_engine_new(&with, &earlyrig.engine), 0);
}

STEP(earlyrig_tear_down)
{
	scene_leave(&earlyrig.process, NULL, &earlyrig.engine);
	peer_close(&earlyrig.conn);
	peer_fini(&earlyrig.peer);
	spokei_world_fini(&earlyrig.world);
}

static void note_turn(void)
{
	uint64_t bytes = spoke_stat_get(earlyrig.engine, SPOKE_STAT_BYTES_WRITTEN);

	if (earlyrig.first_ns == 0) {
		earlyrig.first_ns = spoke_engine_now(earlyrig.engine);
		earlyrig.bytes_then = bytes;
	}
	if (earlyrig.first_ns == spoke_engine_now(earlyrig.engine))
		earlyrig.bytes_last = bytes;
}

static void open_conn(int fd, const char *wire)
{
	assert_true(fd >= 0);
	peer_open(&earlyrig.peer, &earlyrig.conn, fd, spokei_catalog_wire(wire));
	earlyrig_pass();
}

static void take(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	enum spokei_kind *kind = arg;

	(void)conn;
	if (message->kind != *kind)
		return;
	earlyrig.id = message->id;
	earlyrig.read++;
}

/* Makes the peer read the available messages and count those of this kind. */
static void earlyrig_read(enum spokei_kind kind)
{
	peer_read(&earlyrig.conn, take, &kind);
	earlyrig_pass();
}

/* --- provider */

static void echo(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value;

	(void)arg;
	earlyrig.handled++;
	note_turn();
	assert_true(spoke_cursor_next(&args, &value));
	earlyrig.kept = request;
	if (!earlyrig.keeps)
		spoke_reply(request, value);
}

/* Make an echo provider to which the peer is connected, and a request that is not written yet. */
static void earlyrig_serve(void)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo };
	struct spoke_provider *provider;

	assert_int_equal(spoke_provider_new(earlyrig.engine, NULL, &provider), 0);
	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(provider, "dubbo://" AT), 0);
	open_conn(peer_connect(&earlyrig.peer, AT), "dubbo");
}

static void earlyrig_request(uint64_t id, const unsigned char *value, size_t len)
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

	peer_put(&earlyrig.conn, &message);
}

/* --- consumer */

static void call_done(void *arg, const struct spoke_result *result)
{
	(void)arg;
	earlyrig.ended++;
	earlyrig.error = result->error;
	note_turn();
	if (earlyrig.then && result->error == 0)
		earlyrig.then();
}

static void earlyrig_call(const unsigned char *value, size_t len)
{
	const struct spoke_span args = { value, len };

	assert_int_equal(spoke_call(earlyrig.echo, args, NULL, call_done, NULL, NULL), 0);
}

/* Make a consumer that is connected to the peer, and a call. */
static void earlyrig_consume(const char *wire)
{
	int listener = peer_listen(&earlyrig.peer, AT);
	struct spoke_consumer *consumer;
	char url[64];

	(void)snprintf(url, sizeof(url), "%s://" AT "/demo.Echo", wire);
	assert_int_equal(spoke_consumer_new(earlyrig.engine,
					    &(struct spoke_consumer_options){
						    .serialization = SPOKE_SERIALIZATION_MSGPACK,
						    .url = url },
					    &consumer),
			 0);
	assert_int_equal(spoke_consumer_method(consumer, "echo", NULL, &earlyrig.echo), 0);
	earlyrig_pass();
	open_conn(peer_accept(&earlyrig.peer, listener), wire);
	earlyrig.peer.process.env.net->close(earlyrig.peer.process.env.ctx, listener);
}

/*
 * --- large output is written before all input is handled, by a provider that replies and by a
 * consumer that calls again. Input read before a request was written is no reply to it
 */

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

/*
 * --- large messages are written at once without a copy, and partly before other output.
 * Whatever part the stream accepts, the peer reads the whole message and the call ends once
 */

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
