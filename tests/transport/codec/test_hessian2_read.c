/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of codec 2: each form of each type, and the parts of a message. Java's writer uses
 * only some of the forms; tests of these are in test_hessian2_golden.c.
 */
#include "tests/support/test.h"
#include "tests/transport/dubbo_frames.h"

#include "tests/core/memory.h"
#include "tests/transport/codec/bodies.h"

#include <stdlib.h>

#define SCRATCH_MAX 1048576u

struct row {
	const char *body;
	size_t body_len;
	const char *values;
	size_t values_len;
};

#define ROW(body, values)                                                                          \
	{                                                                                          \
		body, sizeof(body) - 1, values, sizeof(values) - 1                                 \
	}

static void reads(enum spokei_codec_part part, const struct row *row)
{
	const struct spoke_value_limits limits = { .cycles = true };
	unsigned char *copy = malloc(row->body_len);
	struct spoke_span values = { 0 };
	struct spoke_cursor cursor;
	struct spokei_buffer scratch;
	struct memory memory;

	assert_non_null(copy);
	memcpy(copy, row->body, row->body_len);
	memory_init(&memory);
	spokei_buffer_init(&scratch, &memory.env, SCRATCH_MAX);
	assert_int_equal(body_read(&spokei_codec_hessian2, &limits, part,
				   spokei_span(copy, row->body_len), &scratch, &values),
			 0);
	free(copy);
	is_bytes(values, row->values, row->values_len);
	assert_int_equal(spoke_values_check(values.data, values.len, &limits, &cursor, NULL), 0);
	spokei_buffer_fini(&scratch);
	assert_int_equal(memory.bytes, 0);
}

/* Reads each body as the values of a request, whose attachments are null. */
static void read_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char body[100];
		char values[100];
		const struct row row = { body, rows[i].body_len + 1, values,
					 rows[i].values_len + 1 };

		assert_true(row.body_len < sizeof(body) && row.values_len < sizeof(values));
		memcpy(body, rows[i].body, rows[i].body_len);
		memcpy(values, rows[i].values, rows[i].values_len);
		body[rows[i].body_len] = 'N';
		values[rows[i].values_len] = '\xc0';
		reads(SPOKEI_CODEC_REQUEST, &row);
	}
}

#define READ_ROWS(rows) read_rows(rows, LENGTH(rows))

TEST(every_form_of_number_is_read)
{
	static const struct row rows[] = {
		ROW("\x80\x90\xbf", "\xf0\x00\x2f"),
		ROW("\xc0\x00\xc7\xff\xc8\x80\xcf\xff", "\xd1\xf8\x00\xff\xcc\x80\xcd\x07\xff"),
		ROW("\xd0\x00\x00\xd4\x00\x01\xd7\xff\xff",
		    "\xd2\xff\xfc\x00\x00\x01\xce\x00\x03\xff\xff"),
		ROW("I\x80\x00\x00\x00I\x00\x00\x00\x05", "\xd2\x80\x00\x00\x00\x05"),
		ROW("\xd8\xef", "\xd3\xff\xff\xff\xff\xff\xff\xff\xf8"
				"\xd3\x00\x00\x00\x00\x00\x00\x00\x0f"),
		ROW("\xf0\x00\xff\xff", "\xd3\xff\xff\xff\xff\xff\xff\xf8\x00"
					"\xd3\x00\x00\x00\x00\x00\x00\x07\xff"),
		ROW("\x38\x00\x00\x3f\xff\xff", "\xd3\xff\xff\xff\xff\xff\xfc\x00\x00"
						"\xd3\x00\x00\x00\x00\x00\x03\xff\xff"),
		ROW("\x59\x80\x00\x00\x00", "\xd3\xff\xff\xff\xff\x80\x00\x00\x00"),
		ROW("L\x80\x00\x00\x00\x00\x00\x00\x01", "\xd3\x80\x00\x00\x00\x00\x00\x00\x01"),
		ROW("\x5b\x5c", "\xcb\x00\x00\x00\x00\x00\x00\x00\x00"
				"\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00"),
		ROW("\x5d\x80\x5e\x80\x00", "\xcb\xc0\x60\x00\x00\x00\x00\x00\x00"
					    "\xcb\xc0\xe0\x00\x00\x00\x00\x00\x00"),
		ROW("\x5f\x00\x00\x05\xdc", "\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00"),
		ROW("D\x80\x00\x00\x00\x00\x00\x00\x00", "\xcb\x80\x00\x00\x00\x00\x00\x00\x00"),
	};

	READ_ROWS(rows);
}

