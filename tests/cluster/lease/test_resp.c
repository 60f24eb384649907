/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of replies, cut at every place, and the writer of commands. */
#include "cluster/lease/resp.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <stdio.h>
#include <stdlib.h>

#include <string.h>

/* Reads the first `len` bytes with this reader, in a block of exactly their length. */
static enum spokei_resp_verdict read_on(struct spokei_resp_reader *reader, const char *bytes,
					size_t len)
{
	unsigned char *copy = calloc(1, len > 0 ? len : 1);
	enum spokei_resp_verdict verdict;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	verdict = spokei_resp_read(reader, copy, len);
	free(copy);
	return verdict;
}

/* Reads replies whole, then byte by byte, and asserts that the verdict is the same. */
static enum spokei_resp_verdict verdict_of(const char *bytes, size_t len)
{
	struct spokei_resp_reader whole;
	struct spokei_resp_reader cut;
	enum spokei_resp_verdict verdict;
	enum spokei_resp_verdict last = SPOKEI_RESP_MORE;

	spokei_resp_begin(&whole);
	spokei_resp_begin(&cut);
	verdict = read_on(&whole, bytes, len);
	for (size_t i = 0; i <= len && last == SPOKEI_RESP_MORE; i++)
		last = read_on(&cut, bytes, i);
	assert_int_equal(last, verdict);
	if (verdict == SPOKEI_RESP_WHOLE) {
		assert_int_equal(cut.at, whole.at);
	} else if (verdict == SPOKEI_RESP_BROKEN) {
		assert_string_equal(cut.why, whole.why);
	}
	return verdict;
}

#define VERDICT(text) verdict_of(text, sizeof(text) - 1)

static struct spokei_resp_cursor cursor_of(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	return (struct spokei_resp_cursor){ at, at + strlen(text) };
}

TEST(each_kind_of_reply_is_read)
{
	struct spokei_resp_cursor cursor = cursor_of(
		"*7\r\n+OK\r\n-ERR no\r\n:-42\r\n$2\r\n\r\n\r\n"
		"$-1\r\n*-1\r\n*0\r\n");
	static const enum spokei_resp_kind kinds[] = {
		SPOKEI_RESP_ARRAY, SPOKEI_RESP_SIMPLE, SPOKEI_RESP_ERROR, SPOKEI_RESP_INTEGER,
		SPOKEI_RESP_BULK,  SPOKEI_RESP_NIL,    SPOKEI_RESP_NIL,   SPOKEI_RESP_ARRAY,
	};
	struct spokei_resp_value values[8];

	assert_int_equal(VERDICT("*7\r\n+OK\r\n-ERR no\r\n:-42\r\n$2\r\n\r\n\r\n$-1\r\n*-1\r\n*0"
				 "\r\n"),
			 SPOKEI_RESP_WHOLE);
	for (unsigned i = 0; i < 8; i++) {
		assert_true(spokei_resp_next(&cursor, &values[i]));
		assert_int_equal(values[i].kind, kinds[i]);
	}
	assert_false(spokei_resp_next(&cursor, &values[0]));
	assert_int_equal(values[3].integer, -42);
	assert_true(spokei_resp_is(&values[1], "OK"));
	assert_true(spokei_resp_is(&values[2], "ERR no"));
	assert_true(spokei_resp_is(&values[4], "\r\n"));
	assert_false(spokei_resp_is(&values[4], "\r"));
	assert_int_equal(values[7].count, 0);
}

TEST(bytes_after_the_reply_are_left)
{
	struct spokei_resp_reader reader;

	spokei_resp_begin(&reader);
	assert_int_equal(read_on(&reader, "+OK\r\n:7\r\n", 9), SPOKEI_RESP_WHOLE);
	assert_int_equal(reader.at, 5);
}

