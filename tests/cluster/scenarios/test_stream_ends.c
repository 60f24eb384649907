/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of a connection over a stream that holds bytes back, over one that never opens, and
 * in a forked child.
 */
#include "cluster/provider/parts.h"
#include "core/base/env.h"
#include "core/memory/buffer.h"
#include "tests/cluster/peer.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "transport/conn/link.h"
#include "transport/stream/stream.h"
#include "transport/wire/catalog.h"
#include "transport/wire/codecs.h"

#include <spoke/provider.h>
#include <spoke/stats.h>

#include <errno.h>
#include <string.h>

/* Returns a value of HOLDRIG_LONG bytes, which are static. */
static struct spoke_value holdrig_long(void);

static struct peer_conn *holdrig_connect_by(const char *wire);

/*
 * --- fixture: a provider in the virtual world over a stream that takes bytes and passes them
 * on a few at a time, and a peer without a stream, which is controlled by the test
 */

enum {
	HOLDRIG_TIMERS = 64, /* maximum number of armed timers of the engine */
	HOLDRIG_CONNS = 3,
	HOLDRIG_LONG = 200000, /* bytes of a long value: more than the network holds */
};

struct holdrig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct spoke_method *news; /* a push method */
	struct peer peer;
	struct peer_conn conns[HOLDRIG_CONNS];
	unsigned replies;      /* that the peer has read */
	bool opens;            /* the handshake of the stream ends */
	size_t write_max;      /* bytes that one write takes */
	int read_error;        /* negative errno of each read; 0: it reads */
	unsigned early_reads;  /* calls of read() before the stream was open */
	unsigned late_flushes; /* calls of flush() after the stream was closed */
	unsigned lent_parts;   /* parts of write() in the memory of holdrig_long() */
	unsigned served;       /* requests that were handled */
	unsigned forks;        /* what the engine takes for the number of forks */
	struct spoke_alarm alarms[HOLDRIG_TIMERS];
};

/* --- the fixture of a stream that holds bytes: */

#define AT "127.0.0.1:20880"

enum {
	PASS = 3000, /* bytes that one flush passes on */
	HOLD_MAX = 1 << 20,
	VALUE_HEAD = 5,
};

static struct holdrig holdrig;

/* --- the stream */

struct hold {
	struct spokei_buffer out;
	uint64_t passed;
	bool opened;
	bool shut;
	bool shut_done;
};

static struct hold *hold_of(const struct spokei_stream *stream)
{
	return stream->state;
}

static int hold_open(struct spokei_stream *stream)
{
	const struct spoke_env *env = stream->engine->env;

	if (stream->state == NULL) {
		stream->state = spokei_alloc(env, 1, sizeof(struct hold));
		assert_non_null(stream->state);
		spokei_buffer_init(&hold_of(stream)->out, env, HOLD_MAX);
	}
	hold_of(stream)->opened = holdrig.opens;
	return holdrig.opens ? 0 : SPOKEI_STREAM_MORE;
}

static ssize_t hold_read(struct spokei_stream *stream, void *bytes, size_t len)
{
	const struct spoke_env *env = stream->engine->env;

	holdrig.early_reads += stream->state == NULL || !hold_of(stream)->opened;
	if (holdrig.read_error)
		return holdrig.read_error;
	return env->net->read(env->ctx, stream->watch.fd, bytes, len);
}

static bool is_lent(const void *at)
{
	struct spoke_value value = holdrig_long();
	uintptr_t first = (uintptr_t)value.data;

	return (uintptr_t)at >= first && (uintptr_t)at < first + value.len;
}

static ssize_t hold_write(struct spokei_stream *stream, const struct iovec *parts, int count)
{
	size_t left = holdrig.write_max;

	for (int i = 0; i < count && left > 0; i++) {
		size_t len = parts[i].iov_len < left ? parts[i].iov_len : left;

		holdrig.lent_parts += is_lent(parts[i].iov_base);
		if (spokei_buffer_append(&hold_of(stream)->out, parts[i].iov_base, len))
			return -ENOMEM;
		left -= len;
	}
	return (ssize_t)(holdrig.write_max - left);
}

static int hold_flush(struct spokei_stream *stream)
{
	const struct spoke_env *env = stream->engine->env;
	struct hold *hold = hold_of(stream);
	size_t len;

	if (hold == NULL) {
		holdrig.late_flushes++;
		return 0;
	}
	len = spokei_buffer_len(&hold->out);
	if (len > 0) {
		struct iovec part = { spokei_buffer_data(&hold->out), len < PASS ? len : PASS };
		ssize_t took = env->net->write(env->ctx, stream->watch.fd, &part, 1);

		if (took < 0)
			return (int)took;
		hold->passed += (uint64_t)took;
		spokei_buffer_consume(&hold->out, (size_t)took);
		if ((size_t)took < len)
			return -EAGAIN;
	}
	if (!hold->shut || hold->shut_done)
		return 0;
	hold->shut_done = true;
	return env->net->shut(env->ctx, stream->watch.fd);
}

