/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows 13 to 15, 40, 45, 55 and 60 of the table of faults: cut streams, short writes, slow
 * peers, and the log.
 */
#define _GNU_SOURCE
#include "core/base/log.h"
#include "tests/integration/harness.h"
#include "tests/support/test.h"
#include "transport/conn/link.h"
#include "transport/listen/group.h"
#include "transport/listen/quota.h"
#include "transport/wire/catalog.h"
#include "transport/wire/dubbo/head.h"

#include <spoke/host.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/*
 * --- rows 13 to 15 of the table of faults: split frames, many frames at once, and random bytes
 */

/* --- row 13 */

/* Sends the bytes in two pieces, the second one after the first has been read. */
static void send_cut(struct raw *raw, const unsigned char *bytes, size_t len, size_t at)
{
	stage_mark(raw->stage);
	raw_send(raw, bytes, at);
	stage_until_read(raw->stage, at);
	raw_send(raw, bytes + at, len - at);
}

static void send_each(struct raw *raw, const unsigned char *bytes, size_t len)
{
	stage_mark(raw->stage);
	for (size_t i = 0; i < len; i++) {
		raw_send(raw, bytes + i, 1);
		stage_until_read(raw->stage, i + 1);
	}
}

/* Checks the answers to three_frames(); the position of the heartbeat's answer is free. */
static void assert_three_answers(struct raw *raw)
{
	unsigned seen = 0;

	for (int i = 0; i < 3; i++) {
		struct spokei_message message;
		struct spoke_span text;

		raw_frame(raw, &message);
		assert_in_range(message.id, 1, 3);
		seen |= 1u << message.id;
		assert_int_equal(message.status, 20);
		if (message.id == 2) {
			assert_int_equal(message.kind, SPOKEI_PROBE_ANSWER);
			continue;
		}
		assert_int_equal(message.kind, SPOKEI_REPLY);
		assert_int_equal(spoke_value_str(message.value, &text), 0);
		assert_true(spokei_span_is(text, message.id == 1 ? "one" : "three"));
	}
	assert_int_equal(seen, 0xe);
	assert_counter_up_by(raw->stage, SPOKE_STAT_REQUESTS_OK, 2);
	assert_counter_up_by(raw->stage, SPOKE_STAT_PROBES_READ, 1);
	assert_counter_up_by(raw->stage, SPOKE_STAT_MESSAGES_READ, 3);
	assert_nothing_closed(raw->stage);
}

RUNNER(stage_run_rows);

ROW(row_13_every_cut_of_a_stream_gives_the_same_answers, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;
	const unsigned char *bytes;
	size_t len;

	frames_init(&frames);
	frames_request(&frames, 1, "echo", "one");
	frames_heartbeat(&frames, 2);
	frames_request(&frames, 3, "echo", "three");
	bytes = spokei_buffer_data(&frames);
	len = spokei_buffer_len(&frames);
	for (size_t at = 1; at < len; at++) {
		send_cut(raw, bytes, len, at);
		assert_three_answers(raw);
	}
	send_each(raw, bytes, len);
	assert_three_answers(raw);
	spokei_buffer_fini(&frames);
	assert_second_connection_works(stage);
}

static void assert_two_numbers(struct raw *raw)
{
	for (uint64_t id = 1; id <= 2; id++) {
		struct spokei_message message;
		uint32_t number;

		assert_reply(raw, id, 20, &message);
		assert_int_equal(spoke_value_u32(message.value, &number), 0);
		assert_int_equal(number, 10 * id);
	}
	assert_counter_up_by(raw->stage, SPOKE_STAT_REQUESTS_OK, 3);
	assert_counter_up_by(raw->stage, SPOKE_STAT_MESSAGES_READ, 3);
	assert_nothing_closed(raw->stage);
}

ROW(row_13_every_cut_of_msgpack_rpc_gives_the_same_answers, STAGE_ALL)
{
	static const char text[] =
		"\x94\0\1\244echo\x91\12"
		"\x93\2\244echo\xdc\0\2\242hi\xcb\x40\x09\x21\xfb\x54\x44\x2d\x18"
		"\x94\0\2\265demo.EchoService.echo\x91\24";
	const unsigned char *bytes = (const unsigned char *)text;
	struct raw *raw = stage_raw_to_provider(stage);

	raw->wire = spokei_catalog_wire("msgpack-rpc");
	for (size_t at = 1; at < sizeof(text) - 1; at++) {
		send_cut(raw, bytes, sizeof(text) - 1, at);
		assert_two_numbers(raw);
	}
	send_each(raw, bytes, sizeof(text) - 1);
	assert_two_numbers(raw);
	assert_second_connection_works(stage);
}

