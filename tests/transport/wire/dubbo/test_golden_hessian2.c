/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All Hessian 2 frames that real Dubbo peers have sent. Each is read as the values that an
 * independent reader finds in it, and these values are written as the same bytes.
 */
#include "tests/core/memory.h"
#include "tests/support/test.h"
#include "tests/transport/codec/bodies.h"
#include "tests/transport/dubbo_frames.h"
#include "tests/transport/golden_frames.h"
#include "tests/transport/translated.h"
#include "tests/transport/wires.h"
#include "transport/wire/put.h"

#include <stdlib.h>
#include <string.h>

static const struct spokei_wire_limits limits = {
	.frame_max = 8388608,
	.name_max = 1024,
	.event_max = 64,
	.value = { .cycles = true },
	.free_len = SPOKE_VALUE_ITEMS_MAX,
};

#define ID_END 12 /* in the head; the length of the body follows */

static struct golden_frame *frames;
static struct memory memory;
static struct spokei_buffer scratch; /* what a frame becomes */
static struct spokei_buffer out;     /* what is written */

static int open_frames(void **state)
{
	(void)state;
	frames = golden_frames_read();
	memory_init(&memory);
	spokei_buffer_init(&scratch, &memory.env, 8388608);
	spokei_buffer_init(&out, &memory.env, 8388608);
	return 0;
}

static int close_frames(void **state)
{
	(void)state;
	spokei_buffer_fini(&scratch);
	spokei_buffer_fini(&out);
	assert_int_equal(memory.bytes, 0);
	golden_frames_free(frames);
	return 0;
}

GROUP(open_frames, close_frames);

/* Returns whether the frame is a request or a reply, with a body to translate, and of which part.
 */
static bool has_body(const struct golden_frame *frame, enum spokei_codec_part *ret_part)
{
	if (strcmp(frame->kind, "request") == 0)
		*ret_part = SPOKEI_CODEC_REQUEST;
	else if (strcmp(frame->kind, "reply") == 0)
		*ret_part = frame->bytes[3] == 20 ? SPOKEI_CODEC_REPLY : SPOKEI_CODEC_TEXT;
	else
		return false;
	return true;
}

static int read_message(const struct golden_frame *frame, const struct spokei_wire_limits *with,
			struct spokei_message *ret)
{
	struct spoke_span bytes = spokei_span(frame->bytes, frame->len);
	struct spokei_cut cut = { 0 };
	size_t len;

	assert_int_equal(wire_cut(&spokei_wire_dubbo, with, &cut, bytes, &len), 0);
	assert_int_equal(len, frame->len);
	return wire_read(&spokei_wire_dubbo, with, NULL, bytes, &scratch, ret);
}

/* --- values */

TEST(bodies_become_values_of_independent_reader)
{
	unsigned bodies = 0;

	for (size_t i = 0; i < GOLDEN_FRAMES; i++) {
		enum spokei_codec_part part;
		struct spoke_span values;

		if (!has_body(&frames[i], &part))
			continue;
		spokei_buffer_truncate(&scratch, 0);
		if (body_read(&spokei_codec_hessian2, &limits.value, part, golden_body(&frames[i]),
			      &scratch, &values) != 0 ||
		    !golden_frame_has(&frames[i], values))
			fail_msg("%s: other values", frames[i].name);
		bodies++;
	}
	assert_int_equal(bodies, 303);
}

/* Java cuts long binaries where its buffer of 8 KiB happens to end. */
static bool has_long_binary(const struct golden_frame *frame)
{
	static const char *const names[] = {
		"dubbo-2.7.23-hessian2 109",
		"dubbo-2.7.23-hessian2 110",
		"dubbo-2.7.23-hessian2 111",
		"dubbo-2.7.23-hessian2 112",
	};

	for (size_t i = 0; i < LENGTH(names); i++)
		if (strcmp(frame->name, names[i]) == 0)
			return true;
	return false;
}

/* Returns whether the text of a refusal is the first 1,023 characters of the recorded one, which is
 * longer and has another head. */
static bool is_shortened(struct spoke_span body, struct spoke_span recorded)
{
	const unsigned char *text = body.data;

	return body.len == 2 + 1023 && recorded.len > 3 + 1023 &&
	       memcmp(text + 2, (const unsigned char *)recorded.data + 3, 1023) == 0;
}

/* Returns whether the body equals that of the frame; one with a long binary may instead be read as
 * the same values. */
static bool is_body_of(const struct golden_frame *frame, struct spoke_span body)
{
	struct spoke_span recorded = golden_body(frame);
	enum spokei_codec_part part;
	struct spoke_span values;

	if (strcmp(frame->name, "dubbo-2.7.23-hessian2 224") == 0)
		return is_shortened(body, recorded);
	if (!has_long_binary(frame))
		return body.len == recorded.len && memcmp(body.data, recorded.data, body.len) == 0;
	spokei_buffer_truncate(&scratch, 0);
	return has_body(frame, &part) &&
	       body_read(&spokei_codec_hessian2, &limits.value, part, body, &scratch, &values) ==
		       0 &&
	       golden_frame_has(frame, values);
}

