/* SPDX-License-Identifier: Apache-2.0 */
/* MessagePack-RPC at its limits: depth, items, sizes, names, and announced lengths without content.
 */
#include "tests/support/test.h"
#include "tests/transport/stream.h"
#include "tests/transport/wires.h"
#include "transport/wire/mprpc.h"

#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct stream_event look(const struct spokei_wire_limits *limits, const void *bytes,
				size_t len)
{
	struct stream stream = { &spokei_wire_mprpc, limits, { bytes, len } };
	struct stream_event event;

	assert_int_equal(stream_whole(&stream, &event, 1), 1);
	return event;
}

/* --- announced lengths */

/* An announced length beyond frame_max ends the stream as soon as the head is complete, and not
 * earlier. */
TEST(length_above_frame_is_rejected_at_head)
{
	static const char *const heads[] = {
		"ddffffffff",
		"dd05f5e100",
		"94 00 01 a1 61 ddffffffff",
		"94 00 01 a1 61 dd05f5e100",
		"94 00 01 a1 61 91 dfffffffff",
		"94 00 01 a1 61 91 df05f5e100",
		"94 00 01 dbffffffff",
		"94 01 01 c0 c6ffffffff",
		"94 01 01 c0 c6ffffffff",
		"94 01 01 c0 c900800000",
		"94 00 01 a1 61 dd00400001", /* more items than allowed */
	};

	for (size_t i = 0; i < COUNT(heads); i++) {
		unsigned char bytes[16];
		size_t len = hex_bytes(heads[i], bytes, sizeof(bytes));
		struct stream_event event = look(&stream_limits, bytes, len);

		assert_int_equal(event.cut, SPOKE_ETOOLARGE);
		assert_int_equal(look(&stream_limits, bytes, len - 1).cut, SPOKEI_NEXT_MORE);
		assert_true(look(&stream_limits, bytes, len - 1).len <= len);
	}
}

TEST(length_within_frame_needs_its_bytes)
{
	unsigned char bytes[16];
	size_t len = hex_bytes("94 01 01 c0 c600100000", bytes, sizeof(bytes));

	assert_int_equal(look(&stream_limits, bytes, len).cut, SPOKEI_NEXT_MORE);
	assert_int_equal(look(&stream_limits, bytes, len).len, len + 0x100000);
}

TEST(unreadable_ext_is_rejected)
{
	struct spokei_wire_limits limits = stream_limits;
	unsigned char bytes[16];
	size_t len = hex_bytes("94 01 01 c0 c9ffffffff", bytes, sizeof(bytes));

	assert_true(look(&limits, bytes, len).cut < 0);
	limits.frame_max = SIZE_MAX;
	limits.value.bytes_max = SIZE_MAX;
	assert_int_equal(look(&limits, bytes, len).cut, SPOKE_ECORRUPT);
}

/* --- frames at their limits */

/* Makes a reply whose frame has `len` bytes. */
static unsigned char *new_reply(size_t len)
{
	unsigned char *bytes = calloc(1, len);

	assert_non_null(bytes);
	assert_int_equal(hex_bytes("94 01 01 c0 c6", bytes, len), 5);
	for (unsigned i = 0; i < 4; i++)
		bytes[5 + i] = (unsigned char)((len - 9) >> (24 - 8 * i));
	return bytes;
}

TEST(frame_maximum_is_exact)
{
	static const size_t maxima[] = { 9, 10, 100, 65536, SPOKE_VALUE_BYTES_MAX };

	for (size_t i = 0; i < COUNT(maxima); i++) {
		struct spokei_wire_limits limits = stream_limits;
		unsigned char *bytes = new_reply(maxima[i]);

		limits.frame_max = maxima[i];
		assert_int_equal(look(&limits, bytes, maxima[i]).cut, 0);
		limits.frame_max = maxima[i] - 1;
		assert_int_equal(look(&limits, bytes, maxima[i]).cut, SPOKE_ETOOLARGE);
		limits.frame_max = maxima[i];
		limits.value.bytes_max = maxima[i] - 1;
		assert_int_equal(look(&limits, bytes, maxima[i]).cut, SPOKE_ETOOLARGE);
		free(bytes);
	}
}

