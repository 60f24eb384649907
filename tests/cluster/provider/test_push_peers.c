/* SPDX-License-Identifier: Apache-2.0 */
/* A provider that pushes to peers driven by the test: the bytes they get, and their valid answers.
 */
#include "tests/cluster/peer.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "transport/codec/codec.h"
#include "transport/wire/catalog.h"

#include <spoke/provider.h>
#include <spoke/stats.h>

#include <string.h>

#define ID 40 /* of the peer's own requests */

struct rig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct spoke_method *moved;
	struct spoke_request *held; /* the peer's own request */
	struct peer peer;
	struct peer_conn conn;
	unsigned pushes;
	unsigned ends;
	int error; /* of the last push */
	unsigned requests;
	struct spokei_message last; /* the last request; its spans are not valid */
	unsigned replies;           /* to the peer's own request */
};

static struct rig rig;

static void pass(void)
{
	spokei_world_run(&rig.world, rig.world.now_ns + 5 * MS);
}

static uint64_t stat(enum spoke_stat which)
{
	return spoke_stat_get(rig.engine, which);
}

static void hold(struct spoke_request *request, void *arg)
{
	(void)arg;
	assert_int_equal(spoke_request_keep(request), 0);
	rig.held = request;
}

static void take(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	(void)arg;
	(void)conn;
	if (message->kind == SPOKEI_REPLY && message->id == ID)
		rig.replies++;
	if (message->kind != SPOKEI_REQUEST)
		return;
	rig.requests++;
	rig.last = *message;
	assert_int_equal(message->service.len, 9);
	assert_memory_equal(message->service.data, "demo.Push", 9);
	assert_int_equal(message->method.len, 5);
	assert_memory_equal(message->method.data, "moved", 5);
	assert_int_equal(message->arg_count, 1);
	assert_int_equal(message->args.len, 1);
}

static void move(void)
{
	(void)peer_write(&rig.conn, SIZE_MAX);
	pass();
	peer_read(&rig.conn, take, NULL);
}

static void ask(uint64_t id)
{
	struct spokei_message message = {
		.kind = SPOKEI_REQUEST,
		.codec = SPOKEI_CODEC_MSGPACK,
		.id = id,
		.two_way = true,
		.service = { "demo.Echo", 9 },
		.method = { "later", 5 },
	};

	peer_put(&rig.conn, &message);
	move();
}

static void answer(uint64_t id)
{
	static const unsigned char five = 5;
	struct spokei_message message = {
		.kind = SPOKEI_REPLY,
		.codec = SPOKEI_CODEC_MSGPACK,
		.id = id,
		.bare = true,
		.value = { &five, 1 },
	};

	peer_put(&rig.conn, &message);
	move();
}

static void note_end(void *arg, const struct spoke_result *result)
{
	(void)arg;
	rig.ends++;
	rig.error = result->error;
}

static void push(bool two_way)
{
	const struct spoke_call_options options = { .one_way = !two_way };
	struct spoke_peer peer;

	assert_int_equal(spoke_provider_peers(rig.provider, &peer, 1), 1);
	assert_int_equal(spoke_push(rig.moved, peer, (struct spoke_span){ "\x07", 1 }, &options,
				    note_end, NULL, NULL),
			 0);
	rig.pushes++;
	move();
}

STEP(set_up)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handler = { .method = "later", .handle = hold };
	static const struct spoke_method_options of = { .service = "demo.Push" };
	struct spoke_engine_options with = { .timers_max = 64 };

	memset(&rig, 0, sizeof(rig));
	scene_open(&rig.world, 5);
	rig.engine = scene_engine(&rig.world, &rig.process, NULL, &with);
	peer_init(&rig.peer, &rig.world);
	assert_int_equal(spoke_provider_new(rig.engine, NULL, &rig.provider), 0);
	assert_int_equal(spoke_provider_add(rig.provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(rig.provider, "dubbo://127.0.0.1:20880"), 0);
	assert_int_equal(spoke_provider_method(rig.provider, "moved", &of, &rig.moved), 0);
	peer_open(&rig.peer, &rig.conn, peer_connect(&rig.peer, "127.0.0.1:20880"),
		  spokei_catalog_wire(*state));
	assert_true(rig.conn.fd >= 0);
	pass();
}