ROW(row_13_every_cut_of_replies_ends_the_same_calls, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	size_t len = 100;

	for (size_t at = 1; at < len; at++) {
		struct ending endings[3];
		struct spokei_buffer frames;
		struct spokei_message request;

		frames_init(&frames);
		for (size_t i = 0; i < LENGTH(endings); i++)
			stage_call(stage, stage->echo, "x", &endings[i], NULL);
		for (size_t i = 0; i < LENGTH(endings); i++) {
			raw_frame(raw, &request);
			frames_reply(&frames, request.id, i == 1 ? 70 : 20, "y");
		}
		len = spokei_buffer_len(&frames);
		send_cut(raw, spokei_buffer_data(&frames), len, at);
		spokei_buffer_fini(&frames);
		assert_ends(stage, &endings[0], SPOKE_OK);
		assert_ends(stage, &endings[1], SPOKE_ESERVER);
		assert_ends(stage, &endings[2], SPOKE_OK);
		assert_counter_up_by(stage, SPOKE_STAT_MESSAGES_READ, 3);
	}
	assert_second_connection_works(stage);
	assert_consumer_lives(raw);
}

/* --- row 14 */

#define CROWD 10000u

static void put_crowd(struct spokei_buffer *frames)
{
	frames_init(frames);
	for (unsigned i = 0; i < CROWD; i++)
		frames_request(frames, i, "echo", "many");
}

static void assert_crowd_answered(struct raw *raw)
{
	for (unsigned i = 0; i < CROWD; i++)
		assert_reply(raw, i, 20, NULL);
	assert_nothing_closed(raw->stage);
}

ROW(row_14_ten_thousand_frames_in_a_segment_do_not_delay_others, STAGE_MEMORY)
{
	const struct spokei_vnet_link wide = { .capacity = 8 << 20 };
	struct spokei_buffer frames;
	struct ending ending;
	struct raw *raw;

	stage_set_provider(stage, NULL);
	spokei_vnet_set_all(stage->world.net, &wide);
	raw = raw_connect(stage);
	put_crowd(&frames);
	stage_mark(stage);
	raw_send_buffer(raw, &frames);
	stage_call(stage, stage->second_echo, "patient", &ending, NULL);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS, 0);
	while (ending.ends == 0) {
		uint64_t bytes = stage_stat(stage, SPOKE_STAT_BYTES_READ);

		stage_turn(stage);
		bytes = stage_stat(stage, SPOKE_STAT_BYTES_READ) - bytes;
		assert_true(bytes <= SPOKEI_ENGINE_SCRATCH + 1024);
	}
	assert_ends(stage, &ending, SPOKE_OK);
	assert_true(stage_up(stage, SPOKE_STAT_REQUESTS) < CROWD);
	assert_crowd_answered(raw);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_OK, CROWD + 1);
	assert_second_connection_works(stage);
}

ROW(row_14_ten_thousand_frames_at_once_are_answered_in_order, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_buffer frames;

	put_crowd(&frames);
	raw_send_buffer(raw, &frames);
	assert_second_connection_works(stage);
	assert_crowd_answered(raw);
	assert_second_connection_works(stage);
}

/* --- row 15 */

#define NOISE_MAX 4096u
#define MEMORY_MAX (4u << 20) /* of one bad connection at a time */

struct noise {
	uint64_t state;
};

static uint64_t throw_noise(struct noise *noise)
{
	noise->state ^= noise->state << 13;
	noise->state ^= noise->state >> 7;
	noise->state ^= noise->state << 17;
	return noise->state;
}

/* Returns random bytes, which often begin like a frame. */
static size_t make_noise(struct noise *noise, unsigned char *bytes)
{
	static const char *const starts[] = { "",         "\xda\xbb",         "\xda\xbb\xdb",
					      "\x94",     "\x94\1\1\244echo", "\xda\xbb\xfb",
					      "\xdc\1\4", "\x93\2",           "\xda\xbb\x1b\x14" };
	const char *start = starts[throw_noise(noise) % LENGTH(starts)];
	size_t len = 16 + (size_t)throw_noise(noise) % (NOISE_MAX - 16);

	for (size_t i = 0; i < len; i++)
		bytes[i] = (unsigned char)(throw_noise(noise) >> 32);
	for (size_t i = 0; start[i]; i++)
		bytes[i] = (unsigned char)start[i];
	if (bytes[0] == 0xda && throw_noise(noise) % 2)
		memset(bytes + 12, 0, 3); /* a short body */
	return len;
}

static void throw_at_provider(struct stage *stage, const unsigned char *bytes, size_t len)
{
	struct raw *raw = raw_connect(stage);

	if (raw_try_send(raw, bytes, len))
		raw_shut(raw);
	(void)raw_wait_end(raw);
	raw_close(raw);
}

