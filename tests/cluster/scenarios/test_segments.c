/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result does not depend on how a stream is split into pieces. A live provider or consumer
 * reads three frames in two pieces, in three, and byte by byte. The result is recorded as text: the
 * requests, the ends of calls, the bytes sent back and the counters.
 */
#include "cluster/consumer/parts.h"
#include "cluster/provider/parts.h"
#include "tests/cluster/peer.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "tests/transport/codec/textcodec.h"
#include "tests/transport/stream.h"
#include "transport/conn/link.h"
#include "transport/wire/catalog.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <stdio.h>
#include <string.h>

#define PLACE "127.0.0.1:20880"

enum {
	TEXT = 16384,
	STREAM = 1024,
	CUTS_MAX = 2,
};

struct rig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct peer peer;
	struct peer_conn conn;
	char text[TEXT]; /* the record */
	size_t len;
	uint64_t ids[2]; /* ids of the consumer's calls */
	unsigned id_count;
};

static struct rig rig;
static const struct spokei_wire *wire;
static const struct spokei_codec *codec; /* of both sides; NULL: msgpack */

static void note(const char *what, struct spoke_span bytes)
{
	char hex[TEXT / 2];

	hex_text(bytes, hex, sizeof(hex));
	rig.len += (size_t)snprintf(rig.text + rig.len, TEXT - rig.len, "%s %s\n", what, hex);
	assert_in_range(rig.len, 0, TEXT - 1);
}

/* Records all counters except those of reads and writes. */
static void note_counts(void)
{
	for (unsigned i = 0; i < SPOKE_STAT_COUNT; i++) {
		uint64_t count = spoke_stat_get(rig.engine, (enum spoke_stat)i);

		if (count == 0 || i == SPOKE_STAT_READS || i == SPOKE_STAT_WRITES)
			continue;
		rig.len += (size_t)snprintf(rig.text + rig.len, TEXT - rig.len, "%s %u\n",
					    spoke_stat_name((enum spoke_stat)i), (unsigned)count);
		assert_in_range(rig.len, 0, TEXT - 1);
	}
}

static void pass(void)
{
	spokei_world_run(&rig.world, rig.world.now_ns + MS);
}

static void begin(void)
{
	struct spoke_engine_options with = { .timers_max = 64 };

	memset(&rig, 0, sizeof(rig));
	scene_open(&rig.world, 3);
	rig.engine = scene_engine(&rig.world, &rig.process, NULL, &with);
	peer_init(&rig.peer, &rig.world);
	rig.peer.limits.codec = codec;
}

/* Records replies by kind, because a heartbeat reply may overtake waiting replies. */
static void take_answer(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	char line[512];

	(void)conn;
	if (message->kind != *(const enum spokei_kind *)arg)
		return;
	message_line(0, message, line, sizeof(line));
	note("went back", spokei_span(line, strlen(line)));
}

static void note_answers(enum spokei_kind kind, struct spoke_span bytes)
{
	struct peer_conn again;

	peer_open(&rig.peer, &again, rig.conn.fd, wire);
	peer_take(&again, bytes, take_answer, &kind);
	assert_false(again.broken);
	spokei_intake_fini(&again.in);
}

/* Ends the run and copies the record. */
static void end(char *ret_text)
{
	static unsigned char bytes[TEXT / 4];
	const struct spoke_env *env = &rig.peer.process.env;
	struct spoke_span back = { bytes, 0 };
	ssize_t got;

	pass();
	got = env->net->read(env->ctx, rig.conn.fd, bytes, sizeof(bytes));
	back.len = got > 0 ? (size_t)got : 0;
	note_answers(SPOKEI_REPLY, back);
	note_answers(SPOKEI_PROBE_ANSWER, back);
	note_counts();
	memcpy(ret_text, rig.text, rig.len + 1);
	peer_close(&rig.conn);
	scene_leave(&rig.process, NULL, &rig.engine);
	peer_fini(&rig.peer);
	spokei_world_fini(&rig.world);
}

/* Sends the stream in pieces that end at these offsets, or in pieces of `step` bytes if that is not
 * 0. */
static void send_pieces(struct spoke_span stream, const size_t *cuts, size_t count, size_t step)
{
	size_t at = 0;

	for (size_t i = 0; at < stream.len; i++) {
		size_t to = i < count ? cuts[i] : stream.len;

		if (step)
			to = at + step < stream.len ? at + step : stream.len;
		peer_put_bytes(&rig.conn,
			       spokei_span((const unsigned char *)stream.data + at, to - at));
		assert_int_equal(peer_write(&rig.conn, SIZE_MAX), 0);
		pass();
		at = to;
	}
}

