/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of JSON, and its numbers. */
#include "core/base/mix.h"
#include "core/json/number.h"
#include "tests/core/json/jsonagain.h"
#include "tests/support/test.h"

#include <spoke/host.h>
#include <spoke/json.h>

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- tests the limits of JSON: depth, numbers of values and keys, and the end of the text */

TEST(nul_byte_ends_no_text)
{
	static const struct {
		char text[16];
		size_t len;
		int error;
	} rows[] = {
		{ "[1]\0", 4, SPOKE_ESYNTAX },      { "[\0]", 3, SPOKE_ESYNTAX },
		{ "\"a\0b\"", 5, SPOKE_ESYNTAX },   { "\0", 1, SPOKE_ESYNTAX },
		{ "{\"a\":\0}", 7, SPOKE_ESYNTAX }, { "1\0", 2, SPOKE_ESYNTAX },
		{ "[1]\0", 3, SPOKE_OK },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spoke_json_error wrong;
		struct spoke_builder builder;
		char text[16];
		size_t count;

		memcpy(text, rows[i].text, sizeof(text));
		spoke_builder_init(&builder, spoke_host_env(), NULL);
		assert_int_equal(spoke_json_read(text, rows[i].len, &builder, &count, &wrong),
				 rows[i].error);
		spoke_builder_fini(&builder);
	}
}

/* Reads a text under these limits. */
static int read_under(const char *from, const struct spoke_value_limits *limits)
{
	struct spoke_json_error wrong;
	struct spoke_builder builder;
	char text[64];
	size_t count;
	int error;

	(void)snprintf(text, sizeof(text), "%s", from);
	spoke_builder_init(&builder, spoke_host_env(), limits);
	error = spoke_json_read(text, strlen(text), &builder, &count, &wrong);
	spoke_builder_fini(&builder);
	return error;
}

/* An accepted document gives values that the validator accepts under the same limits. */
TEST(limits_are_those_of_msgpack)
{
	static const struct {
		const char *text;
		unsigned items;
		unsigned depth;
	} rows[] = {
		{ "1", 1, 0 },
		{ "[]", 1, 1 },
		{ "1 2 3", 3, 0 },
		{ "[1,2,[3,4]]", 6, 2 },
		{ "{\"a\":{\"b\":[]},\"c\":1.5}", 7, 3 },
		{ "{\"$map\":[[1,[2]],[{},3]]}", 6, 2 },
		{ "[{\"$bin\":\"AA==\"},{\"$date\":\"2024-05-01\"}]", 3, 1 },
		{ "{\"$typed\":[\"T\",[1,{}]]}", 5, 3 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spoke_value_limits limits = { .items_max = rows[i].items,
						     .depth_max = rows[i].depth };

		if (rows[i].depth == 0)
			limits.depth_max = 1;
		assert_int_equal(read_under(rows[i].text, &limits), SPOKE_OK);
		limits.items_max = rows[i].items - 1;
		if (limits.items_max > 0)
			assert_int_equal(read_under(rows[i].text, &limits), SPOKE_ETOOLARGE);
		limits.items_max = 0;
		limits.depth_max = rows[i].depth - 1;
		if (rows[i].depth > 1)
			assert_int_equal(read_under(rows[i].text, &limits), SPOKE_EDEPTH);
	}
}

TEST(value_deeper_than_128_levels_is_rejected)
{
	char text[300] = "";

	memset(text, '[', 128);
	memset(text + 128, ']', 128);
	jsonagain_assert(text, text);
	memset(text, '[', 129);
	memset(text + 129, ']', 129);
	jsonagain_assert(text, "EDEPTH 129 nested too deeply; at most 128 levels");
}

TEST(value_with_too_many_items_is_rejected)
{
	size_t items = SPOKE_VALUE_ITEMS_MAX;
	char *text = malloc(3 * items + 2);

	assert_non_null(text);
	text[0] = '[';
	for (size_t i = 0; i < items; i++) {
		text[1 + 3 * i] = '"';
		text[2 + 3 * i] = '"';
		text[3 + 3 * i] = i + 1 < items ? ',' : ']';
	}
	text[3 * items + 1] = '\0';
	jsonagain_assert(text, "ETOOLARGE 12582913 too large: more values than values.max, or more "
			       "bytes than frame.max");
	free(text);
}

static void assert_refused(const char *text, const char *why)
{
	char *out = jsonagain(text, SPOKE_JSON_LINE);

	assert_non_null(strstr(out, why));
	free(out);
}

/* Keys are integers, texts, arrays and maps; the last one is that of the pair `twice`. */
static char *pairs_of(unsigned count, unsigned twice)
{
	char *text = NULL;
	size_t len;
	FILE *file = jsonagain_open(&text, &len);

	for (unsigned i = 0; i < count; i++) {
		unsigned number = i + 1 == count ? twice : i;

		(void)fprintf(file, "%s", i ? ",[" : "{\"$map\":[[");
		switch (number % 4) {
		case 0:
			(void)fprintf(file, "%u", number);
			break;
		case 1:
			(void)fprintf(file, "\"%u\"", number);
			break;
		case 2:
			(void)fprintf(file, "[[%u],null]", number);
			break;
		default:
			(void)fprintf(file, "{\"k\":%u}", number);
		}
		(void)fprintf(file, ",1]");
	}
	(void)fprintf(file, "]}");
	(void)fclose(file);
	return text;
}

TEST(repeated_key_is_found_in_pairs_of_any_size)
{
	static const unsigned counts[] = { 2, 16, 17, 18, 19, 40, 1000, 16383, 16384, 50000 };

	for (size_t i = 0; i < 4 * sizeof(counts) / sizeof(counts[0]); i++) {
		unsigned last = counts[i / 4] - 1;
		unsigned twice = (unsigned)((uint64_t)(i % 4) * last / 3);
		char *text = pairs_of(last + 1, twice);

		if (twice == last)
			jsonagain_assert(text, text);
		else
			assert_refused(text, "the $map has ");
		free(text);
	}
}

TEST(repeated_key_is_found_in_objects_of_any_size)
{
	static const unsigned counts[] = { 2, 15, 16, 17, 18, 19, 40, 1000, 16383, 16384, 100000 };

	for (size_t i = 0; i < 4 * sizeof(counts) / sizeof(counts[0]); i++) {
		unsigned last = counts[i / 4] - 1;
		unsigned twice = (unsigned)((uint64_t)(i % 4) * last / 3);
		char *text = jsonagain_object(last + 1, twice);
		char *out = jsonagain(text, SPOKE_JSON_LINE);

		if (twice == last)
			assert_string_equal(out, text);
		else
			assert_non_null(strstr(out, "the object has "));
		free(out);
		free(text);
	}
}

TEST(keys_need_no_memory)
{
	static unsigned char memory[9 * 1000 + 3];
	struct spoke_json_error error;
	struct spoke_builder builder;
	char *text = jsonagain_object(1000, 999);
	size_t values;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	assert_int_equal(spoke_json_read(text, strlen(text), &builder, &values, &error), SPOKE_OK);
	free(text);
}

TEST(containers_of_any_size_have_their_heads)
{
	static const unsigned counts[] = { 1, 15, 16, 17, 255, 256, 65535, 65536, 70000 };

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		char *text = NULL;
		size_t len;
		FILE *file = jsonagain_open(&text, &len);

		for (unsigned j = 0; j < counts[i]; j++)
			(void)fprintf(file, "%s{\"a\":[%u]}", j ? "," : "[[", j);
		(void)fprintf(file, "],{\"b\":[]}]");
		(void)fclose(file);
		jsonagain_assert(text, text);
		free(text);
	}
}