ROW(row_15_random_bytes_do_not_affect_other_peers, STAGE_ALL)
{
	unsigned rounds = stage_is_virtual(stage) ? 2000 : 200;
	struct noise noise = { .state = 88172645463325252 };
	unsigned char bytes[NOISE_MAX];
	size_t before;

	stage_set_provider(stage, NULL);
	before = stage->faulty.bytes;
	stage_mark(stage);
	for (unsigned i = 0; i < rounds; i++) {
		throw_at_provider(stage, bytes, make_noise(&noise, bytes));
		if (i % 100 == 0)
			assert_second_connection_works(stage);
	}
	assert_counter_up_by(stage, SPOKE_STAT_CLOSED, rounds);
	assert_int_equal(spoke_provider_connections(stage->provider), 1);
	assert_true(stage->faulty.bytes_peak - before <= MEMORY_MAX);
	assert_second_connection_works(stage);
}

ROW(row_15_flipped_bits_do_not_affect_other_peers, STAGE_ALL)
{
	unsigned rounds = stage_is_virtual(stage) ? 4000 : 300;
	struct noise noise = { .state = 1181783497276652981 };
	struct spokei_buffer frames;
	unsigned char *bytes;
	size_t before;
	size_t len;

	stage_set_provider(stage, NULL);
	frames_init(&frames);
	frames_request(&frames, 1, "echo", "one");
	frames_heartbeat(&frames, 2);
	frames_request(&frames, 3, "refuse", "two");
	frames_request(&frames, 4, "echo", "three");
	bytes = spokei_buffer_data(&frames);
	len = spokei_buffer_len(&frames);
	before = stage->faulty.bytes;
	stage_mark(stage);
	for (unsigned i = 0; i < rounds; i++) {
		size_t at = (size_t)throw_noise(&noise) % len;
		unsigned char bit = (unsigned char)(1u << (throw_noise(&noise) >> 20) % 8);

		bytes[at] ^= bit;
		throw_at_provider(stage, bytes, len);
		bytes[at] ^= bit;
		if (i % 100 == 0)
			assert_second_connection_works(stage);
	}
	spokei_buffer_fini(&frames);
	assert_counter_up_by(stage, SPOKE_STAT_CLOSED, rounds);
	assert_true(stage->faulty.bytes_peak - before <= MEMORY_MAX);
	assert_second_connection_works(stage);
}

/* Each connection of the consumer gets random bytes instead of replies. */
ROW(row_15_random_replies_end_every_call_once, STAGE_MEMORY)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct noise noise = { .state = 88172645463325252 };
	unsigned char bytes[NOISE_MAX];
	size_t before = stage->faulty.bytes;

	for (unsigned i = 0; i < 150; i++) {
		struct ending endings[3];
		struct spokei_message request;

		for (size_t k = 0; k < LENGTH(endings); k++)
			stage_call(stage, stage->echo, "x", &endings[k], NULL);
		for (size_t k = 0; k < LENGTH(endings); k++)
			raw_frame(raw, &request);
		if (raw_try_send(raw, bytes, make_noise(&noise, bytes)))
			raw_shut(raw);
		for (size_t k = 0; k < LENGTH(endings); k++)
			stage_wait(stage, &endings[k]);
		(void)raw_wait_end(raw);
		raw_close(raw);
		raw = raw_accept(stage);
		raw_frame(raw, &request);
		assert_int_equal(request.kind, SPOKEI_PROBE);
	}
	assert_true(stage->faulty.bytes_peak - before <= MEMORY_MAX);
	assert_second_connection_works(stage);
}

/*
 * --- row 55 of the table of faults: a peer that requests a lot and does not read the replies
 */

#define SLOW_CROWD 1000u
#define LARGE 65536u   /* bytes of an answer */
#define TAKEN_MAX 100u /* answers that the kernel buffers for a connection that is not read */
#define SLOW_NS (30 * SECOND)
/* Returns the bytes that one connection may use: its output at the limit, the memory to which that
 * grows (a quarter more, see core/memory/buffer.c), and unanswered requests. */
#define SLOW_MEMORY_MAX (2 * SPOKEI_OUT_MAX + SPOKEI_OUT_MAX / 4 + (2u << 20))
/* Appends a request for an answer of this many bytes. */
static void put_large(struct spokei_buffer *frames, uint64_t id, uint32_t len)
{
	struct spoke_builder builder;
	unsigned char memory[16];
	struct spoke_span args;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_u64(&builder, len);
	assert_int_equal(spoke_builder_finish(&builder, &args), 0);
	frames_request_with(frames, id, STAGE_SERVICE, "large", args);
	spoke_builder_fini(&builder);
}

