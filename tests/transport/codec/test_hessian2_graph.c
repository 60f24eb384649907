/* SPDX-License-Identifier: Apache-2.0 */
/* Lists, maps, objects and references as Hessian 2, and the tables that number them. */
#include "tests/support/test.h"
#include "tests/transport/codec/hessianbed.h"

#include "transport/codec/hessian2/writer.h"

#include <stdio.h>

/* --- lists and maps */

FIXTURE(bed_set_up, bed_tear_down);

TEST(list_and_map_are_untyped)
{
	struct bed *bed = *state;

	ADD(bed, "\x92\x01\xc0");
	WRITTEN(bed, VALUES, "\x7a\x91N");
	ADD(bed, "\x98\x01\x01\x01\x01\x01\x01\x01\x01");
	WRITTEN(bed, VALUES, "X\x98\x91\x91\x91\x91\x91\x91\x91\x91");
	ADD(bed, "\x82\xa1k\x01\x05\x80");
	WRITTEN(bed, VALUES, "H\x01k\x91\x95HZZ");
}

TEST(type_of_ext_is_written_once)
{
	struct bed *bed = *state;

	ADD(bed, "\x95");
	ADD_EXT(bed, TYPED,
		"\xa1"
		"a"
		"\x91\x01");
	ADD_EXT(bed, TYPED,
		"\xa1"
		"b"
		"\x90");
	ADD_EXT(bed, TYPED,
		"\xa1"
		"a"
		"\x81\xc0\xc0");
	ADD_EXT(bed, TYPED,
		"\xa1"
		"b"
		"\x98\x01\x01\x01\x01\x01\x01\x01\x01");
	ADD_EXT(bed, TYPED,
		"\xa2"
		"[b"
		"\x90");
	WRITTEN(bed, VALUES,
		"\x7d\x71\x01"
		"a\x91\x70\x01"
		"bM\x90NNZ"
		"V\x91\x98\x91\x91\x91\x91\x91\x91\x91\x91\x70\x02[b");
}

/* Adds an empty list of the type with this number. */
static void add_list(struct bed *bed, unsigned number)
{
	size_t start = bed->len;
	char name[8];

	(void)snprintf(name, sizeof(name), "\xa4%04u", number);
	add_bytes(bed, name, 5);
	ADD(bed, "\x90");
	wrap(bed, start, TYPED);
}

TEST(type_beyond_table_is_written_in_full)
{
	struct bed *bed = *state;
	unsigned char *at;

	for (unsigned i = 0; i <= SPOKEI_HESSIAN_KNOWN; i++)
		add_list(bed, i);
	add_list(bed, SPOKEI_HESSIAN_KNOWN);
	add_list(bed, 1);
	add_list(bed, 0);
	assert_int_equal(write_all(bed, SPOKEI_CODEC_VALUES), 0);
	at = spokei_buffer_data(&bed->out) + spokei_buffer_len(&bed->out);
	assert_memory_equal(at - 17,
			    "\x70\x04"
			    "0128\x70\xc8\x80\x70\x91\x70\x04"
			    "0000",
			    17);
}

/* --- objects */

TEST(map_that_ends_with_class_of_java_is_object)
{
	struct bed *bed = *state;

	ADD(bed, "\x82\xa1x\x01\xa5"
		 "class\xa8it.Point");
	ADD(bed, "\x82\xa1x\x02\xa5"
		 "class\xa8it.Point");
	ADD(bed, "\x82\xa1y\x03\xa5"
		 "class\xa8it.Point");
	WRITTEN(bed, VALUES,
		"C\x08it.Point\x91\x01x\x60\x91\x60\x92"
		"C\x08it.Point\x91\x01y\x61\x93");
	/* A class without fields, and one with a dollar sign. */
	ADD(bed, "\x81\xa5"
		 "class\xa5"
		 "a.B$1");
	WRITTEN(bed, VALUES,
		"C\x05"
		"a.B$1\x90\x60");
}

