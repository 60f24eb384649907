/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on what one peer may cost the provider and the other peers. */
#include "cluster/provider/parts.h"
#include "tests/cluster/peer.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "transport/codec/codec.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/wire/catalog.h"

#include <spoke/provider.h>
#include <spoke/stats.h>

#include <errno.h>
#include <string.h>

#define AT "127.0.0.1:20880"

enum {
	PEERS = 40,
	HELD = 256,
	ANSWER = 65536
};

static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct peer peer;
	struct peer_conn conns[PEERS];
	struct spoke_request *held[HELD];
	unsigned held_count;
	unsigned handled;
	unsigned good; /* replies received */
	unsigned refused;
} rig;

static unsigned char large[ANSWER];

static void pass(uint64_t ns)
{
	spokei_world_run(&rig.world, rig.world.now_ns + ns);
}

static uint64_t stat(enum spoke_stat which)
{
	return spoke_stat_get(rig.engine, which);
}

static void handle_large(struct spoke_request *request, void *arg)
{
	static const unsigned char head[5] = { 0xc6, 0, 0, (ANSWER - 5) >> 8, (ANSWER - 5) & 255 };

	(void)arg;
	rig.handled++;
	memcpy(large, head, sizeof(head));
	spoke_reply(request, (struct spoke_value){ large, ANSWER });
}

static void handle_hold(struct spoke_request *request, void *arg)
{
	(void)arg;
	rig.handled++;
	assert_int_equal(spoke_request_keep(request), 0);
	rig.held[rig.held_count++] = request;
}

static void answer_all(void)
{
	while (rig.held_count > 0)
		spoke_reply(rig.held[--rig.held_count], (struct spoke_value){ NULL, 0 });
}

STEP(set_up)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handlers[] = {
		{ .method = "large", .handle = handle_large },
		{ .method = "hold", .handle = handle_hold },
	};
	const struct spoke_provider_options options = { .requests_per_connection_max = 100 };

	memset(&rig, 0, sizeof(rig));
	for (unsigned i = 0; i < PEERS; i++)
		rig.conns[i].fd = -1;
	scene_open(&rig.world, 3);
	rig.engine = scene_engine(&rig.world, &rig.process, NULL, NULL);
	peer_init(&rig.peer, &rig.world);
	assert_int_equal(spoke_provider_new(rig.engine, &options, &rig.provider), 0);
	assert_int_equal(spoke_provider_add(rig.provider, &service, handlers, 2), 0);
	assert_int_equal(spoke_provider_listen(rig.provider, "dubbo://" AT), 0);
}

STEP(tear_down)
{
	answer_all();
	scene_leave(&rig.process, NULL, &rig.engine);
	for (unsigned i = 0; i < PEERS; i++)
		peer_close(&rig.conns[i]);
	peer_fini(&rig.peer);
	spokei_world_fini(&rig.world);
}

FIXTURE(set_up, tear_down);

static struct peer_conn *connect_peer(unsigned which)
{
	int fd = peer_connect(&rig.peer, AT);

	assert_true(fd >= 0);
	peer_open(&rig.peer, &rig.conns[which], fd, spokei_catalog_wire("dubbo"));
	pass(10 * MS);
	return &rig.conns[which];
}

static struct spokei_conn *first_conn(void)
{
	return spoke_container_of(spokei_list_first(&rig.provider->link->conns), struct spokei_conn,
				  node);
}

static void put(struct peer_conn *conn, uint64_t id, const char *method, bool two_way)
{
	const struct spokei_message request = {
		.kind = SPOKEI_REQUEST,
		.id = id,
		.two_way = two_way,
		.codec = SPOKEI_CODEC_MSGPACK,
		.service = { "demo.Echo", 9 },
		.method = { method, strlen(method) },
		.args = { "\x01", 1 },
		.arg_count = 1,
	};

	peer_put(conn, &request);
}

static void send_all(struct peer_conn *conn)
{
	while (peer_write(conn, SIZE_MAX) > 0)
		pass(MS);
	pass(10 * MS);
}

static void take(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	(void)arg;
	(void)conn;
	if (message->kind != SPOKEI_REPLY)
		return;
	if (message->error)
		rig.refused++;
	else
		rig.good++;
}

static void read_all(struct peer_conn *conn)
{
	for (unsigned i = 0; i < 50; i++) {
		peer_read(conn, take, NULL);
		pass(MS);
	}
}

