/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast paths of writing, e.g. with a prebuilt prefix, make the same bytes as the slow ones, or
 * nothing.
 */
#include "tests/core/memory.h"
#include "tests/support/test.h"
#include "tests/transport/dubbo_frames.h"
#include "tests/transport/stream.h"
#include "tests/transport/wires.h"
#include "transport/wire/mprpc.h"

#include <stdio.h>
#include <string.h>

static const struct spokei_wire *const wires[] = { &spokei_wire_dubbo, &spokei_wire_mprpc };

struct bed {
	struct memory memory;
	struct spokei_buffer prefix;
	struct spokei_buffer plain;
	struct spokei_buffer quick;
};

static int set_up(void **state)
{
	static struct bed bed;

	memory_init(&bed.memory);
	spokei_buffer_init(&bed.prefix, &bed.memory.env, 65536);
	spokei_buffer_init(&bed.plain, &bed.memory.env, 65536);
	spokei_buffer_init(&bed.quick, &bed.memory.env, 65536);
	*state = &bed;
	return 0;
}

static int tear_down(void **state)
{
	struct bed *bed = *state;

	spokei_buffer_fini(&bed->prefix);
	spokei_buffer_fini(&bed->plain);
	spokei_buffer_fini(&bed->quick);
	assert_int_equal(bed->memory.bytes, 0);
	return 0;
}

FIXTURE(set_up, tear_down);

static struct spoke_span held(const struct spokei_buffer *buffer)
{
	return spokei_span(spokei_buffer_data(buffer), spokei_buffer_len(buffer));
}

/* Writes the message without a prefix and with the prefix of `maker`, and compares the bytes. */
static void assert_same(struct bed *bed, const struct spokei_wire *wire,
			struct spokei_message message, const struct spokei_message *maker)
{
	spokei_buffer_truncate(&bed->prefix, 0);
	spokei_buffer_truncate(&bed->plain, 0);
	spokei_buffer_truncate(&bed->quick, 0);
	assert_int_equal(wire->write(&stream_limits, &message, &bed->plain), 0);
	assert_int_equal(wire->prefix(&stream_limits, maker, &bed->prefix), 0);
	message.prefix = held(&bed->prefix);
	assert_int_equal(message.prefix.len > 0, !message.generic);
	if (!message.generic) {
		message.service = span_of("");
		message.version = span_of("");
		message.method = span_of("");
	}
	assert_int_equal(wire->write(&stream_limits, &message, &bed->quick), 0);
	is_bytes(held(&bed->quick), spokei_buffer_data(&bed->plain),
		 spokei_buffer_len(&bed->plain));
}

static struct spokei_message make_call(void)
{
	return (struct spokei_message){
		.kind = SPOKEI_REQUEST,
		.id = 7,
		.two_way = true,
		.codec = 27,
		.service = span_of("demo.Echo"),
		.method = span_of("echo"),
		.types = span_of("Ljava/lang/String;"),
		.args = { "\xa3one", 4 },
		.arg_count = 1,
		.timeout_ms = 500,
	};
}

TEST(prefix_makes_same_bytes_for_any_message)
{
	struct bed *bed = *state;

	for (unsigned i = 0; i < 2 * 256; i++) {
		const struct spokei_wire *wire = wires[i / 256];
		struct spokei_message maker = make_call();
		struct spokei_message message;

		maker.version = span_of(i & 1 ? "1.2.3" : "");
		maker.types.len = i & 2 ? maker.types.len : 0;
		message = maker;
		message.group = span_of(i & 4 ? "g" : "");
		message.timeout_ms = i & 8 ? 500 : 0;
		message.two_way = (i & 16) != 0;
		if (i & 32)
			message.attachments = VALUE("\x82\xa1k\xa1v\xa7timeout\xa1"
						    "9");
		else if (i & 64)
			message.attachments = VALUE("\x80");
		if (i & 128) {
			message.args = spokei_span(NULL, 0);
			message.arg_count = 0;
		}
		assert_same(bed, wire, message, &maker);
	}
}