TEST(other_maps_with_class_stay_maps)
{
	struct bed *bed = *state;

	ADD(bed, "\x81\xa5"
		 "class\xa5"
		 "Point"); /* no dot */
	WRITTEN(bed, VALUES,
		"H\x05"
		"class\x05PointZ");
	ADD(bed, "\x81\xa5"
		 "class\xa3"
		 "a.1");
	WRITTEN(bed, VALUES,
		"H\x05"
		"class\x03"
		"a.1Z");
	ADD(bed, "\x81\xa5"
		 "class\xa2"
		 "a.");
	WRITTEN(bed, VALUES,
		"H\x05"
		"class\x02"
		"a.Z");
	ADD(bed, "\x81\xa5"
		 "class\x01");
	WRITTEN(bed, VALUES,
		"H\x05"
		"class\x91Z");
	ADD(bed, "\x82\xa5"
		 "class\xa3"
		 "a.B\xa1x\x01"); /* not the last pair */
	WRITTEN(bed, VALUES,
		"H\x05"
		"class\x03"
		"a.B\x01x\x91Z");
	ADD(bed, "\x82\x01\x01\xa5"
		 "class\xa3"
		 "a.B"); /* a key that is no name */
	WRITTEN(bed, VALUES,
		"H\x91\x91\x05"
		"class\x03"
		"a.BZ");
	ADD(bed, "\xdf\x00\x00\x00\x01\xa5"
		 "class\xa3"
		 "a.B"); /* a map that was read */
	WRITTEN(bed, VALUES,
		"H\x05"
		"class\x03"
		"a.BZ");
}

TEST(map_with_header_of_objects_is_object_of_any_class)
{
	struct bed *bed = *state;

	ADD(bed, "\xde\x00\x02\xa4name\xa3RED\xa5"
		 "class\xa5"
		 "Color");
	WRITTEN(bed, VALUES,
		"C\x05"
		"Color\x91\x04name\x60\x03RED");
}

TEST(objects_of_generic_calls_become_maps)
{
	static const char names[] = "\xa0\xa0\xa0\xa7$invoke\xa0";
	struct bed *bed = *state;

	add_bytes(bed, names, sizeof(names) - 1);
	ADD(bed, "\x81\xa5"
		 "class\xa3"
		 "a.B");
	ADD(bed, "\xde\x00\x01\xa5"
		 "class\xa3"
		 "a.B\x80");
	WRITTEN(bed, REQUEST,
		"\x00\x00\x00\x07$invoke\x00H\x05"
		"class\x03"
		"a.BZ"
		"H\x05"
		"class\x03"
		"a.BZ"
		"HZ");
}

TEST(numbers_of_generic_calls_stay_objects)
{
	static const char names[] = "\xa0\xa0\xa0\xa7$invoke\xa0";
	struct bed *bed = *state;

	add_bytes(bed, names, sizeof(names) - 1);
	ADD(bed, "\xde\x00\x02\xa5value\xa3"
		 "1.5\xa5"
		 "class\xb4java.math.BigDecimal\x80");
	WRITTEN(bed, REQUEST,
		"\x00\x00\x00\x07$invoke\x00"
		"C\x14java.math.BigDecimal\x91\x05value\x60\x03"
		"1.5HZ");
}

/* Adds an object without fields, of the class with this number. */
static void add_object(struct bed *bed, unsigned number)
{
	char value[32];
	int len = snprintf(value, sizeof(value),
			   "\x81\xa5"
			   "class\xa6"
			   "a.A%03u",
			   number);

	assert_true(len > 0);
	add_bytes(bed, value, (size_t)len);
}

TEST(class_from_the_17th_on_has_long_form)
{
	struct bed *bed = *state;
	unsigned char *at;

	for (unsigned i = 0; i <= 16; i++) {
		add_object(bed, i);
		add_object(bed, i);
	}
	assert_int_equal(write_all(bed, SPOKEI_CODEC_VALUES), 0);
	at = spokei_buffer_data(&bed->out);
	assert_int_equal(spokei_buffer_len(&bed->out), 16 * 11 + 13);
	assert_memory_equal(at + 15 * 11,
			    "C\x06"
			    "a.A015\x90\x6f\x6f"
			    "C\x06"
			    "a.A016\x90O\xa0O\xa0",
			    11 + 13);
}