static int hold_shut(struct spokei_stream *stream)
{
	int status;

	hold_of(stream)->shut = true;
	status = hold_flush(stream);
	return status == -EAGAIN || status == -EINTR ? 0 : status;
}

static unsigned hold_wants(const struct spokei_stream *stream, unsigned io)
{
	if (!hold_of(stream)->opened)
		return SPOKE_IO_READ;
	return spokei_buffer_len(&hold_of(stream)->out) > 0 ? io | SPOKE_IO_WRITE : io;
}

static size_t hold_pending(const struct spokei_stream *stream)
{
	(void)stream;
	return 0;
}

static uint64_t hold_passed(const struct spokei_stream *stream)
{
	return hold_of(stream) ? hold_of(stream)->passed : 0;
}

static ssize_t hold_unsent(const struct spokei_stream *stream)
{
	(void)stream;
	return -ENOTSUP;
}

static int hold_guard(struct spokei_stream *stream, uint64_t unanswered_ns, uint64_t keepalive_ns)
{
	(void)stream;
	(void)unanswered_ns;
	(void)keepalive_ns;
	return 0;
}

static void hold_close(struct spokei_stream *stream)
{
	struct hold *hold = hold_of(stream);

	if (hold == NULL)
		return;
	spokei_buffer_fini(&hold->out);
	spokei_free(stream->engine->env, hold, 1, sizeof(*hold));
}

static const struct spokei_stream_kind hold_stream = {
	.name = "hold",
	.copies = true,
	.open = hold_open,
	.read = hold_read,
	.write = hold_write,
	.shut = hold_shut,
	.flush = hold_flush,
	.wants = hold_wants,
	.pending = hold_pending,
	.passed = hold_passed,
	.unsent = hold_unsent,
	.guard = hold_guard,
	.close = hold_close,
};

/* --- the provider */

