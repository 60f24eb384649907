/* SPDX-License-Identifier: Apache-2.0 */
/* Reading values in place, by getters and by SPOKE_READ(); timestamps; printing. */
#include "core/value/shape.h"
#include "tests/support/test.h"

#include <spoke/read.h>
#include <spoke/value.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- reading values in place: getters and their errors, cursors, and look-up of keys */

#define BYTES(text) (text), sizeof(text) - 1

static struct spoke_value checked(const char *bytes, size_t len)
{
	struct spoke_value value = { 0 };

	assert_int_equal(spoke_value_check(bytes, len, NULL, &value), 0);
	return value;
}

TEST(failed_check_returns_error_and_no_view)
{
	static const struct {
		const char *bytes;
		size_t len;
		int result;
	} cases[] = {
		{ BYTES(""), SPOKE_ETRUNCATED },
		{ BYTES("\xc1"), SPOKE_ECORRUPT },
		{ BYTES("\x01\x02"), SPOKE_ETRAILING },
		{ BYTES("\xdd\x05\xf5\xe1"), SPOKE_ETRUNCATED },
		{ BYTES("\xdf\x05\xf5\xe1\x00"), SPOKE_ETRUNCATED },
	};

	for (size_t i = 0; i < LENGTH(cases); i++) {
		struct spoke_value value = { 0 };

		assert_int_equal(spoke_value_check(cases[i].bytes, cases[i].len, NULL, &value),
				 cases[i].result);
		assert_int_equal(value.len, 0);
	}
}

TEST(check_applies_limits_of_caller)
{
	static const char bytes[] = "\x92\x91\x01\xa3xyz";
	static const struct {
		struct spoke_value_limits limits;
		int result;
	} cases[] = {
		{ { 0 }, 0 },
		{ { .depth_max = 2, .items_max = 4, .object_bytes_max = 96, .bytes_max = 7 }, 0 },
		{ { .depth_max = 1 }, SPOKE_EDEPTH },
		{ { .items_max = 3 }, SPOKE_ETOOLARGE },
		{ { .object_bytes_max = 95 }, SPOKE_ETOOLARGE },
		{ { .bytes_max = 6 }, SPOKE_ETOOLARGE },
		{ { .depth_max = SPOKE_VALUE_DEPTH_MAX + 1 }, SPOKE_EINVAL },
	};
	struct spoke_value value;

	for (size_t i = 0; i < LENGTH(cases); i++)
		assert_int_equal(spoke_value_check(BYTES(bytes), &cases[i].limits, &value),
				 cases[i].result);
	assert_int_equal(spoke_value_check(NULL, 1, NULL, &value), SPOKE_EINVAL);
}

/* Results of each getter for an integer; `fits` is the set of types that can hold it. */
enum {
	I32 = 1,
	U32 = 2,
	I64 = 4,
	U64 = 8,
	DOUBLE = 16
};

static const struct {
	const char *bytes;
	size_t len;
	uint64_t bits;
	unsigned fits;
} ints[] = {
	{ BYTES("\x00"), 0, I32 | U32 | I64 | U64 | DOUBLE },
	{ BYTES("\x7f"), 127, I32 | U32 | I64 | U64 | DOUBLE },
	{ BYTES("\xff"), UINT64_MAX, I32 | I64 | DOUBLE },
	{ BYTES("\xe0"), 0 - UINT64_C(32), I32 | I64 | DOUBLE },
	{ BYTES("\xcc\xff"), 255, I32 | U32 | I64 | U64 | DOUBLE },
	{ BYTES("\xcd\xff\xfe"), 65534, I32 | U32 | I64 | U64 | DOUBLE },
	{ BYTES("\xce\x7f\xff\xff\xff"), INT32_MAX, I32 | U32 | I64 | U64 | DOUBLE },
	{ BYTES("\xce\x80\x00\x00\x00"), UINT64_C(1) << 31, U32 | I64 | U64 | DOUBLE },
	{ BYTES("\xce\xff\xff\xff\xff"), UINT32_MAX, U32 | I64 | U64 | DOUBLE },
	{ BYTES("\xcf\x00\x00\x00\x01\x00\x00\x00\x00"), UINT64_C(1) << 32, I64 | U64 | DOUBLE },
	{ BYTES("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"), INT64_MAX, I64 | U64 },
	{ BYTES("\xcf\x80\x00\x00\x00\x00\x00\x00\x00"), UINT64_C(1) << 63, U64 | DOUBLE },
	{ BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), UINT64_MAX, U64 },
	{ BYTES("\xcf\x00\x00\x00\x00\x00\x00\x00\x05"), 5, I32 | U32 | I64 | U64 | DOUBLE },
	{ BYTES("\xcf\x00\x20\x00\x00\x00\x00\x00\x00"), UINT64_C(1) << 53, I64 | U64 | DOUBLE },
	{ BYTES("\xcf\x00\x20\x00\x00\x00\x00\x00\x01"), (UINT64_C(1) << 53) + 1, I64 | U64 },
	{ BYTES("\xd0\x80"), 0 - UINT64_C(128), I32 | I64 | DOUBLE },
	{ BYTES("\xd0\x05"), 5, I32 | U32 | I64 | U64 | DOUBLE },
	{ BYTES("\xd1\x80\x00"), 0 - UINT64_C(32768), I32 | I64 | DOUBLE },
	{ BYTES("\xd2\x80\x00\x00\x00"), 0 - (UINT64_C(1) << 31), I32 | I64 | DOUBLE },
	{ BYTES("\xd3\xff\xff\xff\xff\x7f\xff\xff\xff"), 0 - (UINT64_C(1) << 31) - 1,
	  I64 | DOUBLE },
	{ BYTES("\xd3\x80\x00\x00\x00\x00\x00\x00\x00"), UINT64_C(1) << 63, I64 | DOUBLE },
	{ BYTES("\xd3\x80\x00\x00\x00\x00\x00\x00\x01"), (UINT64_C(1) << 63) + 1, I64 },
	{ BYTES("\xd3\x7f\xff\xff\xff\xff\xff\xff\xff"), INT64_MAX, I64 | U64 },
};

