/* SPDX-License-Identifier: Apache-2.0 */
/* Reading values in place: getters and their errors, cursors, and look-up of keys. */
#include "core/value/shape.h"
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
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

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
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

	for (size_t i = 0; i < COUNT_OF(cases); i++)
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
	for (size_t i = 0; i < COUNT_OF(ints); i++) {
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

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
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
	for (unsigned i = 0; i < COUNT_OF(types); i++) {
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
	for (size_t i = 0; i < COUNT_OF(lens); i++) {
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

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
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
		wanted = spokei_shape_hop_any(bytes, bytes + sizeof(bytes));
		for (size_t len = 1; len < 300; len++) {
			bool is_one = wanted == len;

			if (spokei_shape_is_one(bytes, len) != is_one ||
			    spokei_shape_is_scalar(bytes, len) != is_one ||
			    (spokei_shape_is_short(bytes, len) && !is_one) ||
			    (spokei_shape_hop_short(bytes, bytes + len) == len && !is_one))
				fail_msg("%02x %02x, %zu bytes", bytes[0], bytes[1], len);
		}
	}
	assert_false(spokei_shape_is_short(bytes, 0));
	assert_false(spokei_shape_is_short(NULL, 1));
	assert_true(spokei_shape_is_short((const unsigned char *)"\xd9\1x", 3));
	assert_true(spokei_shape_is_short((const unsigned char *)"\xc4\0", 2));
	assert_true(spokei_shape_is_short((const unsigned char *)"\xc0", 1));
}