TEST(date_takes_shortest_timestamp)
{
	static const struct row rows[] = {
		ROW("J\x00\x00\x00\x00\x00\x00\x03\xe8", "\xd6\xff\x00\x00\x00\x01"),
		ROW("J\x00\x00\x00\x00\x00\x00\x03\xe9",
		    "\xd7\xff\x00\x3d\x09\x00\x00\x00\x00\x01"),
		ROW("J\xff\xff\xff\xff\xff\xff\xff\xff",
		    "\xc7\x0c\xff\x3b\x8b\x87\xc0\xff\xff\xff\xff\xff\xff\xff\xff"),
		ROW("K\x00\x00\x00\x02", "\xd6\xff\x00\x00\x00\x78"),
		ROW("K\xff\xff\xff\xff",
		    "\xc7\x0c\xff\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xc4"),
	};

	READ_ROWS(rows);
}

TEST(chunks_of_string_are_joined)
{
	static const struct row rows[] = {
		ROW("R\x00\x01"
		    "aS\x00\x01"
		    "b",
		    "\xa2"
		    "ab"),
		ROW("R\x00\x01"
		    "a\x01"
		    "b",
		    "\xa2"
		    "ab"),
		ROW("R\x00\x01"
		    "a\x30\x01"
		    "b",
		    "\xa2"
		    "ab"),
		ROW("R\x00\x00R\x00\x00\x00", "\xa0"),
		ROW("R\x00\x01\xed\xa0\xbd\x01\xed\xb8\x80", "\xa4\xf0\x9f\x98\x80"),
		ROW("R\x00\x01\xed\xa0\xbdR\x00\x00\x01\xed\xb8\x80", "\xa4\xf0\x9f\x98\x80"),
	};

	READ_ROWS(rows);
}

TEST(surrogates_are_joined_or_kept)
{
	static const struct row rows[] = {
		ROW("\x02\xed\xa0\xbd\xed\xb8\x80", "\xa4\xf0\x9f\x98\x80"),
		ROW("\x01\xed\xa0\xbd", "\xa3\xed\xa0\xbd"),
		ROW("\x01\xed\xb8\x80", "\xa3\xed\xb8\x80"),
		ROW("\x02\xed\xb8\x80\xed\xa0\xbd", "\xa6\xed\xb8\x80\xed\xa0\xbd"),
		ROW("\x03\xed\xa0\xbd\xed\xa0\xbd\xed\xb8\x80", "\xa7\xed\xa0\xbd\xf0\x9f\x98\x80"),
		ROW("\x03\xed\xa0\xbd\xed\xb8\x80\xed\xb8\x80", "\xa7\xf0\x9f\x98\x80\xed\xb8\x80"),
		ROW("\x01\xed\xa0\xbd\x01\xed\xb8\x80", "\xa3\xed\xa0\xbd\xa3\xed\xb8\x80"),
		ROW("\x02\xf0\x9f\x98\x80", "\xa4\xf0\x9f\x98\x80"),
	};

	READ_ROWS(rows);
}

TEST(chunks_of_binary_are_joined)
{
	static const struct row rows[] = {
		ROW("\x20", "\xc4\x00"),
		ROW("\x22\x01\x02", "\xc4\x02\x01\x02"),
		ROW("\x34\x01\x07", "\xc4\x01\x07"),
		ROW("B\x00\x01\x07", "\xc4\x01\x07"),
		ROW("A\x00\x01\x07"
		    "A\x00\x00\x21\x08",
		    "\xc4\x02\x07\x08"),
		ROW("A\x00\x01\x07"
		    "B\x00\x01\x08",
		    "\xc4\x02\x07\x08"),
	};

	READ_ROWS(rows);
}

