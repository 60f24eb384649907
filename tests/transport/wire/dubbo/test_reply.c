/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes replies of the Dubbo wire. */
#include "tests/core/memory.h"
#include "tests/support/test.h"
#include "tests/transport/dubbo_frames.h"

#include <string.h>

TEST(each_reply_marker_is_read_and_written)
{
	static const struct {
		const char *body;
		size_t len;
		int error;
		bool bare;
		bool value;
	} rows[] = {
		{ "\x00\241C\x81\xa7message\xa2no", 15, SPOKE_EREMOTE, true, true },
		{ "\x01\x2a", 2, 0, true, true },
		{ "\x02", 1, 0, true, false },
		{ "\x03\241C\x81\xa7message\xa2no\x81\245dubbo\2452.0.2", 28, SPOKE_EREMOTE, false,
		  true },
		{ "\x04\x2a\x81\245dubbo\2452.0.2", 15, 0, false, true },
		{ "\x05\x81\245dubbo\2452.0.2", 14, 0, false, false },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct spokei_message message;

		assert_int_equal(read_body(0x1b, 20, rows[i].body, rows[i].len, &message), 0);
		assert_int_equal(message.kind, SPOKEI_REPLY);
		assert_int_equal(message.error, rows[i].error);
		assert_int_equal(message.bare, rows[i].bare);
		assert_int_equal(message.value.len > 0, rows[i].value);
		assert_int_equal(message.attachments.len > 0, !rows[i].bare);
		if (rows[i].error) {
			is_text(message.error_class, "C");
			is_text(message.error_text, "no");
		}
		writes(&message, 0x1b, 20, rows[i].body, rows[i].len);
		message.status = 0; /* derived from the error */
		writes(&message, 0x1b, 20, rows[i].body, rows[i].len);
	}
}

TEST(malformed_reply_is_bad_reply)
{
	static const struct {
		unsigned status;
		const char *body;
		size_t len;
	} rows[] = {
		{ 20, "", 0 },
		{ 20, "\xc0", 1 },
		{ 20, "\2411", 2 },
		{ 20, "\xff", 1 },
		{ 20, "\x06", 1 },
		{ 20, "\x06\241C\x80\x80", 5 },
		{ 20, "\x01", 1 },
		{ 20, "\x01\x02\x03", 3 },
		{ 20, "\x02\xc0", 2 },
		{ 20, "\x02\x80", 2 },
		{ 20, "\x04\x01", 2 },
		{ 20, "\x04\x01\xc0", 3 },
		{ 20, "\x04\x01\x80\x80", 4 },
		{ 20, "\x05", 1 },
		{ 20, "\x05\x90", 2 },
		{ 20, "\x05\x82\xa1k\x01\xa1k\x01", 8 },
		{ 20, "\x05\x81\x01\x01", 4 },
		{ 20, "\x00", 1 },
		{ 20, "\x00\241C", 3 },
		{ 20, "\x00\xc0\x80", 3 },
		{ 20, "\x00\241C\xa1x", 5 },
		{ 20, "\x00\241C\x80\x80", 5 },
		{ 20, "\x03\241C\x80", 4 },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct spokei_message message;

		assert_int_equal(read_body(0x1b, rows[i].status, rows[i].body, rows[i].len,
					   &message),
				 SPOKE_EBADREPLY);
		assert_int_equal(message.kind, SPOKEI_REPLY);
		assert_int_equal(message.id, 7);
		assert_int_equal(message.status, rows[i].status);
		assert_int_equal(message.error, 0);
	}
}

/* Java writes these replies in the provider's own serialization, usually hessian2. */
TEST(status_counts_without_readable_text)
{
	static const struct {
		uint8_t flags;
		const char *body;
		size_t len;
	} rows[] = {
		{ 0x1b, "", 0 },   { 0x1b, "\x01", 1 },       { 0x1b, "\xa1x\xa1y", 4 },
		{ 0x02, "", 0 },   { 0x02, "\x30\x40no", 4 }, { 0x06, "\"no\"", 4 },
		{ 0x1f, "no", 2 },
	};
	static const struct {
		uint8_t status;
		int error;
	} statuses[] = {
		{ 40, SPOKE_EBADREQUEST }, { 60, SPOKE_ENOSERVICE }, { 70, SPOKE_ESERVER },
		{ 80, SPOKE_ESERVER },     { 90, SPOKE_ESERVER },    { 100, SPOKE_EREFUSED },
	};

	for (size_t i = 0; i < LENGTH(rows) * LENGTH(statuses); i++) {
		const char *body = rows[i / LENGTH(statuses)].body;
		size_t len = rows[i / LENGTH(statuses)].len;
		struct spokei_message message;

		assert_int_equal(read_body(rows[i / LENGTH(statuses)].flags,
					   statuses[i % LENGTH(statuses)].status, body, len,
					   &message),
				 0);
		assert_int_equal(message.kind, SPOKEI_REPLY);
		assert_int_equal(message.id, 7);
		assert_int_equal(message.error, statuses[i % LENGTH(statuses)].error);
		assert_int_equal(message.error_text.len, 0);
	}
}

