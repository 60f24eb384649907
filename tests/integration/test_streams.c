/* SPDX-License-Identifier: Apache-2.0 */
/* Rows 13 to 15 of the table of faults: split frames, many frames at once, and random bytes. */
#include "tests/integration/harness.h"
#include "tests/support/test.h"

#include "transport/wire/catalog.h"
#include "transport/wire/dubbo/head.h"

#include <stdio.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

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