TEST(every_form_of_list_is_read)
{
	static const struct row rows[] = {
		ROW("\x78", "\x90"),
		ROW("\x7a\x91\x92", "\x92\x01\x02"),
		ROW("\x58\x91\x92", "\x91\x02"),
		ROW("\x57\x91\x92Z", "\xdd\x00\x00\x00\x02\x01\x02"),
		ROW("\x71\x01x\x91", "\xc9\x00\x00\x00\x04H\xa1x\x91\x01"),
		ROW("V\x01x\x91\x91", "\xc9\x00\x00\x00\x04H\xa1x\x91\x01"),
		ROW("U\x01x\x91Z", "\xc9\x00\x00\x00\x08H\xa1x\xdd\x00\x00\x00\x01\x01"),
	};

	READ_ROWS(rows);
}

TEST(type_may_be_number_of_earlier_type)
{
	static const struct row rows[] = {
		ROW("\x72\x01x\x70\x01y\x70\x90",
		    "\xc9\x00\x00\x00\x15H\xa1x\x92\xc9\x00\x00\x00\x03H\xa1y\x90"
		    "\xc9\x00\x00\x00\x03H\xa1x\x90"),
		ROW("\x70\x01xM\x90Z",
		    "\xc9\x00\x00\x00\x03H\xa1x\x90\xc9\x00\x00\x00\x07H\xa1x\xdf\x00\x00\x00\x00"),
	};

	READ_ROWS(rows);
}

TEST(maps_are_read)
{
	static const struct row rows[] = {
		ROW("\x79HZ", "\x91\xdf\x00\x00\x00\x00"),
		ROW("\x79H\x91\x01xN\x78Z", "\x91\xdf\x00\x00\x00\x02\x01\xa1x\xc0\x90"),
		ROW("\x79M\x01tZ", "\x91\xc9\x00\x00\x00\x07H\xa1t\xdf\x00\x00\x00\x00"),
	};

	READ_ROWS(rows);
}

TEST(definition_may_stand_before_any_value)
{
	static const struct row rows[] = {
		ROW("C\x01p\x91\x01x`\x95", "\xde\x00\x02\xa1x\x05\xa5"
					    "class\xa1p"),
		ROW("C\x01p\x91\x01xO\x90\x95", "\xde\x00\x02\xa1x\x05\xa5"
						"class\xa1p"),
		ROW("C\x01p\x90\x91\x60", "\x01\xde\x00\x01\xa5"
					  "class\xa1p"),
		ROW("C\x01p\x90"
		    "C\x01q\x90"
		    "\x79\x61",
		    "\x91\xde\x00\x01\xa5"
		    "class\xa1q"),
		ROW("C\x01p\x91\x01x`C\x01q\x90\x61", "\xde\x00\x02\xa1x\xde\x00\x01\xa5"
						      "class\xa1q\xa5"
						      "class\xa1p"),
		ROW("C\x01p\x91S\x00\x02xy`N", "\xde\x00\x02\xa2xy\xc0\xa5"
					       "class\xa1p"),
	};

	READ_ROWS(rows);
}

TEST(reference_is_distance_and_copy)
{
	static const struct row rows[] = {
		ROW("\x7a\x78Q\x91", "\x92\x90\xd5R\x01\x90"),
		ROW("\x78\x78Q\x90", "\x90\x90\xd5R\x02\x90"),
		ROW("\x7a\x70\x01xQ\x91", "\x92\xc9\x00\x00\x00\x03H\xa1x\x90"
					  "\xc7\x0aR\x01\xc9\x00\x00\x00\x03H\xa1x\x90"),
		/* References take no number, so the second one counts from the same container. */
		ROW("\x7c\x78Q\x91\x78Q\x91", "\x94\x90\xd5R\x01\x90\x90\xd5R\x02\x90"),
		ROW("\x7aQ\x90N", "\x92\xd5R\x01\xc0\xc0"),
		ROW("\x79HQ\x90Q\x91Z", "\x91\xdf\x00\x00\x00\x01\xd5R\x02\xc0\xd5R\x01\xc0"),
	};

	READ_ROWS(rows);
}

