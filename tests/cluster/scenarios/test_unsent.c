/* SPDX-License-Identifier: Apache-2.0 */
/* A call that ends as "not written" never reaches the peer, however late the peer reads. */
#include "cluster/consumer/parts.h"
#include "tests/cluster/peer.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/wire/catalog.h"

#include <spoke/consumer.h>

#include <string.h>

#define AT "127.0.0.1:20880"

enum {
	MIB = 1 << 20,
	CALLS = 1024
};

static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_method *filler;
	struct spoke_method *victim;
	struct peer peer;
	struct peer_conn conn;
	int listener;
	unsigned calls;
	unsigned ends;
	struct spoke_result last; /* its pointers are not valid */
	int errors[CALLS];
	unsigned fillers; /* requests received */
	unsigned victims;
	bool one_way;
	bool close_then; /* close the connection when a call ends */
} rig;

static unsigned char large[8 * MIB];

static void pass(uint64_t ns)
{
	spokei_world_run(&rig.world, rig.world.now_ns + ns);
}

/* Returns a packed bin of `len` bytes with its head. */
static struct spoke_span bin(size_t len)
{
	size_t rest = len - 5;

	large[0] = 0xc6;
	for (int i = 0; i < 4; i++)
		large[1 + i] = (unsigned char)(rest >> (24 - 8 * i));
	return (struct spoke_span){ large, len };
}

STEP(set_up)
{
	const struct spoke_consumer_options options = {
		.url = "dubbo://" AT "/demo.Echo", .serialization = SPOKE_SERIALIZATION_MSGPACK
	};

	memset(&rig, 0, sizeof(rig));
	rig.conn.fd = -1;
	scene_open(&rig.world, 3);
	rig.engine = scene_engine(&rig.world, &rig.process, NULL, NULL);
	peer_init(&rig.peer, &rig.world);
	rig.listener = peer_listen(&rig.peer, AT);
	assert_int_equal(spoke_consumer_new(rig.engine, &options, &rig.consumer), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "filler", NULL, &rig.filler), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "victim", NULL, &rig.victim), 0);
}

STEP(tear_down)
{
	scene_leave(&rig.process, NULL, &rig.engine);
	assert_int_equal(rig.ends, rig.calls);
	peer_close(&rig.conn);
	peer_fini(&rig.peer);
	spokei_world_fini(&rig.world);
}

FIXTURE(set_up, tear_down);

static struct spokei_conn *first_conn(void)
{
	return spoke_container_of(spokei_list_first(&rig.consumer->link->conns), struct spokei_conn,
				  node);
}

static void note_end(void *arg, const struct spoke_result *result)
{
	*(int *)arg = result->error;
	rig.ends++;
	rig.last = *result;
	if (rig.close_then)
		spokei_conn_close(first_conn(), SPOKE_ELOST);
	rig.close_then = false;
}

static int call(struct spoke_method *method, struct spoke_span args, uint64_t timeout_ns,
		struct spoke_call *ret_call)
{
	const struct spoke_call_options options = { .timeout_ns = timeout_ns,
						    .one_way = rig.one_way };
	int error = spoke_call(method, args, &options, note_end, &rig.errors[rig.calls], ret_call);

	if (error == 0)
		rig.calls++;
	return error;
}

static void take(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	(void)arg;
	(void)conn;
	if (message->kind != SPOKEI_REQUEST)
		return;
	rig.fillers += message->method.data && memcmp(message->method.data, "filler", 6) == 0;
	rig.victims += message->method.data && memcmp(message->method.data, "victim", 6) == 0;
}

static void open_conn(void)
{
	int fd;

	pass(10 * MS);
	fd = peer_accept(&rig.peer, rig.listener);
	assert_true(fd >= 0);
	peer_open(&rig.peer, &rig.conn, fd, spokei_catalog_wire("dubbo"));
	pass(10 * MS);
}

