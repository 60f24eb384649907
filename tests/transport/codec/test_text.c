/* SPDX-License-Identifier: Apache-2.0 */
/* A second codec on the Dubbo wire, which needs no change of the wire. */
#include "tests/support/test.h"
#include "tests/transport/codec/textcodec.h"
#include "tests/transport/dubbo_frames.h"

#include "tests/core/memory.h"
#include "tests/transport/wires.h"

#include <stdlib.h>
#include <string.h>

#define ID 30
#define SCRATCH_MAX 4096

/* The memory and buffers of a test. */
struct bed {
	struct spokei_wire_limits limits;
	struct memory memory;
	struct spokei_buffer out;
	struct spokei_buffer scratch;
};

static int bed_set_up(void **state)
{
	struct bed *bed = calloc(1, sizeof(*bed));

	assert_non_null(bed);
	bed->limits = frame_limits;
	bed->limits.codec = &textcodec;
	memory_init(&bed->memory);
	spokei_buffer_init(&bed->out, &bed->memory.env, 2 * FRAME_MAX);
	spokei_buffer_init(&bed->scratch, &bed->memory.env, SCRATCH_MAX);
	*state = bed;
	return 0;
}

static int bed_tear_down(void **state)
{
	struct bed *bed = *state;

	spokei_buffer_fini(&bed->out);
	spokei_buffer_fini(&bed->scratch);
	assert_int_equal(bed->memory.bytes, 0);
	free(bed);
	return 0;
}

FIXTURE(bed_set_up, bed_tear_down);

static struct spoke_span held(const struct spokei_buffer *buffer)
{
	return spokei_span(spokei_buffer_data(buffer), spokei_buffer_len(buffer));
}

static int write_with(struct bed *bed, const struct spokei_message *message)
{
	spokei_buffer_truncate(&bed->out, 0);
	return spokei_wire_dubbo.write(&bed->limits, message, &bed->out);
}

static int read_out(struct bed *bed, struct spokei_message *ret)
{
	spokei_buffer_truncate(&bed->scratch, 0);
	return wire_read(&spokei_wire_dubbo, &bed->limits, NULL, held(&bed->out), &bed->scratch,
			 ret);
}

/* Writes the message and reads it back. */
static void round_trip(struct bed *bed, const struct spokei_message *message,
		       struct spokei_message *ret)
{
	assert_int_equal(write_with(bed, message), 0);
	assert_int_equal(read_out(bed, ret), 0);
	assert_int_equal(ret->codec, ID);
	assert_int_equal(ret->id, message->id);
}

/* Asserts that the written frame has this body. */
static void body_is(const struct bed *bed, const void *body, size_t len)
{
	struct spoke_span frame = held(&bed->out);

	assert_int_equal(frame.len, HEAD + len);
	assert_memory_equal((const unsigned char *)frame.data + HEAD, body, len);
}

#define BODY_IS(bed, body) body_is(bed, body, sizeof(body) - 1)

static struct spokei_message request_of(void)
{
	return (struct spokei_message){
		.kind = SPOKEI_REQUEST,
		.id = 5,
		.two_way = true,
		.codec = ID,
		.service = span_of("s"),
		.version = span_of("1"),
		.group = span_of("g"),
		.method = span_of("m"),
		.args = span_of("\x92\x01\xa1x\xc3"),
		.arg_count = 2,
		.timeout_ms = 70,
	};
}

#define TEXT_NAMES "\0\0\0\6s2.0.2\0\0\0\2ss\0\0\0\2s1\0\0\0\2sm"

TEST(request_comes_back)
{
	struct spokei_message message = request_of();
	struct spokei_message read;

	message.attachments = VALUE("\x81\xa1k\xa1v");
	round_trip(*state, &message, &read);
	assert_int_equal(read.kind, SPOKEI_REQUEST);
	assert_true(read.two_way);
	is_text(read.service, "s");
	is_text(read.version, "1");
	is_text(read.group, "g");
	is_text(read.method, "m");
	is_text(read.types, "Ljava/util/List;Z");
	is_text(read.args, "\x92\x01\xa1x\xc3");
	assert_int_equal(read.arg_count, 2);
	assert_int_equal(read.timeout_ms, 70);
	assert_false(read.bare);
}