TEST(bytes_that_are_no_reply_are_rejected)
{
	assert_int_equal(VERDICT("HTTP/1.1 400 Bad Request\r\n"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT(">2\r\n"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT("_\r\n"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT("\0"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT("+OK\n"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT("+OK\r+"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT(":\r\n"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT(":-\r\n"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT(":1x\r\n"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT(": 1\r\n"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT("$1\r\nab\r\n"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT("$1\r\na\rb"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT("*1\r\n>1\r\n"), SPOKEI_RESP_BROKEN);
}

TEST(numbers_are_checked_for_their_range)
{
	struct spokei_resp_cursor cursor = cursor_of(":-9223372036854775808\r\n"
						     ":9223372036854775807\r\n$2\r\n17\r\n+1\r\n");
	int64_t number;

	assert_true(spokei_resp_next_number(&cursor, &number));
	assert_true(number == INT64_MIN);
	assert_true(spokei_resp_next_number(&cursor, &number));
	assert_true(number == INT64_MAX);
	assert_true(spokei_resp_next_number(&cursor, &number));
	assert_int_equal(number, 17);
	assert_false(spokei_resp_next_number(&cursor, &number));
	assert_false(spokei_resp_next_number(&cursor, &number));
	assert_int_equal(VERDICT(":9223372036854775808\r\n"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT(":-9223372036854775809\r\n"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT(":00000000000000000000000001\r\n"), SPOKEI_RESP_BROKEN);
}

TEST(announced_sizes_are_rejected_at_once)
{
	assert_int_equal(VERDICT("$9223372036854775807\r\n"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT("$9223372036854775808\r\n"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT("$65536\r\n"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT("$-2\r\n"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT("*-2\r\n"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT("*1025\r\n"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT("*1024\r\n"), SPOKEI_RESP_MORE);
	assert_int_equal(VERDICT("*1000\r\n*25\r\n"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT("*4294967297\r\n"), SPOKEI_RESP_BROKEN);
}

TEST(nested_arrays_are_bounded)
{
	char deep[4 * 1000 + 1];
	char *at = deep;

	assert_int_equal(VERDICT("*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"), SPOKEI_RESP_WHOLE);
	assert_int_equal(VERDICT("*1\r\n*1\r\n*1\r\n*1\r\n*0\r\n"), SPOKEI_RESP_WHOLE);
	assert_int_equal(VERDICT("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"), SPOKEI_RESP_BROKEN);
	for (int i = 0; i < 1000; i++, at += 4)
		memcpy(at, "*1\r\n", 4);
	assert_int_equal(verdict_of(deep, 4000), SPOKEI_RESP_BROKEN);
}

/* A reply of exactly 64 KiB and one byte more, as a line and as a bulk string. */
TEST(replies_are_bounded_in_bytes)
{
	size_t len = SPOKEI_RESP_BYTES + 1;
	char *bytes = malloc(len);
	struct spokei_resp_reader reader;

	assert_non_null(bytes);
	memset(bytes, 'x', len);
	bytes[0] = '+';
	memcpy(bytes + SPOKEI_RESP_BYTES - 2, "\r\n", 2);
	spokei_resp_begin(&reader);
	assert_int_equal(read_on(&reader, bytes, SPOKEI_RESP_BYTES - 1), SPOKEI_RESP_MORE);
	assert_int_equal(read_on(&reader, bytes, SPOKEI_RESP_BYTES), SPOKEI_RESP_WHOLE);
	memcpy(bytes + SPOKEI_RESP_BYTES - 2, "xx\r", 3);
	spokei_resp_begin(&reader);
	assert_int_equal(read_on(&reader, bytes, SPOKEI_RESP_BYTES - 1), SPOKEI_RESP_MORE);
	assert_int_equal(read_on(&reader, bytes, SPOKEI_RESP_BYTES), SPOKEI_RESP_BROKEN);
	spokei_resp_begin(&reader);
	assert_int_equal(read_on(&reader, bytes, len), SPOKEI_RESP_BROKEN);

	memset(bytes, 'x', len);
	memcpy(bytes, "$65526\r\n", 8);
	memcpy(bytes + SPOKEI_RESP_BYTES - 2, "\r\n", 2);
	spokei_resp_begin(&reader);
	assert_int_equal(read_on(&reader, bytes, SPOKEI_RESP_BYTES), SPOKEI_RESP_WHOLE);
	assert_int_equal(VERDICT("$65526\r\n"), SPOKEI_RESP_MORE);
	assert_int_equal(VERDICT("$65527\r\n"), SPOKEI_RESP_BROKEN);
	assert_int_equal(VERDICT("*2\r\n:1\r\n$65526\r\n"), SPOKEI_RESP_BROKEN);
	free(bytes);
}

TEST(verdict_stays_after_a_broken_reply)
{
	struct spokei_resp_reader reader;

	spokei_resp_begin(&reader);
	assert_int_equal(read_on(&reader, "?", 1), SPOKEI_RESP_BROKEN);
	assert_int_equal(read_on(&reader, "?+OK\r\n", 6), SPOKEI_RESP_BROKEN);
	assert_non_null(reader.why);
}

TEST(cursor_never_leaves_an_invalid_reply)
{
	static const char *const texts[] = {
		"", "+", "+O", "+OK\r", "$5\r\nabc\r\n", "$5", ":x\r\n"
	};
	struct spokei_resp_value value;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct spokei_resp_cursor cursor = cursor_of(texts[i]);

		assert_false(spokei_resp_next(&cursor, &value));
		assert_int_equal(value.kind, SPOKEI_RESP_NIL);
	}
}

TEST(empty_cursor_has_no_value)
{
	struct spokei_resp_cursor cursor = { NULL, NULL };
	struct spokei_resp_value value;

	assert_false(spokei_resp_next(&cursor, &value));
}

TEST(commands_are_arrays_of_strings)
{
	static const char expected[] = "*4\r\n$3\r\nSET\r\n$0\r\n\r\n$1\r\n0\r\n"
				       "$20\r\n18446744073709551615\r\n";
	struct spokei_buffer out;

	spokei_buffer_init(&out, spoke_host_env(), 1000);
	assert_int_equal(spokei_resp_put_command(&out, 4), 0);
	assert_int_equal(spokei_resp_put_text(&out, (struct spoke_span){ "SET", 3 }), 0);
	assert_int_equal(spokei_resp_put_text(&out, (struct spoke_span){ NULL, 0 }), 0);
	assert_int_equal(spokei_resp_put_number(&out, 0), 0);
	assert_int_equal(spokei_resp_put_number(&out, UINT64_MAX), 0);
	assert_int_equal(spokei_buffer_len(&out), sizeof(expected) - 1);
	assert_memory_equal(spokei_buffer_data(&out), expected, sizeof(expected) - 1);
	spokei_buffer_fini(&out);
}