static void read_all(void)
{
	for (unsigned i = 0; i < 400; i++) {
		peer_read(&rig.conn, take, NULL);
		pass(5 * MS);
	}
}

/* Makes a call of which the peer's kernel accepts a part, and, a turn later, a call that waits
 * behind it. */
static void fill_up(uint64_t timeout_ns, struct spoke_call *ret_victim)
{
	open_conn();
	assert_int_equal(call(rig.filler, bin(MIB), 60000 * MS, NULL), 0);
	pass(10 * MS);
	assert_int_equal(call(rig.victim, bin(100), timeout_ns, ret_victim), 0);
	pass(10 * MS);
}

static void assert_never_came(int error)
{
	assert_int_equal(rig.ends, 1);
	assert_int_equal(rig.last.error, error);
	assert_false(rig.last.written);
	read_all();
	assert_int_equal(rig.fillers, 1);
	assert_int_equal(rig.victims, 0);
}

TEST(a_call_that_is_cancelled_unwritten_is_never_written)
{
	struct spoke_call victim;

	fill_up(60000 * MS, &victim);
	assert_true(spoke_call_cancel(rig.consumer, victim));
	pass(10 * MS);
	assert_never_came(SPOKE_ECANCELED);
}

TEST(a_call_that_times_out_unwritten_is_never_written)
{
	fill_up(100 * MS, NULL);
	pass(200 * MS);
	assert_never_came(SPOKE_ETIMEOUT_UNSENT);
}

TEST(a_call_that_waits_behind_another_is_written_after_it)
{
	fill_up(60000 * MS, NULL);
	read_all();
	assert_int_equal(rig.fillers, 1);
	assert_int_equal(rig.victims, 1);
	assert_int_equal(rig.ends, 0);
}

TEST(calls_lost_unwritten_by_half_close_are_never_written)
{
	const struct spoke_env *env = &rig.peer.process.env;

	fill_up(60000 * MS, NULL);
	assert_int_equal(env->net->shut(env->ctx, rig.conn.fd), 0);
	pass(50 * MS);
	assert_int_equal(rig.ends, 2);
	assert_int_equal(rig.errors[1], SPOKE_ELOST);
	assert_false(rig.last.written && rig.errors[0] != SPOKE_ELOST);
	read_all();
	assert_int_equal(rig.victims, 0);
}

TEST(a_call_that_is_cancelled_in_its_turn_may_be_written)
{
	struct spoke_call victim;

	open_conn();
	assert_int_equal(call(rig.victim, bin(100), 60000 * MS, &victim), 0);
	assert_true(spoke_call_cancel(rig.consumer, victim));
	pass(10 * MS);
	assert_int_equal(rig.last.error, SPOKE_ECANCELED);
	assert_true(rig.last.written);
	read_all();
	assert_int_equal(rig.victims, 1);
}

/* Put in the same turn, before the socket was known to be full. */
TEST(a_call_in_the_outlet_times_out_as_written)
{
	open_conn();
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(call(rig.filler, bin(40000), 60000 * MS, NULL), 0);
	assert_int_equal(call(rig.victim, bin(100), 100 * MS, NULL), 0);
	pass(200 * MS);
	assert_int_equal(rig.ends, 1);
	assert_int_equal(rig.last.error, SPOKE_ETIMEOUT);
	assert_true(rig.last.written);
	read_all();
	assert_int_equal(rig.victims, 1);
}

/* A large message is written at once, so the full socket is known in the same turn. */
TEST(a_call_behind_a_long_one_is_never_written)
{
	open_conn();
	assert_int_equal(call(rig.filler, bin(MIB), 60000 * MS, NULL), 0);
	assert_int_equal(call(rig.victim, bin(100), 100 * MS, NULL), 0);
	pass(200 * MS);
	assert_never_came(SPOKE_ETIMEOUT_UNSENT);
}