TEST(class_beyond_table_is_defined_again)
{
	struct bed *bed = *state;
	unsigned char *at;

	for (unsigned i = 0; i <= SPOKEI_HESSIAN_KNOWN; i++)
		add_object(bed, i);
	add_object(bed, SPOKEI_HESSIAN_KNOWN);
	add_object(bed, 1);
	add_object(bed, 0);
	assert_int_equal(write_all(bed, SPOKEI_CODEC_VALUES), 0);
	at = spokei_buffer_data(&bed->out) + spokei_buffer_len(&bed->out);
	assert_memory_equal(at - 28,
			    "C\x06"
			    "a.A128\x90O\xc8\x80O\xc8\x80\x61"
			    "C\x06"
			    "a.A000\x90O\xc8\x81",
			    28);
}

/* Adds an object of 1,000 fields, of which the last one is called `last`. */
static void add_wide_object(struct bed *bed, char last)
{
	ADD(bed, "\xde\x03\xe9");
	for (unsigned i = 0; i < 999; i++)
		ADD(bed, "\xa1x\xc0");
	add_bytes(bed, (const char[]){ '\xa1', last, '\xc0' }, 3);
	ADD(bed, "\xa5"
		 "class\xa3"
		 "a.B");
}

static unsigned count_definitions(struct bed *bed)
{
	const unsigned char *at = spokei_buffer_data(&bed->out);
	const unsigned char *end = at + spokei_buffer_len(&bed->out);
	unsigned count = 0;

	for (; end - at >= 5; at++)
		if (memcmp(at,
			   "C\x03"
			   "a.B",
			   5) == 0)
			count++;
	return count;
}

TEST(class_is_defined_again_after_many_comparisons)
{
	struct bed *bed = *state;

	for (unsigned i = 0; i < 100; i++)
		add_wide_object(bed, (char)('0' + i % 2));
	assert_int_equal(write_all(bed, SPOKEI_CODEC_VALUES), 0);
	assert_int_equal(count_definitions(bed), 2);
	bed->len = 0;
	for (unsigned i = 0; i < 120; i++)
		add_wide_object(bed, (char)i);
	add_wide_object(bed, 119);
	assert_int_equal(write_all(bed, SPOKEI_CODEC_VALUES), 0);
	assert_int_equal(count_definitions(bed), 121);
}

/* --- references */

TEST(reference_to_equal_container_is_a_number)
{
	struct bed *bed = *state;

	ADD(bed, "\x92\x91\x01");
	ADD_EXT(bed, REF, "\x01\x91\x01");
	WRITTEN(bed, VALUES, "\x7a\x79\x91Q\x91");
	/* Lists, maps and objects count, with or without a type. */
	ADD(bed, "\x95\x80");
	ADD_EXT(bed, TYPED, "\xa1t\x91\x02");
	ADD(bed, "\x81\xa5"
		 "class\xa3"
		 "a.B");
	ADD_EXT(bed, REF, "\x03\x80");
	{
		size_t start = bed->len;

		ADD(bed, "\x02");
		ADD_EXT(bed, TYPED, "\xa1t\x91\x02");
		wrap(bed, start, REF);
	}
	WRITTEN(bed, VALUES,
		"\x7dHZ\x71\x01t\x92"
		"C\x03"
		"a.B\x90\x60Q\x91Q\x92");
}

TEST(reference_to_another_value_is_written_in_full)
{
	struct bed *bed = *state;

	ADD(bed, "\x93\x91\x01");
	ADD_EXT(bed, REF, "\x01\x91\x02"); /* the list has other content */
	ADD_EXT(bed, REF, "\x09\x91\x01"); /* there are not so many */
	WRITTEN(bed, VALUES, "\x7b\x79\x91\x79\x92\x79\x91");
}

