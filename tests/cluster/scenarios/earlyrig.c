/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of early writes: see earlyrig.h. */
#include "tests/cluster/scenarios/earlyrig.h"

#include "transport/wire/catalog.h"

#include <spoke/stats.h>

#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define AT "127.0.0.1:20880"

struct earlyrig earlyrig;

void earlyrig_pass(void)
{
	spokei_world_run(&earlyrig.world, earlyrig.world.now_ns + 10 * MS);
}

static ssize_t noted_write(void *ctx, int fd, const struct iovec *parts, int count)
{
	bool refuses = earlyrig.refusal != 0 && earlyrig.write_count == earlyrig.refused;
	ssize_t len = refuses ? earlyrig.refusal
			      : spokei_world_env.net->write(ctx, fd, parts, count);

	if (earlyrig.write_count < EARLYRIG_WRITES)
		earlyrig.writes[earlyrig.write_count] = len;
	earlyrig.write_count++;
	return len;
}

int earlyrig_set_up(void **state)
{
	struct spoke_engine_options with = { .env = &earlyrig.process.env };

	(void)state;
	memset(&earlyrig, 0, sizeof(earlyrig));
	earlyrig.conn.fd = -1;
	assert_true(spokei_world_init(&earlyrig.world, 3));
	spokei_world_process_init(&earlyrig.process, &earlyrig.world);
	earlyrig.net = *spokei_world_env.net;
	earlyrig.net.write = noted_write;
	earlyrig.process.env.net = &earlyrig.net;
	earlyrig.process.env.forks = &earlyrig.forks;
	peer_init(&earlyrig.peer, &earlyrig.world);
	assert_int_equal(spoke_engine_new(&with, &earlyrig.engine), 0);
	return 0;
}

int earlyrig_tear_down(void **state)
{
	(void)state;
	spoke_engine_free(earlyrig.engine);
	assert_int_equal(earlyrig.process.blocks, 0);
	peer_close(&earlyrig.conn);
	peer_fini(&earlyrig.peer);
	spokei_world_process_fini(&earlyrig.process);
	spokei_world_fini(&earlyrig.world);
	return 0;
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

void earlyrig_read(enum spokei_kind kind)
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

void earlyrig_serve(void)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo };
	struct spoke_provider *provider;

	assert_int_equal(spoke_provider_new(earlyrig.engine, NULL, &provider), 0);
	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(provider, "dubbo://" AT), 0);
	open_conn(peer_connect(&earlyrig.peer, AT), "dubbo");
}

void earlyrig_request(uint64_t id, const unsigned char *value, size_t len)
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

void earlyrig_call(const unsigned char *value, size_t len)
{
	const struct spoke_span args = { value, len };

	assert_int_equal(spoke_call(earlyrig.echo, args, NULL, call_done, NULL, NULL), 0);
}

void earlyrig_consume(const char *wire)
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
