/* SPDX-License-Identifier: Apache-2.0 */
/* Reads frames and messages of MessagePack-RPC, valid and invalid. */
#include "tests/support/test.h"
#include "tests/transport/stream.h"
#include "tests/transport/wires.h"
#include "transport/wire/mprpc.h"

#include <stdlib.h>

/* Decodes hexadecimal text to a stream with the default limits. */
#define STREAM(hex, bytes)                                                                         \
	{                                                                                          \
		&spokei_wire_mprpc, &stream_limits,                                                \
		{                                                                                  \
			(bytes), hex_bytes((hex), (bytes), sizeof(bytes))                          \
		}                                                                                  \
	}
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct shape {
	const char *hex;
	const char *line;
};

/* Every shape of a message, with each field in every form. */
static const struct shape good[] = {
	/* requests */
	{ "94 00 01 a4 6563686f 91 a5 68656c6c6f", "request 1 - echo [\"hello\"]" },
	{ "94 00 00 a1 61 90", "request 0 - a []" },
	{ "94 00 7f a1 61 90", "request 127 - a []" },
	{ "94 00 ccff a1 61 90", "request 255 - a []" },
	{ "94 00 cd1092 a1 61 90", "request 4242 - a []" },
	{ "94 00 ceffffffff a1 61 90", "request 4294967295 - a []" },
	{ "94 00 cf00000000ffffffff a1 61 90", "request 4294967295 - a []" },
	{ "94 00 d300000000ffffffff a1 61 90", "request 4294967295 - a []" },
	{ "94 00 d100ff a1 61 90", "request 255 - a []" },
	{ "94 cc00 cc01 d90161 dc0000", "request 1 - a []" },
	{ "dc0004 00 01 a1 61 90", "request 1 - a []" },
	{ "dd00000004 00 01 da0001 61 dd00000000", "request 1 - a []" },
	{ "94 00 01 db00000001 61 dc0002 01 02", "request 1 - a [1,2]" },
	{ "94 00 01 a1 61 93 c0 92 01 c2 81 a1 6b cb3ff8000000000000",
	  "request 1 - a [null,[1, false],{\"k\": 1.5}]" },
	/* names */
	{ "94 00 01 a3 612e62 90", "request 1 a b []" },
	{ "94 00 01 b0 64656d6f2e4563686f2e6563686f2e78 90", "request 1 demo.Echo.echo x []" },
	{ "94 00 01 a3 2e2e61 90", "request 1 . a []" },
	{ "94 00 01 a2 2e61 90", "request 1 - a []" },
	{ "94 00 01 a3 610062 90", "request 1 - a\\x00b []" },
	{ "94 00 01 a4 ff2efe0a 90", "request 1 \\xff \\xfe\\x0a []" },
	/* notifications */
	{ "93 02 a4 6e6f7465 91 01", "notify - note [1]" },
	{ "93 02 a3 732e6e 90", "notify s n []" },
	{ "dc0003 02 a1 61 90", "notify - a []" },
	{ "dd00000003 cd0002 a1 61 90", "notify - a []" },
	/* replies */
	{ "94 01 01 c0 2a", "reply 1 42" },
	{ "94 01 00 c0 c0", "reply 0 null" },
	{ "94 01 ceffffffff c0 a0", "reply 4294967295 \"\"" },
	{ "dc0004 01 02 c0 92 01 02", "reply 2 [1, 2]" },
	{ "94 01 03 c0 81 a1 61 01", "reply 3 {\"a\": 1}" },
	{ "94 01 04 c0 c2", "reply 4 false" },
	/* errors: any object */
	{ "94 01 01 a3 626164 c0", "reply 1 error 0 \"bad\"" },
	{ "94 01 01 a3 626164 2a", "reply 1 error 0 \"bad\"" },
	{ "94 01 01 a0 c0", "reply 1 error 0 \"\"" },
	{ "94 01 01 c403 626164 c0", "reply 1 error 0 \"bad\"" },
	{ "94 01 01 a3 00fe62 c0", "reply 1 error 0 \"\\x00\\xfeb\"" },
	{ "94 01 01 92 07 a3 626164 c0", "reply 1 error 7 \"bad\"" },
	{ "94 01 01 92 ff a3 626164 c0", "reply 1 error -1 \"bad\"" },
	{ "94 01 01 92 a3 626164 07 c0", "reply 1 error 7 \"bad\"" },
	{ "94 01 01 92 ce80000000 a3 626164 c0", "reply 1 error 0 \"bad\"" },
	{ "94 01 01 91 a3 626164 c0", "reply 1 error 0 \"bad\"" },
	{ "94 01 01 93 c0 c0 a3 626164 c0", "reply 1 error 0 \"\"" },
	{ "94 01 01 90 c0", "reply 1 error 0 \"\"" },
	{ "94 01 01 c2 c0", "reply 1 error 0 \"\"" },
	{ "94 01 01 c3 2a", "reply 1 error 0 \"\"" },
	{ "94 01 01 05 c0", "reply 1 error 0 \"\"" },
	{ "94 01 01 81 a1 61 01 c0", "reply 1 error 0 \"\"" },
	{ "94 01 01 d40001 c0", "reply 1 error 0 \"\"" },
};

