/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of both wires through the input buffer, in one piece and in all other pieces. */
#include "tests/core/memory.h"
#include "tests/support/test.h"
#include "tests/transport/stream.h"
#include "transport/wire/catalog.h"
#include "transport/wire/intake.h"

#include <stdlib.h>
#include <string.h>

enum {
	LOG_SIZE = 4096
};

/* The messages of a stream as text, and the state of the input buffer. */
struct run {
	struct memory memory;
	struct spokei_intake intake;
	char log[LOG_SIZE];
	size_t messages;
	size_t repeats;
	enum spokei_intake_result last;
};

static void start(struct run *run, const struct spokei_wire_limits *limits)
{
	memset(run, 0, sizeof(*run));
	memory_init(&run->memory);
	spokei_intake_init(&run->intake, &run->memory.env, limits);
}

static void stop(struct run *run)
{
	spokei_intake_fini(&run->intake);
	assert_int_equal(run->memory.bytes, 0);
}

/* Feeds a copy that ends with its allocation, and logs the messages. */
static void give(struct run *run, const unsigned char *bytes, size_t len)
{
	unsigned char *piece = malloc(len ? len : 1);
	struct spoke_span rest = { piece, len };

	assert_non_null(piece);
	memcpy(piece, bytes, len);
	for (;;) {
		struct spokei_message message;
		size_t at = strlen(run->log);

		run->last = spokei_intake_next(&run->intake, &rest, &message);
		if (run->last == SPOKEI_INTAKE_MORE || run->last == SPOKEI_INTAKE_BROKEN)
			break;
		run->messages++;
		run->repeats += message.repeat;
		message_line(run->intake.reader.error, &message, run->log + at, LOG_SIZE - at - 1);
		run->log[strlen(run->log)] = '\n';
	}
	free(piece);
}

/* Makes a stream of a request with one str argument and a notification. */
static size_t make_stream(const struct spokei_wire *wire, unsigned char *bytes, size_t size)
{
	static const unsigned char arg[] = { 0xa3, 'o', 'n', 'e' };
	struct memory memory;
	struct spokei_buffer out;
	struct spokei_message message = {
		.kind = SPOKEI_REQUEST,
		.id = 1,
		.two_way = true,
		.codec = 27,
		.service = { "demo.Echo", 9 },
		.method = { "echo", 4 },
		.args = { arg, sizeof(arg) },
		.arg_count = 1,
	};
	size_t len;

	memory_init(&memory);
	spokei_buffer_init(&out, &memory.env, size);
	for (int i = 0; i < 3; i++) {
		message.id++;
		message.two_way = i < 2;
		assert_int_equal(wire->write(&stream_limits, &message, &out), 0);
	}
	len = spokei_buffer_len(&out);
	memcpy(bytes, spokei_buffer_data(&out), len);
	spokei_buffer_fini(&out);
	return len;
}

static const char *const wires[] = { "dubbo", "msgpack-rpc" };

TEST(messages_do_not_depend_on_cuts)
{
	for (size_t w = 0; w < 2; w++) {
		unsigned char bytes[1024];
		size_t len = make_stream(spokei_catalog_wire(wires[w]), bytes, sizeof(bytes));
		struct run whole;

		start(&whole, &stream_limits);
		give(&whole, bytes, len);
		assert_int_equal(whole.last, SPOKEI_INTAKE_MORE);
		assert_int_equal(whole.messages, 3);
		assert_int_equal(whole.memory.asked, 1); /* the memo; no byte is kept */
		for (size_t cut = 0; cut <= len; cut++) {
			for (size_t second = cut; second <= len; second += 1 + (len - cut) / 9) {
				struct run run;

				start(&run, &stream_limits);
				give(&run, bytes, cut);
				give(&run, bytes + cut, second - cut);
				give(&run, bytes + second, len - second);
				assert_string_equal(run.log, whole.log);
				assert_false(spokei_intake_begun(&run.intake));
				stop(&run);
			}
		}
		stop(&whole);
	}
}

TEST(messages_are_the_same_byte_by_byte)
{
	for (size_t w = 0; w < 2; w++) {
		unsigned char bytes[1024];
		size_t len = make_stream(spokei_catalog_wire(wires[w]), bytes, sizeof(bytes));
		struct run whole;
		struct run run;

		start(&whole, &stream_limits);
		give(&whole, bytes, len);
		start(&run, &stream_limits);
		for (size_t i = 0; i < len; i++) {
			give(&run, bytes + i, 1);
			assert_int_equal(spokei_intake_begun(&run.intake),
					 spokei_buffer_len(&run.intake.kept) > 0 &&
						 run.intake.given == 0);
		}
		assert_string_equal(run.log, whole.log);
		stop(&whole);
		stop(&run);
	}
}

