/* SPDX-License-Identifier: Apache-2.0 */
/* A guarded request is written only if its guard allows that right before the write. */
#include "cluster/consumer/parts.h"
#include "tests/cluster/peer.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/wire/catalog.h"

#include <spoke/consumer.h>
#include <spoke/stats.h>

#include <string.h>

#define AT "127.0.0.1:20880"

enum {
	KIB = 1024,
	MIB = 1024 * KIB,
	CALLS = 64,
};

struct request {
	struct spokei_pending pending;
	unsigned ends;
	int error;
	bool written;
};

static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct peer peer;
	struct peer_conn conn;
	int listener;
	struct request requests[CALLS];
	unsigned begun;
	unsigned asked; /* calls of the guard */
	bool closed;    /* the guard allows nothing */
	uint64_t stall_ns;
	struct request *withdraw; /* by the next callback; NULL: none */
	unsigned came[CALLS];
	unsigned order[CALLS]; /* of arrival */
	unsigned arrived;
} rig;

static unsigned char large[2 * MIB];

static void pass(uint64_t ns)
{
	spokei_world_run(&rig.world, rig.world.now_ns + ns);
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
}

STEP(tear_down)
{
	scene_leave(&rig.process, NULL, &rig.engine);
	for (unsigned i = 0; i < rig.begun; i++)
		assert_int_equal(rig.requests[i].ends, 1);
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

static void open_conn(void)
{
	int fd;

	pass(10 * MS);
	fd = peer_accept(&rig.peer, rig.listener);
	assert_true(fd >= 0);
	peer_open(&rig.peer, &rig.conn, fd, spokei_catalog_wire("dubbo"));
	pass(10 * MS);
}

/* --- requests, whose first argument is their number */

static void take(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	const unsigned char *bytes = message->args.data;

	(void)arg;
	(void)conn;
	if (message->kind != SPOKEI_REQUEST)
		return;
	assert_in_range(bytes[0], 0, CALLS - 1);
	rig.came[bytes[0]]++;
	rig.order[rig.arrived++] = bytes[0];
}

static void read_all(void)
{
	for (unsigned i = 0; i < 300; i++) {
		peer_read(&rig.conn, take, NULL);
		pass(5 * MS);
	}
	assert_false(rig.conn.broken);
}

static int guard(struct spokei_pending *pending)
{
	(void)pending;
	rig.asked++;
	return rig.closed ? SPOKE_ELEASE : SPOKE_OK;
}

static void note_end(struct spokei_pending *pending, const struct spokei_outcome *outcome)
{
	struct request *request = spoke_container_of(pending, struct request, pending);

	request->ends++;
	request->error = outcome->error;
	request->written = outcome->written;
	/* The user's code takes long. */
	rig.world.now_ns += rig.stall_ns;
	if (rig.stall_ns)
		rig.closed = true;
	if (rig.withdraw)
		spokei_conn_withdraw(&rig.withdraw->pending);
	rig.withdraw = NULL;
}

/* Begins a request whose arguments have about `len` bytes. */
static struct request *begin(bool guarded, bool two_way, size_t len)
{
	struct request *request = &rig.requests[rig.begun];
	struct spokei_message message = {
		.kind = SPOKEI_REQUEST,
		.two_way = two_way,
		.codec = 27,
		.service = spokei_span("demo.Echo", 9),
		.method = spokei_span("echo", 4),
		.args = spokei_span(large, len + 6),
		.arg_count = 2,
	};
	size_t i = 0;
	int error;

	assert_in_range(rig.begun, 0, CALLS - 1);
	large[i++] = (unsigned char)rig.begun;
	large[i++] = 0xc6; /* bin */
	for (unsigned shift = 32; shift > 0; shift -= 8)
		large[i++] = (unsigned char)(len >> (shift - 8));
	request->pending.timeout_ns = 60000 * MS;
	request->pending.done = note_end;
	spokei_engine_refresh(first_conn()->link->engine);
	error = guarded ? spokei_conn_call_guarded(first_conn(), &request->pending, &message, guard)
			: spokei_conn_call(first_conn(), &request->pending, &message);
	assert_int_equal(error, 0);
	rig.begun++;
	return request;
}

/* --- tests */

TEST(guarded_request_is_written_when_its_turn_ends)
{
	uint64_t writes;

	open_conn();
	writes = spoke_stat_get(rig.engine, SPOKE_STAT_WRITES);
	(void)begin(false, true, 100);
	(void)begin(true, true, 100);
	(void)begin(false, true, 100);
	(void)begin(true, true, 100);
	assert_int_equal(rig.asked, 0);
	assert_int_equal(spoke_engine_turn(rig.engine, false), 0);
	assert_int_equal(rig.asked, 2);
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_WRITES), writes + 1);
	assert_int_equal(first_conn()->output, SPOKEI_OUTPUT_FREE);
	read_all();
	assert_int_equal(rig.arrived, 4);
}

