/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short messages in Hessian 2: every message is written and read like by way of msgpack, with and
 * without a memo.
 */
#include "tests/core/memory.h"
#include "tests/support/test.h"
#include "tests/transport/dubbo_frames.h"
#include "tests/transport/recall.h"
#include "tests/transport/stream.h"
#include "tests/transport/translated.h"
#include "tests/transport/wires.h"
#include "transport/codec/codec.h"

#include <string.h>

#define VALUES_MAX 512u
#define LONG_TEXT 300u

/* Packed values. */
struct values {
	struct memory memory;
	struct spoke_builder builder;
	struct spoke_span all;
	struct spoke_value value[VALUES_MAX];
	size_t count;
};

static void pack_numbers(struct spoke_builder *to)
{
	static const int64_t edges[] = { 0,
					 1,
					 15,
					 16,
					 47,
					 48,
					 127,
					 128,
					 255,
					 256,
					 2047,
					 2048,
					 65535,
					 65536,
					 262143,
					 262144,
					 1 << 24,
					 INT32_MAX,
					 (int64_t)INT32_MAX + 1,
					 UINT32_MAX,
					 (int64_t)UINT32_MAX + 1,
					 INT64_MAX };

	for (size_t i = 0; i < LENGTH(edges); i++) {
		spoke_pack_i64(to, edges[i]);
		spoke_pack_i64(to, -edges[i]);
		spoke_pack_i64(to, -edges[i] - 1);
		spoke_pack_double(to, (double)edges[i]);
		spoke_pack_double(to, -0.001 * (double)edges[i]);
		spoke_pack_float(to, (float)edges[i] / 3);
	}
	spoke_pack_u64(to, UINT64_MAX);
	spoke_pack_double(to, -0.0);
	spoke_pack_double(to, 0.1);
	spoke_pack_nil(to);
	spoke_pack_bool(to, true);
	spoke_pack_bool(to, false);
}

/* Texts of many lengths, some with one character that is not ASCII. */
static void pack_texts(struct spoke_builder *to)
{
	static const size_t lens[] = { 0,  1,  7,  8,   15,  16,  17,  30,       31,
				       32, 33, 48, 127, 254, 255, 256, LONG_TEXT };
	char text[LONG_TEXT];

	for (size_t i = 0; i < LENGTH(lens); i++) {
		memset(text, 'x', sizeof(text));
		spoke_pack_str(to, text, lens[i]);
		for (size_t at = 0; at + 2 <= lens[i]; at += lens[i] / 3 + 1) {
			memset(text, 'x', sizeof(text));
			memcpy(text + at, "\xc3\xa9", 2);
			spoke_pack_str(to, text, lens[i]);
		}
	}
	spoke_pack_text(to, "\xf0\x9f\x98\x80");
	spoke_pack_str(to, "\0", 1);
}

static void values_init(struct values *values)
{
	struct spoke_cursor cursor;
	struct spoke_builder *to = &values->builder;

	memset(values, 0, sizeof(*values));
	memory_init(&values->memory);
	spoke_builder_init(to, &values->memory.env, NULL);
	pack_numbers(to);
	pack_texts(to);
	spoke_pack_bin(to, "abc", 3);
	spoke_pack_array(to, 1);
	spoke_pack_i64(to, 5);
	spoke_pack_map(to, 1);
	spoke_pack_text(to, "class");
	spoke_pack_text(to, "it.Point");
	assert_int_equal(spoke_builder_finish(to, &values->all), 0);
	cursor = spoke_cursor_bytes(values->all);
	while (spoke_cursor_next(&cursor, &values->value[values->count]))
		assert_in_range(++values->count, 1, VALUES_MAX - 1);
	/* A packed long. */
	values->value[values->count++] =
		(struct spoke_value){ (const unsigned char *)"\xd3\0\0\0\0\0\0\0\x05", 9 };
}

static void values_fini(struct values *values)
{
	spoke_builder_fini(&values->builder);
	assert_int_equal(values->memory.bytes, 0);
}

/* Writes a message, and compares everything about its frame with the codec. Returns false if the
 * message cannot be written. */