static void slow_put_crowd(struct spokei_buffer *frames)
{
	frames_init(frames);
	for (uint64_t id = 0; id < SLOW_CROWD; id++)
		put_large(frames, id, LARGE);
}

/* Sends all requests, as far as the other side reads. */
static void ask_for_all(struct raw *raw)
{
	const struct spoke_env *env = raw->stage->peer_env;
	struct spokei_buffer frames;

	slow_put_crowd(&frames);
	while (spokei_buffer_len(&frames) > 0 &&
	       stage_up(raw->stage, SPOKE_STAT_READS_PAUSED) == 0) {
		struct iovec part = { spokei_buffer_data(&frames), spokei_buffer_len(&frames) };
		ssize_t put = env->net->write(env->ctx, raw->fd, &part, 1);

		if (put > 0)
			spokei_buffer_consume(&frames, (size_t)put);
		stage_turn(raw->stage);
	}
	spokei_buffer_fini(&frames);
}

ROW(row_55_peer_that_reads_nothing_is_paused_and_closed, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	size_t before = stage->faulty.bytes;
	unsigned handled = stage->handled;
	uint64_t paused_ns;
	uint64_t read;

	stage_shorten(stage);
	ask_for_all(raw);
	assert_counter_up_by(stage, SPOKE_STAT_READS_PAUSED, 1);
	assert_nothing_closed(stage);
	paused_ns = stage_now(stage);
	assert_second_connection_works(stage);
	assert_true(stage->handled - handled < SLOW_CROWD / 2);
	if (stage_is_virtual(stage)) {
		read = stage_stat(stage, SPOKE_STAT_BYTES_READ);
		stage_pass(stage, SLOW_NS - 2 * SECOND);
		assert_int_equal(stage_stat(stage, SPOKE_STAT_BYTES_READ), read);
		assert_undisturbed(stage);
	}
	stage_until_up(stage, SPOKE_STAT_CLOSED, 1);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_SLOW);
	if (stage_is_virtual(stage))
		assert_true(stage_now(stage) - paused_ns <= SLOW_NS + SECOND);
	assert_true(stage->faulty.bytes_peak - before <= SLOW_MEMORY_MAX);
	assert_int_equal(stage->provider->link->queued, 0);
	assert_second_connection_works(stage);
}

/* Returns the provider's connection that is paused; NULL: none is. */
static const struct spokei_conn *paused_conn(struct stage *stage)
{
	const struct spoke_list *conns = &stage->provider->link->conns;

	for (struct spoke_list *at = conns->next; at != conns; at = at->next) {
		const struct spokei_conn *conn = spoke_container_of(at, struct spokei_conn, node);

		if (conn->paused)
			return conn;
	}
	return NULL;
}

/* A side that does not read has no use for looking at its peer's silence. */
ROW(row_55_paused_connection_is_not_looked_at, STAGE_MEMORY)
{
	const uint64_t interval_ns = SECOND;
	struct raw *raw = stage_raw_to_provider(stage);
	const struct spokei_conn *conn;
	uint64_t paused_ns;

	stage->limits->heartbeat_ns = interval_ns;
	ask_for_all(raw);
	paused_ns = stage_now(stage);
	conn = paused_conn(stage);
	assert_non_null(conn);
	stage_pass(stage, 2 * interval_ns);
	assert_true(conn->due_ns >= paused_ns + SLOW_NS - SECOND);
	/* When it is read again, the peer has a whole interval. */
	for (uint64_t id = 0; conn->paused; id++)
		assert_reply(raw, id, 20, NULL);
	assert_in_range(conn->due_ns, stage_now(stage), stage_now(stage) + interval_ns);
	assert_nothing_closed(stage);
}

/* The pause does not apply to requests that were already read: their answers meet the hard limit.
 */
