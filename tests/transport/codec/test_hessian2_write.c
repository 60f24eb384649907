/* SPDX-License-Identifier: Apache-2.0 */
/* Values as Hessian 2: the form of each kind of value, and what cannot be expressed. */
#include "tests/support/test.h"
#include "tests/transport/dubbo_frames.h"

#include "tests/core/memory.h"
#include "tests/transport/codec/bodies.h"

#include <stdlib.h>

#define OUT_MAX (1u << 20)

/* A value and its bytes. */
struct row {
	const char *value;
	size_t value_len;
	const char *bytes;
	size_t len;
};

#define ROW(value, bytes)                                                                          \
	{                                                                                          \
		value, sizeof(value) - 1, bytes, sizeof(bytes) - 1                                 \
	}

/* Writes values that lie in an allocation of exactly their length. */
static int write_part(enum spokei_codec_part part, const void *values, size_t len,
		      struct spokei_buffer *out)
{
	void *copy = malloc(len > 0 ? len : 1);
	int error;

	assert_non_null(copy);
	memcpy(copy, values, len);
	error = body_write(&spokei_codec_hessian2, part, spokei_span(copy, len), out);
	free(copy);
	return error;
}

static void write_is(enum spokei_codec_part part, struct row row)
{
	struct spokei_buffer out;
	struct memory memory;

	memory_init(&memory);
	spokei_buffer_init(&out, &memory.env, OUT_MAX);
	assert_int_equal(write_part(part, row.value, row.value_len, &out), 0);
	is_bytes(spokei_span(spokei_buffer_data(&out), spokei_buffer_len(&out)), row.bytes,
		 row.len);
	spokei_buffer_fini(&out);
	assert_int_equal(memory.bytes, 0);
}

static void all_are(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		write_is(SPOKEI_CODEC_VALUES, rows[i]);
}

static void fails_with(const void *values, size_t len, int error)
{
	struct spokei_buffer out;
	struct memory memory;

	memory_init(&memory);
	spokei_buffer_init(&out, &memory.env, OUT_MAX);
	assert_int_equal(write_part(SPOKEI_CODEC_VALUES, values, len, &out), error);
	spokei_buffer_fini(&out);
	assert_int_equal(memory.bytes, 0);
}

#define FAILS(values) fails_with(values, sizeof(values) - 1, SPOKE_EUNSUPPORTED)

/* --- scalars */

TEST(integer_takes_shortest_form_of_its_width)
{
	static const struct row rows[] = {
		ROW("\xc0", "N"),
		ROW("\xc3", "T"),
		ROW("\xc2", "F"),
		ROW("\x2f", "\xbf"),
		ROW("\x30", "\xc8\x30"),
		ROW("\xf0", "\x80"),
		ROW("\xef", "\xc7\xef"),
		ROW("\xcc\xff", "\xc8\xff"),
		ROW("\xcd\x07\xff", "\xcf\xff"),
		ROW("\xcd\x08\x00", "\xd4\x08\x00"),
		ROW("\xd1\xf7\xff", "\xd3\xf7\xff"),
		ROW("\xce\x00\x03\xff\xff", "\xd7\xff\xff"),
		ROW("\xce\x00\x04\x00\x00", "I\x00\x04\x00\x00"),
		ROW("\xd2\x80\x00\x00\x00", "I\x80\x00\x00\x00"),
		ROW("\xce\x80\x00\x00\x00", "L\x00\x00\x00\x00\x80\x00\x00\x00"),
		ROW("\xd3\x00\x00\x00\x00\x00\x00\x00\x00", "\xe0"),
		ROW("\xd3\xff\xff\xff\xff\xff\xff\xff\xf8", "\xd8"),
		ROW("\xcf\x00\x00\x00\x00\x00\x00\x00\x0f", "\xef"),
		ROW("\xd3\x00\x00\x00\x00\x00\x00\x07\xff", "\xff\xff"),
		ROW("\xd3\xff\xff\xff\xff\xff\xfc\x00\x00", "\x38\x00\x00"),
		ROW("\xd3\x00\x00\x00\x00\x7f\xff\xff\xff", "\x59\x7f\xff\xff\xff"),
		ROW("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff", "L\x7f\xff\xff\xff\xff\xff\xff\xff"),
	};

	all_are(rows, LENGTH(rows));
}