TEST(guard_ends_request_before_anything_is_written)
{
	struct request *request;

	open_conn();
	(void)begin(false, true, 100);
	request = begin(true, true, 100);
	(void)begin(false, true, 100);
	rig.closed = true;
	assert_int_equal(spoke_engine_turn(rig.engine, false), 0);
	assert_int_equal(request->ends, 1);
	assert_int_equal(request->error, SPOKE_ELEASE);
	assert_false(request->written);
	read_all();
	assert_int_equal(rig.arrived, 2);
	assert_int_equal(rig.came[1], 0);
	assert_int_equal(rig.consumer->link->queued, 0);
}

TEST(long_guarded_request_is_not_written_at_once)
{
	struct request *request;

	open_conn();
	request = begin(true, true, 200 * KIB);
	rig.closed = true;
	pass(10 * MS);
	assert_int_equal(request->error, SPOKE_ELEASE);
	assert_false(request->written);
	read_all();
	assert_int_equal(rig.arrived, 0);
}

TEST(one_way_guarded_request_ends_when_written)
{
	struct request *request;

	open_conn();
	request = begin(true, false, 100);
	pass(10 * MS);
	assert_int_equal(request->ends, 1);
	assert_int_equal(request->error, SPOKE_OK);
	assert_true(request->written);
	rig.closed = true;
	request = begin(true, false, 100);
	pass(10 * MS);
	assert_int_equal(request->error, SPOKE_ELEASE);
	assert_false(request->written);
	read_all();
	assert_int_equal(rig.arrived, 1);
}

TEST(request_made_before_the_connection_opens_is_guarded)
{
	struct request *request;

	pass(MS / 1000);
	request = begin(true, true, 100);
	(void)begin(false, true, 100);
	rig.closed = true;
	open_conn();
	assert_int_equal(request->error, SPOKE_ELEASE);
	read_all();
	assert_int_equal(rig.arrived, 1);
	assert_int_equal(rig.came[1], 1);
}

TEST(guard_is_asked_again_after_the_peer_blocked)
{
	struct request *request;

	open_conn();
	(void)begin(false, true, MIB);
	pass(10 * MS);
	request = begin(true, true, 100);
	pass(10 * MS);
	assert_int_equal(rig.asked, 0);
	rig.closed = true;
	read_all();
	assert_int_equal(rig.asked, 1);
	assert_int_equal(request->error, SPOKE_ELEASE);
	assert_int_equal(rig.came[0], 1);
	assert_int_equal(rig.came[1], 0);
}

/* Puts more in one turn than the stream takes. Returns how many frames were begun. */
static unsigned overfill(void)
{
	unsigned begun = 0;

	open_conn();
	for (unsigned i = 0; i < 20; i++)
		(void)begin(true, true, 40000);
	pass(10 * MS);
	for (unsigned i = 0; i < 20; i++)
		begun += rig.requests[i].pending.unsent == NULL;
	/* The network takes 64 KiB: one frame, and a part of the second one. */
	assert_int_equal(begun, 2);
	return begun;
}