ROW(row_55_answers_over_the_cap_close, STAGE_ALL)
{
	static const unsigned char bytes[LARGE + 5] = { 0xc6, 0, 1, 0, 0 };
	struct raw *raw = stage_raw_to_provider(stage);
	unsigned wanted = SPOKEI_OUT_MAX / LARGE + 8 + TAKEN_MAX;
	struct spokei_buffer frames;
	unsigned answered = 0;
	unsigned taken; /* by the kernel */
	size_t before;

	frames_init(&frames);
	for (unsigned id = 0; id < wanted; id++)
		frames_request(&frames, id, "later", "x");
	raw_send_buffer(raw, &frames);
	while (stage->later_count < wanted)
		stage_turn(stage);
	assert_second_connection_works(stage);
	before = stage->faulty.bytes;
	stage_mark(stage);
	while (stage->later_count > 0) {
		spoke_reply(stage->laters[--stage->later_count],
			    (struct spoke_value){ bytes, sizeof(bytes) });
		answered += stage_up(stage, SPOKE_STAT_CLOSED) == 0;
	}
	taken = (unsigned)(stage_up(stage, SPOKE_STAT_BYTES_WRITTEN) / LARGE);
	assert_in_range(answered, taken + SPOKEI_OUT_MAX / LARGE - 2,
			taken + SPOKEI_OUT_MAX / LARGE + 1);
	assert_counter_up_by(stage, SPOKE_STAT_READS_PAUSED, 1);
	assert_closed_once(stage, SPOKE_STAT_CLOSED_SLOW);
	assert_true(stage->faulty.bytes_peak - before <= SLOW_MEMORY_MAX);
	(void)raw_wait_end(raw);
	assert_second_connection_works(stage);
	assert_int_equal(stage->provider->link->queued, 0);
}

/* The pause does not end the connection: a peer that reads gets all answers in order. */
ROW(row_55_peer_that_reads_gets_all_answers_in_order, STAGE_SMOOTH)
{
	const struct spokei_vnet_link wide = { .capacity = 1 << 20 };
	struct raw *raw = stage_raw_to_provider(stage);
	size_t before = stage->faulty.bytes;
	struct spokei_buffer frames;

	if (stage->on == STAGE_MEMORY)
		spokei_vnet_set_all(stage->world.net, &wide);
	slow_put_crowd(&frames);
	raw_send_buffer(raw, &frames);
	for (uint64_t id = 0; id < SLOW_CROWD; id++) {
		struct spokei_message reply;

		if (id % 100 == 0)
			assert_second_connection_works(stage);
		assert_reply(raw, id, 20, &reply);
		assert_int_equal(reply.value.len, LARGE + 5);
	}
	assert_nothing_closed(stage);
	assert_true(stage_up(stage, SPOKE_STAT_READS_PAUSED) > 0);
	assert_true(stage->faulty.bytes_peak - before <= SLOW_MEMORY_MAX);
	assert_raw_lives(raw);
}

/* A side that has paused reading must not time out the rest of a frame that it does not read. */
ROW(row_55_frame_begun_before_a_pause_may_end_after_it, STAGE_MEMORY)
{
	static const unsigned char bytes[LARGE + 5] = { 0xc6, 0, 1, 0, 0 };
	struct raw *raw = stage_raw_to_provider(stage);
	const unsigned wanted = SPOKEI_OUT_HIGH / LARGE + 2;
	struct spokei_buffer frames;
	size_t len;

	frames_init(&frames);
	for (unsigned id = 0; id < wanted; id++)
		frames_request(&frames, id, "later", "x");
	len = spokei_buffer_len(&frames) + 20;
	frames_request(&frames, wanted, "echo", "whole");
	raw_send(raw, spokei_buffer_data(&frames), len);
	stage_until_read(stage, len);
	assert_int_equal(stage->later_count, wanted);
	while (stage->later_count > 0)
		spoke_reply(stage->laters[--stage->later_count],
			    (struct spoke_value){ bytes, sizeof(bytes) });
	assert_counter_up_by(stage, SPOKE_STAT_READS_PAUSED, 1);
	spokei_buffer_consume(&frames, len);
	/* The peer reads a little from time to time, which counts as progress. */
	for (unsigned i = 0; i < wanted; i++) {
		assert_reply(raw, wanted - 1 - i, 20, NULL);
		if (i < 4)
			stage_pass(stage, 9 * SECOND);
		assert_nothing_closed(stage);
	}
	/* After the pause the frame has its usual time limit. */
	stage_pass(stage, 9 * SECOND);
	raw_send_buffer(raw, &frames);
	assert_reply(raw, wanted, 20, NULL);
	assert_counter_up_by(stage, SPOKE_STAT_READS_PAUSED, 1);
	assert_raw_lives(raw);
	assert_second_connection_works(stage);
}

#define UPLOADS 14u
#define UPLOAD (1u << 20)
/* Both sides have more output than their limits while they do not read; neither may wait for the
 * other for ever. */