TEST(integer_getter_accepts_any_width_that_fits)
{
	for (size_t i = 0; i < LENGTH(ints); i++) {
		struct spoke_value value = checked(ints[i].bytes, ints[i].len);
		unsigned fits = ints[i].fits;
		int64_t i64 = 0;
		uint64_t u64 = 0;
		int32_t i32 = 0;
		uint32_t u32 = 0;
		double number = 0;

		assert_int_equal(spoke_value_type(value), SPOKE_VALUE_INT);
		assert_int_equal(spoke_value_i64(value, &i64), fits & I64 ? 0 : SPOKE_ERANGE);
		assert_int_equal(spoke_value_u64(value, &u64), fits & U64 ? 0 : SPOKE_ERANGE);
		assert_int_equal(spoke_value_i32(value, &i32), fits & I32 ? 0 : SPOKE_ERANGE);
		assert_int_equal(spoke_value_u32(value, &u32), fits & U32 ? 0 : SPOKE_ERANGE);
		assert_int_equal(spoke_value_double(value, &number),
				 fits & DOUBLE ? 0 : SPOKE_ERANGE);
		assert_true((uint64_t)i64 == (fits & I64 ? ints[i].bits : 0));
		assert_true(u64 == (fits & U64 ? ints[i].bits : 0));
		assert_true((uint64_t)i32 == (fits & I32 ? ints[i].bits : 0));
		assert_true(u32 == (fits & U32 ? ints[i].bits : 0));
		if (fits & DOUBLE && fits & I64)
			assert_true((int64_t)number == i64);
	}
}

TEST(integer_getter_rejects_doubles)
{
	static const struct {
		const char *bytes;
		size_t len;
		double number;
	} cases[] = {
		{ BYTES("\xca\x7f\xc0\x00\x00"), (double)NAN },
		{ BYTES("\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00"), (double)INFINITY },
		{ BYTES("\xca\xff\x80\x00\x00"), -(double)INFINITY },
		{ BYTES("\xcb\x80\x00\x00\x00\x00\x00\x00\x00"), -0.0 },
		{ BYTES("\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00"), 1.0 },
		{ BYTES("\xca\xbf\xc0\x00\x00"), -1.5 },
	};

	for (size_t i = 0; i < LENGTH(cases); i++) {
		struct spoke_value value = checked(cases[i].bytes, cases[i].len);
		double number = 77;
		int64_t i64;
		uint64_t u64;
		int32_t i32;
		uint32_t u32;

		assert_int_equal(spoke_value_i64(value, &i64), SPOKE_ETYPE);
		assert_int_equal(spoke_value_u64(value, &u64), SPOKE_ETYPE);
		assert_int_equal(spoke_value_i32(value, &i32), SPOKE_ETYPE);
		assert_int_equal(spoke_value_u32(value, &u32), SPOKE_ETYPE);
		assert_int_equal(spoke_value_double(value, &number), 0);
		assert_int_equal(isnan(number), isnan(cases[i].number));
		if (!isnan(number))
			assert_memory_equal(&number, &cases[i].number, sizeof(number));
	}
}

/* One value of each type, in the order of the enum. */
static const struct {
	const char *bytes;
	size_t len;
	const char *name;
} types[] = {
	{ BYTES(""), "none" },
	{ BYTES("\xc0"), "nil" },
	{ BYTES("\xc3"), "bool" },
	{ BYTES("\x05"), "int" },
	{ BYTES("\xca\0\0\0\0"), "double" },
	{ BYTES("\xa1x"), "str" },
	{ BYTES("\xc4\x01x"), "bin" },
	{ BYTES("\x91\x05"), "array" },
	{ BYTES("\x81\x05\x05"), "map" },
	{ BYTES("\xd4\xfe\x05"), "ext" },
};