TEST(calls_keep_order_when_peer_resumes_reading)
{
	fill_up(60000 * MS, NULL);
	for (unsigned i = 0; i < 600; i++)
		assert_int_equal(call(rig.victim, bin(1000), 60000 * MS, NULL), 0);
	pass(MS);
	rig.one_way = true;
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(call(rig.filler, bin(100000), 60000 * MS, NULL), 0);
	read_all();
	assert_int_equal(rig.victims, 601);
	assert_int_equal(rig.fillers, 11);
	assert_int_equal(rig.ends, 10);
	assert_int_equal(rig.consumer->link->queued, 0);
}

/* Requests queued while connecting are sent later. */
TEST(calls_made_while_connecting_count_as_bytes_that_wait)
{
	unsigned taken = 0;
	int error;

	while ((error = call(rig.filler, bin(MIB), 60000 * MS, NULL)) == 0 && taken < 100)
		taken++;
	assert_int_equal(error, SPOKE_ELIMIT);
	assert_in_range(taken, 14, 16);
	assert_true(rig.consumer->link->queued >= (size_t)taken * MIB);
	assert_int_equal(call(rig.victim, bin(100), 60000 * MS, NULL), 0);
	open_conn();
	for (unsigned i = 0; i < 10; i++)
		read_all();
	assert_int_equal(rig.ends, 0);
	assert_int_equal(rig.fillers, taken);
	assert_int_equal(rig.victims, 1);
	assert_int_equal(rig.consumer->link->queued, 0);
}

TEST(unencodable_call_may_close_connection_for_later_calls)
{
	assert_int_equal(call(rig.filler, bin(8 * MIB), 60000 * MS, NULL), 0);
	assert_int_equal(call(rig.victim, bin(100), 60000 * MS, NULL), 0);
	assert_int_equal(call(rig.victim, bin(100), 60000 * MS, NULL), 0);
	rig.close_then = true;
	pass(10 * MS);
	assert_int_equal(rig.ends, 3);
	assert_int_equal(rig.errors[0], SPOKE_ETOOLARGE);
	assert_int_equal(rig.errors[1], SPOKE_ELOST);
	assert_false(rig.last.written);
	assert_int_equal(rig.consumer->link->queued, 0);
}

TEST(the_ring_of_a_connection_that_was_busy_is_given_back)
{
	const struct spokei_pendings *pendings;

	open_conn();
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(call(rig.victim, bin(100), 100 * MS, NULL), 0);
	pendings = &first_conn()->pendings;
	assert_true(pendings->room >= 2000);
	read_all();
	rig.one_way = true;
	assert_int_equal(call(rig.victim, bin(100), 100 * MS, NULL), 0);
	pass(10 * MS);
	assert_int_equal(rig.ends, 1001);
	assert_true(pendings->room <= 8);
	rig.one_way = false;
	assert_int_equal(call(rig.victim, bin(100), 100 * MS, NULL), 0);
	read_all();
	assert_int_equal(rig.victims, 1002);
}

/* One-way requests wait for no reply: only the count of unsent bytes keeps the connection. */
TEST(one_way_requests_are_written_before_the_connection_ends)
{
	enum {
		VICTIMS = 100
	};

	rig.one_way = true;
	fill_up(60000 * MS, NULL);
	for (unsigned i = 1; i < VICTIMS; i++)
		assert_int_equal(call(rig.victim, bin(40000), 60000 * MS, NULL), 0);
	pass(10 * MS);
	assert_int_equal(rig.ends, 1); /* the filler has begun to be written */
	spokei_conn_finish(first_conn());
	read_all();
	assert_int_equal(rig.fillers, 1);
	assert_int_equal(rig.victims, VICTIMS);
	assert_int_equal(rig.ends, VICTIMS + 1);
	for (unsigned i = 0; i < rig.calls; i++)
		assert_int_equal(rig.errors[i], SPOKE_OK);
	assert_true(rig.conn.ended);
}