ROW(row_55_two_full_output_buffers_do_not_deadlock, STAGE_SMOOTH)
{
	static unsigned char bytes[UPLOAD + 5] = { 0xc6, 0, 0x10, 0, 0 };
	static struct ending endings[UPLOADS];
	uint64_t begun_ns;

	stage_set_provider(stage, NULL);
	stage_mark(stage);
	begun_ns = stage_now(stage);
	for (unsigned i = 0; i < UPLOADS; i++) {
		const struct spoke_span args = { bytes, sizeof(bytes) };

		assert_int_equal(stage_try_call(stage, stage->second_echo, args, NULL, &endings[i],
						NULL),
				 SPOKE_OK);
	}
	for (unsigned i = 0; i < UPLOADS; i++)
		assert_ends(stage, &endings[i], SPOKE_OK);
	if (stage->on == STAGE_MEMORY)
		assert_true(stage_now(stage) - begun_ns <= SECOND);
	assert_undisturbed(stage);
}

/*
 * --- rows 40 and 45 of the table of faults: short writes, and connections that are reset
 * before accept()
 */

/* --- row 40 */

#define LONG_TEXT 3000u
#define SMALL_BUFFER 1024
/* A network on which a write accepts one byte, and every other write none. */
static struct spoke_net stingy;

static const struct spoke_net *generous;

static unsigned writes;

static ssize_t write_a_byte(void *ctx, int fd, const struct iovec *parts, int count)
{
	struct iovec first = parts[0];

	if (++writes % 2)
		return -EAGAIN;
	while (first.iov_len == 0 && count-- > 1)
		first = *++parts;
	first.iov_len = 1;
	return generous->write(ctx, fd, &first, 1);
}

static ssize_t read_a_byte(void *ctx, int fd, void *bytes, size_t len)
{
	return generous->read(ctx, fd, bytes, len > 1 ? 1 : len);
}

static void shrink(int fd)
{
	const int size = SMALL_BUFFER;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
}

/* From here on the side under test writes and reads single bytes. */
static void be_stingy(struct stage *stage)
{
	static const struct spokei_vnet_link thin = {
		.capacity = 64, .write_max = 1, .read_max = 1, .eagain_permille = 900
	};

	if (stage_is_virtual(stage)) {
		spokei_vnet_set_all(stage->world.net, &thin);
		return;
	}
	generous = stage->faulty.env.net;
	stingy = *generous;
	stingy.write = write_a_byte;
	stingy.read = read_a_byte;
	stage->faulty.env.net = &stingy;
}

ROW(row_40_single_bytes_and_eagain_do_not_stall_a_provider, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_provider(stage);
	struct spokei_message message;
	struct spokei_buffer frames;
	char text[LONG_TEXT + 1];
	struct spoke_span said;

	memset(text, 'x', LONG_TEXT);
	text[LONG_TEXT] = '\0';
	be_stingy(stage);
	frames_init(&frames);
	for (uint64_t id = 1; id <= 3; id++)
		frames_request(&frames, id, "echo", text);
	raw_send_buffer(raw, &frames);
	for (uint64_t id = 1; id <= 3; id++) {
		assert_reply(raw, id, 20, &message);
		assert_int_equal(spoke_value_str(message.value, &said), 0);
		assert_true(spokei_span_is(said, text));
	}
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_OK, 3);
	assert_true(stage_up(stage, SPOKE_STAT_READS) >= 3 * LONG_TEXT);
	assert_true(stage_up(stage, SPOKE_STAT_WRITES) >= 3 * LONG_TEXT);
	assert_second_connection_works(stage);
	assert_raw_lives(raw);
	assert_nothing_closed(stage);
}

ROW(row_40_single_bytes_and_eagain_do_not_stall_a_call, STAGE_ALL)
{
	struct raw *raw = stage_raw_to_consumer(stage);
	struct spokei_message request;
	struct ending endings[3];
	uint64_t ids[3];

	be_stingy(stage);
	for (size_t i = 0; i < LENGTH(endings); i++)
		stage_call(stage, stage->echo, "a call of a few more bytes", &endings[i], NULL);
	for (size_t i = 0; i < LENGTH(endings); i++) {
		raw_frame(raw, &request);
		ids[i] = request.id;
	}
	for (size_t i = LENGTH(endings); i-- > 0;) {

		say_reply(raw, ids[i], 20, "y");
	}
	for (size_t i = 0; i < LENGTH(endings); i++) {
		assert_ends(stage, &endings[i], SPOKE_OK);
		assert_string_equal(endings[i].value, "\"y\"");
	}
	assert_second_connection_works(stage);
	assert_consumer_lives(raw);
	assert_nothing_closed(stage);
}