static void ask(struct peer_conn *conn, const char *method, unsigned count, bool two_way)
{
	for (unsigned i = 0; i < count; i++)
		put(conn, i + 1, method, two_way);
	send_all(conn);
}

TEST(one_way_requests_count_as_those_of_their_connection)
{
	struct peer_conn *conn = connect_peer(0);

	ask(conn, "hold", 150, false);
	assert_int_equal(rig.handled, 100);
	assert_int_equal(stat(SPOKE_STAT_REQUESTS_REFUSED), 50);
	ask(conn, "large", 1, true);
	read_all(conn);
	assert_int_equal(rig.refused, 1);
	answer_all();
	ask(conn, "large", 1, true);
	read_all(conn);
	assert_int_equal(rig.good, 1);
}

TEST(peer_that_reads_is_served_while_others_do_not_read)
{
	struct peer_conn *mute = connect_peer(0);
	struct peer_conn *good = connect_peer(1);

	ask(mute, "large", 50, true);
	rig.provider->link->limits.queued_max = 1 << 20;
	assert_true(rig.provider->link->queued >= 1 << 20);
	ask(mute, "large", 2, true);
	assert_int_equal(stat(SPOKE_STAT_REQUESTS_REFUSED), 2);
	for (unsigned i = 0; i < 5; i++) {
		ask(good, "large", 1, true);
		read_all(good);
	}
	assert_int_equal(rig.good, 5);
	assert_int_equal(rig.refused, 0);
}

TEST(frames_that_peers_never_end_are_counted_together)
{
	static const unsigned char head[16] = { 0xda, 0xbb, 0xc2, 0, 0, 0, 0, 0,
						0,    0,    0,    1, 0, 8, 0, 0 };
	unsigned closed = 0;

	rig.provider->link->limits.held_max = 1 << 20;
	for (unsigned i = 0; i < PEERS; i++) {
		struct peer_conn *conn = connect_peer(i);

		peer_put_bytes(conn, (struct spoke_span){ head, sizeof(head) });
		peer_put_bytes(conn, (struct spoke_span){ large, ANSWER });
		send_all(conn);
		peer_read(conn, take, NULL);
		closed += conn->ended;
	}
	assert_true(closed > 0);
	assert_int_equal(stat(SPOKE_STAT_CLOSED_MEMORY), closed);
	assert_true(rig.provider->link->held <= 1 << 20);
	assert_true(rig.provider->link->held >= 1 << 18);
	for (unsigned i = 0; i < PEERS; i++)
		peer_close(&rig.conns[i]);
	pass(SECOND);
	assert_int_equal(rig.provider->link->held, 0);
}

TEST(requests_on_unwritable_connection_are_not_run)
{
	struct peer_conn *conn = connect_peer(0);

	first_conn()->output = SPOKEI_OUTPUT_BROKEN; /* the state after a failed write */
	ask(conn, "large", 3, true);
	assert_int_equal(rig.handled, 0);
	assert_int_equal(stat(SPOKE_STAT_REQUESTS_REFUSED), 3);
	ask(conn, "hold", 2, false);
	assert_int_equal(rig.handled, 2);
	assert_int_equal(rig.provider->link->queued, 0);
}

TEST(the_map_of_a_connection_that_was_busy_is_given_back)
{
	struct peer_conn *conn = connect_peer(0);
	const struct spokei_conn *served = first_conn();

	ask(conn, "hold", 100, true);
	assert_true(served->serving.room > 64);
	answer_all();
	assert_int_equal(served->serving.room, 0);
	ask(conn, "hold", 2, true);
	answer_all();
	pass(10 * MS);
	read_all(conn);
	assert_int_equal(rig.good, 102);
}

static unsigned events_of_the_end(void)
{
	return scene_events(rig.engine, "closed");
}

TEST(many_closed_connections_are_counted_but_few_reported)
{
	for (unsigned i = 0; i < PEERS; i++)
		(void)connect_peer(i);
	for (unsigned i = 0; i < PEERS; i++) {
		peer_put_bytes(&rig.conns[i], (struct spoke_span){ "nonsense", 8 });
		(void)peer_write(&rig.conns[i], SIZE_MAX);
	}
	pass(10 * MS);
	assert_int_equal(stat(SPOKE_STAT_CLOSED_PROTOCOL), PEERS);
	assert_in_range(events_of_the_end(), 5, 12);
}

