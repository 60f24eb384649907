/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes to much is written before all that was read is looked at: by a provider that answers,
 * by a consumer that asks again. What was read before is no answer to what was written after.
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

#include <string.h>

#define MS UINT64_C(1000000)
#define AT "127.0.0.1:20880"

enum {
	CALLS = 100,
	LEN = 200, /* of a bin with its head */
};

static struct {
	struct virtual_world world;
	struct virtual_process process;
	struct spoke_engine *engine;
	struct spoke_method *echo;
	struct peer peer;
	struct peer_conn conn;
	uint64_t id;         /* of the request that the peer has read last */
	unsigned read;       /* messages, by the peer */
	unsigned handled;    /* by the provider */
	unsigned ended;      /* calls of the consumer */
	bool again;          /* whoever ends is followed by another one */
	uint64_t first_ns;   /* the turn in which the first of these was handled, or ended */
	uint64_t bytes_then; /* written then ... */
	uint64_t bytes_last; /* ... and when the last one of that turn was */
} rig;

static unsigned char bin[LEN] = { 0xc4, LEN - 2 };

static void pass(void)
{
	virtual_run(&rig.world, rig.world.now_ns + 10 * MS);
}

static int set_up(void **state)
{
	struct spoke_engine_options with = { .env = &rig.process.env };

	(void)state;
	memset(&rig, 0, sizeof(rig));
	rig.conn.fd = -1;
	assert_true(virtual_world_init(&rig.world, 3));
	virtual_process_init(&rig.process, &rig.world);
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

static void open_conn(int fd)
{
	assert_true(fd >= 0);
	peer_open(&rig.peer, &rig.conn, fd, spokei_catalog_wire("dubbo"));
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

static void put_request(uint64_t id)
{
	const struct spokei_message message = {
		.kind = SPOKEI_REQUEST,
		.id = id,
		.two_way = true,
		.codec = 27,
		.service = { "demo.Echo", 9 },
		.method = { "echo", 4 },
		.args = { bin, LEN },
		.arg_count = 1,
	};

	peer_put(&rig.conn, &message);
}

static void answers_are_written_while_requests_are_read(void **state)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo };
	struct spoke_provider *provider;

	(void)state;
	assert_int_equal(spoke_provider_new(rig.engine, NULL, &provider), 0);
	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(provider, "dubbo://" AT), 0);
	open_conn(peer_connect(&rig.peer, AT));
	for (unsigned i = 0; i < CALLS; i++)
		put_request(i);
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
	note_turn();
	if (rig.again && result->error == 0)
		call();
}

static void call(void)
{
	const struct spoke_span args = { bin, LEN };

	assert_int_equal(spoke_call(rig.echo, args, NULL, call_done, NULL, NULL), 0);
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

/* All calls wait at the peer. */
static void ask(void)
{
	const struct spoke_consumer_options options = { .url = "dubbo://" AT "/demo.Echo" };
	struct spoke_consumer *consumer;
	int listener = peer_listen(&rig.peer, AT);

	assert_int_equal(spoke_consumer_new(rig.engine, &options, &consumer), 0);
	assert_int_equal(spoke_consumer_method(consumer, "echo", NULL, &rig.echo), 0);
	pass();
	open_conn(peer_accept(&rig.peer, listener));
	for (unsigned i = 0; i < CALLS; i++)
		call();
	pass();
	read_all(SPOKEI_REQUEST);
	assert_int_equal(rig.read, CALLS);
	rig.peer.process.env.net->close(rig.peer.process.env.ctx, listener);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(answers_are_written_while_requests_are_read, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(calls_are_written_while_answers_are_read, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(an_answer_cannot_lie_before_its_question, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