TEST(generic_request_comes_back)
{
	struct spokei_message message = request_of();
	struct spokei_message read;

	message.generic = true;
	message.type_names = VALUE("\x92\xa1L\xa1Z");
	round_trip(*state, &message, &read);
	assert_true(read.generic);
	is_text(read.method, "m");
	is_text(read.args, "\x92\x01\xa1x\xc3");
	assert_int_equal(read.type_names.len, 5);
}

TEST(prefix_is_names_in_codec)
{
	struct bed *bed = *state;
	struct spokei_message message = request_of();

	assert_int_equal(spokei_wire_dubbo.prefix(&bed->limits, &message, &bed->out), 0);
	is_bytes(held(&bed->out), TEXT_NAMES, sizeof(TEXT_NAMES) - 1);
}

TEST(prefix_makes_no_difference_to_frame)
{
	struct bed *bed = *state;
	struct spokei_message message = request_of();
	struct spokei_buffer prefix;
	unsigned char whole[512];

	for (unsigned i = 0; i < 4; i++) {
		size_t len;

		message.types = i & 1 ? span_of("Ljava/util/List;Z") : spokei_span(NULL, 0);
		message.generic = (i & 2) != 0;
		message.prefix = spokei_span(NULL, 0);
		assert_int_equal(write_with(bed, &message), 0);
		len = spokei_buffer_len(&bed->out);
		assert_in_range(len, 1, sizeof(whole));
		memcpy(whole, spokei_buffer_data(&bed->out), len);
		spokei_buffer_init(&prefix, &bed->memory.env, FRAME_MAX);
		assert_int_equal(spokei_wire_dubbo.prefix(&bed->limits, &message, &prefix), 0);
		message.prefix = held(&prefix);
		assert_int_equal(write_with(bed, &message), 0);
		is_bytes(held(&bed->out), whole, len);
		spokei_buffer_fini(&prefix);
	}
}

TEST(reply_markers_come_back)
{
	struct bed *bed = *state;
	struct spokei_message message = { .kind = SPOKEI_REPLY, .id = 9, .codec = ID };
	struct spokei_message read;

	message.bare = true;
	round_trip(bed, &message, &read);
	BODY_IS(bed, "\0\0\0\2i2");
	assert_true(spoke_value_is_nil(read.value) || read.value.len == 0);
	message.value = VALUE("\x91\x05");
	round_trip(bed, &message, &read);
	BODY_IS(bed, "\0\0\0\2i1\0\0\0\2a1\0\0\0\2i5");
	assert_int_equal(read.value.len, 2);
	message.bare = false;
	message.attachments = VALUE("\x81\xa1k\xa1v");
	round_trip(bed, &message, &read);
	assert_false(read.bare);
	assert_int_equal(spoke_value_get(read.attachments, "k", &read.value), 0);
}

TEST(exception_comes_back)
{
	struct bed *bed = *state;
	struct spokei_message message = {
		.kind = SPOKEI_REPLY,
		.id = 9,
		.codec = ID,
		.bare = true,
		.error = SPOKE_EREMOTE,
		.error_code = 3,
		.error_text = span_of("no"),
		.error_class = span_of("C"),
	};
	struct spokei_message read;

	round_trip(bed, &message, &read);
	BODY_IS(bed, "\0\0\0\2i0\0\0\0\2eC\0\0\0\2m2\0\0\0\10smessage\0\0\0\3sno\0\0\0\5scode"
		     "\0\0\0\2i3");
	assert_int_equal(read.error, SPOKE_EREMOTE);
	assert_int_equal(read.error_code, 3);
	is_text(read.error_text, "no");
	is_text(read.error_class, "C");
}

TEST(refusal_is_written_in_codec)
{
	struct bed *bed = *state;
	struct spokei_message message = {
		.kind = SPOKEI_REPLY,
		.id = 9,
		.codec = ID,
		.error = SPOKE_EREFUSED,
		.error_text = span_of("not now"),
	};
	struct spokei_message read;

	round_trip(bed, &message, &read);
	BODY_IS(bed, "\0\0\0\10snot now");
	assert_int_equal(read.status, 100);
	assert_int_equal(read.error, SPOKE_EREFUSED);
	is_text(read.error_text, "not now");
}