TEST(integer_above_long_is_unsupported)
{
	FAILS("\xcf\x80\x00\x00\x00\x00\x00\x00\x00");
}

TEST(double_takes_form_of_java)
{
	static const struct row rows[] = {
		ROW("\xcb\x00\x00\x00\x00\x00\x00\x00\x00", "\x5b"),
		ROW("\xcb\x80\x00\x00\x00\x00\x00\x00\x00", "D\x80\x00\x00\x00\x00\x00\x00\x00"),
		ROW("\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00", "\x5c"),
		ROW("\xcb\xc0\x60\x00\x00\x00\x00\x00\x00", "\x5d\x80"),
		ROW("\xcb\x40\x60\x00\x00\x00\x00\x00\x00", "\x5e\x00\x80"),
		ROW("\xcb\x3f\xe0\x00\x00\x00\x00\x00\x00", "\x5f\x00\x00\x01\xf4"),
		ROW("\xcb\x40\x58\xff\x5c\x28\xf5\xc2\x8f", "D\x40\x58\xff\x5c\x28\xf5\xc2\x8f"),
		ROW("\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", "D\x7f\xf8\x00\x00\x00\x00\x00\x00"),
		ROW("\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", "D\x7f\xf0\x00\x00\x00\x00\x00\x00"),
	};

	all_are(rows, LENGTH(rows));
}

TEST(float_becomes_double_of_its_decimal_text)
{
	static const struct row rows[] = {
		ROW("\xca\x40\x48\xf5\xc3", "\x5f\x00\x00\x0c\x44"),
		ROW("\xca\x3d\xcc\xcc\xcd", "\x5f\x00\x00\x00\x64"),
		ROW("\xca\x7f\x7f\xff\xff", "D\x47\xef\xff\xff\xe5\x4d\xaf\xf8"),
		ROW("\xca\x00\x00\x00\x01", "D\x36\x9f\xf8\x68\xbf\x4d\x95\x6a"),
		ROW("\xca\x80\x00\x00\x00", "D\x80\x00\x00\x00\x00\x00\x00\x00"),
		ROW("\xca\x41\x20\x00\x00", "\x5d\x0a"),
		ROW("\xca\xff\x80\x00\x00", "D\xff\xf0\x00\x00\x00\x00\x00\x00"),
	};

	all_are(rows, LENGTH(rows));
}

TEST(timestamp_becomes_date_in_minutes_or_milliseconds)
{
	static const struct row rows[] = {
		ROW("\xd6\xff\x00\x00\x00\x3c", "\x4b\x00\x00\x00\x01"),
		ROW("\xd6\xff\x00\x00\x00\x01", "\x4a\x00\x00\x00\x00\x00\x00\x03\xe8"),
		/* One nanosecond less than two milliseconds. */
		ROW("\xd7\xff\x00\x7a\x11\xfc\x00\x00\x00\x00",
		    "\x4a\x00\x00\x00\x00\x00\x00\x00\x01"),
		/* One millisecond before 1970. */
		ROW("\xc7\x0c\xff\x3b\x8b\x87\xc0\xff\xff\xff\xff\xff\xff\xff\xff",
		    "\x4a\xff\xff\xff\xff\xff\xff\xff\xff"),
		/* The first date of Java. */
		ROW("\xc7\x0c\xff\x0b\x71\xb0\x00\xff\xdf\x3b\x64\x5a\x1c\xac\x08",
		    "\x4a\x80\x00\x00\x00\x00\x00\x00\x00"),
	};

	all_are(rows, LENGTH(rows));
	FAILS("\xc7\x0c\xff\x0b\x71\xb0\x00\xff\xdf\x3b\x64\x5a\x1c\xac\x07");
	FAILS("\xc7\x0c\xff\x3b\x9a\xca\x00\x00\x00\x00\x00\x00\x00\x00\x00");
	FAILS("\xd5\xff\x00\x00");
}

/* --- strings and binaries */