TEST(prefix_without_types_fits_any_arguments)
{
	static const struct {
		const char *args;
		size_t len;
		size_t count;
	} rows[] = {
		{ "", 0, 0 },
		{ "\x01", 1, 1 },
		{ "\xc4\x01x\xc2", 4, 2 },
		{ "\x92\x01\x02\x81\xa1k\xcb\0\0\0\0\0\0\0\0", 15, 2 },
		{ "\x01\x02\x03\x04\x05\x06\x07\x08", 8, 8 },
		{ "\x01\x02\x03\x04\x05\x06\x07\x08\xa1x", 10, 9 },
	};
	struct spokei_message maker = make_call();
	struct bed *bed = *state;

	maker.types.len = 0;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct spokei_message message = maker;

		message.args = spokei_span(rows[i].args, rows[i].len);
		message.arg_count = rows[i].count;
		for (size_t w = 0; w < LENGTH(wires); w++)
			assert_same(bed, wires[w], message, &maker);
	}
}

TEST(generic_call_has_no_prefix)
{
	struct spokei_message message = make_call();
	struct bed *bed = *state;

	message.types.len = 0;
	message.generic = true;
	message.type_names = VALUE("\x91\xa1s");
	assert_same(bed, &spokei_wire_dubbo, message, &message);
}

TEST(prefix_is_refused_like_its_request)
{
	struct spokei_wire_limits limits = stream_limits;
	struct spokei_message message = make_call();
	struct bed *bed = *state;

	limits.frame_max = 8;
	for (size_t w = 0; w < LENGTH(wires); w++) {
		assert_int_equal(wires[w]->prefix(&limits, &message, &bed->prefix),
				 SPOKE_ETOOLARGE);
		bed->memory.fail_at = bed->memory.asked + 1;
		assert_int_equal(wires[w]->prefix(&stream_limits, &message, &bed->prefix),
				 SPOKE_ENOMEM);
		bed->prefix.max = 10;
		assert_int_equal(wires[w]->prefix(&stream_limits, &message, &bed->prefix),
				 SPOKE_ETOOLARGE);
		bed->prefix.max = 65536;
	}
	message.codec = 6;
	assert_int_equal(spokei_wire_dubbo.prefix(&stream_limits, &message, &bed->prefix),
			 SPOKE_EUNSUPPORTED);
	message.method = span_of("a.b");
	assert_int_equal(spokei_wire_mprpc.prefix(&stream_limits, &message, &bed->prefix),
			 SPOKE_EUNSUPPORTED);
	assert_int_equal(spokei_buffer_len(&bed->prefix), 0);
}

TEST(prefixed_frame_may_have_exactly_frame_max)
{
	struct spokei_message message = make_call();
	struct bed *bed = *state;

	for (size_t w = 0; w < LENGTH(wires); w++) {
		struct spokei_wire_limits limits = stream_limits;
		size_t len;

		assert_same(bed, wires[w], message, &message);
		len = spokei_buffer_len(&bed->plain);
		message.prefix = held(&bed->prefix);
		for (limits.frame_max = len + 3; limits.frame_max >= 20; limits.frame_max--) {
			spokei_buffer_truncate(&bed->quick, 0);
			assert_int_equal(wires[w]->write(&limits, &message, &bed->quick),
					 limits.frame_max < len ? SPOKE_ETOOLARGE : 0);
			assert_int_equal(spokei_buffer_len(&bed->quick),
					 limits.frame_max < len ? 0 : len);
		}
		message.prefix.len = 0;
	}
}

