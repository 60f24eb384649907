/* SPDX-License-Identifier: Apache-2.0 */
/* Malformed bodies for the reader of codec 2. Each is refused with its error, in little memory. */
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

static void reserved_tags_are_corrupt(void **state)
{
	static const struct spoke_span rows[] = { ROW("\x40"), ROW("\x45"), ROW("\x47"),
						  ROW("\x50"), ROW("\x5a"), ROW("\x79\x5a") };

	(void)state;
	REFUSED_ROWS(rows, SPOKE_ECORRUPT);
}

static void length_beyond_body_is_truncated(void **state)
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

	(void)state;
	REFUSED_ROWS(rows, SPOKE_ETRUNCATED);
}

static void text_that_is_not_units_is_corrupt(void **state)
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

	(void)state;
	REFUSED_ROWS(rows, SPOKE_ECORRUPT);
}

static void character_cut_by_end_is_truncated(void **state)
{
	static const struct spoke_span rows[] = { ROW("\x01\xc3"), ROW("\x01\xe4\xb8"),
						  ROW("\x02\xf0\x9f\x98") };

	(void)state;
	REFUSED_ROWS(rows, SPOKE_ETRUNCATED);
}

static void chunk_of_other_type_is_corrupt(void **state)
{
	static const struct spoke_span rows[] = { ROW("R\x00\x00\x20"), ROW("A\x00\x00\x00"),
						  ROW("R\x00\x00\x91"), ROW("A\x00\x00R\x00\x00") };

	(void)state;
	REFUSED_ROWS(rows, SPOKE_ECORRUPT);
}

static void count_beyond_body_is_truncated(void **state)
{
	static const struct spoke_span rows[] = {
		ROW("\x58I\x7f\xff\xff\xff\x90"),
		ROW("V\x01xI\x7f\xff\xff\xff\x90"),
		ROW("\x7f\x90"),
		ROW("\x77\x01x\x90"),
		ROW("C\x01p\xd4\x03\xe8\x01x`\x90"),
		ROW("C\x01p\x92\x01x\x01y`\x90"),
	};

	(void)state;
	REFUSED_ROWS(rows, SPOKE_ETRUNCATED);
}

static void count_that_is_no_number_is_corrupt(void **state)
{
	static const struct spoke_span rows[] = {
		ROW("\x58\x8f\x90"), ROW("\x58I\xff\xff\xff\xff"), ROW("\x58\xe0"),
		ROW("\x58\x01\x31"), ROW("C\x01p\x8f`"),           ROW("C\x01pN`"),
	};

	(void)state;
	REFUSED_ROWS(rows, SPOKE_ECORRUPT);
}

static void number_of_missing_entry_is_corrupt(void **state)
{
	static const struct spoke_span rows[] = {
		ROW("`"),          ROW("O\x90"),
		ROW("O\x8f"),      ROW("C\x01p\x90O\x91"),
		ROW("\x70\x90"),   ROW("M\x8fZ"),
		ROW("Q\x90"),      ROW("\x79Q\x91"),
		ROW("\x79Q\x8f"),  ROW("\x79QI\xff\xff\xff\xff"),
		ROW("\x79Q\x01x"), ROW("\x70N"),
	};

	(void)state;
	REFUSED_ROWS(rows, SPOKE_ECORRUPT);
}

static void name_of_class_or_field_must_be_string(void **state)
{
	static const struct spoke_span rows[] = { ROW("CN\x90`"), ROW("C\x01p\x91N`\x90"),
						  ROW("C\x91\x90`") };

	(void)state;
	REFUSED_ROWS(rows, SPOKE_ECORRUPT);
}

static void name_with_short_chunk_is_corrupt(void **state)
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

	(void)state;
	REFUSED_ROWS(rows, SPOKE_ECORRUPT);
}

static void unfinished_container_is_truncated(void **state)
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

	(void)state;
	REFUSED_ROWS(rows, SPOKE_ETRUNCATED);
}

static void key_without_value_is_corrupt(void **state)
{
	(void)state;
	PUT("H\x91\x91\x91Z", 1);
	hostile_refused(SPOKE_ECORRUPT);
}

static void cycle_is_refused(void **state)
{
	(void)state;
	PUT("\x79H\x91\x79Q\x90Z", 1);
	hostile_refused(SPOKE_ECYCLE);
}

static void text_part_holds_one_text(void **state)
{
	const struct spoke_value_limits limits = { 0 };

	(void)state;
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

static void reply_has_values_of_its_marker(void **state)
{
	(void)state;
	reply_ends("\x96N", 2, SPOKE_ECORRUPT);
	reply_ends("\x01x", 2, SPOKE_ECORRUPT);
	reply_ends("\x90", 1, SPOKE_ETRUNCATED);
	reply_ends("\x94N", 2, SPOKE_ETRUNCATED);
	reply_ends("\x92N", 2, SPOKE_ETRAILING);
	/* A class and a map are an exception in msgpack only. */
	reply_ends("\x90\x01xHZ", 5, SPOKE_ETRAILING);
}

static void attachments_must_be_map_or_null(void **state)
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

	(void)state;
	for (size_t i = 0; i < LENGTH(bodies); i++) {
		hostile_body.len = 0;
		hostile_put(bodies[i].data, bodies[i].len, 1);
		hostile_ends(SPOKEI_CODEC_REPLY, &limits, SPOKE_ECORRUPT, SMALL);
	}
	hostile_ends(SPOKEI_CODEC_REQUEST, &limits, SPOKE_ECORRUPT, SMALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(reserved_tags_are_corrupt, hostile_begin),
		cmocka_unit_test_setup(length_beyond_body_is_truncated, hostile_begin),
		cmocka_unit_test_setup(text_that_is_not_units_is_corrupt, hostile_begin),
		cmocka_unit_test_setup(character_cut_by_end_is_truncated, hostile_begin),
		cmocka_unit_test_setup(chunk_of_other_type_is_corrupt, hostile_begin),
		cmocka_unit_test_setup(count_beyond_body_is_truncated, hostile_begin),
		cmocka_unit_test_setup(count_that_is_no_number_is_corrupt, hostile_begin),
		cmocka_unit_test_setup(number_of_missing_entry_is_corrupt, hostile_begin),
		cmocka_unit_test_setup(name_of_class_or_field_must_be_string, hostile_begin),
		cmocka_unit_test_setup(name_with_short_chunk_is_corrupt, hostile_begin),
		cmocka_unit_test_setup(unfinished_container_is_truncated, hostile_begin),
		cmocka_unit_test_setup(key_without_value_is_corrupt, hostile_begin),
		cmocka_unit_test_setup(cycle_is_refused, hostile_begin),
		cmocka_unit_test_setup(text_part_holds_one_text, hostile_begin),
		cmocka_unit_test_setup(reply_has_values_of_its_marker, hostile_begin),
		cmocka_unit_test_setup(attachments_must_be_map_or_null, hostile_begin),
	};

	return cmocka_run_group_tests_name("hessian2_hostile", tests, NULL, NULL);
}