TEST(unknown_wire_breaks_stream_at_first_byte)
{
	static const char *const streams[] = { "get / HTTP/1.1\r\n", "\x16\x03\x01", "\xc1" };
	unsigned char good[1024];
	size_t len = make_stream(spokei_catalog_wire("dubbo"), good, sizeof(good));

	for (size_t i = 0; i < 3; i++) {
		struct run run;

		start(&run, &stream_limits);
		give(&run, (const unsigned char *)streams[i], strlen(streams[i]));
		assert_int_equal(run.last, SPOKEI_INTAKE_BROKEN);
		assert_int_equal(run.intake.reader.error, SPOKE_EPROTOCOL);
		assert_int_equal(run.memory.asked, 0);
		/* Bytes after a broken frame are ignored, even if they are valid. */
		give(&run, good, len);
		assert_int_equal(run.last, SPOKEI_INTAKE_BROKEN);
		assert_int_equal(run.messages, 0);
		stop(&run);
	}
}

TEST(announced_length_allocates_only_received_bytes)
{
	static const unsigned char claim[] = { 0xda, 0xbb, 0xdb, 0, 0, 0, 0,    0,
					       0,    0,    0,    1, 0, 0, 0x7f, 0xff };
	struct spokei_wire_limits limits = stream_limits;
	struct run run;

	limits.frame_max = 1u << 23;
	start(&run, &limits);
	give(&run, claim, sizeof(claim));
	give(&run, claim, 1);
	assert_int_equal(run.last, SPOKEI_INTAKE_MORE);
	assert_true(spokei_intake_begun(&run.intake));
	assert_true(run.memory.bytes <= 4096);
	stop(&run);
}

/* Makes a stream of a too long frame between others; the body looks like a frame. */
static size_t make_long(unsigned char *bytes, size_t size, uint8_t flags, uint8_t status)
{
	size_t len = make_stream(spokei_catalog_wire("dubbo"), bytes, size);
	unsigned char *at = bytes + len;

	memset(at, 0, 16);
	at[0] = 0xda;
	at[1] = 0xbb;
	at[2] = flags;
	at[3] = status;
	at[11] = 9;
	at[14] = 0x02; /* 512 bytes */
	for (size_t i = 16; i < 16 + 512; i++)
		at[i] = at[i % 16];
	return len + 16 + 512 +
	       make_stream(spokei_catalog_wire("dubbo"), at + 16 + 512, size - len - 528);
}

TEST(too_long_frame_is_skipped_wherever_it_is_cut)
{
	struct spokei_wire_limits limits = stream_limits;
	unsigned char bytes[2048];
	size_t len = make_long(bytes, sizeof(bytes), 0x1b, 20);
	struct run whole;

	limits.frame_max = 512;
	start(&whole, &limits);
	give(&whole, bytes, len);
	assert_int_equal(whole.last, SPOKEI_INTAKE_MORE);
	assert_int_equal(whole.messages, 7);
	for (size_t cut = 0; cut <= len; cut++) {
		struct run run;

		start(&run, &limits);
		give(&run, bytes, cut);
		give(&run, bytes + cut, len - cut);
		assert_string_equal(run.log, whole.log);
		assert_false(spokei_intake_begun(&run.intake));
		stop(&run);
	}
	stop(&whole);
}

TEST(too_long_frame_is_reported_at_its_header)
{
	static const unsigned char head[16] = { 0xda, 0xbb, 0x1b, 20, 0, 0, 0, 0,
						0,    0,    0,    9,  0, 0, 2, 0 };
	struct spokei_wire_limits limits = stream_limits;
	struct spoke_span rest = { head, sizeof(head) };
	struct spokei_message message;
	struct run run;

	limits.frame_max = 512;
	start(&run, &limits);
	assert_int_equal(spokei_intake_next(&run.intake, &rest, &message), SPOKEI_INTAKE_BAD_BODY);
	assert_int_equal(run.intake.reader.error, SPOKE_ETOOLARGE);
	assert_int_equal(run.intake.too_long, 528);
	assert_int_equal(message.kind, SPOKEI_REPLY);
	assert_int_equal(message.id, 9);
	assert_int_equal(spokei_intake_next(&run.intake, &rest, &message), SPOKEI_INTAKE_MORE);
	assert_true(spokei_intake_begun(&run.intake));
	assert_int_equal(run.memory.asked, 0);
	stop(&run);
}

TEST(bad_body_is_reported_and_stream_continues)
{
	unsigned char bytes[1024] = { 0xda, 0xbb, 0xdb, 0, 0, 0, 0, 0,    0,
				      0,    0,    9,    0, 0, 0, 2, 0xc1, 0xc1 };
	size_t len = 18 + make_stream(spokei_catalog_wire("dubbo"), bytes + 18, 1000);
	struct run run;

	start(&run, &stream_limits);
	give(&run, bytes, len);
	assert_int_equal(run.messages, 4);
	assert_int_equal(run.last, SPOKEI_INTAKE_MORE);
	assert_non_null(strstr(run.log, "request 9"));
	stop(&run);
}