/* Checks the result of a reply that consists of a marker and this value, without cycles. */
static void value_ends(const char *body, size_t len, int expected)
{
	const struct spoke_value_limits limits = { 0 };
	struct spoke_span values;
	struct spokei_buffer scratch;
	struct memory memory;

	memory_init(&memory);
	spokei_buffer_init(&scratch, &memory.env, SCRATCH_MAX);
	assert_int_equal(body_read(&spokei_codec_hessian2, &limits, SPOKEI_CODEC_REPLY,
				   spokei_span(body, len), &scratch, &values),
			 expected);
	assert_int_equal(spokei_buffer_len(&scratch) > 0, expected == 0);
	spokei_buffer_fini(&scratch);
}

TEST(cycle_is_refused_unless_cause_of_itself)
{
	value_ends("\x91\x79Q\x90", 4, SPOKE_ECYCLE);
	value_ends("\x91"
		   "C\x01p\x91\x05"
		   "cause`Q\x90",
		   14, 0);
	value_ends("\x91"
		   "C\x01p\x91\x05"
		   "cause`\x79Q\x90",
		   15, SPOKE_ECYCLE);
	value_ends("\x91"
		   "C\x01p\x91\x05"
		   "cauze`Q\x90",
		   14, SPOKE_ECYCLE);
	value_ends("\x91\x79"
		   "C\x01p\x91\x05"
		   "cause`Q\x90",
		   15, SPOKE_ECYCLE);
}

TEST(exception_becomes_class_and_fields)
{
	static const struct row rows[] = {
		ROW("\x90"
		    "C\x03"
		    "a.E\x92\x05"
		    "cause\x0d"
		    "detailMessage`Q\x90\x02no",
		    "\x00\xa3"
		    "a.E\x82\xa5"
		    "cause\xc0\xa7"
		    "message\xa2no"),
		ROW("\x93"
		    "C\x03"
		    "a.E\x91\x0d"
		    "detailMessage`NH\x01k\x01vZ",
		    "\x03\xa3"
		    "a.E\x81\xa7"
		    "message\xc0\xdf\x00\x00\x00\x01\xa1k\xa1v"),
		ROW("\x93\x02noHZ", "\x03\xb3"
				    "java.lang.Throwable\x81\xa7"
				    "message\xa2no\xdf\x00\x00\x00\x00"),
		ROW("\x90N", "\x00\xb3"
			     "java.lang.Throwable\x81\xa7"
			     "message\xc0"),
		/* A cause keeps its class and its names. */
		ROW("\x90"
		    "C\x03"
		    "a.E\x91\x05"
		    "cause`C\x03"
		    "a.F\x91\x0d"
		    "detailMessage\x61\x02no",
		    "\x00\xa3"
		    "a.E\x81\xa5"
		    "cause\xde\x00\x02\xad"
		    "detailMessage\xa2no\xa5"
		    "class\xa3"
		    "a.F"),
		ROW("\x91\x95", "\x01\x05"),
		ROW("\x92", "\x02"),
		ROW("\x94\x95HZ", "\x04\x05\xdf\x00\x00\x00\x00"),
		ROW("\x95HZ", "\x05\xdf\x00\x00\x00\x00"),
	};

	for (size_t i = 0; i < LENGTH(rows); i++)
		reads(SPOKEI_CODEC_REPLY, &rows[i]);
}

TEST(attachments_lose_their_type)
{
	static const struct row request = ROW("\x01xM\x01t\x01k\x70\x01tZ",
					      "\xa1x\xdf\x00\x00\x00\x01\xa1k"
					      "\xc9\x00\x00\x00\x03H\xa1t\x90");
	static const struct row shared = ROW("HZQ\x90", "\xdf\x00\x00\x00\x00\xdf\x00\x00\x00\x00");
	static const struct row reply = ROW("\x95M\x01tZ", "\x05\xdf\x00\x00\x00\x00");

	reads(SPOKEI_CODEC_REQUEST, &request);
	reads(SPOKEI_CODEC_REQUEST, &shared);
	reads(SPOKEI_CODEC_REPLY, &reply);
}

TEST(text_is_one_string_or_null)
{
	static const struct row text = ROW("\x02no", "\xa2no");
	static const struct row null = ROW("N", "\xc0");

	reads(SPOKEI_CODEC_TEXT, &text);
	reads(SPOKEI_CODEC_TEXT, &null);
}