static struct spoke_span written(void)
{
	return spokei_span(spokei_buffer_data(&out), spokei_buffer_len(&out));
}

/* References, classes and types have the same numbers, so every other body is deterministic. */
TEST(bodies_are_written_byte_by_byte)
{
	for (size_t i = 0; i < GOLDEN_FRAMES; i++) {
		enum spokei_codec_part part;
		struct spoke_span values;

		if (!has_body(&frames[i], &part) || part == SPOKEI_CODEC_TEXT)
			continue;
		spokei_buffer_truncate(&scratch, 0);
		spokei_buffer_truncate(&out, 0);
		assert_int_equal(body_read(&spokei_codec_hessian2, &limits.value, part,
					   golden_body(&frames[i]), &scratch, &values),
				 0);
		if (body_write(&spokei_codec_hessian2, part, values, &out) != 0 ||
		    !is_body_of(&frames[i], written()))
			fail_msg("%s: other bytes", frames[i].name);
	}
}

/* --- messages */

static struct spoke_value next_value(struct spoke_cursor *cursor)
{
	struct spoke_value value;

	assert_true(spoke_cursor_next(cursor, &value));
	return value;
}

static struct spoke_span next_text(struct spoke_cursor *cursor)
{
	struct spoke_span text;

	assert_int_equal(spoke_value_str(next_value(cursor), &text), 0);
	return text;
}

static void same_span(struct spoke_span a, struct spoke_span b)
{
	is_bytes(a, b.data, b.len);
}

static void same_value(struct spoke_value a, struct spoke_value b)
{
	is_bytes(spokei_span(a.data, a.len), b.data, b.len);
}

/* Checks a call of $invoke against its three arguments. */
static void is_generic(const struct spokei_message *message, struct spoke_cursor *cursor)
{
	struct spoke_cursor args;

	same_span(message->method, next_text(cursor));
	same_value(message->type_names, next_value(cursor));
	assert_int_equal(spoke_cursor_array(next_value(cursor), &args), 0);
	assert_true(message->generic);
	assert_int_equal(message->arg_count, args.left);
	same_span(message->args, spoke_cursor_rest(&args));
	same_value(message->attachments, next_value(cursor));
}

static void is_plain(const struct spokei_message *message, const struct golden_frame *frame,
		     struct spoke_cursor *cursor)
{
	const unsigned char *args = cursor->at;

	is_text(message->method, frame->said);
	is_text(message->types, frame->types);
	assert_false(message->generic);
	assert_int_equal(message->arg_count, strtoul(frame->arg_count, NULL, 10));
	for (size_t i = 0; i < message->arg_count; i++)
		(void)next_value(cursor);
	is_bytes(message->args, args, (size_t)(cursor->at - args));
	same_value(message->attachments, next_value(cursor));
}

static void is_request(const struct spokei_message *message, const struct golden_frame *frame,
		       struct spoke_span values)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(values);
	struct spoke_span service;
	struct spoke_span version;

	assert_int_equal(message->kind, SPOKEI_REQUEST);
	is_text(next_text(&cursor), "2.0.2");
	service = next_text(&cursor);
	version = next_text(&cursor);
	same_span(message->service, service);
	if (spokei_span_is(version, "0.0.0"))
		assert_int_equal(message->version.len, 0);
	else
		same_span(message->version, version);
	is_text(next_text(&cursor), frame->said);
	is_text(next_text(&cursor), frame->types);
	if (strcmp(frame->said, "$invoke") == 0)
		is_generic(message, &cursor);
	else
		is_plain(message, frame, &cursor);
	assert_false(spoke_cursor_next(&cursor, &(struct spoke_value){ 0 }));
	assert_false(message->bare);
}

/* Markers 3 to 5: an exception, a value, null. All have attachments. */
static void is_reply(const struct spokei_message *message, const struct golden_frame *frame,
		     struct spoke_span values)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(values);
	struct spoke_value field;
	struct spoke_span text;
	uint64_t marker;

	assert_int_equal(message->kind, SPOKEI_REPLY);
	assert_int_equal(spoke_value_u64(next_value(&cursor), &marker), 0);
	assert_int_equal(marker, strtoul(frame->said, NULL, 10));
	assert_in_range(marker, 3, 5);
	assert_int_equal(message->error, marker == 3 ? SPOKE_EREMOTE : 0);
	if (marker == 3) {
		same_span(message->error_class, next_text(&cursor));
		assert_int_equal(spoke_value_get(message->value, "message", &field), 0);
		assert_int_equal(spoke_value_str(field, &text), 0);
		same_span(message->error_text, text);
	}
	if (marker == 5)
		assert_int_equal(message->value.len, 0);
	else
		same_value(message->value, next_value(&cursor));
	same_value(message->attachments, next_value(&cursor));
	assert_false(spoke_cursor_next(&cursor, &field));
	assert_false(message->bare);
}

