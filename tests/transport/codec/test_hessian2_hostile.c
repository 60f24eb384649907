/* SPDX-License-Identifier: Apache-2.0 */
/* Malformed bodies for the reader of codec 2. Each is refused with its error, in little memory. */
#include "tests/support/test.h"
#include "tests/transport/codec/hostile.h"

/* Checks bodies that begin with the marker. */
static void refused_rows(const struct spoke_span *rows, size_t count, int expected)
{
	for (size_t i = 0; i < count; i++) {
		(void)hostile_begin(NULL);
		hostile_put(rows[i].data, rows[i].len, 1);
		hostile_refused(expected);
	}
}

#define ROW(bytes)                                                                                 \
	{                                                                                          \
		bytes, sizeof(bytes) - 1                                                           \
	}
#define REFUSED_ROWS(rows, expected) refused_rows(rows, LENGTH(rows), expected)

/* --- malformed values */

FIXTURE(hostile_begin, NULL);

TEST(reserved_tags_are_corrupt)
{
	static const struct spoke_span rows[] = { ROW("\x40"), ROW("\x45"), ROW("\x47"),
						  ROW("\x50"), ROW("\x5a"), ROW("\x79\x5a") };

	REFUSED_ROWS(rows, SPOKE_ECORRUPT);
}

TEST(length_beyond_body_is_truncated)
{
	static const struct spoke_span rows[] = {
		ROW("S\xff\xff"
		    "a"),
		ROW("R\xff\xff"
		    "a"),
		ROW("\x33\xff"
		    "a"),
		ROW("\x05"
		    "a"),
		ROW("B\xff\xff"
		    "a"),
		ROW("A\xff\xff"
		    "a"),
		ROW("\x37\xff"
		    "a"),
		ROW("\x2f"),
		ROW("S\xff"),
		ROW("\x33"),
		ROW("S"),
		ROW("L\x00"),
		ROW("I\x00"),
		ROW("D\x00"),
		ROW("J\x00"),
		ROW("K\x00"),
		ROW("\xc8"),
		ROW("\xd4\x00"),
		ROW("\xf8"),
		ROW("\x3c\x00"),
		ROW("\x5d"),
		ROW("\x5e\x00"),
		ROW("\x5f\x00"),
	};

	REFUSED_ROWS(rows, SPOKE_ETRUNCATED);
}

TEST(text_that_is_not_units_is_corrupt)
{
	static const struct spoke_span rows[] = {
		ROW("\x01\x80"),
		ROW("\x02\xc0\x80"),
		ROW("\x03\xe0\x80\x80"),
		ROW("\x02\xc3(\xc3("),
		ROW("\x03\xe4\xb8(..."),
		ROW("\x02\xf0\x80\x80\x80"),
		ROW("\x02\xf4\x90\x80\x80"),
		ROW("\x04\xf8\x88\x80\x80\x80"),
		ROW("\x01\xf0\x9f\x98\x80"),
		ROW("\x01\xff"),
	};

	REFUSED_ROWS(rows, SPOKE_ECORRUPT);
}

TEST(character_cut_by_end_is_truncated)
{
	static const struct spoke_span rows[] = { ROW("\x01\xc3"), ROW("\x01\xe4\xb8"),
						  ROW("\x02\xf0\x9f\x98") };

	REFUSED_ROWS(rows, SPOKE_ETRUNCATED);
}

TEST(chunk_of_other_type_is_corrupt)
{
	static const struct spoke_span rows[] = { ROW("R\x00\x00\x20"), ROW("A\x00\x00\x00"),
						  ROW("R\x00\x00\x91"), ROW("A\x00\x00R\x00\x00") };

	REFUSED_ROWS(rows, SPOKE_ECORRUPT);
}

TEST(count_beyond_body_is_truncated)
{
	static const struct spoke_span rows[] = {
		ROW("\x58I\x7f\xff\xff\xff\x90"),
		ROW("V\x01xI\x7f\xff\xff\xff\x90"),
		ROW("\x7f\x90"),
		ROW("\x77\x01x\x90"),
		ROW("C\x01p\xd4\x03\xe8\x01x`\x90"),
		ROW("C\x01p\x92\x01x\x01y`\x90"),
	};

	REFUSED_ROWS(rows, SPOKE_ETRUNCATED);
}

TEST(count_that_is_no_number_is_corrupt)
{
	static const struct spoke_span rows[] = {
		ROW("\x58\x8f\x90"), ROW("\x58I\xff\xff\xff\xff"), ROW("\x58\xe0"),
		ROW("\x58\x01\x31"), ROW("C\x01p\x8f`"),           ROW("C\x01pN`"),
	};

	REFUSED_ROWS(rows, SPOKE_ECORRUPT);
}