TEST(cycle_names_open_container_or_is_null)
{
	struct bed *bed = *state;

	ADD(bed, "\x93\x91\x01");
	ADD_EXT(bed, REF, "\x02\xc0");
	ADD_EXT(bed, REF, "\x01\xc0"); /* is no longer open */
	WRITTEN(bed, VALUES, "\x7b\x79\x91Q\x90N");
}

/* Writes a list of the list [7], then `between` empty lists, then a reference to [7]. */
static void write_far(struct bed *bed, unsigned between)
{
	char head[] = { '\xdc', (char)((between + 2) >> 8), (char)(between + 2) };
	char distance[] = { '\xcd', (char)((between + 1) >> 8), (char)(between + 1) };
	size_t start;

	bed->len = 0;
	add_bytes(bed, head, 3);
	ADD(bed, "\x91\x07");
	for (unsigned i = 0; i < between; i++)
		ADD(bed, "\x90");
	start = bed->len;
	add_bytes(bed, distance, 3);
	ADD(bed, "\x91\x07");
	wrap(bed, start, REF);
	assert_int_equal(write_all(bed, SPOKEI_CODEC_VALUES), 0);
}

TEST(reference_beyond_table_is_written_in_full)
{
	struct bed *bed = *state;
	struct spokei_buffer *out = &bed->out;

	write_far(bed, SPOKEI_HESSIAN_RECENT - 1);
	assert_memory_equal(spokei_buffer_data(out) + spokei_buffer_len(out) - 3, "\x78Q\x91", 3);
	write_far(bed, SPOKEI_HESSIAN_RECENT);
	assert_memory_equal(spokei_buffer_data(out) + spokei_buffer_len(out) - 3, "\x78\x79\x97",
			    3);
}

TEST(depth_is_bounded)
{
	struct bed *bed = *state;

	for (unsigned i = 0; i < SPOKEI_HESSIAN_DEPTH; i++)
		ADD(bed, "\x91");
	ADD(bed, "\x01");
	assert_int_equal(write_all(bed, SPOKEI_CODEC_VALUES), 0);
	bed->len--;
	ADD(bed, "\x90");
	is_refused(bed);
	/* Exts count, too. */
	for (unsigned i = 0; i <= SPOKEI_HESSIAN_DEPTH; i++) {
		bed->len += 5;
		memmove(bed->values + 5, bed->values, bed->len - 5);
		memcpy(bed->values, "\xc8\x00\x00R\x01", 5);
		bed->values[1] = (unsigned char)((bed->len - 4) >> 8);
		bed->values[2] = (unsigned char)(bed->len - 4);
	}
	is_refused(bed);
}

/* Makes objects inside each other, the innermost of which has a list of `count` integers. */
static void nest(struct bed *bed, unsigned levels, size_t count)
{
	const unsigned char head[] = { 0xdd, 0, (unsigned char)(count >> 16),
				       (unsigned char)(count >> 8), (unsigned char)count };

	bed->len = 0;
	for (unsigned i = 0; i < levels; i++)
		ADD(bed, "\xde\x00\x02\xa1x");
	add_bytes(bed, head, sizeof(head));
	for (size_t i = 0; i < count; i++)
		bed->values[bed->len++] = 1;
	for (unsigned i = 0; i < levels; i++)
		ADD(bed, "\xa5"
			 "class\xa1"
			 "A");
}

/* Each level passes all the values inside it. */
TEST(large_content_of_deep_objects_is_edepth)
{
	struct bed *bed = *state;

	nest(bed, 30, 1000000);
	assert_int_equal(write_all(bed, SPOKEI_CODEC_VALUES), 0);
	nest(bed, 110, 1000000);
	assert_int_equal(write_all(bed, SPOKEI_CODEC_VALUES), SPOKE_EDEPTH);
	nest(bed, 110, 100000);
	assert_int_equal(write_all(bed, SPOKEI_CODEC_VALUES), 0);
}