TEST(getter_rejects_other_types)
{
	for (unsigned i = 0; i < LENGTH(types); i++) {
		struct spoke_value value = { (const unsigned char *)types[i].bytes, types[i].len };
		struct spoke_cursor cursor;
		struct spoke_span span;
		int8_t ext_type;
		int64_t i64;
		double number;
		size_t len;
		bool truth;

		assert_int_equal(spoke_value_type(value), i);
		assert_string_equal(spoke_value_type_name(spoke_value_type(value)), types[i].name);
#define SAYS(call, expected) assert_int_equal((call), (expected) ? 0 : SPOKE_ETYPE)
		assert_int_equal(spoke_value_is_nil(value), i == SPOKE_VALUE_NIL);
		SAYS(spoke_value_bool(value, &truth), i == SPOKE_VALUE_BOOL);
		SAYS(spoke_value_i64(value, &i64), i == SPOKE_VALUE_INT);
		SAYS(spoke_value_double(value, &number),
		     i == SPOKE_VALUE_INT || i == SPOKE_VALUE_DOUBLE);
		SAYS(spoke_value_str(value, &span), i == SPOKE_VALUE_STR);
		SAYS(spoke_value_bin(value, &span), i == SPOKE_VALUE_BIN);
		SAYS(spoke_value_bytes(value, &span), i == SPOKE_VALUE_STR || i == SPOKE_VALUE_BIN);
		SAYS(spoke_value_ext(value, &ext_type, &span), i == SPOKE_VALUE_EXT);
		SAYS(spoke_value_array_len(value, &len), i == SPOKE_VALUE_ARRAY);
		SAYS(spoke_value_map_len(value, &len), i == SPOKE_VALUE_MAP);
		SAYS(spoke_cursor_array(value, &cursor), i == SPOKE_VALUE_ARRAY);
		SAYS(spoke_cursor_map(value, &cursor), i == SPOKE_VALUE_MAP);
#undef SAYS
	}
	assert_string_equal(spoke_value_type_name((enum spoke_value_type)77), "none");
}

TEST(content_is_returned_in_place_unchanged)
{
	struct spoke_value str = checked(BYTES("\xa4\x00\xff\xc3\x28"));
	struct spoke_value ext = checked(BYTES("\xc7\x02\xfe\x00\x09"));
	struct spoke_value empty = checked(BYTES("\xc7\x00\x07"));
	struct spoke_span span;
	int8_t type;

	assert_int_equal(spoke_value_str(str, &span), 0);
	assert_ptr_equal(span.data, str.data + 1);
	assert_int_equal(span.len, 4);
	assert_memory_equal(span.data, "\x00\xff\xc3\x28", 4);
	assert_int_equal(spoke_value_ext(ext, &type, &span), 0);
	assert_int_equal(type, -2);
	assert_int_equal(span.len, 2);
	assert_memory_equal(span.data, "\x00\x09", 2);
	assert_int_equal(spoke_value_ext(empty, &type, &span), 0);
	assert_int_equal(type, 7);
	assert_int_equal(span.len, 0);
}

TEST(cursor_passes_values_of_any_size)
{
	struct spoke_value array = checked(BYTES("\x94\x01\x92\x02\x81\x03\x04\xa2xy\x90"));
	static const size_t lens[] = { 1, 5, 3, 1 };
	struct spoke_cursor cursor;
	struct spoke_value value;
	size_t count;

	assert_int_equal(spoke_value_array_len(array, &count), 0);
	assert_int_equal(count, 4);
	assert_int_equal(spoke_cursor_array(array, &cursor), 0);
	for (size_t i = 0; i < LENGTH(lens); i++) {
		assert_true(spoke_cursor_next(&cursor, &value));
		assert_int_equal(value.len, lens[i]);
	}
	assert_int_equal(spoke_cursor_rest(&cursor).len, 0);
	assert_false(spoke_cursor_next(&cursor, &value));
	assert_false(spoke_cursor_next(&cursor, &value));
}

TEST(cursor_stays_inside_array)
{
	static const char bytes[] = "\x91\x01\x02";
	struct spoke_cursor body;
	struct spoke_cursor inside;
	struct spoke_value value;
	size_t count;

	assert_int_equal(spoke_values_check(BYTES(bytes), NULL, &body, &count), 0);
	assert_int_equal(count, 2);
	assert_true(spoke_cursor_next(&body, &value));
	assert_int_equal(spoke_cursor_array(value, &inside), 0);
	assert_true(spoke_cursor_next(&inside, &value));
	assert_false(spoke_cursor_next(&inside, &value));
	assert_int_equal(spoke_cursor_rest(&body).len, 1);
	assert_true(spoke_cursor_next(&body, &value));
	assert_false(spoke_cursor_next(&body, &value));
}

TEST(empty_input_has_no_values)
{
	struct spoke_cursor cursor;
	struct spoke_value value;
	size_t count = 7;

	assert_int_equal(spoke_values_check(NULL, 0, NULL, &cursor, &count), 0);
	assert_int_equal(count, 0);
	assert_false(spoke_cursor_next(&cursor, &value));
	assert_int_equal(spoke_cursor_rest(&cursor).len, 0);
}

TEST(get_returns_first_of_equal_keys)
{
	struct spoke_value map = checked(
		BYTES("\x85\x01\x02\xc4\x01k\x03\xa1k\x04\xa1k\x05\xa0\x06"));
	struct spoke_value value;
	int32_t number;

	assert_int_equal(spoke_value_get(map, "k", &value), 0);
	assert_int_equal(spoke_value_i32(value, &number), 0);
	assert_int_equal(number, 4);
	assert_int_equal(spoke_value_get(map, "", &value), 0);
	assert_int_equal(spoke_value_i32(value, &number), 0);
	assert_int_equal(number, 6);
	assert_int_equal(spoke_value_get(map, "kk", &value), SPOKE_ENOENT);
	assert_int_equal(spoke_value_get(checked(BYTES("\x91\x01")), "k", &value), SPOKE_ETYPE);
	assert_int_equal(spoke_value_get((struct spoke_value){ 0 }, "k", &value), SPOKE_ETYPE);
}

