/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict about the first bytes of a peer: each prefix, each border of a limit. */
#include <string.h>

#include "tests/support/test.h"
#include "transport/stream/tls/hello.h"

enum {
	ROOM = 40000,
	RECORD_HEAD = 5,
	MESSAGE_HEAD = 4,
};

static unsigned char bytes[ROOM];

static enum spokei_hello judge(size_t len)
{
	return spokei_hello_judge((struct spoke_span){ bytes, len });
}

/* Writes a ClientHello with a body of `body` bytes in records of `piece` bytes. Returns its length.
 */
static size_t write_hello(size_t body, size_t piece)
{
	unsigned char message[ROOM] = { 1, (unsigned char)(body >> 16), (unsigned char)(body >> 8),
					(unsigned char)body };
	size_t len = MESSAGE_HEAD + body;
	size_t out = 0;

	for (size_t at = 0; at < len; at += piece) {
		size_t take = piece < len - at ? piece : len - at;
		const unsigned char head[] = { 0x16, 3, 1, (unsigned char)(take >> 8),
					       (unsigned char)take };

		memcpy(bytes + out, head, RECORD_HEAD);
		memcpy(bytes + out + RECORD_HEAD, message + at, take);
		out += RECORD_HEAD + take;
	}
	return out;
}

static void assert_whole_at_its_end_only(size_t len)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(judge(i), SPOKEI_HELLO_MORE);
	assert_int_equal(judge(len), SPOKEI_HELLO_WHOLE);
	assert_int_equal(judge(len + 100), SPOKEI_HELLO_WHOLE);
}

TEST(hello_is_whole_at_its_last_byte)
{
	assert_whole_at_its_end_only(write_hello(0, 4));
	assert_whole_at_its_end_only(write_hello(300, 16384));
	assert_whole_at_its_end_only(write_hello(300, 100));
	assert_whole_at_its_end_only(write_hello(12, 1));
}

TEST(records_are_limited_in_number)
{
	size_t len;

	len = write_hello(12, 1);
	assert_int_equal(len, 16 * 6);
	assert_int_equal(judge(len), SPOKEI_HELLO_WHOLE);
	len = write_hello(13, 1);
	assert_int_equal(judge(len - 6), SPOKEI_HELLO_MORE);
	assert_int_equal(judge(len - 5), SPOKEI_HELLO_BROKEN);
}

TEST(largest_hello_is_16_kib)
{
	size_t len;

	len = write_hello(16384, 16384);
	assert_int_equal(judge(len), SPOKEI_HELLO_WHOLE);
	assert_in_range(len, 1, SPOKEI_HELLO_BYTES);
	(void)write_hello(16385, 16384);
	assert_int_equal(judge(RECORD_HEAD + MESSAGE_HEAD), SPOKEI_HELLO_BROKEN);
}

TEST(every_other_first_byte_is_plain)
{
	for (unsigned byte = 0; byte < 256; byte++) {
		bytes[0] = (unsigned char)byte;
		assert_int_equal(judge(1), byte == 0x16 ? SPOKEI_HELLO_MORE : SPOKEI_HELLO_PLAIN);
	}
}

TEST(head_that_no_hello_has_is_broken)
{
	(void)write_hello(300, 16384);
	bytes[1] = 2;
	assert_int_equal(judge(2), SPOKEI_HELLO_BROKEN);
	(void)write_hello(300, 16384);
	bytes[3] = 0x40;
	bytes[4] = 1;
	assert_int_equal(judge(5), SPOKEI_HELLO_BROKEN);
	(void)write_hello(300, 16384);
	bytes[3] = bytes[4] = 0;
	assert_int_equal(judge(5), SPOKEI_HELLO_BROKEN);
	(void)write_hello(300, 16384);
	bytes[5] = 2;
	assert_int_equal(judge(5), SPOKEI_HELLO_MORE);
	assert_int_equal(judge(6), SPOKEI_HELLO_BROKEN);
}