TEST(events_have_bodies_of_codec)
{
	static const enum spokei_kind kinds[] = { SPOKEI_PROBE, SPOKEI_PROBE_ANSWER,
						  SPOKEI_READONLY, SPOKEI_WRITABLE };
	static const char bodies[] = "nnRW";
	struct bed *bed = *state;

	for (size_t i = 0; i < LENGTH(kinds); i++) {
		struct spokei_message message = { .kind = kinds[i], .id = 9, .codec = ID };
		struct spokei_message read;

		round_trip(bed, &message, &read);
		assert_int_equal(read.kind, kinds[i]);
		assert_int_equal(held(&bed->out).len, HEAD + (i < 2 ? 5 : 6));
		assert_int_equal(((const char *)held(&bed->out).data)[HEAD + (i < 2 ? 4 : 5)],
				 bodies[i]);
	}
}

/* --- limits */

static void frame_at(struct bed *bed, unsigned flags, unsigned status, const void *body, size_t len)
{
	struct frame frame;

	frame_init(&frame, flags, status, body, len);
	spokei_buffer_truncate(&bed->out, 0);
	assert_int_equal(spokei_buffer_append(&bed->out, frame.bytes, frame.len), 0);
}

/* Reads a reply with this body. */
static int read_reply_of(struct bed *bed, const void *body, size_t len)
{
	struct spokei_message message;
	int result;

	frame_at(bed, ID, 20, body, len);
	result = read_out(bed, &message);
	assert_int_equal(message.kind, SPOKEI_REPLY);
	assert_int_equal(message.id, 7);
	return result;
}

#define READ_REPLY(bed, body) read_reply_of(bed, body, sizeof(body) - 1)

TEST(decoded_depth_is_bounded)
{
	struct bed *bed = *state;

	bed->limits.value.depth_max = 2;
	assert_int_equal(READ_REPLY(bed, "\0\0\0\2i1\0\0\0\2a1\0\0\0\2a0"), 0);
	assert_int_equal(READ_REPLY(bed, "\0\0\0\2i1\0\0\0\2a1\0\0\0\2a1\0\0\0\2a0"), SPOKE_EDEPTH);
}

TEST(decoded_items_are_bounded)
{
	struct bed *bed = *state;

	bed->limits.value.items_max = 4;
	assert_int_equal(READ_REPLY(bed, "\0\0\0\2i1\0\0\0\2a2\0\0\0\1n\0\0\0\1n"), 0);
	assert_int_equal(READ_REPLY(bed, "\0\0\0\2i1\0\0\0\2a3\0\0\0\1n\0\0\0\1n\0\0\0\1n"),
			 SPOKE_ETOOLARGE);
	assert_int_equal(READ_REPLY(bed, "\0\0\0\2i1\0\0\0\12a999999999"), SPOKE_ETOOLARGE);
	bed->limits.value.items_max = 0;
	bed->limits.value.object_bytes_max = 4 * SPOKE_VALUE_OBJECT_BYTES;
	assert_int_equal(READ_REPLY(bed, "\0\0\0\2i1\0\0\0\2a3\0\0\0\1n\0\0\0\1n\0\0\0\1n"),
			 SPOKE_ETOOLARGE);
}

TEST(decoded_bytes_are_bounded)
{
	static unsigned char body[SCRATCH_MAX + 64] = "\0\0\0\2i1\0\0\x10\1b";
	struct bed *bed = *state;

	/* The bin alone fills all bytes. */
	bed->limits.value.bytes_max = 0x1000;
	assert_int_equal(read_reply_of(bed, body, 6 + 4 + 0x1001), SPOKE_ETOOLARGE);
	body[8] = 0x0f;
	assert_int_equal(read_reply_of(bed, body, 6 + 4 + 0x0f01), 0);
	bed->limits.value.bytes_max = 1000;
	assert_int_equal(read_reply_of(bed, body, 6 + 4 + 0x0f01), SPOKE_ETOOLARGE);
}