TEST(values_with_equal_bytes_are_equal)
{
	struct spoke_value one = checked(BYTES("\x91\x01"));

	assert_true(spoke_value_equal(one, checked(BYTES("\x91\x01"))));
	assert_false(spoke_value_equal(one, checked(BYTES("\x91\x02"))));
	assert_false(spoke_value_equal(one, checked(BYTES("\x91\xcc\x01"))));
	assert_true(spoke_value_equal((struct spoke_value){ 0 }, (struct spoke_value){ 0 }));
}

TEST(unchecked_bytes_are_read_within_bounds)
{
	static const struct {
		const char *bytes;
		size_t len;
	} cases[] = {
		{ BYTES("\xdb\xff\xff\xff\xff") },
		{ BYTES("\xdb\xff") },
		{ BYTES("\xdd\xff\xff\xff\xff") },
		{ BYTES("\xdf\xff\xff\xff\xff") },
		{ BYTES("\xc9\xff\xff\xff\xff") },
		{ BYTES("\xcf\x01") },
		{ BYTES("\xcb\x01") },
		{ BYTES("\xd8\x01") },
		{ BYTES("\xc1") },
		{ BYTES("\x92\xc1") },
	};

	for (size_t i = 0; i < LENGTH(cases); i++) {
		struct spoke_value value = { (const unsigned char *)cases[i].bytes, cases[i].len };
		struct spoke_cursor cursor = spoke_cursor_bytes(
			(struct spoke_span){ cases[i].bytes, cases[i].len });
		struct spoke_span span;
		struct spoke_value next;
		uint64_t u64;
		double number;
		int8_t type;
		size_t len;

		assert_false(spoke_cursor_next(&cursor, &next));
		assert_false(spoke_cursor_next(&cursor, &next));
		assert_int_equal(spoke_value_bytes(value, &span), SPOKE_ETYPE);
		assert_int_equal(spoke_value_ext(value, &type, &span), SPOKE_ETYPE);
		assert_int_equal(spoke_value_u64(value, &u64), SPOKE_ETYPE);
		assert_int_equal(spoke_value_double(value, &number), SPOKE_ETYPE);
		assert_int_equal(spoke_value_array_len(value, &len), SPOKE_ETYPE);
		assert_int_equal(spoke_value_map_len(value, &len), SPOKE_ETYPE);
	}
}

/* Compares the checks for every pair of first bytes and every length that matters. */
TEST(short_value_checks_agree_with_full_check)
{
	static unsigned char bytes[600];

	for (unsigned head = 0; head < 65536; head++) {
		size_t wanted;

		bytes[0] = (unsigned char)head;
		bytes[1] = (unsigned char)(head >> 8);
		wanted = spokei_shape_len_any(bytes, bytes + sizeof(bytes));
		for (size_t len = 1; len < 300; len++) {
			bool is_one = wanted == len;

			if (spokei_shape_is_one(bytes, len) != is_one ||
			    spokei_shape_is_scalar(bytes, len) != is_one ||
			    (spokei_shape_is_short(bytes, len) && !is_one) ||
			    (spokei_shape_len_short(bytes, bytes + len) == len && !is_one))
				fail_msg("%02x %02x, %zu bytes", bytes[0], bytes[1], len);
		}
	}
	assert_false(spokei_shape_is_short(bytes, 0));
	assert_false(spokei_shape_is_short(NULL, 1));
	assert_true(spokei_shape_is_short((const unsigned char *)"\xd9\1x", 3));
	assert_true(spokei_shape_is_short((const unsigned char *)"\xc4\0", 2));
	assert_true(spokei_shape_is_short((const unsigned char *)"\xc0", 1));
}

/*
 * --- SPOKE_READ() and SPOKE_READ_MAP(): targets of every type, sentences, limits, hostile
 * values
 */

static unsigned char read_memory[4096];

static struct spoke_cursor pack(struct spoke_args args)
{
	struct spoke_builder builder;
	struct spoke_cursor cursor;
	struct spoke_span values;

	spoke_builder_init_fixed(&builder, read_memory, sizeof(read_memory), NULL);
	spoke_pack_args(&builder, args);
	assert_int_equal(spoke_builder_finish(&builder, &values), 0);
	assert_int_equal(spoke_values_check(values.data, values.len, NULL, &cursor, NULL), 0);
	return cursor;
}

static struct spoke_reader reader_of(struct spoke_args args)
{
	return spoke_reader_values(pack(args), "argument");
}

static void assert_why(const struct spoke_reader *reader, const char *expected)
{
	char text[256];

	assert_int_equal(spoke_reader_why(reader, text, sizeof(text)), strlen(expected));
	assert_string_equal(text, expected);
}

/* Asserts that reading one value into one target fails with this error and sentence. */
#define ASSERT_FAILS(arg, target, error, sentence)                                                 \
	do {                                                                                       \
		struct spoke_reader failing = reader_of(SPOKE_ARGS(arg));                          \
                                                                                                   \
		assert_int_equal(SPOKE_READ(&failing, target), error);                             \
		assert_why(&failing, sentence);                                                    \
	} while (0)
