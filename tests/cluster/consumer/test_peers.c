/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer and peers controlled by the test. */
#include "tests/cluster/peer.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "transport/wire/catalog.h"

#include <spoke/consumer.h>

#include <string.h>

#define LARGE 200000

struct rig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	struct peer peer;
	int listeners[2];
	struct peer_conn conns[2];
	unsigned calls;
	unsigned ends;
	unsigned refused;
	int error; /* of the last end */
	unsigned requests;
	struct spoke_span args;
};

static struct rig rig;

static void pass(uint64_t ns)
{
	spokei_world_run(&rig.world, rig.world.now_ns + ns);
}

STEP(set_up)
{
	static const char *const more[] = { "msgpack-rpc://127.0.0.1:20881/demo.Echo" };
	const struct spoke_consumer_options options = {
		.url = "dubbo://127.0.0.1:20880/demo.Echo",
		.balancer = &spoke_balancer_round_robin,
		.more_urls = more,
		.more_count = *state != NULL,
	};
	struct spoke_engine_options with = { .timers_max = 64 };

	memset(&rig, 0, sizeof(rig));
	rig.conns[0].fd = -1;
	rig.conns[1].fd = -1;
	scene_open(&rig.world, 3);
	rig.engine = scene_engine(&rig.world, &rig.process, NULL, &with);
	peer_init(&rig.peer, &rig.world);
	rig.listeners[0] = peer_listen(&rig.peer, "127.0.0.1:20880");
	rig.listeners[1] = peer_listen(&rig.peer, "127.0.0.1:20881");
	if (*state)
		spokei_vnet_route(rig.world.net, "127.0.0.1:20880", SPOKEI_VNET_SILENT);
	assert_int_equal(spoke_consumer_new(rig.engine, &options, &rig.consumer), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", NULL, &rig.echo), 0);
}

STEP(tear_down)
{
	scene_leave(&rig.process, NULL, &rig.engine);
	assert_int_equal(rig.ends, rig.calls);
	peer_close(&rig.conns[0]);
	peer_close(&rig.conns[1]);
	peer_fini(&rig.peer);
	spokei_world_fini(&rig.world);
}

FIXTURE(set_up, tear_down);

static void call_again(void *arg, const struct spoke_result *result);

static void call(void)
{
	static const struct spoke_call_options options = { .timeout_ns = 5000 * MS };

	if (spoke_call(rig.echo, rig.args, &options, call_again, NULL, NULL))
		rig.refused++;
	else
		rig.calls++;
}

static void call_again(void *arg, const struct spoke_result *result)
{
	(void)arg;
	rig.ends++;
	rig.error = result->error;
	if (result->error == SPOKE_ELOST && rig.ends < 100)
		call();
}

static void take_request(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	(void)arg;
	(void)conn;
	if (message->kind != SPOKEI_REQUEST)
		return;
	rig.requests++;
	assert_int_equal(message->service.len, 9);
	assert_memory_equal(message->service.data, "demo.Echo", 9);
	assert_memory_equal(message->method.data, "echo", 4);
	assert_int_equal(message->arg_count, 1);
}

static void open_conn(unsigned which, const char *speaks)
{
	int fd = peer_accept(&rig.peer, rig.listeners[which]);

	assert_true(fd >= 0);
	peer_open(&rig.peer, &rig.conns[which], fd, spokei_catalog_wire(speaks));
}

static bool two = true;

/* The prefix of a method's requests differs between the wires. */
TEST(waiting_call_is_encoded_for_its_own_wire, .initial = &two)
{
	rig.args = (struct spoke_span){ "\x01", 1 };
	call(); /* waits for the first endpoint */
	pass(10 * MS);
	call(); /* the second endpoint is connected */
	pass(10 * MS);
	open_conn(1, "msgpack-rpc");
	peer_read(&rig.conns[1], take_request, NULL);
	assert_int_equal(rig.requests, 1);
	spokei_vnet_route(rig.world.net, "127.0.0.1:20880", SPOKEI_VNET_NORMAL);
	pass(3000 * MS);
	open_conn(0, "dubbo");
	peer_read(&rig.conns[0], take_request, NULL);
	assert_false(rig.conns[0].broken);
	assert_int_equal(rig.requests, 2);
}

TEST(lost_call_is_not_repeated_on_same_connection)
{
	static unsigned char bytes[LARGE] = { 0xc6 };
	const struct spoke_env *env = &rig.peer.process.env;

	bytes[2] = (LARGE - 5) >> 16 & 255;
	bytes[3] = (LARGE - 5) >> 8 & 255;
	bytes[4] = (LARGE - 5) & 255;
	rig.args = (struct spoke_span){ bytes, sizeof(bytes) };
	call();
	pass(10 * MS);
	open_conn(0, "dubbo");
	/* The peer closes its side while a part of the consumer's output is not yet taken. */
	assert_int_equal(env->net->shut(env->ctx, rig.conns[0].fd), 0);
	pass(10 * MS);
	assert_int_equal(rig.ends, 1);
	assert_int_equal(rig.error, SPOKE_ELOST);
	assert_int_equal(rig.refused, 1);
}