STEP(tear_down)
{
	if (rig.held)
		spoke_reply(rig.held, (struct spoke_value){ NULL, 0 });
	scene_leave(&rig.process, NULL, &rig.engine);
	assert_int_equal(rig.ends, rig.pushes);
	peer_close(&rig.conn);
	peer_fini(&rig.peer);
	spokei_world_fini(&rig.world);
}

FIXTURE(set_up, tear_down);

static char dubbo[] = "dubbo";
static char mprpc[] = "msgpack-rpc";

TEST(push_is_written_as_request_or_notification, .initial = dubbo)
{
	ask(ID);
	push(true);
	assert_int_equal(rig.requests, 1);
	assert_true(rig.last.two_way);
	answer(rig.last.id);
	assert_int_equal(rig.ends, 1);
	assert_int_equal(rig.error, SPOKE_OK);
	push(false);
	assert_int_equal(rig.requests, 2);
	assert_false(rig.last.two_way);
	assert_int_equal(rig.ends, 2);
	assert_int_equal(rig.error, SPOKE_OK);
	assert_int_equal(stat(SPOKE_STAT_CLOSED), 0);
}
TEST_AGAIN(push_is_written_as_request_or_notification, mprpc, .initial = mprpc);

/* Before any push every reply is an error; after it only a reply with an unknown id is. */
TEST(answer_with_unknown_id_does_not_end_push, .initial = dubbo)
{
	ask(ID);
	push(true);
	answer(rig.last.id + 1);
	assert_int_equal(stat(SPOKE_STAT_REPLIES_UNKNOWN), 1);
	assert_int_equal(rig.ends, 0);
	answer(rig.last.id);
	assert_int_equal(rig.ends, 1);
	answer(rig.last.id);
	assert_int_equal(stat(SPOKE_STAT_REPLIES_LATE), 1);
	assert_int_equal(rig.ends, 1);
	assert_int_equal(stat(SPOKE_STAT_CLOSED), 0);
}
TEST_AGAIN(answer_with_unknown_id_does_not_end_push, mprpc, .initial = mprpc);

TEST(reply_without_any_push_closes_connection, .initial = dubbo)
{
	ask(ID);
	answer(ID);
	assert_int_equal(stat(SPOKE_STAT_CLOSED_UNWANTED), 1);
	assert_int_equal(spoke_provider_peers(rig.provider, NULL, 0), 0);
}
TEST_AGAIN(reply_without_any_push_closes_connection, mprpc, .initial = mprpc);

/* The peer sends a request with the id of the push: both are answered. */
TEST(request_with_id_of_push_is_served, .initial = dubbo)
{
	uint64_t id;

	ask(ID);
	spoke_reply(rig.held, (struct spoke_value){ NULL, 0 });
	rig.held = NULL;
	push(true);
	id = rig.last.id;
	ask(id);
	assert_non_null(rig.held);
	assert_int_equal(rig.ends, 0);
	answer(id);
	assert_int_equal(rig.ends, 1);
	assert_int_equal(rig.error, SPOKE_OK);
	assert_int_equal(stat(SPOKE_STAT_CLOSED), 0);
}
TEST_AGAIN(request_with_id_of_push_is_served, mprpc, .initial = mprpc);

/* The peer sends no more answers, while its requests are still answered. */
TEST(push_ends_with_error_that_peer_sends, .initial = dubbo)
{
	const struct spoke_env *env = &rig.peer.process.env;
	struct spoke_peer peer;

	ask(ID);
	push(true);
	assert_int_equal(spoke_provider_peers(rig.provider, &peer, 1), 1);
	assert_int_equal(env->net->shut(env->ctx, rig.conn.fd), 0);
	pass();
	assert_int_equal(rig.ends, 1);
	assert_int_equal(rig.error, SPOKE_ELOST);
	assert_int_equal(spoke_provider_peers(rig.provider, NULL, 0), 0);
	assert_int_equal(spoke_push(rig.moved, peer, (struct spoke_span){ "\x07", 1 }, NULL,
				    note_end, NULL, NULL),
			 SPOKE_EUNAVAILABLE);
	spoke_reply(rig.held, (struct spoke_value){ NULL, 0 });
	rig.held = NULL;
	move();
	assert_int_equal(rig.replies, 1);
}
TEST_AGAIN(push_ends_with_error_that_peer_sends, mprpc, .initial = mprpc);