TEST(each_type_of_target_takes_its_value)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(true, INT8_MIN, INT16_MAX, -3, 4L,
							  INT64_MIN, 255, 65535, 5U, 6UL,
							  UINT64_MAX));
	bool flag = false;
	signed char tiny = 0;
	short small = 0;
	int number = 0;
	long big = 0;
	long long huge = 0;
	unsigned char utiny = 0;
	unsigned short usmall = 0;
	unsigned unumber = 0;
	unsigned long ubig = 0;
	unsigned long long uhuge = 0;

	assert_int_equal(SPOKE_READ(&reader, &flag, &tiny, &small, &number, &big, &huge, &utiny,
				    &usmall, &unumber, &ubig, &uhuge),
			 0);
	assert_true(flag);
	assert_int_equal(tiny, INT8_MIN);
	assert_int_equal(small, INT16_MAX);
	assert_int_equal(number, -3);
	assert_int_equal(big, 4);
	assert_true(huge == INT64_MIN);
	assert_int_equal(utiny, 255);
	assert_int_equal(usmall, 65535);
	assert_int_equal(unumber, 5);
	assert_int_equal(ubig, 6);
	assert_true(uhuge == UINT64_MAX);
	assert_why(&reader, "");
}

TEST(real_text_bytes_and_values_are_read)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(0.5, 2, "in place", "copied",
							  SPOKE_BIN("\x00\x01", 2), "as bytes",
							  SPOKE_LIST(1, 2), SPOKE_NIL));
	double real = 0;
	float small = 0;
	struct spoke_span span = { NULL, 0 };
	struct spoke_span bytes = { NULL, 0 };
	struct spoke_span text_bytes = { NULL, 0 };
	struct spoke_value value = { NULL, 0 };
	char text[7] = "";
	size_t len = 0;

	assert_int_equal(SPOKE_READ(&reader, &real, &small, &span, SPOKE_TEXT(text),
				    SPOKE_BYTES(&bytes), SPOKE_BYTES(&text_bytes), &value,
				    SPOKE_SKIP),
			 0);
	assert_true(real > 0.4 && real < 0.6);
	assert_true((double)small > 1.9 && (double)small < 2.1);
	assert_int_equal(span.len, 8);
	assert_string_equal(text, "copied");
	assert_int_equal(bytes.len, 2);
	assert_int_equal(text_bytes.len, 8);
	assert_int_equal(spoke_value_array_len(value, &len), 0);
	assert_int_equal(len, 2);
}

TEST(sentence_names_argument_and_both_types)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS("a", "b", true));
	struct spoke_span name;
	bool flag;
	int count;

	assert_int_equal(SPOKE_READ(&reader, &name, &count, &flag), SPOKE_ETYPE);
	assert_why(&reader, "argument 2: integer wanted, text came");
	ASSERT_FAILS(1, &flag, SPOKE_ETYPE, "argument 1: bool wanted, integer came");
	ASSERT_FAILS(0.5, &count, SPOKE_ETYPE, "argument 1: integer wanted, real came");
	ASSERT_FAILS(SPOKE_NIL, &name, SPOKE_ETYPE, "argument 1: text wanted, nil came");
	ASSERT_FAILS(SPOKE_LIST(1), SPOKE_BYTES(&name), SPOKE_ETYPE,
		     "argument 1: bytes wanted, list came");
	ASSERT_FAILS(SPOKE_MAP("a", 1), &name, SPOKE_ETYPE, "argument 1: text wanted, map came");
	ASSERT_FAILS(SPOKE_BIN("a", 1), &name, SPOKE_ETYPE, "argument 1: text wanted, bytes came");
}

TEST(integer_must_fit_its_variable)
{
	signed char tiny;
	unsigned char utiny;
	short small;
	unsigned short usmall;
	int number;
	unsigned unumber;
	long long huge;
	unsigned long long uhuge;

	ASSERT_FAILS(128, &tiny, SPOKE_ERANGE,
		     "argument 1: integer from -128 to 127 wanted, 128 came");
	ASSERT_FAILS(-129, &tiny, SPOKE_ERANGE,
		     "argument 1: integer from -128 to 127 wanted, -129 came");
	ASSERT_FAILS(256, &utiny, SPOKE_ERANGE,
		     "argument 1: integer from 0 to 255 wanted, 256 came");
	ASSERT_FAILS(-1, &utiny, SPOKE_ERANGE, "argument 1: integer from 0 to 255 wanted, -1 came");
	ASSERT_FAILS(32768, &small, SPOKE_ERANGE,
		     "argument 1: integer from -32768 to 32767 wanted, 32768 came");
	ASSERT_FAILS(65536, &usmall, SPOKE_ERANGE,
		     "argument 1: integer from 0 to 65535 wanted, 65536 came");
	ASSERT_FAILS(INT64_C(2147483648), &number, SPOKE_ERANGE,
		     "argument 1: integer from -2147483648 to 2147483647 wanted, 2147483648 came");
	ASSERT_FAILS(INT64_C(4294967296), &unumber, SPOKE_ERANGE,
		     "argument 1: integer from 0 to 4294967295 wanted, 4294967296 came");
	ASSERT_FAILS(UINT64_MAX, &huge, SPOKE_ERANGE,
		     "argument 1: integer from -9223372036854775808 to 9223372036854775807 "
		     "wanted, 18446744073709551615 came");
	ASSERT_FAILS(INT64_MIN, &uhuge, SPOKE_ERANGE,
		     "argument 1: integer from 0 to 18446744073709551615 wanted, "
		     "-9223372036854775808 came");
}