/* The frame itself is one level, and so are the arguments. */
TEST(depth_counts_whole_frame)
{
	static const struct {
		size_t inner; /* nested arrays in the result; the innermost is empty */
		int cut;
	} cases[] = { { 30, 0 }, { 31, 0 }, { 32, SPOKE_EDEPTH }, { 200, SPOKE_EDEPTH } };

	for (size_t i = 0; i < COUNT(cases); i++) {
		unsigned char bytes[256] = { 0x94, 1, 1, 0xc0 };

		memset(bytes + 4, 0x91, cases[i].inner);
		bytes[3 + cases[i].inner] = 0x90;
		assert_int_equal(look(&stream_limits, bytes, 4 + cases[i].inner).cut, cases[i].cut);
		bytes[3 + cases[i].inner] = 0x91; /* with an element */
		bytes[4 + cases[i].inner] = 1;
		assert_int_equal(look(&stream_limits, bytes, 5 + cases[i].inner).cut, cases[i].cut);
	}
}

TEST(items_count_whole_frame)
{
	struct spokei_wire_limits limits = stream_limits;
	unsigned char bytes[16];
	size_t len = hex_bytes("94 00 01 a1 61 93 01 02 03", bytes, sizeof(bytes));

	limits.value.items_max = 8;
	assert_int_equal(look(&limits, bytes, len).cut, 0);
	limits.value.items_max = 7;
	assert_int_equal(look(&limits, bytes, len).cut, SPOKE_ETOOLARGE);
	limits.value.items_max = SPOKE_VALUE_ITEMS_MAX;
	limits.value.object_bytes_max = 8 * SPOKE_VALUE_OBJECT_BYTES;
	assert_int_equal(look(&limits, bytes, len).cut, 0);
	limits.value.object_bytes_max--;
	assert_int_equal(look(&limits, bytes, len).cut, SPOKE_ETOOLARGE);
}

TEST(broken_stream_stays_broken)
{
	unsigned char bytes[16];
	size_t len = hex_bytes("94 c1 00 00 00 00 94 01 01 c0 c0", bytes, sizeof(bytes));
	struct spokei_cut cut = { 0 };

	for (size_t here = 2; here <= len; here++) {
		size_t wanted;

		assert_int_equal(wire_cut(&spokei_wire_mprpc, &stream_limits, &cut,
					  spokei_span(bytes, here), &wanted),
				 SPOKE_ECORRUPT);
	}
}

/* --- names */

/* Makes a request whose method name has `service_len` bytes, a dot, and `method_len` bytes. */
static int read_name(size_t service_len, size_t method_len, struct spokei_message *ret_message)
{
	static unsigned char bytes[80000] = { 0x94, 0, 7, 0xdb };
	size_t name_len = service_len + 1 + method_len;

	assert_true(name_len + 9 <= sizeof(bytes));
	for (unsigned i = 0; i < 4; i++)
		bytes[4 + i] = (unsigned char)(name_len >> (24 - 8 * i));
	memset(bytes + 8, 'n', name_len);
	bytes[8 + service_len] = '.';
	bytes[8 + name_len] = 0x90;
	return wire_read(&spokei_wire_mprpc, &stream_limits, NULL, spokei_span(bytes, 9 + name_len),
			 NULL, ret_message);
}

TEST(too_long_name_is_answerable_bad_request)
{
	static const struct {
		size_t service_len;
		size_t method_len;
		int result;
	} cases[] = {
		{ 1024, 1024, 0 },
		{ 1025, 1, SPOKE_EBADREQUEST },
		{ 1, 1025, SPOKE_EBADREQUEST },
		{ 0, 1024, 0 },
		{ 0, 1025, SPOKE_EBADREQUEST },
		{ 1024, 0, SPOKE_EBADREQUEST },
		{ 65536, 1, SPOKE_EBADREQUEST },
		{ 1, 65537, SPOKE_EBADREQUEST },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct spokei_message message = { 0 };

		assert_int_equal(read_name(cases[i].service_len, cases[i].method_len, &message),
				 cases[i].result);
		assert_int_equal(message.kind, SPOKEI_REQUEST);
		assert_int_equal(message.id, 7);
		assert_true(message.two_way);
		if (cases[i].result == 0) {
			assert_int_equal(message.service.len, cases[i].service_len);
			assert_int_equal(message.method.len, cases[i].method_len);
		}
	}
}