static void answer_short(struct spoke_request *request, void *arg)
{
	(void)arg;
	holdrig.served++;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void answer_long(struct spoke_request *request, void *arg)
{
	(void)arg;
	holdrig.served++;
	spoke_reply(request, holdrig_long());
}

static void answer_in_child(struct spoke_request *request, void *arg)
{
	holdrig.forks++;
	answer_short(request, arg);
}

static void serve(void)
{
	static const struct spoke_provider_options with = { .heartbeat_ns = 20 * MS };
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_method_options of = { .service = "demo.News" };
	static const struct spoke_handler handlers[] = {
		{ .method = "short", .handle = answer_short },
		{ .method = "long", .handle = answer_long },
		{ .method = "fork", .handle = answer_in_child },
	};

	assert_int_equal(spoke_provider_new(holdrig.engine, &with, &holdrig.provider), 0);
	holdrig.provider->link->stream = &hold_stream;
	assert_int_equal(spoke_provider_add(holdrig.provider, &service, handlers, 3), 0);
	assert_int_equal(spoke_provider_listen(holdrig.provider, "dubbo://" AT), 0);
	assert_int_equal(spoke_provider_method(holdrig.provider, "news", &of, &holdrig.news), 0);
}

/* Makes the provider use the plain socket for connections that come. */
static void holdrig_use_socket(void)
{
	holdrig.provider->link->stream = &spokei_stream_socket;
}

/* Set-up and tear-down functions for cmocka. The provider uses the stream. */
STEP(holdrig_set_up)
{
	struct spoke_engine_options with = { .env = &holdrig.process.env,
					     .timers_max = HOLDRIG_TIMERS };

	memset(&holdrig, 0, sizeof(holdrig));
	holdrig.opens = true;
	holdrig.write_max = HOLD_MAX;
	for (unsigned i = 0; i < HOLDRIG_CONNS; i++)
		holdrig.conns[i].fd = -1;
	scene_open(&holdrig.world, 3);
	spokei_world_process_init(&holdrig.process, &holdrig.world);
	holdrig.process.env.forks = &holdrig.forks;
	peer_init(&holdrig.peer, &holdrig.world);
	assert_int_equal(spoke_engine_new(&with, &holdrig.engine), 0);
	serve();
}

STEP(holdrig_tear_down)
{
	for (unsigned i = 0; i < HOLDRIG_TIMERS; i++)
		(void)spoke_alarm_cancel(&holdrig.alarms[i]);
	scene_leave(&holdrig.process, NULL, &holdrig.engine);
	for (unsigned i = 0; i < HOLDRIG_CONNS; i++)
		peer_close(&holdrig.conns[i]);
	peer_fini(&holdrig.peer);
	spokei_world_fini(&holdrig.world);
}

static void holdrig_pass(uint64_t ns)
{
	spokei_world_run(&holdrig.world, holdrig.world.now_ns + ns);
}

static uint64_t holdrig_stat(enum spoke_stat stat)
{
	return spoke_stat_get(holdrig.engine, stat);
}

static struct spoke_value holdrig_long(void)
{
	static unsigned char bytes[HOLDRIG_LONG] = { 0xc6 };

	for (unsigned i = 1; i < VALUE_HEAD; i++)
		bytes[i] = (unsigned char)((HOLDRIG_LONG - VALUE_HEAD) >> (8 * (4 - i)));
	return (struct spoke_value){ bytes, sizeof(bytes) };
}

static void ignore_alarm(struct spoke_alarm *alarm)
{
	(void)alarm;
}

/* Sets alarms until the engine has no timer left. */
static void holdrig_use_up_timers(void)
{
	unsigned count = 0;

	while (spoke_alarm_after(holdrig.engine, &holdrig.alarms[count], 3600 * SECOND,
				 ignore_alarm) == 0)
		count++;
	assert_in_range(count, 1, HOLDRIG_TIMERS - 1);
}

/* --- the peer */

/* Connects the peer to the provider; by default without heartbeats, which MessagePack-RPC has not.
 */
static struct peer_conn *holdrig_connect(void)
{
	return holdrig_connect_by("msgpack-rpc");
}

static struct peer_conn *holdrig_connect_by(const char *wire)
{
	struct peer_conn *conn = holdrig.conns;
	int fd = peer_connect(&holdrig.peer, AT);

	while (conn->fd >= 0)
		conn++;
	assert_true(fd >= 0);
	peer_open(&holdrig.peer, conn, fd, spokei_catalog_wire(wire));
	holdrig_pass(10 * MS);
	return conn;
}

/* Makes the peer send a request: "short" is answered with nil, "long" with holdrig_long(), "fork"
 * too late with nil, because the provider is a forked child then. */
static void holdrig_ask(struct peer_conn *conn, const char *method)
{
	const struct spokei_message message = {
		.kind = SPOKEI_REQUEST,
		.id = 1,
		.two_way = true,
		.codec = SPOKEI_CODEC_MSGPACK,
		.service = { "demo.Echo", 9 },
		.method = { method, strlen(method) },
	};

	peer_put(conn, &message);
	assert_int_equal(peer_write(conn, SIZE_MAX), 0);
}

static void count_reply(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	(void)arg;
	(void)conn;
	holdrig.replies += message->kind == SPOKEI_REPLY;
}

/* Makes the peer read for 1 s, or until the end. */
static void holdrig_read(struct peer_conn *conn)
{
	for (unsigned i = 0; !conn->ended && i < 1000; i++) {
		peer_read(conn, count_reply, NULL);
		holdrig_pass(MS);
	}
	assert_false(conn->broken);
}

/*
 * --- the ends of a connection over a stream that holds bytes back, over one that never opens,
 * and in a forked child
 */

#define SLOW (30 * SECOND)  /* default time for peers that do not read */
#define MUTE (241 * SECOND) /* after which no timer waits for first bytes */

FIXTURE(holdrig_set_up, holdrig_tear_down);

TEST(half_closed_peer_gets_reply_that_stream_holds)
{
	const struct spoke_env *env = &holdrig.peer.process.env;
	struct peer_conn *conn = holdrig_connect();

	holdrig_ask(conn, "long");
	assert_int_equal(env->net->shut(env->ctx, conn->fd), 0);
	holdrig_read(conn);
	assert_true(conn->ended);
	assert_int_equal(holdrig.replies, 1);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED), 1);
}

TEST(peer_that_leaves_bytes_in_stream_is_closed_as_slow)
{
	struct peer_conn *conn = holdrig_connect();

	holdrig_ask(conn, "long");
	holdrig_pass(SLOW - SECOND);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED), 0);
	holdrig_pass(2 * SECOND);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED_SLOW), 1);
}

TEST(peer_that_empties_stream_late_is_kept)
{
	struct peer_conn *conn = holdrig_connect();

	holdrig_ask(conn, "long");
	holdrig_pass(SLOW - 5 * SECOND);
	holdrig_read(conn);
	assert_int_equal(holdrig.replies, 1);
	holdrig_pass(SLOW);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED), 0);
}