/* Reads everything while sending more requests. Returns the end: 0 or -errno. */
static ssize_t read_to_end(struct peer_conn *conn, size_t *ret_total)
{
	const struct spoke_env *env = &rig.peer.process.env;
	static unsigned char bytes[ANSWER];

	for (unsigned i = 0; i < 10000; i++) {
		ssize_t got = env->net->read(env->ctx, conn->fd, bytes, sizeof(bytes));

		put(conn, 1000 + i, "large", false);
		(void)peer_write(conn, SIZE_MAX);
		if (got == -EAGAIN)
			pass(MS);
		else if (got <= 0)
			return got;
		else
			*ret_total += (size_t)got;
	}
	return -EAGAIN;
}

/* The peer keeps sending requests meanwhile. Its earlier requests are answered, and the replies
 * arrive. */
TEST(a_drain_destroys_no_answer_that_is_on_its_way)
{
	struct peer_conn *conn = connect_peer(0);
	size_t total = 0;

	put(conn, 100, "hold", true);
	ask(conn, "large", 3, true);
	assert_int_equal(spoke_engine_drain(rig.engine, 60 * SECOND), 0);
	answer_all();
	pass(3100 * MS); /* later requests cannot have crossed the drain notice */
	assert_int_equal(spoke_provider_connections(rig.provider), 1);
	assert_int_equal(read_to_end(conn, &total), 0);
	assert_true(total > 3 * (size_t)ANSWER);
	assert_int_equal(rig.handled, 4);
	peer_close(conn);
	pass(10 * MS);
	assert_int_equal(spoke_provider_connections(rig.provider), 0);
}

/* The peer gets no CPU: it reads the notice late, and sends meanwhile. */
TEST(crossing_requests_are_served_until_notice_is_answered)
{
	static const struct spokei_message notice = { .kind = SPOKEI_READONLY,
						      .codec = SPOKEI_CODEC_MSGPACK };
	struct peer_conn *conn = connect_peer(0);

	ask(conn, "hold", 1, true);
	assert_int_equal(spoke_engine_drain(rig.engine, 60 * SECOND), 0);
	for (unsigned i = 0; i < 10; i++) {
		pass(2 * SECOND);
		put(conn, 100 + i, "large", true);
		send_all(conn);
		read_all(conn);
		assert_int_equal(rig.good, i + 1);
	}
	peer_put(conn, &notice);
	put(conn, 200, "large", true);
	send_all(conn);
	read_all(conn);
	assert_int_equal(rig.good, 10);
	assert_int_equal(rig.refused, 1);
}

/* Sends a request in each of so many seconds after the begin of a drain. */
static void ask_for_seconds(uint64_t drain_ns, unsigned seconds)
{
	struct peer_conn *conn = connect_peer(0);

	ask(conn, "hold", 1, true);
	assert_int_equal(spoke_engine_drain(rig.engine, drain_ns), 0);
	for (unsigned i = 0; i < seconds; i++) {
		put(conn, 100 + i, "large", true);
		send_all(conn);
		read_all(conn);
		pass(SECOND);
	}
	assert_int_equal(rig.good + rig.refused, seconds);
}

TEST(peer_that_never_stops_is_refused_before_drain_ends)
{
	ask_for_seconds(20 * SECOND, 19);
	assert_in_range(rig.good, 12, 17);
}

TEST(short_drain_serves_crossing_requests_for_short_time)
{
	ask_for_seconds(2 * SECOND, 2);
	assert_int_equal(rig.good, 1);
}

TEST(drain_without_limit_refuses_peer_that_never_stops)
{
	ask_for_seconds(UINT64_MAX, 70);
	assert_in_range(rig.good, 45, 57);
}

TEST(peer_that_stays_open_after_last_reply_is_closed_after_5_s)
{
	(void)connect_peer(0);
	assert_int_equal(spoke_engine_drain(rig.engine, 60 * SECOND), 0);
	pass(4900 * MS);
	assert_int_equal(spoke_provider_connections(rig.provider), 1);
	pass(200 * MS);
	assert_int_equal(spoke_provider_connections(rig.provider), 0);
	assert_int_equal(stat(SPOKE_STAT_CLOSED_BY_PEER), 0);
}