TEST(map_with_a_repeated_key_prints_as_pairs_and_is_not_read)
{
	static const unsigned counts[] = { 2, 63, 64 };

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		char *out = NULL;
		size_t len;
		FILE *file = jsonagain_open(&out, &len);
		struct spoke_builder builder;
		struct spoke_value value;

		spoke_builder_init(&builder, spoke_host_env(), NULL);
		spoke_pack_map(&builder, counts[i]);
		for (unsigned j = 0; j < counts[i]; j++) {
			char key[2] = { (char)('0' + (j + 1 < counts[i] ? j : 0)), '\0' };

			spoke_pack_text(&builder, key);
			spoke_pack_nil(&builder);
		}
		assert_int_equal(spoke_builder_finish_value(&builder, &value), 0);
		spoke_json_print(value, SPOKE_JSON_LINE, jsonagain_write, file);
		(void)fclose(file);
		assert_memory_equal(out, "{\"$map\":[[\"0\",null],", 20);
		assert_refused(out, "the $map has ");
		free(out);
		spoke_builder_fini(&builder);
	}
}

/* Prints maps in one another, whose innermost value is an array of `items` numbers. That value is
 * the last one of each map, or the first one. Returns the number of maps that print as pairs. */
static unsigned count_pairs(unsigned depth, unsigned items, bool last)
{
	struct spoke_builder builder;
	struct spoke_value value;
	unsigned count = 0;
	char *text = NULL;
	size_t len;
	FILE *file = jsonagain_open(&text, &len);

	spoke_builder_init(&builder, spoke_host_env(), NULL);
	for (unsigned i = 0; i < depth; i++) {
		spoke_pack_map(&builder, 2);
		if (last) {
			spoke_pack_text(&builder, "z");
			spoke_pack_nil(&builder);
		}
		spoke_pack_text(&builder, "a");
	}
	spoke_pack_array(&builder, items);
	for (unsigned i = 0; i < items; i++)
		spoke_pack_u64(&builder, 1);
	for (unsigned i = 0; i < depth && !last; i++) {
		spoke_pack_text(&builder, "z");
		spoke_pack_nil(&builder);
	}
	assert_int_equal(spoke_builder_finish_value(&builder, &value), 0);
	spoke_json_print(value, SPOKE_JSON_LINE, jsonagain_write, file);
	(void)fclose(file);
	for (const char *at = text; (at = strstr(at, "{\"$map\"")) != NULL; at++)
		count++;
	jsonagain_assert(text, text);
	free(text);
	spoke_builder_fini(&builder);
	return count;
}