/* Invalid bodies after a valid head. */
static const struct shape broken[] = {
	{ "92 00 01", "EBADREQUEST request 1" },
	{ "93 00 01 a1 61", "EBADREQUEST request 1" },
	{ "95 00 01 a1 61 90 90", "EBADREQUEST request 1" },
	{ "94 00 01 c0 90", "EBADREQUEST request 1" },
	{ "94 00 01 05 90", "EBADREQUEST request 1" },
	{ "94 00 01 c401 61 90", "EBADREQUEST request 1" },
	{ "94 00 01 91 a1 61 90", "EBADREQUEST request 1" },
	{ "94 00 01 a0 90", "EBADREQUEST request 1" },
	{ "94 00 01 a1 2e 90", "EBADREQUEST request 1" },
	{ "94 00 01 a2 612e 90", "EBADREQUEST request 1" },
	{ "94 00 01 a1 61 c0", "EBADREQUEST request 1" },
	{ "94 00 01 a1 61 80", "EBADREQUEST request 1" },
	{ "94 00 01 a1 61 01", "EBADREQUEST request 1" },
	{ "94 00 01 a1 61 a1 61", "EBADREQUEST request 1" },
	{ "94 00 01 a1 61 d40001", "EBADREQUEST request 1" },
	{ "91 02", "EBADREQUEST notify" },
	{ "92 02 a1 61", "EBADREQUEST notify" },
	{ "94 02 a1 61 90 c0", "EBADREQUEST notify" },
	{ "93 02 c0 90", "EBADREQUEST notify" },
	{ "93 02 a1 61 c0", "EBADREQUEST notify" },
	{ "92 01 05", "EBADREPLY reply 5" },
	{ "93 01 05 c0", "EBADREPLY reply 5" },
	{ "95 01 05 c0 c0 c0", "EBADREPLY reply 5" },
	{ "dc0010 01 05 c0 c0 c0 c0 c0 c0 c0 c0 c0 c0 c0 c0 c0 c0", "EBADREPLY reply 5" },
};