TEST(bad_bodies_are_errors)
{
	static const struct {
		const char *body;
		size_t len;
		int error;
	} rows[] = {
		{ "", 0, SPOKE_EBADREPLY },
		{ "\0\0\0", 3, SPOKE_ETRUNCATED },
		{ "\0\0\0\2i", 5, SPOKE_ETRUNCATED },
		{ "\0\0\0\2i1\0\0\0\2a1", 12, SPOKE_ETRUNCATED },
		{ "\0\0\0\0", 4, SPOKE_ECORRUPT },
		{ "\0\0\0\1?", 5, SPOKE_ECORRUPT },
		{ "\0\0\0\2i1\0\0\0\2nn", 12, SPOKE_ECORRUPT },
		{ "\0\0\0\2i9", 6, SPOKE_EBADREPLY },
		{ "\0\0\0\2i1", 6, SPOKE_EBADREPLY },
		{ "\0\0\0\2i1\0\0\0\1n\0\0\0\1n", 16, SPOKE_EBADREPLY },
		{ "\xff\xff\xff\xff"
		  "b",
		  5, SPOKE_ETRUNCATED },
	};

	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_int_equal(read_reply_of(*state, rows[i].body, rows[i].len), rows[i].error);
}

TEST(body_cut_anywhere_is_error)
{
	struct bed *bed = *state;
	struct spokei_message message = request_of();
	unsigned char body[512];
	size_t len;

	assert_int_equal(write_with(bed, &message), 0);
	len = spokei_buffer_len(&bed->out) - HEAD;
	assert_in_range(len, 1, sizeof(body));
	memcpy(body, spokei_buffer_data(&bed->out) + HEAD, len);
	for (size_t i = 0; i < len; i++) {
		struct spokei_message read;

		frame_at(bed, 0xc0 | ID, 0, body, i);
		assert_int_not_equal(read_out(bed, &read), 0);
		assert_int_equal(read.kind, SPOKEI_REQUEST);
		assert_int_equal(read.id, 7);
	}
}

/* --- failures */

TEST(failed_write_leaves_buffer)
{
	struct bed *bed = *state;
	struct spokei_message message = request_of();
	static unsigned char text[3 + 4000] = { 0xda, 4000 >> 8, 4000 & 0xff };
	unsigned failures = 0;

	message.args = spokei_span(text, sizeof(text)); /* needs more memory than "abc" */
	message.arg_count = 1;
	assert_int_equal(spokei_buffer_append(&bed->out, "abc", 3), 0);
	for (;; failures++) {
		int error;

		bed->memory.asked = 0;
		bed->memory.fail_at = failures + 1;
		error = spokei_wire_dubbo.write(&bed->limits, &message, &bed->out);
		if (error == 0)
			break;
		assert_int_equal(error, SPOKE_ENOMEM);
		is_text(held(&bed->out), "abc");
	}
	assert_in_range(failures, 1, 8);
	spokei_buffer_truncate(&bed->out, 3);
	bed->memory.fail_at = 0;
	bed->limits.frame_max = 64;
	assert_int_equal(spokei_wire_dubbo.write(&bed->limits, &message, &bed->out),
			 SPOKE_ETOOLARGE);
	is_text(held(&bed->out), "abc");
}

TEST(failed_read_is_enomem)
{
	struct bed *bed = *state;
	struct spokei_message message = request_of();

	assert_int_equal(write_with(bed, &message), 0);
	bed->memory.asked = 0;
	bed->memory.fail_at = 1;
	assert_int_equal(read_out(bed, &message), SPOKE_ENOMEM);
	assert_int_equal(read_out(bed, &message), 0);
}

TEST(unknown_codec_is_unsupported)
{
	struct bed *bed = *state;
	struct spokei_message message = request_of();

	assert_int_equal(write_with(bed, &message), 0);
	bed->limits.codec = NULL;
	assert_int_equal(read_out(bed, &message), SPOKE_EUNSUPPORTED);
	message = request_of();
	assert_int_equal(write_with(bed, &message), SPOKE_EUNSUPPORTED);
	assert_int_equal(spokei_wire_dubbo.prefix(&bed->limits, &message, &bed->out),
			 SPOKE_EUNSUPPORTED);
	assert_int_equal(spokei_buffer_len(&bed->out), 0);
}