TEST(error_is_written_as_rpc_exception)
{
	struct spokei_message message = {
		.kind = SPOKEI_REPLY,
		.id = 7,
		.codec = 27,
		.error = SPOKE_EREMOTE,
		.error_text = span_of("no"),
		.error_code = -300,
	};

	WRITES(&message, 0x1b, 20,
	       "\x03\xd9\x21org.apache.dubbo.rpc."
	       "RpcException\x82\xa7message\xa2no\244code\xd1\xfe\xd4\x81\245dubbo\2452.0.2");
	message.error_class = span_of("C");
	WRITES(&message, 0x1b, 20,
	       "\x03\241C\x82\xa7message\xa2no\244code\xd1\xfe\xd4\x81\245dubbo\2452.0.2");
	message.error_code = 0;
	message.bare = true;
	WRITES(&message, 0x1b, 20, "\x00\241C\x81\xa7message\xa2no");
}

TEST(error_code_survives_round_trip)
{
	static const int32_t codes[] = {
		0,         1,         -1,  127, 128,  255,  256,    65535,  65536,
		INT32_MAX, INT32_MIN, -32, -33, -128, -129, -32768, -32769, 2147483,
	};

	for (size_t i = 0; i < LENGTH(codes); i++) {
		struct spokei_message message = {
			.kind = SPOKEI_REPLY,
			.codec = 27,
			.error = SPOKE_EREMOTE,
			.error_code = codes[i],
		};
		unsigned char memory[16];
		struct spoke_builder builder;
		struct spoke_span packed;
		struct spokei_message back;
		struct spoke_value code;
		struct frame frame;

		assert_int_equal(write_frame(&message, &frame), 0);
		assert_int_equal(read_frame(&frame, &back), 0);
		assert_int_equal(back.error, SPOKE_EREMOTE);
		assert_int_equal(back.error_code, codes[i]);
		spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
		spoke_pack_i64(&builder, codes[i]);
		assert_int_equal(spoke_builder_finish(&builder, &packed), 0);
		assert_int_equal(spoke_value_get(back.value, "code", &code), 0);
		is_bytes(packed, (const char *)code.data, code.len);
	}
}

TEST(status_follows_from_error)
{
	static const struct {
		int error;
		unsigned status;
	} rows[] = {
		{ SPOKE_EBADREQUEST, 40 }, { SPOKE_EBADREPLY, 50 }, { SPOKE_ENOSERVICE, 60 },
		{ SPOKE_EREFUSED, 100 },   { SPOKE_EEXPIRED, 31 },  { SPOKE_ESERVER, 80 },
		{ SPOKE_ETOOLARGE, 25 },   { SPOKE_ENOMEM, 80 },
	};
	struct spokei_message message = { .kind = SPOKEI_REPLY, .id = 7, .codec = 27 };
	struct frame frame;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		message.error = rows[i].error;
		WRITES(&message, 0x1b, rows[i].status, "\xa0");
	}
	message.status = 21;
	assert_int_equal(write_frame(&message, &frame), SPOKE_EUNSUPPORTED);
}

/* Compares a reply's error text of `len` bytes with the builder's output. */
static void text_is_packed_as_by_the_builder(size_t len)
{
	static const struct spokei_wire_limits wide = { .frame_max = 1 << 20, .name_max = 1 };
	char *said = test_malloc(len + 1);
	struct spokei_message message = {
		.kind = SPOKEI_REPLY,
		.codec = 27,
		.status = 40,
		.error_text = { said, len },
	};
	struct spokei_buffer buffer;
	struct spoke_builder builder;
	struct spoke_span packed;
	struct memory memory;

	memset(said, 'x', len + 1);
	memory_init(&memory);
	spokei_buffer_init(&buffer, &memory.env, 1 << 20);
	spoke_builder_init(&builder, &memory.env, NULL);
	spoke_pack_str(&builder, said, len);
	assert_int_equal(spoke_builder_finish(&builder, &packed), 0);
	assert_int_equal(spokei_wire_dubbo.write(&wide, &message, &buffer), 0);
	assert_int_equal(spokei_buffer_len(&buffer), HEAD + packed.len);
	is_bytes(packed, spokei_buffer_data(&buffer) + HEAD, packed.len);
	spoke_builder_fini(&builder);
	spokei_buffer_fini(&buffer);
	test_free(said);
}

TEST(reply_heads_are_shortest)
{
	static const size_t lens[] = { 0, 31, 32, 255, 256, 65535, 65536 };
	struct spokei_message message;
	struct frame frame;

	for (size_t i = 0; i < LENGTH(lens); i++)
		text_is_packed_as_by_the_builder(lens[i]);
	for (size_t pairs = 15; pairs <= 16; pairs++) {
		assert_int_equal(read_attached(pairs, false, &message), 0);
		assert_int_equal(write_frame(&message, &frame), 0);
		assert_int_equal(read_frame(&frame, &message), 0);
		is_bytes(spokei_span(message.attachments.data, pairs < 16 ? 1 : 3),
			 pairs < 16 ? "\x8f" : "\xde\x00\x10", pairs < 16 ? 1 : 3);
	}
}

TEST(reply_attachments_contain_protocol_version)
{
	struct spokei_message message = { .kind = SPOKEI_REPLY, .id = 7, .codec = 27 };

	message.attachments = VALUE("\x81\xa1k\x01");
	WRITES(&message, 0x1b, 20, "\x05\x82\xa1k\x01\245dubbo\2452.0.2");
	message.attachments = VALUE("\x81\245dubbo\2452.0.9");
	WRITES(&message, 0x1b, 20, "\x05\x81\245dubbo\2452.0.9");
	message.value = VALUE("\xc0");
	WRITES(&message, 0x1b, 20, "\x05\x81\245dubbo\2452.0.9");
	message.bare = true;
	WRITES(&message, 0x1b, 20, "\x02");
}