/* A print skips 64 KiB and 8 times its bytes to see keys; a map beyond has the form for any keys.
 */
TEST(skipping_to_see_keys_has_a_limit)
{
	assert_int_equal(count_pairs(50, 500, false), 0);
	assert_int_equal(count_pairs(8, 1000000, false), 0);
	assert_int_equal(count_pairs(100, 1000000, false), 92);
}

TEST(last_values_of_maps_are_not_skipped)
{
	assert_int_equal(count_pairs(100, 1000000, true), 0);
}

/*
 * --- numbers of JSON: each double is read as the C library does, and printed so that it comes
 * back
 */

#define TRIES 200000u

static uint64_t bits_of(double number)
{
	uint64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	return bits;
}

/* Reads one number; NAN: it is rejected. */
static double parse(const char *text)
{
	struct spoke_json_error error;
	struct spoke_builder builder;
	struct spoke_value value;
	char copy[64];
	double number = (double)NAN;
	size_t count;

	(void)snprintf(copy, sizeof(copy), "%s", text);
	spoke_builder_init(&builder, spoke_host_env(), NULL);
	if (spoke_json_read(copy, strlen(copy), &builder, &count, &error) == SPOKE_OK &&
	    spoke_builder_finish_value(&builder, &value) == SPOKE_OK)
		assert_int_equal(spoke_value_double(value, &number), SPOKE_OK);
	spoke_builder_fini(&builder);
	return number;
}

static void try_double(double number)
{
	char text[SPOKEI_JSON_NUMBER + 1];
	double again;

	text[spokei_json_print_double(number, text)] = '\0';
	again = parse(text);
	if (bits_of(again) != bits_of(number))
		fail_msg("%.17g is printed as %s, which reads as %.17g", number, text, again);
	assert_true(strlen(text) <= 25);
	assert_non_null(strpbrk(text, ".e"));
}

/* Returns the double that lies so many steps above a positive one. */
static double beside(double number, int64_t steps)
{
	uint64_t bits = bits_of(number) + (uint64_t)steps;

	memcpy(&number, &bits, sizeof(number));
	return number;
}

TEST(printed_double_reads_as_the_same_double)
{
	static const double edges[] = {
		0,
		1,
		0.1,
		0.3,
		100,
		1e15,
		1e16,
		1e17,
		1e22,
		1e23,
		123456.789,
		5e-324,
		DBL_MIN,
		DBL_MAX,
		1e-5,
		0.0001,
		9007199254740993.0,
		2.2250738585072011e-308,
		4503599627370496.5,
		1.7976931348623155e308,
		0.000123,
		17.0 / 3,
		1.0 / 3,
	};
	uint64_t dice = 1;

	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		try_double(edges[i]);
		try_double(-edges[i]);
	}
	for (int exponent = -1074; exponent < 1024; exponent++) {
		try_double(beside(ldexp(1, exponent), -1));
		try_double(ldexp(1, exponent));
		try_double(beside(ldexp(1, exponent), 1));
	}
	for (unsigned i = 0; i < TRIES; i++) {
		uint64_t bits = spokei_mix_next(&dice);
		double number;

		memcpy(&number, &bits, sizeof(number));
		if (isfinite(number))
			try_double(number);
	}
}

TEST(short_number_is_printed_with_its_digits)
{
	uint64_t dice = 2;

	for (unsigned i = 0; i < TRIES / 4; i++) {
		uint64_t number = spokei_mix_next(&dice) % 1000000000;
		char text[SPOKEI_JSON_NUMBER + 1];
		char wanted[32];

		(void)snprintf(wanted, sizeof(wanted), "%" PRIu64 ".%02" PRIu64 "7", number / 100,
			       number % 100);
		text[spokei_json_print_double(strtod(wanted, NULL), text)] = '\0';
		assert_string_equal(text, wanted);
	}
}

