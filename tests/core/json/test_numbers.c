/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of JSON: each double is read as the C library does, and printed so that it comes back. */
#include "core/base/mix.h"
#include "core/json/digits.h"
#include "core/json/powers.h"
#include "core/json/write.h"
#include "tests/support/test.h"

#include <spoke/host.h>
#include <spoke/json.h>

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
		int exponent;

		memcpy(&number, &bits, sizeof(number));
		if (!isfinite(number) || number <= 0)
			continue;
		decimal = spokei_decimal_of(number, &exponent);
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

/* Compares a row of the table with the 128 highest bits of a number, whose highest bit is `top`. */
static void assert_row(int power, const uint32_t words[WORDS])
{
	const uint64_t *row = spokei_powers[power - SPOKEI_POWER_MIN];
	int top = spokei_power_log2(power) + 32 * WORDS / 2;

	for (int i = 32 * WORDS - 1; i > top; i--)
		assert_int_equal(words[i / 32] >> i % 32 & 1, 0);
	for (int i = 0; i < 128; i++)
		assert_int_equal(words[(top - i) / 32] >> (top - i) % 32 & 1,
				 row[i / 64] >> (63 - i % 64) & 1);
}

TEST(table_has_the_powers_of_ten)
{
	uint32_t words[WORDS] = { [WORDS / 2] = 1 };

	for (int power = 0; power <= SPOKEI_POWER_MAX; power++) {
		assert_row(power, words);
		multiply(words, WORDS, 10);
	}
	/* A quotient that is rounded down at each step is rounded down once. */
	memset(words, 0, sizeof(words));
	words[WORDS / 2] = 1;
	for (int power = 0; power >= SPOKEI_POWER_MIN; power--) {
		assert_row(power, words);
		divide(words, WORDS, 10);
	}
}