TEST(unidentifiable_frame_breaks_stream)
{
	/* [7, 1, "x", []] and [0, -1, "x", []]: each is a complete invalid frame, followed by a
	 * valid one. */
	static const unsigned char frames[][6] = { { 0x94, 7, 1, 0xa1, 'x', 0x90 },
						   { 0x94, 0, 0xff, 0xa1, 'x', 0x90 } };

	for (size_t i = 0; i < 2; i++) {
		for (size_t cut = 1; cut <= 6; cut++) {
			unsigned char bytes[1024];
			size_t len = 6 + make_stream(spokei_catalog_wire("msgpack-rpc"), bytes + 6,
						     sizeof(bytes) - 6);
			struct run run;

			memcpy(bytes, frames[i], 6);
			start(&run, &stream_limits);
			give(&run, bytes, cut);
			give(&run, bytes + cut, len - cut);
			assert_int_equal(run.last, SPOKEI_INTAKE_BROKEN);
			assert_int_equal(run.intake.reader.error, SPOKE_EPROTOCOL);
			assert_int_equal(run.messages, 0);
			stop(&run);
		}
	}
}

TEST(enomem_breaks_stream)
{
	unsigned char bytes[1024];
	size_t len = make_stream(spokei_catalog_wire("dubbo"), bytes, sizeof(bytes));
	struct run run;

	start(&run, &stream_limits);
	run.memory.fail_at = 2;
	give(&run, bytes, len - 1);
	assert_int_equal(run.messages, 2);
	assert_int_equal(run.last, SPOKEI_INTAKE_BROKEN);
	assert_int_equal(run.intake.reader.error, SPOKE_ENOMEM);
	stop(&run);
}

TEST(memo_is_kept_from_second_request)
{
	for (size_t w = 0; w < 2; w++) {
		unsigned char bytes[1024];
		size_t len = make_stream(spokei_catalog_wire(wires[w]), bytes, sizeof(bytes));
		struct run run;

		start(&run, &stream_limits);
		for (size_t i = 0; run.messages == 0; i++)
			give(&run, bytes + i, 1);
		assert_null(run.intake.reader.memo);
		stop(&run);

		start(&run, &stream_limits);
		give(&run, bytes, len);
		assert_non_null(run.intake.reader.memo);
		assert_int_equal(run.repeats, 1); /* the first two are new */
		give(&run, bytes, len);
		assert_int_equal(run.repeats, 4);
		stop(&run);
	}
}

TEST(slim_intake_holds_no_memory)
{
	for (size_t w = 0; w < 2; w++) {
		unsigned char bytes[1024];
		size_t len = make_stream(spokei_catalog_wire(wires[w]), bytes, sizeof(bytes));
		struct run run;

		start(&run, &stream_limits);
		give(&run, bytes, len);
		assert_int_equal(run.repeats, 1);
		spokei_intake_slim(&run.intake);
		assert_int_equal(run.memory.bytes, 0);
		give(&run, bytes, len / 3);
		assert_null(run.intake.reader.memo);
		give(&run, bytes + len / 3, len - len / 3);
		assert_non_null(run.intake.reader.memo);
		assert_int_equal(run.messages, 6);
		assert_int_equal(run.repeats, 2); /* the same as at first */
		stop(&run);
	}
}

TEST(enomem_for_memo_loses_no_message)
{
	for (size_t w = 0; w < 2; w++) {
		unsigned char bytes[1024];
		size_t len = make_stream(spokei_catalog_wire(wires[w]), bytes, sizeof(bytes));
		struct run run;

		start(&run, &stream_limits);
		run.memory.fail_at = 1;
		give(&run, bytes, len);
		assert_int_equal(run.messages, 3);
		assert_int_equal(run.last, SPOKEI_INTAKE_MORE);
		stop(&run);
	}
}

TEST(replies_and_heartbeats_create_no_memo)
{
	static const unsigned char frames[] = { 0xda, 0xbb, 0x1b, 20, 0, 0, 0,   0, 0,
						0,    0,    1,    0,  0, 0, 1,   2, 0xda,
						0xbb, 0xfb, 0,    0,  0, 0, 0,   0, 0,
						0,    1,    0,    0,  0, 1, 0xc0 };
	struct run run;

	start(&run, &stream_limits);
	for (int i = 0; i < 3; i++)
		give(&run, frames, sizeof(frames));
	assert_int_equal(run.messages, 6);
	assert_int_equal(run.memory.asked, 0);
	stop(&run);
}