TEST(string_counts_units_and_splits_pairs)
{
	static const struct row rows[] = {
		ROW("\xa0", "\x00"),
		ROW("\xa2\xc3\xa9", "\x01\xc3\xa9"),
		ROW("\xa4\xf0\x9f\x98\x80", "\x02\xed\xa0\xbd\xed\xb8\x80"),
		/* A pair that is already split, and a lone surrogate. */
		ROW("\xa6\xed\xa0\xbd\xed\xb8\x80", "\x02\xed\xa0\xbd\xed\xb8\x80"),
		ROW("\xa3\xed\xa0\xbd", "\x01\xed\xa0\xbd"),
		ROW("\xd9\x20 1234567890123456789012345678901",
		    "\x30\x20 1234567890123456789012345678901"),
	};

	all_are(rows, LENGTH(rows));
}

TEST(bytes_that_are_not_utf8_become_replacements)
{
	static const struct row rows[] = {
		ROW("\xa1\xff", "\x01\xef\xbf\xbd"),
		ROW("\xa2\xc3x", "\x02\xef\xbf\xbdx"),
		ROW("\xa2\xc0\x80", "\x02\xef\xbf\xbd\xef\xbf\xbd"),
		ROW("\xa3\xe0\x80\x80", "\x03\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"),
		ROW("\xa2\xe4\xb8", "\x02\xef\xbf\xbd\xef\xbf\xbd"),
		ROW("\xa3\xf0\x9f\x98", "\x03\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"),
	};

	all_are(rows, LENGTH(rows));
}

/* Writes a string of `count` letters and a tail, and checks the heads of its chunks. */
static void chunks_are(size_t count, const char *tail, size_t first, const char *second)
{
	size_t len = count + strlen(tail);
	unsigned char *value = malloc(len + 5);
	struct spokei_buffer out;
	struct memory memory;
	unsigned char *at;

	assert_non_null(value);
	value[0] = 0xdb;
	for (unsigned i = 0; i < 4; i++)
		value[1 + i] = (unsigned char)(len >> 8 * (3 - i));
	memset(value + 5, 'x', count);
	memcpy(value + 5 + count, tail, strlen(tail));
	memory_init(&memory);
	spokei_buffer_init(&out, &memory.env, OUT_MAX);
	assert_int_equal(write_part(SPOKEI_CODEC_VALUES, value, len + 5, &out), 0);
	at = spokei_buffer_data(&out);
	assert_non_null(at);
	if (at == NULL)
		return; /* compilers do not know that the assertion leaves */
	assert_int_equal(at[0], *second ? 'R' : 'S');
	assert_int_equal(at[1] << 8 | at[2], first);
	if (*second)
		is_text(spokei_span(at + 3 + first, spokei_buffer_len(&out) - 3 - first), second);
	spokei_buffer_fini(&out);
	free(value);
}

TEST(string_is_cut_at_32768_units)
{
	chunks_are(32767, "", 32767, "");
	chunks_are(32768, "", 32768, "");
	chunks_are(32768, "ab", 32768,
		   "\x02"
		   "ab");
	/* A pair is not split between chunks. */
	chunks_are(32767, "\xf0\x9f\x98\x80", 32767, "\x02\xed\xa0\xbd\xed\xb8\x80");
	chunks_are(32767, "\xed\xa0\xbd\xed\xb8\x80", 32767, "\x02\xed\xa0\xbd\xed\xb8\x80");
	chunks_are(32766, "\xf0\x9f\x98\x80", 32768, "");
}

TEST(binary_is_cut_at_32768_bytes)
{
	static const struct row rows[] = {
		ROW("\xc4\x00", "\x20"),
		ROW("\xc4\x02\x01\x02", "\x22\x01\x02"),
		ROW("\xc4\x10"
		    "0123456789abcdef",
		    "\x34\x10"
		    "0123456789abcdef"),
	};
	static unsigned char value[5 + 32769] = "\xc6\x00\x00\x80\x01";
	struct spokei_buffer out;
	struct memory memory;

	all_are(rows, LENGTH(rows));
	memory_init(&memory);
	spokei_buffer_init(&out, &memory.env, OUT_MAX);
	assert_int_equal(write_part(SPOKEI_CODEC_VALUES, value, sizeof(value), &out), 0);
	assert_int_equal(spokei_buffer_len(&out), 3 + 32768 + 2);
	assert_memory_equal(spokei_buffer_data(&out), "A\x80\x00", 3);
	assert_memory_equal(spokei_buffer_data(&out) + 3 + 32768, "\x21\x00", 2);
	spokei_buffer_fini(&out);
}