/* Frames without a valid head cannot be answered. */
static const struct shape headless[] = {
	{ "90", "EPROTOCOL " },
	{ "dc0000", "EPROTOCOL " },
	{ "91 00", "EPROTOCOL " },
	{ "91 01", "EPROTOCOL " },
	{ "94 03 01 a1 61 90", "EPROTOCOL " },
	{ "94 09 01 a1 78 90", "EPROTOCOL " },
	{ "94 ff 01 a1 61 90", "EPROTOCOL " },
	{ "94 c0 01 a1 61 90", "EPROTOCOL " },
	{ "94 a1 30 01 a1 61 90", "EPROTOCOL " },
	{ "94 ca00000000 01 a1 61 90", "EPROTOCOL " },
	{ "94 cf0000000100000000 01 a1 61 90", "EPROTOCOL " },
	{ "94 00 cf0000000100000000 a1 61 90", "EPROTOCOL " },
	{ "94 01 cf0000000100000000 c0 c0", "EPROTOCOL " },
	{ "94 00 ff a1 61 90", "EPROTOCOL " },
	{ "94 00 c0 a1 61 90", "EPROTOCOL " },
	{ "94 00 a1 31 a1 61 90", "EPROTOCOL " },
	{ "94 00 cb3ff0000000000000 a1 61 90", "EPROTOCOL " },
	{ "94 01 91 01 c0 c0", "EPROTOCOL " },
};

static void assert_line(const struct shape *shape)
{
	unsigned char bytes[256];
	struct stream stream = STREAM(shape->hex, bytes);
	struct stream_event events[2];
	char line[512];
	size_t count = stream_whole(&stream, events, 2);

	assert_int_equal(events[0].cut, 0);
	assert_int_equal(events[0].len, stream.bytes.len);
	message_line(events[0].read, &events[0].message, line, sizeof(line));
	assert_string_equal(line, shape->line);
	/* After a broken frame nothing more is read; after any other the next frame follows. */
	assert_int_equal(count, events[0].read == SPOKE_EPROTOCOL ? 1 : 2);
}

TEST(every_frame_shape_is_read)
{
	for (size_t i = 0; i < COUNT(good); i++)
		assert_line(&good[i]);
}

TEST(bad_body_after_good_head_keeps_id)
{
	for (size_t i = 0; i < COUNT(broken); i++)
		assert_line(&broken[i]);
}

TEST(frame_without_head_breaks_stream)
{
	for (size_t i = 0; i < COUNT(headless); i++)
		assert_line(&headless[i]);
}

TEST(reply_has_codec_msgpack_and_status_ok)
{
	unsigned char bytes[16];
	size_t len = hex_bytes("94 01 01 c0 2a", bytes, sizeof(bytes));
	struct spokei_message message;

	assert_int_equal(wire_read(&spokei_wire_mprpc, &stream_limits, NULL,
				   spokei_span(bytes, len), NULL, &message),
			 0);
	assert_int_equal(message.codec, 27);
	assert_int_equal(message.status, 20);
	assert_false(message.two_way);
	assert_int_equal(message.attachments.len, 0);
}

TEST(non_array_breaks_stream_at_first_byte)
{
	for (unsigned first = 0; first < 256; first++) {
		bool array = (first >= 0x90 && first <= 0x9f) || first == 0xdc || first == 0xdd;
		bool known = first == 0x93 || first == 0x94 || first == 0xdc || first == 0xdd;
		unsigned char byte = (unsigned char)first;
		struct spokei_cut cut = { 0 };
		size_t len;
		int result = wire_cut(&spokei_wire_mprpc, &stream_limits, &cut,
				      spokei_span(&byte, 1), &len);

		if (first == 0x90)
			assert_int_equal(result, 0);
		else
			assert_int_equal(result, array ? SPOKEI_NEXT_MORE : SPOKE_EPROTOCOL);
		assert_int_equal(spokei_wire_mprpc.knows(byte), known);
	}
}

TEST(garbage_in_frame_breaks_stream)
{
	static const char *const texts[] = { "94 c1", "94 00 01 a1 61 91 c1", "93 02 a1 61 81 c1" };

	for (size_t i = 0; i < COUNT(texts); i++) {
		unsigned char bytes[16];
		struct stream stream = STREAM(texts[i], bytes);
		struct stream_event event;

		assert_int_equal(stream_whole(&stream, &event, 1), 1);
		assert_int_equal(event.cut, SPOKE_ECORRUPT);
	}
}

/* --- cuts */

/* Asserts that each prefix needs more bytes, but no more than there are, and then gives the same
 * frame. */