static void is_refusal(const struct spokei_message *message, const struct golden_frame *frame,
		       struct spoke_span values)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(values);

	assert_int_equal(message->kind, SPOKEI_REPLY);
	assert_int_equal(message->status, frame->bytes[3]);
	assert_int_not_equal(message->error, 0);
	same_span(message->error_text, next_text(&cursor));
}

static void is_event(const struct spokei_message *message, const struct golden_frame *frame)
{
	static const struct {
		const char *name;
		enum spokei_kind kind;
	} kinds[] = {
		{ "probe", SPOKEI_PROBE },
		{ "answer", SPOKEI_PROBE_ANSWER },
		{ "event", SPOKEI_READONLY },
	};

	for (size_t i = 0; i < LENGTH(kinds); i++)
		if (strcmp(frame->kind, kinds[i].name) == 0)
			assert_int_equal(message->kind, kinds[i].kind);
	assert_true(golden_frame_has(frame, message->event));
}

/* The message points into `scratch`, so the values to compare are read into `out`. */
static void is_told(const struct spokei_message *message, const struct golden_frame *frame)
{
	enum spokei_codec_part part;
	struct spoke_span values;

	assert_int_equal(message->codec, SPOKEI_CODEC_HESSIAN2);
	assert_int_equal(message->status, frame->bytes[3]);
	assert_int_equal(message->id, spokei_get_64(frame->bytes + 4));
	assert_int_equal(message->two_way, (frame->bytes[2] & 0x40) != 0);
	if (!has_body(frame, &part)) {
		is_event(message, frame);
		return;
	}
	spokei_buffer_truncate(&out, 0);
	assert_int_equal(body_read(&spokei_codec_hessian2, &limits.value, part, golden_body(frame),
				   &out, &values),
			 0);
	assert_true(golden_frame_has(frame, values));
	if (part == SPOKEI_CODEC_REQUEST)
		is_request(message, frame, values);
	else if (part == SPOKEI_CODEC_REPLY)
		is_reply(message, frame, values);
	else
		is_refusal(message, frame, values);
}

TEST(frames_are_read_as_messages)
{
	/* By the three upper bits of the flags: request, two-way, event. */
	static const unsigned expected[8] = { 149, 7, 0, 0, 1, 1, 153, 7 };
	unsigned counts[8] = { 0 };
	struct spokei_message message;

	for (size_t i = 0; i < GOLDEN_FRAMES; i++) {
		if (read_message(&frames[i], &limits, &message) != 0)
			fail_msg("%s: not understood", frames[i].name);
		is_told(&message, &frames[i]);
		counts[frames[i].bytes[2] >> 5]++;
	}
	assert_memory_equal(counts, expected, sizeof(counts));
}

TEST(messages_are_written_as_same_frames)
{
	struct spokei_message message;

	for (size_t i = 0; i < GOLDEN_FRAMES; i++) {
		assert_int_equal(read_message(&frames[i], &limits, &message), 0);
		spokei_buffer_truncate(&out, 0);
		if (spokei_wire_dubbo.write(&limits, &message, &out) != 0 ||
		    memcmp(written().data, frames[i].bytes, ID_END) != 0 ||
		    !is_body_of(&frames[i], spokei_span_after(written(), HEAD)))
			fail_msg("%s: another frame", frames[i].name);
	}
}

TEST(messages_agree_with_those_by_way_of_msgpack)
{
	struct spokei_message message;

	for (size_t i = 0; i < GOLDEN_FRAMES; i++) {
		const char *difference;

		assert_int_equal(read_message(&frames[i], &limits, &message), 0);
		difference = translated_read(&limits, spokei_span(frames[i].bytes, frames[i].len),
					     &message);
		if (difference)
			fail_msg("%s: %s", frames[i].name, difference);
		spokei_buffer_truncate(&out, 0);
		assert_int_equal(spokei_wire_dubbo.write(&limits, &message, &out), 0);
		difference = translated_write(&limits, &message, written());
		if (difference)
			fail_msg("%s: %s", frames[i].name, difference);
	}
}

/* Users and persons who are their own friends. */
TEST(cycles_are_refused_by_default)
{
	struct spokei_wire_limits strict = limits;
	struct spokei_message message;
	unsigned refused = 0;

	strict.value.cycles = false;
	for (size_t i = 0; i < GOLDEN_FRAMES; i++) {
		int error = read_message(&frames[i], &strict, &message);

		if (error == 0)
			continue;
		assert_int_equal(error, SPOKE_ECYCLE);
		refused++;
	}
	assert_int_equal(refused, 4);
}