TEST(number_of_missing_entry_is_corrupt)
{
	static const struct spoke_span rows[] = {
		ROW("`"),          ROW("O\x90"),
		ROW("O\x8f"),      ROW("C\x01p\x90O\x91"),
		ROW("\x70\x90"),   ROW("M\x8fZ"),
		ROW("Q\x90"),      ROW("\x79Q\x91"),
		ROW("\x79Q\x8f"),  ROW("\x79QI\xff\xff\xff\xff"),
		ROW("\x79Q\x01x"), ROW("\x70N"),
	};

	REFUSED_ROWS(rows, SPOKE_ECORRUPT);
}

TEST(name_of_class_or_field_must_be_string)
{
	static const struct spoke_span rows[] = { ROW("CN\x90`"), ROW("C\x01p\x91N`\x90"),
						  ROW("C\x91\x90`") };

	REFUSED_ROWS(rows, SPOKE_ECORRUPT);
}

TEST(name_with_short_chunk_is_corrupt)
{
	static const struct spoke_span rows[] = {
		ROW("CR\x00\x00\x01p\x90`"),
		ROW("CR\x00\x01xR\x00\x00\x01p\x90`"),
		ROW("C\x01p\x91R\x00\x00\x01x`N"),
		ROW("\x70R\x00\x00\x01x"),
		ROW("MR\x00\x00\x01xZ"),
		ROW("CR\x00\x02xy\x01p\x90`"),
		ROW("C\x01p\x91R\x00\x01x\x01y`N"),
	};

	REFUSED_ROWS(rows, SPOKE_ECORRUPT);
}

TEST(unfinished_container_is_truncated)
{
	static const struct spoke_span rows[] = {
		ROW("\x57"),
		ROW("\x57\x91"),
		ROW("U\x01x\x91"),
		ROW("U"),
		ROW("H"),
		ROW("H\x91"),
		ROW("H\x91\x91"),
		ROW("M"),
		ROW("C\x01p\x90"),
		ROW("C"),
		ROW("C\x01p"),
		ROW("C\x01p\x91"),
		ROW("C\x01p\x91\x01x`"),
		ROW("V\x01x"),
		ROW("\x58"),
		ROW("Q"),
	};

	REFUSED_ROWS(rows, SPOKE_ETRUNCATED);
}

TEST(key_without_value_is_corrupt)
{
	PUT("H\x91\x91\x91Z", 1);
	hostile_refused(SPOKE_ECORRUPT);
}

TEST(cycle_is_refused)
{
	PUT("\x79H\x91\x79Q\x90Z", 1);
	hostile_refused(SPOKE_ECYCLE);
}

TEST(text_part_holds_one_text)
{
	const struct spoke_value_limits limits = { 0 };

	hostile_body.len = 0;
	hostile_ends(SPOKEI_CODEC_TEXT, &limits, SPOKE_ETRUNCATED, SMALL);
	PUT("\x02no", 1);
	hostile_ends(SPOKEI_CODEC_TEXT, &limits, 0, SMALL);
	PUT("\x02no", 1);
	hostile_ends(SPOKEI_CODEC_TEXT, &limits, SPOKE_ETRAILING, SMALL);
	hostile_body.len = 0;
	PUT("\x91", 1);
	hostile_ends(SPOKEI_CODEC_TEXT, &limits, SPOKE_ECORRUPT, SMALL);
}

/* Checks a whole body of a reply. */
static void reply_ends(const char *bytes, size_t len, int expected)
{
	const struct spoke_value_limits limits = { 0 };

	hostile_body.len = 0;
	hostile_put(bytes, len, 1);
	hostile_ends(SPOKEI_CODEC_REPLY, &limits, expected, SMALL);
}

TEST(reply_has_values_of_its_marker)
{
	reply_ends("\x96N", 2, SPOKE_ECORRUPT);
	reply_ends("\x01x", 2, SPOKE_ECORRUPT);
	reply_ends("\x90", 1, SPOKE_ETRUNCATED);
	reply_ends("\x94N", 2, SPOKE_ETRUNCATED);
	reply_ends("\x92N", 2, SPOKE_ETRAILING);
	/* A class and a map are an exception in msgpack only. */
	reply_ends("\x90\x01xHZ", 5, SPOKE_ETRAILING);
}

TEST(attachments_must_be_map_or_null)
{
	static const struct spoke_span bodies[] = {
		ROW("\x95\x78"),
		ROW("\x95\x01x"),
		ROW("\x95"
		    "C\x01p\x90`"),
		ROW("\x94N\x91"),
		ROW("\x95\x70\x01x"),
	};
	const struct spoke_value_limits limits = { 0 };

	for (size_t i = 0; i < LENGTH(bodies); i++) {
		hostile_body.len = 0;
		hostile_put(bodies[i].data, bodies[i].len, 1);
		hostile_ends(SPOKEI_CODEC_REPLY, &limits, SPOKE_ECORRUPT, SMALL);
	}
	hostile_ends(SPOKEI_CODEC_REQUEST, &limits, SPOKE_ECORRUPT, SMALL);
}