static bool goes_both_ways(struct recall *recall, const struct spokei_message *message)
{
	struct spokei_message read;
	struct spokei_buffer out;
	struct spoke_span frame;
	const char *difference;
	int result;

	spokei_buffer_init(&out, &recall->memory.env, 65536);
	result = spokei_wire_dubbo.write(&stream_limits, message, &out);
	frame = spokei_span(spokei_buffer_data(&out), spokei_buffer_len(&out));
	if (result == 0) {
		difference = translated_write(&stream_limits, message, frame);
		for (unsigned i = 0; i < 3 && difference == NULL; i++) /* also with a memo */
			difference = recall_read(recall, frame);
		if (difference == NULL)
			assert_int_equal(wire_read(&spokei_wire_dubbo, &stream_limits, NULL, frame,
						   &recall->scratch[0], &read),
					 0);
		if (difference == NULL)
			difference = translated_read(&stream_limits, frame, &read);
		if (difference)
			fail_msg("%s", difference);
	}
	spokei_buffer_fini(&out);
	return result == 0;
}

TEST(requests_are_written_and_read_like_by_way_of_msgpack)
{
	static const char *const types[] = { "",
					     "Ljava/lang/String;",
					     "I",
					     "J",
					     "D",
					     "F",
					     "Z",
					     "S",
					     "C",
					     "Ljava/lang/Object;",
					     "Ljava/lang/Long;" };
	static const int64_t timeouts[] = { 0, 1, 1000, 123456 };
	struct values values;
	struct recall recall;
	unsigned written = 0;

	values_init(&values);
	recall_init(&recall, &spokei_wire_dubbo, &stream_limits);
	for (size_t i = 0; i < values.count * LENGTH(types); i++) {
		struct spokei_message message = {
			.kind = SPOKEI_REQUEST,
			.codec = SPOKEI_CODEC_HESSIAN2,
			.id = i,
			.two_way = i % 3 > 0,
			.service = span_of("demo.Echo"),
			.method = span_of("echo"),
			.types = span_of(types[i % LENGTH(types)]),
			.args = { values.value[i / LENGTH(types)].data,
				  values.value[i / LENGTH(types)].len },
			.arg_count = 1,
			.timeout_ms = timeouts[i % LENGTH(timeouts)],
		};
		struct spokei_buffer prefix;

		spokei_buffer_init(&prefix, &recall.memory.env, 4096);
		assert_int_equal(spokei_wire_dubbo.prefix(&stream_limits, &message, &prefix), 0);
		message.prefix = spokei_span(spokei_buffer_data(&prefix),
					     spokei_buffer_len(&prefix));
		written += goes_both_ways(&recall, &message);
		spokei_buffer_fini(&prefix);
	}
	assert_in_range(written, values.count * LENGTH(types) / 2, values.count * LENGTH(types));
	recall_fini(&recall);
	values_fini(&values);
}

TEST(replies_are_written_and_read_like_by_way_of_msgpack)
{
	static const struct spoke_value java = {
		(const unsigned char *)"\xdf\0\0\0\1\245dubbo\2452.0.2", 17
	};
	struct values values;
	struct recall recall;
	unsigned written = 0;

	values_init(&values);
	recall_init(&recall, &spokei_wire_dubbo, &stream_limits);
	for (size_t i = 0; i < 2 * values.count + 2; i++) {
		struct spokei_message message = {
			.kind = SPOKEI_REPLY,
			.codec = SPOKEI_CODEC_HESSIAN2,
			.id = i,
			.bare = i % 2 > 0,
			.value = i < 2 * values.count ? values.value[i / 2]
						      : (struct spoke_value){ 0 },
		};

		if (!message.bare)
			message.attachments = java;
		written += goes_both_ways(&recall, &message);
	}
	/* All but the number above 2^63. */
	assert_int_equal(written, 2 * values.count);
	recall_fini(&recall);
	values_fini(&values);
}

/* Types of 256 bytes have a longer head in msgpack than in Hessian 2. */
TEST(memo_keeps_types_of_up_to_255_bytes)
{
	static const size_t lens[] = { 1, 31, 32, 255, 256, 300 };
	char types[LONG_TEXT];

	memset(types, '[', sizeof(types));
	for (size_t i = 0; i < LENGTH(lens); i++) {
		struct spokei_message message = {
			.kind = SPOKEI_REQUEST,
			.codec = SPOKEI_CODEC_HESSIAN2,
			.two_way = true,
			.service = span_of("demo.Echo"),
			.method = span_of("echo"),
			.args = span_of("\xa2hi"),
			.arg_count = 1,
			.timeout_ms = 1000,
		};
		struct recall recall;

		types[lens[i] - 1] = 'I';
		message.types = spokei_span(types, lens[i]);
		recall_init(&recall, &spokei_wire_dubbo, &stream_limits);
		assert_true(goes_both_ways(&recall, &message));
		assert_int_equal(recall.repeat, lens[i] < 256);
		recall_fini(&recall);
		types[lens[i] - 1] = '[';
	}
}