static void read_a_little(struct peer_conn *conn)
{
	const struct spoke_env *env = &holdrig.peer.process.env;
	unsigned char bytes[4000];

	assert_in_range(env->net->read(env->ctx, conn->fd, bytes, sizeof(bytes)), 1, sizeof(bytes));
}

TEST(bytes_that_leave_stream_are_progress_of_peer)
{
	struct peer_conn *conn = holdrig_connect();

	holdrig_ask(conn, "long");
	for (unsigned i = 0; i < 12; i++) {
		holdrig_pass(SLOW / 3);
		read_a_little(conn);
	}
	holdrig_pass(SLOW - SECOND);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED), 0);
	holdrig_pass(2 * SECOND);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED_SLOW), 1);
}

TEST(bytes_that_enter_stream_are_no_progress_of_peer)
{
	struct peer_conn *conn = holdrig_connect();

	holdrig_ask(conn, "long");
	for (unsigned i = 0; i < 5; i++) {
		holdrig_pass(SLOW / 6);
		holdrig_ask(conn, "short");
	}
	holdrig_pass(SLOW / 6 - SECOND);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED), 0);
	holdrig_pass(2 * SECOND);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED_SLOW), 1);
}

/* A heartbeat waits behind bytes in the stream, which the peer takes slowly. */
TEST(bytes_that_leave_stream_are_no_silence_of_peer)
{
	const struct spokei_vnet_link narrow = { .capacity = 400 };
	struct peer_conn *conn = holdrig_connect_by("dubbo");

	spokei_vnet_set_all(holdrig.world.net, &narrow);
	for (unsigned i = 0; i < 400; i++) {
		holdrig_ask(conn, "short");
		holdrig_pass(MS / 100);
	}
	holdrig.write_max = 0;
	for (unsigned i = 0; i < 15; i++) {
		holdrig_pass(10 * MS);
		read_a_little(conn);
	}
	assert_int_equal(holdrig_stat(SPOKE_STAT_PROBES_MISSED), 0);
	holdrig_pass(200 * MS);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED_SILENT), 1);
}

TEST(read_without_memory_is_no_end_of_peer)
{
	struct peer_conn *conn = holdrig_connect();

	holdrig.read_error = -ENOMEM;
	holdrig_ask(conn, "short");
	holdrig_pass(MS);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED_MEMORY), 1);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED_BY_PEER), 0);
}

TEST(stalled_handshake_is_not_read_before_stream_is_open)
{
	holdrig.opens = false;
	(void)holdrig_connect();
	holdrig_pass(SPOKEI_HANDSHAKE_NS + SECOND);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED_HANDSHAKE), 1);
	assert_int_equal(holdrig.early_reads, 0);
}

/* A connection that needs a timer and gets none is closed, here in the midst of its write. */
TEST(no_slot_is_called_after_close_by_write)
{
	struct peer_conn *conn = holdrig_connect();

	holdrig.write_max = 100;
	holdrig_ask(conn, "short");
	holdrig_pass(MUTE);
	holdrig_use_up_timers();
	holdrig_ask(conn, "long");
	holdrig_pass(SECOND);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED), 1);
	assert_int_equal(holdrig.late_flushes, 0);
}

TEST(push_to_all_survives_connections_closed_by_write)
{
	struct spoke_value value = holdrig_long();
	size_t count = 0;

	holdrig_use_socket();
	for (unsigned i = 0; i < HOLDRIG_CONNS; i++)
		holdrig_ask(holdrig_connect(), "short");
	holdrig_pass(MUTE);
	holdrig_use_up_timers();
	assert_int_equal(spoke_push_all(holdrig.news, (struct spoke_span){ value.data, value.len },
					NULL, &count),
			 0);
	holdrig_pass(SECOND);
	assert_int_equal(count, HOLDRIG_CONNS);
	assert_int_equal(holdrig_stat(SPOKE_STAT_CLOSED), HOLDRIG_CONNS);
}

TEST(stream_that_copies_gets_no_lent_memory)
{
	struct peer_conn *conn = holdrig_connect();

	holdrig_ask(conn, "long");
	holdrig_read(conn);
	assert_int_equal(holdrig.replies, 1);
	assert_int_equal(holdrig.lent_parts, 0);
}

/* Its parent has them, too. */
TEST(child_serves_no_other_requests_of_a_read)
{
	struct peer_conn *conn = holdrig_connect();

	holdrig_ask(conn, "fork");
	holdrig_ask(conn, "short");
	holdrig_pass(MS);
	assert_int_equal(holdrig.served, 1);
}