ROW(row_40_a_send_buffer_of_1_kib_is_enough_for_large_answers, STAGE_REAL)
{
	struct spoke_list *conns;
	struct spokei_message message;
	struct raw *raw = stage_raw_to_provider(stage);

	conns = &stage->provider->link->conns;
	for (struct spoke_list *at = conns->next; at != conns; at = at->next)
		shrink(spoke_container_of(at, struct spokei_conn, node)->stream.watch.fd);
	for (uint64_t id = 1; id <= 4; id++) {
		say_request_with(raw, id, STAGE_SERVICE, "large",
				 (struct spoke_span){ "\xce\0\1\0\0", 5 });
	}
	for (uint64_t id = 1; id <= 4; id++) {
		assert_second_connection_works(stage);
		assert_reply(raw, id, 20, &message);
		assert_int_equal(message.value.len, (1u << 16) + 5);
	}
	assert_true(stage_up(stage, SPOKE_STAT_WRITES) > 2 * 4);
	assert_raw_lives(raw);
	assert_nothing_closed(stage);
}

/* --- row 45 */

#define BATCH 100u
/* A connection among many that are reset is served in the usual time. */
static void assert_welcome(struct stage *stage, struct raw **batch)
{
	uint64_t begun_ns = stage_now(stage);
	struct raw *raw;

	for (unsigned i = 0; i < BATCH; i++)
		raw_reset(batch[i]);
	raw = raw_start(stage);
	assert_raw_lives(raw);
	if (stage->on == STAGE_MEMORY)
		assert_true(stage_now(stage) - begun_ns <= MS);
	assert_second_connection_works(stage);
	raw_close(raw);
}

static bool alone_is_the_second(void *arg)
{
	const struct stage *stage = arg;

	return spoke_provider_connections(stage->provider) == 1;
}

ROW(row_45_immediate_resets_do_not_affect_other_connections, STAGE_ALL)
{
	unsigned batches = stage_is_virtual(stage) ? 100 : 10;
	struct raw *batch[BATCH];
	size_t blocks = 0;
	size_t fds;

	stage_set_provider(stage, NULL);
	fds = stage->faulty.fds;
	stage_mark(stage);
	for (unsigned i = 0; i < batches; i++) {
		for (unsigned k = 0; k < BATCH; k++)
			batch[k] = raw_start(stage);
		if (stage_is_virtual(stage))
			stage_pass(stage, 5 * MS);
		assert_welcome(stage, batch);
		stage_until(stage, alone_is_the_second, stage);
		if (i == 0)
			blocks = stage->faulty.blocks;
	}
	/* The kernel may have dropped some of them before accept(). */
	assert_in_range(stage_up(stage, SPOKE_STAT_ACCEPTED), batches, batches * (BATCH + 1));
	if (stage_is_virtual(stage))
		assert_counter_up_by(stage, SPOKE_STAT_ACCEPTED, (uint64_t)batches * (BATCH + 1));
	assert_closed_times(stage, SPOKE_STAT_CLOSED_BY_PEER, stage_up(stage, SPOKE_STAT_ACCEPTED));
	assert_counter_up_by(stage, SPOKE_STAT_ACCEPTS_SHED, 0);
	assert_int_equal(spokei_listen_group_quota(stage->provider->listeners)->count, 1);
	assert_int_equal(stage->faulty.fds, fds);
	/* The memory kept for later connections is bounded. */
	assert_true(stage->faulty.blocks <= blocks + BATCH);
	assert_second_connection_works(stage);
}

/* --- row 60 of the table of faults: misbehaving peers do not fill the log */

#define PEERS 3000u
#define RATE 10u /* lines per second and class, and largest burst */
/* Recorded lines of the log. */
static struct {
	unsigned lines;
	unsigned bad; /* lines with bytes that could hurt a reader */
	uint64_t suppressed;
	bool said_why;
} heard;

static void hear(void *ctx, const struct spoke_log_line *line)
{
	(void)ctx;
	heard.lines++;
	heard.suppressed += line->suppressed;
	heard.said_why = heard.said_why || strstr(line->text, "protocol");
	for (const char *at = line->text; *at; at++)
		heard.bad += !isprint((unsigned char)*at);
	heard.bad += strlen(line->text) >= SPOKEI_LOG_TEXT_MAX;
}

/* Records the log of the engine under test from here on. */
static void listen_to_log(struct stage *stage)
{
	stage->faulty.env.log = hear;
	assert_int_equal(spoke_engine_log(stage->engine, "info"), 0);
	memset(&heard, 0, sizeof(heard));
}

/* Checks that each class has kept its rate limit since then. */
static void assert_quiet(struct stage *stage, uint64_t begun_ns, unsigned classes)
{
	uint64_t seconds = (stage_now(stage) - begun_ns) / SECOND + 1;

	assert_true(heard.lines <= classes * RATE * (seconds + 1));
	assert_int_equal(heard.bad, 0);
}