/* --- a provider reads */

static void handle(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value first = { NULL, 0 };

	(void)arg;
	note("method", spoke_request_method(request));
	note(spoke_request_two_way(request) ? "args" : "one-way args", spoke_cursor_rest(&args));
	(void)!spoke_cursor_next(&args, &first);
	spoke_reply(request, first);
}

static void provide(struct spoke_span stream, const size_t *cuts, size_t count, size_t step,
		    char *ret_text)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handler = { .handle = handle };
	struct spoke_provider *provider;
	int fd;

	begin();
	assert_int_equal(spoke_provider_new(rig.engine, NULL, &provider), 0);
	provider->link->limits.wire.codec = codec;
	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(provider, "dubbo://" PLACE), 0);
	fd = peer_connect(&rig.peer, PLACE);
	assert_true(fd >= 0);
	peer_open(&rig.peer, &rig.conn, fd, wire);
	pass();
	send_pieces(stream, cuts, count, step);
	end(ret_text);
}

/* --- a consumer reads */

static void note_end(void *arg, const struct spoke_result *result)
{
	(void)arg;
	note(spoke_errname(result->error), spokei_span(result->value.data, result->value.len));
	note("text", result->error_text);
	note("attachments", spokei_span(result->attachments.data, result->attachments.len));
}

static void take_id(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	(void)arg;
	(void)conn;
	if (message->kind != SPOKEI_REQUEST)
		return;
	assert_in_range(rig.id_count, 0, 1);
	rig.ids[rig.id_count++] = message->id;
}

static size_t replies_to(const uint64_t *ids, unsigned char bytes[STREAM]);