static void assert_cuts(const struct shape *shape)
{
	unsigned char bytes[256];
	struct stream stream = STREAM(shape->hex, bytes);
	size_t len = stream.bytes.len;
	struct stream_event events[2];
	size_t count = stream_whole(&stream, events, 2);

	for (size_t piece = 1; piece <= len; piece++) {
		const char *difference = stream_pieces(&stream, events, count, stream_piece,
						       &piece);

		if (difference)
			fail_msg("%s in pieces of %zu: %s", shape->hex, piece, difference);
	}
	for (size_t here = 0; here < len; here++) {
		struct spokei_cut cut = { 0 };
		size_t wanted;

		assert_int_equal(wire_cut(&spokei_wire_mprpc, &stream_limits, &cut,
					  spokei_span(bytes, here), &wanted),
				 SPOKEI_NEXT_MORE);
		assert_true(wanted > here && wanted <= len);
		assert_int_equal(wire_cut(&spokei_wire_mprpc, &stream_limits, &cut, stream.bytes,
					  &wanted),
				 0);
		assert_int_equal(wanted, len);
		assert_false(cut.started);
	}
}

TEST(cut_of_frame_in_pieces_gives_same_frame)
{
	for (size_t i = 0; i < COUNT(good); i++)
		assert_cuts(&good[i]);
	for (size_t i = 0; i < COUNT(broken); i++)
		assert_cuts(&broken[i]);
	for (size_t i = 0; i < COUNT(headless); i++)
		assert_cuts(&headless[i]);
}

/* Feeds two pieces of these lengths, then the rest. */
struct pieces {
	size_t lens[2];
	unsigned taken;
};

static size_t next_piece(void *arg)
{
	struct pieces *pieces = arg;

	return pieces->taken < 2 ? pieces->lens[pieces->taken++] : SIZE_MAX;
}

TEST(three_frames_survive_every_cut)
{
	static const char hex[] = "94 00 01 a4 6563686f 91 a5 68656c6c6f"
				  "93 02 a4 6e6f7465 92 c405 0102030405 cd1092"
				  "94 01 07 92 02 d90462616420 c0";
	unsigned char bytes[64];
	struct stream stream = STREAM(hex, bytes);
	size_t len = stream.bytes.len;
	struct stream_event events[4];
	size_t byte_by_byte = 1;
	char line[128];

	assert_int_equal(stream_whole(&stream, events, 4), 4);
	message_line(events[2].read, &events[2].message, line, sizeof(line));
	assert_string_equal(line, "reply 7 error 2 \"bad\\x20\"");
	assert_int_equal(events[3].at, len);
	assert_int_equal(events[3].cut, SPOKEI_NEXT_MORE);
	assert_null(stream_pieces(&stream, events, 4, stream_piece, &byte_by_byte));
	for (size_t first = 1; first < len; first++) {
		for (size_t second = 1; first + second < len; second++) {
			struct pieces pieces = { { first, second }, 0 };

			assert_null(stream_pieces(&stream, events, 4, next_piece, &pieces));
		}
	}
}

TEST(cut_reads_no_byte_twice)
{
	unsigned char bytes[64];
	size_t len = hex_bytes("94 00 01 a4 6563686f 92 a5 68656c6c6f cd1092", bytes,
			       sizeof(bytes));
	struct spokei_cut cut = { 0 };
	size_t wanted = 0;

	for (size_t here = 1; here < len; here++) {
		assert_int_equal(wire_cut(&spokei_wire_mprpc, &stream_limits, &cut,
					  spokei_span(bytes, here), &wanted),
				 SPOKEI_NEXT_MORE);
		memset(bytes, 0xc1, here); /* must not be read again: invalid from now on */
	}
	assert_int_equal(wire_cut(&spokei_wire_mprpc, &stream_limits, &cut, spokei_span(bytes, len),
				  &wanted),
			 0);
	assert_int_equal(wanted, len);
}