TEST(timeout_is_written_with_all_digits)
{
	static const int64_t rows[] = { 1,    9,    10,    11,     99,      100,       101,
					999,  1000, 1001,  9999,   10000,   10001,     12345,
					1050, 2005, 99999, 100000, 1234567, INT64_MAX, 60000 };
	struct spokei_message message = make_call();
	struct bed *bed = *state;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct spokei_message read;
		struct spoke_value said;
		struct spoke_span digits;
		char text[32];

		message.timeout_ms = rows[i];
		assert_same(bed, &spokei_wire_dubbo, message, &message);
		assert_int_equal(wire_read(&spokei_wire_dubbo, &stream_limits, NULL,
					   held(&bed->quick), NULL, &read),
				 0);
		assert_int_equal(spoke_value_get(read.attachments, "timeout", &said), 0);
		assert_int_equal(spoke_value_str(said, &digits), 0);
		(void)snprintf(text, sizeof(text), "%lld", (long long)rows[i]);
		is_text(digits, text);
		assert_true(read.timeout_ms == rows[i]);
	}
	/* The caller's own timeout attachment stays, and is the only one. */
	message.attachments = VALUE("\x81\xa7timeout\xa1"
				    "9");
	assert_same(bed, &spokei_wire_dubbo, message, &message);
	assert_int_equal(wire_read(&spokei_wire_dubbo, &stream_limits, NULL, held(&bed->quick),
				   NULL, &message),
			 0);
	assert_true(message.timeout_ms == 9);
}

TEST(unsupported_reply_appends_nothing)
{
	unsigned char deep[SPOKE_VALUE_DEPTH_MAX];
	struct spokei_wire_limits limits = stream_limits;
	struct spokei_message reply = {
		.kind = SPOKEI_REPLY,
		.codec = 27,
		.id = 7,
		.value = { deep, sizeof(deep) },
	};
	struct bed *bed = *state;

	memset(deep, 0x91, sizeof(deep));
	deep[sizeof(deep) - 1] = 0x90;
	/* A Dubbo body begins with its values; a MessagePack-RPC frame is an array around them. */
	assert_int_equal(spokei_wire_mprpc.write(&limits, &reply, &bed->plain), SPOKE_EDEPTH);
	assert_int_equal(spokei_buffer_len(&bed->plain), 0);
	limits.frame_max = 40;
	for (size_t w = 0; w < LENGTH(wires); w++) {
		reply.value = (struct spoke_value){
			(const unsigned char *)"\xd9\x28"
					       "0123456789012345678901234567890"
					       "123456789",
			42
		};
		assert_int_equal(wires[w]->write(&limits, &reply, &bed->plain), SPOKE_ETOOLARGE);
		assert_int_equal(spokei_buffer_len(&bed->plain), 0);
	}
}

/* Checks values around the lowest and the highest number that the fast validation handles. */
TEST(nested_values_are_checked_the_same_in_any_number)
{
	struct spokei_wire_limits limits = stream_limits;
	struct spokei_message nested = make_call();
	unsigned char bytes[64];
	struct bed *bed = *state;

	nested.args = spokei_span("\x93\x01\x02\x03", 4);
	limits.value.items_max = 9;
	assert_int_equal(spokei_wire_mprpc.write(&limits, &nested, &bed->plain), 0);
	limits.value.items_max = 8;
	assert_int_equal(spokei_wire_mprpc.write(&limits, &nested, &bed->plain), SPOKE_ETOOLARGE);
	for (size_t depth = 1; depth <= 40; depth++) {
		struct spokei_message call = make_call();
		int expected = depth > SPOKEI_VALIDATOR_KEPT_DEPTH - 2 ? SPOKE_EDEPTH : 0;

		memset(bytes, 0x91, depth - 1);
		bytes[depth - 1] = 0x90;
		call.args = spokei_span(bytes, depth);
		spokei_buffer_truncate(&bed->plain, 0);
		assert_int_equal(spokei_wire_mprpc.write(&stream_limits, &call, &bed->plain),
				 expected);
		/* The same number of values side by side. */
		memset(bytes, 0x90, depth);
		call.arg_count = depth;
		assert_int_equal(spokei_wire_mprpc.write(&stream_limits, &call, &bed->plain), 0);
		call.arg_count = depth + 1;
		assert_int_equal(spokei_wire_mprpc.write(&stream_limits, &call, &bed->plain),
				 SPOKE_ETRUNCATED);
		call.arg_count = depth - 1;
		assert_int_equal(spokei_wire_mprpc.write(&stream_limits, &call, &bed->plain),
				 SPOKE_ETRAILING);
	}
}