TEST(frames_that_were_not_begun_leave_the_buffer)
{
	unsigned begun;

	begun = overfill();
	rig.closed = true;
	read_all();
	for (unsigned i = 0; i < 20; i++) {
		const struct request *request = &rig.requests[i];

		assert_int_equal(rig.came[i], i < begun);
		assert_int_equal(request->ends, i >= begun);
		assert_int_equal(request->error, i < begun ? 0 : SPOKE_ELEASE);
		assert_false(request->written);
	}
	assert_int_equal(rig.consumer->link->queued, 0);
	assert_int_equal(first_conn()->unsent_requests, 0);
}

TEST(frames_that_left_the_buffer_are_written_later)
{
	uint64_t written = spoke_stat_get(rig.engine, SPOKE_STAT_MESSAGES_WRITTEN);

	(void)overfill();
	(void)begin(false, true, 100);
	(void)begin(true, true, 100);
	read_all();
	assert_int_equal(rig.arrived, 22);
	for (unsigned i = 0; i < 22; i++)
		assert_int_equal(rig.order[i], i);
	written = spoke_stat_get(rig.engine, SPOKE_STAT_MESSAGES_WRITTEN) - written;
	assert_in_range(written, 22, 22 + 2); /* with heartbeats */
	assert_int_equal(rig.consumer->link->queued, 0);
	assert_int_equal(first_conn()->output, SPOKEI_OUTPUT_FREE);
}

TEST(request_is_withdrawn_until_its_first_byte_is_written)
{
	struct request *request;
	unsigned begun;

	begun = overfill();
	request = &rig.requests[begun];
	spokei_engine_refresh(rig.engine);
	spokei_conn_cancel(&request->pending, SPOKE_ECANCELED, false);
	assert_false(request->written);
	request = &rig.requests[begun - 1];
	spokei_engine_refresh(rig.engine);
	spokei_conn_cancel(&request->pending, SPOKE_ECANCELED, false);
	assert_true(request->written);
	read_all();
	assert_int_equal(rig.arrived, 19);
	assert_int_equal(rig.came[begun], 0);
	assert_int_equal(rig.came[begun - 1], 1);
}

/* The callback of a request that fails in the same batch takes longer than the guard allows. */
TEST(no_callback_runs_between_guard_and_write)
{
	struct request *last;

	open_conn();
	(void)begin(false, true, MIB);
	pass(10 * MS);
	(void)begin(true, true, 100);
	rig.stall_ns = 5000 * MS;
	(void)begin(false, true, MIB / 2);
	rig.requests[2].pending.timeout_ns = 100 * MS;
	last = begin(true, true, 100);
	/* Its timer is not armed for the shorter time: the batch finds that its time is over. */
	pass(10 * MS);
	rig.requests[2].pending.timeout_ns = 1;
	read_all();
	assert_int_equal(rig.requests[2].error, SPOKE_ETIMEOUT_UNSENT);
	assert_int_equal(rig.came[1], 1);
	assert_int_equal(rig.came[2], 0);
	assert_int_equal(rig.came[3], 1);
	assert_true(rig.closed);
	assert_int_equal(last->ends, 0);
}

TEST(callback_may_withdraw_another_failed_request)
{
	struct request *failed[2];

	open_conn();
	(void)begin(false, true, MIB);
	pass(10 * MS);
	(void)begin(true, true, 100);
	for (unsigned i = 0; i < 2; i++)
		failed[i] = begin(false, true, 100);
	pass(10 * MS);
	for (unsigned i = 0; i < 2; i++)
		failed[i]->pending.timeout_ns = 1;
	rig.withdraw = failed[1];
	read_all();
	assert_int_equal(failed[0]->error, SPOKE_ETIMEOUT_UNSENT);
	assert_int_equal(failed[1]->ends, 0);
	spokei_engine_refresh(rig.engine);
	spokei_conn_cancel(&failed[1]->pending, SPOKE_ECANCELED, false);
	assert_int_equal(failed[1]->error, SPOKE_ECANCELED);
	assert_int_equal(rig.arrived, 2);
	assert_int_equal(rig.consumer->link->queued, 0);
}

TEST(requests_of_a_broken_connection_end_unwritten)
{
	unsigned begun;

	begun = overfill();
	peer_close(&rig.conn);
	pass(100 * MS);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(rig.requests[i].error, SPOKE_ELOST);
		assert_int_equal(rig.requests[i].written, i < begun);
	}
}