TEST(real_must_fit_its_variable)
{
	float small;
	double real;

	ASSERT_FAILS(1e300, &small, SPOKE_ERANGE,
		     "argument 1: number that fits 4 bytes wanted, 1e+300 came");
	ASSERT_FAILS(INT64_MAX, &real, SPOKE_ERANGE,
		     "argument 1: number that fits 8 bytes wanted, 9223372036854775807 came");
}

TEST(text_must_fit_its_buffer)
{
	const struct spoke_span nul = { "a\0b", 3 };
	char text[4];

	ASSERT_FAILS("four", SPOKE_TEXT(text), SPOKE_ERANGE,
		     "argument 1: text of at most 3 bytes wanted, 4 bytes came");
	ASSERT_FAILS(nul, SPOKE_TEXT(text), SPOKE_ERANGE,
		     "argument 1: text without NUL wanted, \"a\\x00b\" came");
}

TEST(number_of_values_must_match)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(1, 2));
	int a = 0;
	int b = 0;
	int c = 0;

	assert_int_equal(SPOKE_READ(&reader, &a, &b, &c), SPOKE_ETRUNCATED);
	assert_why(&reader, "argument 3: integer wanted, none came");
	assert_int_equal(SPOKE_READ(&reader, &a), SPOKE_ETRAILING);
	assert_why(&reader, "1 argument wanted, more came");
	assert_int_equal(a, 0);
	assert_int_equal(SPOKE_READ(&reader, &a, &b), 0);
	assert_int_equal(SPOKE_READ(&reader, &a), SPOKE_ETRUNCATED);
}

TEST(lenient_reader_goes_on_after_a_read)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(1, 2, 3));
	int a = 0;
	int b = 0;

	reader.lenient = true;
	assert_int_equal(SPOKE_READ(&reader, &a), 0);
	assert_int_equal(SPOKE_READ(&reader, &b), 0);
	assert_int_equal(a, 1);
	assert_int_equal(b, 2);
}

TEST(failure_changes_no_variable_and_no_position)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(7, "text", true));
	char text[8] = "before";
	int number = 1;

	assert_int_equal(SPOKE_READ(&reader, &number, SPOKE_TEXT(text), &number), SPOKE_ETYPE);
	assert_int_equal(number, 1);
	assert_string_equal(text, "before");
	assert_int_equal(SPOKE_READ(&reader, &number, SPOKE_TEXT(text), SPOKE_SKIP), 0);
	assert_int_equal(number, 7);
}

TEST(optional_target_stays_without_a_value)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(SPOKE_NIL));
	int a = 5;
	int b = 6;

	assert_int_equal(SPOKE_READ(&reader, SPOKE_OPTIONAL(&a), SPOKE_OPTIONAL(&b)), 0);
	assert_int_equal(a, 5);
	assert_int_equal(b, 6);
	ASSERT_FAILS("x", SPOKE_OPTIONAL(&a), SPOKE_ETYPE, "argument 1: integer wanted, text came");
}

TEST(single_value_has_no_number)
{
	struct spoke_cursor cursor = pack(SPOKE_ARGS("x"));
	struct spoke_reader reader;
	struct spoke_value value;
	int number;

	assert_true(spoke_cursor_next(&cursor, &value));
	reader = spoke_reader_of(value);
	assert_int_equal(SPOKE_READ(&reader, &number), SPOKE_ETYPE);
	assert_why(&reader, "integer wanted, text came");
	reader = spoke_reader_of((struct spoke_value){ NULL, 0 });
	assert_int_equal(SPOKE_READ(&reader, &number), SPOKE_ETRUNCATED);
	assert_why(&reader, "integer wanted, none came");
}

TEST(target_that_is_null_is_invalid)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(1));
	int *nothing = NULL;

	assert_int_equal(SPOKE_READ(&reader, nothing), SPOKE_EINVAL);
	assert_why(&reader, "argument 1: the target of the program is not valid");
}

/* --- maps */

TEST(map_is_read_by_its_keys)
{
	struct spoke_reader reader = reader_of(
		SPOKE_ARGS(SPOKE_MAP("age", 42, "name", "Ann", "extra", SPOKE_NIL), 5));
	struct spoke_span name = { NULL, 0 };
	uint8_t age = 0;
	int left = 1;
	int next = 0;

	assert_int_equal(SPOKE_READ_MAP(&reader, "name", &name, "age", &age, "extra",
					SPOKE_OPTIONAL(&left), "absent", SPOKE_OPTIONAL(&left)),
			 0);
	assert_int_equal(name.len, 3);
	assert_int_equal(age, 42);
	assert_int_equal(left, 1);
	assert_int_equal(SPOKE_READ(&reader, &next), 0);
	assert_int_equal(next, 5);
}

TEST(sentence_names_the_key)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(SPOKE_MAP("age", "x", "name", "Ann")));
	struct spoke_span name;
	uint8_t age;

	assert_int_equal(SPOKE_READ_MAP(&reader, "name", &name, "age", &age), SPOKE_ETYPE);
	assert_why(&reader, "argument 1, key \"age\": integer wanted, text came");
	assert_int_equal(SPOKE_READ_MAP(&reader, "name", &name, "age", &name, "more", &age),
			 SPOKE_ENOENT);
	assert_why(&reader, "argument 1, key \"more\": integer wanted, none came");
	assert_int_equal(SPOKE_READ_MAP(&reader, "name", &name), SPOKE_ETRAILING);
	assert_why(&reader, "argument 1, key \"age\": it is not known");
	reader = reader_of(SPOKE_ARGS(1));
	assert_int_equal(SPOKE_READ_MAP(&reader, "name", &name), SPOKE_ETYPE);
	assert_why(&reader, "argument 1: map wanted, integer came");
}