TEST(decimal_reads_as_the_nearest_double)
{
	uint64_t dice = 3;

	for (unsigned i = 0; i < TRIES / 2; i++) {
		uint64_t digits = spokei_mix_next(&dice) >> spokei_mix_next(&dice) % 64;
		unsigned places = (unsigned)(spokei_mix_next(&dice) % 20);
		int exponent = (int)(spokei_mix_next(&dice) % (i % 2 ? 60 : 700)) -
			       (i % 2 ? 30 : 350);
		char number[32];
		char text[64];
		double wanted;
		double got;

		(void)snprintf(number, sizeof(number), "%020" PRIu64, digits);
		(void)snprintf(text, sizeof(text), "1%.*s.%se%d", (int)(20 - places), number,
			       number + 20 - places, exponent);
		if (places == 0)
			(void)snprintf(text, sizeof(text), "1%se%d", number, exponent);
		wanted = strtod(text, NULL);
		got = parse(text);
		if (isinf(wanted) ? !isnan(got) : bits_of(wanted) != bits_of(got))
			fail_msg("%s reads as %.17g and not as %.17g", text, got, wanted);
	}
}

/* Returns whether a number can be read. */
static bool is_taken(const char *text)
{
	struct spoke_json_error error;
	struct spoke_builder builder;
	char copy[64];
	size_t count;
	int result;

	(void)snprintf(copy, sizeof(copy), "%s", text);
	spoke_builder_init(&builder, spoke_host_env(), NULL);
	result = spoke_json_read(copy, strlen(copy), &builder, &count, &error);
	spoke_builder_fini(&builder);
	return result == SPOKE_OK;
}

TEST(integers_are_limited_to_64_bits)
{
	static const struct {
		const char *text;
		bool fits;
	} rows[] = {
		{ "18446744073709551615", true },  { "18446744073709551616", false },
		{ "99999999999999999999", false }, { "184467440737095516150", false },
		{ "-9223372036854775808", true },  { "-9223372036854775809", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(is_taken(rows[i].text), rows[i].fits);
}

/* Returns the fewest digits that the C library needs to give the same double again. */
static int fewest_digits(double number)
{
	char text[32];

	for (int count = 1; count < 17; count++) {
		(void)snprintf(text, sizeof(text), "%.*e", count - 1, number);
		if (bits_of(strtod(text, NULL)) == bits_of(number))
			return count;
	}
	return 17;
}

TEST(digits_are_as_few_as_possible)
{
	uint64_t dice = 4;

	for (unsigned i = 0; i < TRIES / 4; i++) {
		uint64_t bits = spokei_mix_next(&dice) & INT64_MAX;
		uint64_t decimal;
		char digits[32];
		double number;

		memcpy(&number, &bits, sizeof(number));
		if (!isfinite(number) || number <= 0)
			continue;
		decimal = spokei_decimal_of(number).integer;
		assert_int_not_equal(decimal % 10, 0);
		(void)snprintf(digits, sizeof(digits), "%" PRIu64, decimal);
		assert_in_range(strlen(digits), 1, fewest_digits(number));
	}
}

/* Multiplies a number of 32-bit words, the lowest first, by a small one. */
static void multiply(uint32_t *words, size_t count, uint32_t by)
{
	uint64_t carry = 0;

	for (size_t i = 0; i < count; i++) {
		carry += (uint64_t)words[i] * by;
		words[i] = (uint32_t)carry;
		carry >>= 32;
	}
}

/* Divides such a number by a small one. */
static void divide(uint32_t *words, size_t count, uint32_t by)
{
	uint64_t rest = 0;

	for (size_t i = count; i-- > 0;) {
		rest = rest << 32 | words[i];
		words[i] = (uint32_t)(rest / by);
		rest %= by;
	}
}

#define WORDS 160 /* 80 before the point, and 80 behind */
/* Compares a power of ten with the 128 highest bits of a number, whose highest bit is `top`. */
static void assert_power(int power, const uint32_t words[WORDS])
{
	const struct spokei_power ten = spokei_power_of_ten(power);
	int top = spokei_power_log2(power) + 32 * WORDS / 2;

	for (int i = 32 * WORDS - 1; i > top; i--)
		assert_int_equal(words[i / 32] >> i % 32 & 1, 0);
	for (int i = 0; i < 128; i++)
		assert_int_equal(words[(top - i) / 32] >> (top - i) % 32 & 1,
				 (i < 64 ? ten.high : ten.low) >> (63 - i % 64) & 1);
}

TEST(powers_of_ten_are_rounded_down)
{
	uint32_t words[WORDS] = { [WORDS / 2] = 1 };

	for (int power = 0; power <= SPOKEI_POWER_MAX; power++) {
		assert_power(power, words);
		multiply(words, WORDS, 10);
	}
	/* A quotient that is rounded down at each step is rounded down once. */
	memset(words, 0, sizeof(words));
	words[WORDS / 2] = 1;
	for (int power = 0; power >= SPOKEI_POWER_MIN; power--) {
		assert_power(power, words);
		divide(words, WORDS, 10);
	}
}