ROW(row_60_peers_that_break_the_protocol_do_not_fill_the_log, STAGE_ALL)
{
	static const char *const noises[] = { "get / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\n\x7f",
					      "\xda\xbb\x00\xff\r\n\x1b[2J............",
					      "\x94\x07\x01\xc0\x02" };
	unsigned peers = stage_is_virtual(stage) ? PEERS : PEERS / 4;
	uint64_t begun_ns;

	stage_set_provider(stage, NULL);
	listen_to_log(stage);
	begun_ns = stage_now(stage);
	stage_mark(stage);
	for (unsigned i = 0; i < peers; i++) {
		const char *noise = noises[i % LENGTH(noises)];
		struct raw *raw = raw_connect(stage);

		(void)raw_try_send(raw, noise, i % LENGTH(noises) == 2 ? 20 : strlen(noise));
		(void)raw_wait_end(raw);
		raw_close(raw);
	}
	assert_closed_times(stage, SPOKE_STAT_CLOSED_PROTOCOL, peers);
	assert_quiet(stage, begun_ns, 1);
	assert_true(heard.lines > 0 && heard.said_why);
	assert_true(heard.suppressed + heard.lines <= peers);
	assert_second_connection_works(stage);
}

/* All other errors of a peer are answered, counted, and logged within the rate limit. */
ROW(row_60_bad_requests_do_not_fill_the_log, STAGE_ALL)
{
	unsigned requests = stage_is_virtual(stage) ? PEERS : PEERS / 4;
	struct raw *raw = stage_raw_to_provider(stage);
	uint64_t begun_ns = stage_now(stage);

	listen_to_log(stage);
	for (unsigned i = 0; i < requests; i++) {
		struct spokei_buffer frames;

		frames_init(&frames);
		frames_raw(&frames, 0xdb, 0, 1, "\xc1", 1);
		frames_request(&frames, 2, "no\nsuch\x1bmethod", "x");
		frames_raw(&frames, 0xc2, 0, 3, "\xac\xed", 2);
		raw_send_buffer(raw, &frames);
		for (uint64_t id = 1; id <= 3; id++)
			assert_reply(raw, id, id == 2 ? 60 : 40, NULL);
	}
	assert_counter_up_by(stage, SPOKE_STAT_BAD_REQUESTS, (uint64_t)requests * 2);
	assert_counter_up_by(stage, SPOKE_STAT_REQUESTS_NO_SERVICE, requests);
	assert_quiet(stage, begun_ns, 1);
	assert_undisturbed(stage);
}

ROW(row_60_rejected_connections_do_not_fill_the_log, STAGE_ALL)
{
	const struct spoke_provider_options options = { .connections_max = 2 };
	unsigned peers = stage_is_virtual(stage) ? PEERS : PEERS / 4;
	struct spokei_buffer frames;
	struct raw *taken;
	uint64_t begun_ns;

	stage_set_provider(stage, &options);
	taken = raw_connect(stage);
	frames_init(&frames); /* a connection without a byte would give way */
	frames_request(&frames, 1, "no such method", "x");
	raw_send_buffer(taken, &frames);
	assert_reply(taken, 1, 60, NULL);
	listen_to_log(stage);
	begun_ns = stage_now(stage);
	stage_mark(stage);
	for (unsigned i = 0; i < peers; i++) {
		struct raw *raw = raw_start(stage);

		assert_closed_mutely(raw);
		raw_close(raw);
	}
	assert_counter_up_by(stage, SPOKE_STAT_ACCEPTS_REFUSED_TOTAL, peers);
	assert_quiet(stage, begun_ns, 1);
	assert_true(heard.lines > 0);
	assert_second_connection_works(stage);
}

/* A provider that keeps sending replies without requests. */
ROW(row_60_unsolicited_replies_do_not_fill_the_log, STAGE_ALL)
{
	unsigned rounds = stage_is_virtual(stage) ? 300 : 3;
	struct raw *raw = stage_raw_to_consumer(stage);
	uint64_t begun_ns = stage_now(stage);

	listen_to_log(stage);
	for (unsigned i = 0; i < rounds; i++) {
		struct spokei_message probe;
		struct spokei_buffer frames;

		frames_init(&frames);
		frames_heartbeat(&frames, 1); /* so that the consumer reconnects soon */
		frames_raw(&frames, 0xff, 0xff, 1, "", 0);
		(void)raw_try_send(raw, spokei_buffer_data(&frames), spokei_buffer_len(&frames));
		spokei_buffer_fini(&frames);
		(void)raw_wait_end(raw);
		raw_close(raw);
		raw = raw_accept(stage);
		raw_frame(raw, &probe);
	}
	assert_closed_times(stage, SPOKE_STAT_CLOSED_PROTOCOL, rounds);
	assert_quiet(stage, begun_ns, 3); /* closed, reconnecting, connected */
	assert_second_connection_works(stage);
}