TEST(lenient_reader_ignores_other_keys)
{
	struct spoke_reader reader = reader_of(
		SPOKE_ARGS(SPOKE_MAP("a", 1, 5, "number as key", "a", 2, "b", 3)));
	int a = 0;

	assert_int_equal(SPOKE_READ_MAP(&reader, "a", &a), SPOKE_ETRAILING);
	assert_why(&reader, "argument 1, key 5: it is not known");
	reader.lenient = true;
	assert_int_equal(SPOKE_READ_MAP(&reader, "a", &a), 0);
	assert_int_equal(a, 1);
}

TEST(repeated_key_is_an_error)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(SPOKE_MAP("a", 1, "a", 2)));
	int a = 0;

	assert_int_equal(SPOKE_READ_MAP(&reader, "a", &a), SPOKE_EEXIST);
	assert_why(&reader, "argument 1, key \"a\": it came twice");
	assert_int_equal(a, 0);
}

TEST(class_of_a_java_object_is_no_unknown_key)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(SPOKE_MAP("x", 1, "class", "it.Point")));
	int x = 0;

	assert_int_equal(SPOKE_READ_MAP(&reader, "x", &x), 0);
	assert_int_equal(x, 1);
}

/* --- hostile values */

TEST(sentence_escapes_and_cuts_content)
{
	struct spoke_reader reader;
	char key[400];
	char text[256];
	int a;

	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	key[0] = '\n';
	reader = reader_of(SPOKE_ARGS(SPOKE_MAP(key, 1)));
	assert_int_equal(SPOKE_READ_MAP(&reader, "a", &a), SPOKE_ETRAILING);
	assert_in_range(spoke_reader_why(&reader, text, sizeof(text)), 20, 100);
	assert_null(strchr(text, '\n'));
	for (size_t size = 0; size < 40; size++) {
		size_t len = spoke_reader_why(&reader, text, size);

		assert_true(size == 0 ? len == 0 : len < size && text[len] == '\0');
	}
}

/* Returns a random number below `below`, the same in every run (splitmix64). */
static unsigned roll(unsigned below)
{
	static uint64_t seed;
	uint64_t word = seed += UINT64_C(0x9e3779b97f4a7c15);

	word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
	return (unsigned)((word ^ word >> 31) % below);
}

/* Values that are random, unchecked, and often cut. */
TEST(random_bytes_are_read_or_refused)
{
	unsigned read = 0;

	for (unsigned round = 0; round < 200000; round++) {
		size_t len = roll(24);
		unsigned char *bytes = malloc(len + 1);
		struct spoke_reader reader;
		struct spoke_value value = { NULL, 0 };
		struct spoke_span span;
		char text[8];
		char why[64];
		int16_t number;

		assert_non_null(bytes);
		for (size_t i = 0; i < len; i++)
			bytes[i] = (unsigned char)(roll(3) ? roll(256) : 0x80 + roll(0x60));
		/* The block ends with the bytes, so that a sanitizer detects an overrun. */
		bytes = realloc(bytes, len ? len : 1);
		reader = spoke_reader_values(spoke_cursor_bytes((struct spoke_span){ bytes, len }),
					     "argument");
		reader.lenient = round % 2;
		if (SPOKE_READ(&reader, &value) == 0)
			read++;
		else
			(void)spoke_reader_why(&reader, why, sizeof(why));
		if (SPOKE_READ(&reader, SPOKE_TEXT(text), &number, SPOKE_BYTES(&span)))
			(void)spoke_reader_why(&reader, why, sizeof(why));
		if (SPOKE_READ_MAP(&reader, "a", &number, "b", SPOKE_OPTIONAL(&span)))
			(void)spoke_reader_why(&reader, why, sizeof(why));
		free(bytes);
	}
	assert_in_range(read, 1000, 199000);
}

/* --- timestamps: packing, reading, printing */

static struct spoke_value value_of(const char *bytes, size_t len)
{
	return (struct spoke_value){ (const unsigned char *)bytes, len };
}

static void start(struct spoke_builder *builder)
{
	static unsigned char memory[100];

	spoke_builder_init_fixed(builder, memory, sizeof(memory), NULL);
}