static void consume(struct spoke_span stream, const size_t *cuts, size_t count, size_t step,
		    char *ret_text)
{
	struct spoke_consumer_options options = { .url = "dubbo://" PLACE "/demo.Echo" };
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	unsigned char bytes[STREAM];
	int listener;

	begin();
	if (wire == spokei_catalog_wire("msgpack-rpc"))
		options.url = "msgpack-rpc://" PLACE "/demo.Echo";
	listener = peer_listen(&rig.peer, PLACE);
	assert_int_equal(spoke_consumer_new(rig.engine, &options, &consumer), 0);
	consumer->link->limits.wire.codec = codec;
	assert_int_equal(spoke_consumer_method(consumer, "echo", NULL, &method), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(spoke_call(method, spokei_span("\x01", 1), NULL, note_end, NULL,
					    NULL),
				 0);
	pass();
	peer_open(&rig.peer, &rig.conn, peer_accept(&rig.peer, listener), wire);
	peer_read(&rig.conn, take_id, NULL);
	assert_int_equal(rig.id_count, 2);
	/* The same seed gives the same ids in each run. */
	stream = spokei_span(bytes, replies_to(rig.ids, bytes));
	send_pieces(stream, cuts, count, step);
	end(ret_text);
}

/* --- streams */

static size_t frames_of(const struct spokei_message *messages, size_t count,
			unsigned char bytes[STREAM])
{
	struct spokei_wire_limits limits = stream_limits;
	const uint8_t codec_id = codec ? codec->id : SPOKEI_CODEC_MSGPACK;
	struct spokei_world world;
	struct spokei_world_process process;
	struct spokei_buffer out;
	size_t len;

	scene_open(&world, 1);
	spokei_world_process_init(&process, &world);
	spokei_buffer_init(&out, &process.env, STREAM);
	limits.codec = codec;
	for (size_t i = 0; i < count; i++) {
		struct spokei_message message = messages[i];
		int error;

		message.codec = codec_id;
		error = wire->write(&limits, &message, &out);

		/* A wire without heartbeats has only two frames. */
		assert_true(error == 0 || (error == SPOKE_EUNSUPPORTED && !wire->probes));
	}
	len = spokei_buffer_len(&out);
	memcpy(bytes, spokei_buffer_data(&out), len);
	spokei_buffer_fini(&out);
	spokei_world_process_fini(&process);
	spokei_world_fini(&world);
	return len;
}

static size_t requests(unsigned char bytes[STREAM])
{
	const struct spokei_message messages[] = {
		{ .kind = SPOKEI_REQUEST,
		  .id = 5,
		  .two_way = true,
		  .service = spokei_span("demo.Echo", 9),
		  .method = spokei_span("echo", 4),
		  .args = spokei_span("\x93\x01\xa2xy\xc0", 6),
		  .arg_count = 1 },
		{ .kind = SPOKEI_REQUEST,
		  .id = 6,
		  .service = spokei_span("demo.Echo", 9),
		  .method = spokei_span("note", 4),
		  .args = spokei_span("\xc3\xc4\x02zz", 5),
		  .arg_count = 2 },
		{ .kind = SPOKEI_PROBE, .id = 7, .two_way = true },
	};

	return frames_of(messages, 3, bytes);
}

static size_t replies_to(const uint64_t *ids, unsigned char bytes[STREAM])
{
	const struct spokei_message messages[] = {
		{ .kind = SPOKEI_REPLY,
		  .id = ids[0],
		  .value = { (const unsigned char *)"\x93\x01\xa2xy\xc0", 6 },
		  .attachments = { (const unsigned char *)"\x81\xa1k\xa1v", 5 } },
		{ .kind = SPOKEI_PROBE, .id = 9, .two_way = true },
		{ .kind = SPOKEI_REPLY,
		  .id = ids[1],
		  .bare = true,
		  .error = SPOKE_EREMOTE,
		  .error_code = 3,
		  .error_text = spokei_span("no", 2) },
	};

	return frames_of(messages, 3, bytes);
}

/* --- tests */

typedef void reader(struct spoke_span stream, const size_t *cuts, size_t count, size_t step,
		    char *ret_text);

static void check_cuts(reader *read_by, struct spoke_span stream)
{
	static char whole[TEXT];
	static char text[TEXT];
	unsigned runs = 0;

	read_by(stream, NULL, 0, 0, whole);
	for (size_t i = 1; i < stream.len; i++) {
		read_by(stream, &i, 1, 0, text);
		assert_string_equal(text, whole);
		runs++;
	}
	for (size_t step = 1; step < 18; step++) {
		read_by(stream, NULL, 0, step, text);
		assert_string_equal(text, whole);
		runs++;
	}
	/* Try all splits into three. For a long stream that would be ten thousand, so try a sixth.
	 */
	for (size_t i = 1; i<stream.len; i += stream.len> 60 ? 3 : 1) {
		for (size_t j = i + 1; j<stream.len; j += stream.len> 60 ? 2 : 1) {
			size_t cuts[CUTS_MAX] = { i, j };

			read_by(stream, cuts, CUTS_MAX, 0, text);
			assert_string_equal(text, whole);
			runs++;
		}
	}
	print_message("%u ways to cut %u bytes\n", runs, (unsigned)stream.len);
}

struct tongue {
	const char *wire;
	const struct spokei_codec *codec;
};

static void speak(const struct tongue *tongue)
{
	wire = spokei_catalog_wire(tongue->wire);
	codec = tongue->codec;
}

static struct tongue dubbo = { "dubbo", NULL };
static struct tongue text = { "dubbo", &textcodec };
static struct tongue hessian2 = { "dubbo", &spokei_codec_hessian2 };
static struct tongue mprpc = { "msgpack-rpc", NULL };

TEST(a_provider_sees_the_same_however_a_stream_is_cut, .initial = &dubbo)
{
	unsigned char bytes[STREAM];

	speak(*state);
	check_cuts(provide, spokei_span(bytes, requests(bytes)));
}
TEST_AGAIN(a_provider_sees_the_same_however_a_stream_is_cut, text, .initial = &text);
TEST_AGAIN(a_provider_sees_the_same_however_a_stream_is_cut, hessian2, .initial = &hessian2);
TEST_AGAIN(a_provider_sees_the_same_however_a_stream_is_cut, mprpc, .initial = &mprpc);

TEST(a_consumer_sees_the_same_however_a_stream_is_cut, .initial = &dubbo)
{
	static const uint64_t ids[2] = { 1, 2 };
	unsigned char bytes[STREAM];

	speak(*state);
	check_cuts(consume, spokei_span(bytes, replies_to(ids, bytes)));
}
TEST_AGAIN(a_consumer_sees_the_same_however_a_stream_is_cut, text, .initial = &text);
TEST_AGAIN(a_consumer_sees_the_same_however_a_stream_is_cut, hessian2, .initial = &hessian2);
TEST_AGAIN(a_consumer_sees_the_same_however_a_stream_is_cut, mprpc, .initial = &mprpc);