TEST(timestamp_is_packed_shortest_and_read_back)
{
	static const struct {
		int64_t seconds;
		uint32_t ns;
		size_t len;
		const char *text;
	} cases[] = {
		{ 0, 0, 6, "date(1970-01-01T00:00:00Z)" },
		{ 951782400, 0, 6, "date(2000-02-29T00:00:00Z)" },
		{ 1714564800, 123000000, 10, "date(2024-05-01T12:00:00.123Z)" },
		{ 1714564800, 123456000, 10, "date(2024-05-01T12:00:00.123456Z)" },
		{ 1714564800, 1, 10, "date(2024-05-01T12:00:00.000000001Z)" },
		{ -1, 999000000, 15, "date(1969-12-31T23:59:59.999Z)" },
		{ -62167219200, 0, 15, "date(0000-01-01T00:00:00Z)" },
		{ 253402300799, 0, 15, "date(9999-12-31T23:59:59Z)" },
		{ 253402300800, 0, 15, "ext(-1, 000000000000003afff44180)" },
		{ INT64_MIN, 0, 15, "ext(-1, 000000008000000000000000)" },
	};

	for (size_t i = 0; i < LENGTH(cases); i++) {
		struct spoke_builder builder;
		struct spoke_value value = { 0 };
		int64_t seconds = 1;
		uint32_t ns = 1;
		char text[60];

		start(&builder);
		spoke_pack_time(&builder, cases[i].seconds, cases[i].ns);
		assert_int_equal(spoke_builder_finish_value(&builder, &value), 0);
		assert_int_equal(value.len, cases[i].len);
		assert_int_equal(spoke_value_time(value, &seconds, &ns), 0);
		assert_true(seconds == cases[i].seconds && ns == cases[i].ns);
		(void)spoke_value_print(value, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

TEST(invalid_timestamp_is_rejected)
{
	struct spoke_builder builder;
	struct spoke_value value;
	int64_t seconds;
	uint32_t ns;

	start(&builder);
	spoke_pack_time(&builder, 0, 1000000000);
	assert_int_equal(spoke_builder_finish_value(&builder, &value), SPOKE_EINVAL);
	value = value_of(BYTES("\xd7\xff\xff\xff\xff\xff\x00\x00\x00\x00"));
	assert_int_equal(spoke_value_time(value, &seconds, &ns), SPOKE_ERANGE);
	value = value_of(BYTES("\xd5\xff\x00\x00"));
	assert_int_equal(spoke_value_time(value, &seconds, &ns), SPOKE_ETYPE);
	value = value_of(BYTES("\xd6\x01\x00\x00\x00\x00"));
	assert_int_equal(spoke_value_time(value, &seconds, &ns), SPOKE_ETYPE);
	assert_int_equal(spoke_value_time(value_of(BYTES("\x01")), &seconds, &ns), SPOKE_ETYPE);
}

/* --- printing of values as text */

TEST(print_writes_readable_text)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *text;
	} cases[] = {
		{ BYTES("\xc0"), "null" },
		{ BYTES("\xc2"), "false" },
		{ BYTES("\xc3"), "true" },
		{ BYTES("\xff"), "-1" },
		{ BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), "18446744073709551615" },
		{ BYTES("\xd3\x80\x00\x00\x00\x00\x00\x00\x00"), "-9223372036854775808" },
		{ BYTES("\xca\x3f\xc0\x00\x00"), "1.5" },
		{ BYTES("\xca\xbf\x80\x00\x00"), "-1.0" },
		{ BYTES("\xca\x7f\x80\x00\x00"), "inf" },
		{ BYTES("\xa9"
			"a\"\\\n\x00\x7f\xc3\xa9z"),
		  "\"a\\\"\\\\\\x0a\\x00\\x7f\\xc3\\xa9z\"" },
		{ BYTES("\xc4\x03\x00\xab\x10"), "bin(00ab10)" },
		{ BYTES("\xc7\x02\xff\x01\x02"), "ext(-1, 0102)" },
		{ BYTES("\x90"), "[]" },
		{ BYTES("\x80"), "{}" },
		{ BYTES("\x93\x01\x92\x02\x90\x82\xa1"
			"a\x03\x04\x80"),
		  "[1, [2, []], {\"a\": 3, 4: {}}]" },
		{ BYTES("\xc1"), "?" },
		{ BYTES(""), "?" },
		{ BYTES("\x92\x01"), "..." },
	};
	char text[100];

	for (size_t i = 0; i < LENGTH(cases); i++) {
		struct spoke_value value = { (const unsigned char *)cases[i].bytes, cases[i].len };

		assert_int_equal(spoke_value_print(value, text, sizeof(text)),
				 strlen(cases[i].text));
		assert_string_equal(text, cases[i].text);
	}
}

TEST(print_cuts_text_with_dots_at_any_size)
{
	static const char whole[] = "[1, \"ab\\xff\", {\"k\": bin(0102)}]";
	struct spoke_value value = checked(BYTES("\x93\x01\xa3"
						 "ab\xff\x81\xa1k\xc4\x02\x01\x02"));
	char text[64];

	for (size_t size = 1; size <= sizeof(whole) + 1; size++) {
		size_t len;

		memset(text, 'x', sizeof(text));
		len = spoke_value_print(value, text, size);
		assert_true(len < size);
		assert_int_equal(strlen(text), len);
		assert_int_equal(text[size], 'x');
		if (size >= sizeof(whole)) {
			assert_string_equal(text, whole);
		} else if (size >= 4) {
			assert_string_equal(text + len - 3, "...");
			assert_memory_equal(text, whole, len - 3);
		}
	}
	assert_int_equal(spoke_value_print(value, text, 0), 0);
}

TEST(print_ends_too_deep_value_in_dots)
{
	unsigned char bytes[200];
	char text[500];

	memset(bytes, 0x91, sizeof(bytes));
	bytes[sizeof(bytes) - 1] = 0xc0;
	assert_int_equal(spoke_value_print((struct spoke_value){ bytes, sizeof(bytes) }, text,
					   sizeof(text)),
			 SPOKE_VALUE_DEPTH_MAX * 2 + 3);
	assert_non_null(strstr(text, "[...]"));
}
