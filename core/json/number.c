/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and prints the numbers of JSON. Most numbers have few digits: they are converted with one
 * multiplication or division, which IEEE 754 rounds correctly. The C library converts the others;
 * its decimal point depends on the locale.
 */
#include "core/json/build.h"
#include "core/json/digits.h"
#include "core/json/powers.h"
#include "core/json/scan.h"
#include "core/json/write.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENS_MAX 22 /* the largest power of ten that a double holds exactly */
#define EXACT_MAX (UINT64_C(1) << DBL_MANT_DIG) /* integers up to this one are exact */
#define TEXT_MAX 512u                           /* bytes of a number */
#define FIXED_MIN (-4) /* numbers with their point beyond these places have an exponent */
#define FIXED_MAX 17
#define EXPONENT_MAX 100000 /* larger exponents count as this one */

static const double tens[TENS_MAX + 1] = {
	1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

/* A number, as an integer and a power of ten. */
struct decimal {
	uint64_t integer;
	unsigned
		digits; /* of the integer, with leading zeros; it has overflowed if they are many */
	int exponent;
};

#define DIGITS_SAFE 19u /* digits that fit into 64 bits */

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Are all eight bytes digits? */
static inline bool are_digits(uint64_t eight)
{
	return (((eight + SPOKEI_EIGHT_OF(0x46)) | (eight - SPOKEI_EIGHT_OF('0'))) &
		SPOKEI_EIGHT_OF(0x80)) == 0;
}

/* Returns the number of eight digits: pairs first, then fours. */
static inline uint32_t number_of(uint64_t eight)
{
	eight -= SPOKEI_EIGHT_OF('0');
	eight = eight * 10 + (eight >> 8);
	return (uint32_t)((((eight & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064)) +
			   ((eight >> 16 & UINT64_C(0x000000ff000000ff)) *
			    UINT64_C(0x0000271000000001))) >>
			  32);
}

/* Appends the digits at `at`; returns their end. */
static inline char *take_digits(char *at, const char *end, struct decimal *decimal)
{
	char *start = at;
	uint64_t integer = decimal->integer;

	while (end - at >= 8) {
		uint64_t eight = spokei_eight(at);

		if (!are_digits(eight))
			break;
		integer = integer * 100000000 + number_of(eight);
		at += 8;
	}
	while (at < end && is_digit(*at))
		integer = integer * 10 + (uint64_t)(*at++ - '0');
	decimal->integer = integer;
	decimal->digits += (unsigned)(at - start < EXPONENT_MAX ? at - start : EXPONENT_MAX);
	return at;
}

/* Reads the exponent after "e". Returns its end, which is `at` if there is none. */
static char *take_exponent(char *at, const char *end, struct decimal *decimal)
{
	char *start = at;
	bool is_negative = at < end && *at == '-';
	int exponent = 0;

	if (at < end && (*at == '-' || *at == '+'))
		at++;
	if (at == end || !is_digit(*at))
		return start;
	for (; at < end && is_digit(*at); at++)
		if (exponent < EXPONENT_MAX)
			exponent = exponent * 10 + (*at - '0');
	decimal->exponent += is_negative ? -exponent : exponent;
	return at;
}

/* Returns the decimal point of the locale. */
static void read_point(char point[8])
{
	char text[16];
	char *end;

	(void)snprintf(text, sizeof(text), "%.1f", 0.5);
	end = strchr(text, '5');
	(void)snprintf(point, 8, "%.*s", end ? (int)(end - text - 1) : 1, end ? text + 1 : ".");
}

/* Converts a number of any length below TEXT_MAX, by the C library. */
static bool convert(const char *from, size_t len, double *ret)
{
	const char *dot = memchr(from, '.', len);
	size_t before = dot ? (size_t)(dot - from) : len;
	char text[TEXT_MAX + 8];
	char point[8];

	if (len >= TEXT_MAX)
		return false;
	read_point(point);
	(void)snprintf(text, sizeof(text), "%.*s%s%.*s", (int)before, from, dot ? point : "",
		       dot ? (int)(len - before - 1) : 0, dot ? dot + 1 : "");
	*ret = strtod(text, NULL);
	return true;
}

/* Multiplies and rounds: integer x 10^exponent. Returns false if 128 bits of the power do not
 * decide on the rounding, or the result is not a normal number. */
static bool multiply(const struct decimal *decimal, double *ret)
{
	int zeros = __builtin_clzll(decimal->integer);
	struct spokei_product product;
	int top;       /* the highest bit of the product */
	uint64_t bits; /* 54: those of the significand, and the one that decides on the rounding */
	uint64_t rest; /* the bits below within the upper 64 */
	int exponent;

	if (decimal->exponent < SPOKEI_POWER_MIN || decimal->exponent > SPOKEI_POWER_MAX)
		return false;
	product = spokei_power_times(spokei_powers[decimal->exponent - SPOKEI_POWER_MIN],
				     decimal->integer << zeros);
	top = (int)(product.high >> 63);
	bits = product.high >> (9 + top);
	rest = product.high & ((UINT64_C(1) << (9 + top)) - 1);
	/* The product is too small by less than two units of its lower word. */
	if (rest == (UINT64_C(1) << (9 + top)) - 1 && product.low >= UINT64_MAX - 1)
		return false;
	if ((bits & 1) != 0 && rest == 0 && product.low < 2)
		return false; /* a tie, or close to one */
	exponent = spokei_power_log2(decimal->exponent) - zeros + top + 63 + 1023;
	if (exponent < 1 || exponent > 2045)
		return false;
	bits = (bits >> 1) + (bits & 1) + ((uint64_t)(exponent - 1) << 52);
	memcpy(ret, &bits, sizeof(bits));
	return true;
}

static bool to_double(const char *text, size_t len, const struct decimal *decimal, double *ret)
{
	int exponent = decimal->exponent;

	if (decimal->digits > DIGITS_SAFE)
		return convert(text, len, ret);
	if (FLT_EVAL_METHOD == 0 && decimal->integer <= EXACT_MAX && exponent >= -TENS_MAX &&
	    exponent <= TENS_MAX) {
		*ret = (double)decimal->integer;
		*ret = exponent < 0 ? *ret / tens[-exponent] : *ret * tens[exponent];
	} else if (decimal->integer == 0) {
		*ret = 0;
	} else if (!multiply(decimal, ret)) {
		return convert(text, len, ret);
	}
	return true;
}

/* Packs a number with a point or an exponent; the text is without the sign. */
static bool pack_double(struct spokei_json_scan *scan, const char *text, size_t len,
			const struct decimal *decimal, bool is_negative)
{
	double number = 0;

	if (!to_double(text, len, decimal, &number))
		return spokei_json_fail(scan, SPOKE_ERANGE,
					"number has too many digits; at most 511 bytes");
	if (!isfinite(number))
		return spokei_json_fail(scan, SPOKE_ERANGE, "number exceeds the range of a double");
	spokei_build_double(scan->builder, is_negative ? -number : number);
	return true;
}

/* Does a number of digits fit into 64 bits? */
static bool fits(const char *text, const struct decimal *decimal)
{
	static const char max[] = "18446744073709551615";

	return decimal->digits <= DIGITS_SAFE ||
	       (decimal->digits == sizeof(max) - 1 && memcmp(text, max, sizeof(max) - 1) <= 0);
}

static bool pack_integer(struct spokei_json_scan *scan, const char *text,
			 const struct decimal *decimal, bool is_negative)
{
	uint64_t size = decimal->integer;

	if (!fits(text, decimal) || (is_negative && size > (uint64_t)INT64_MAX + 1))
		return spokei_json_fail(scan, SPOKE_ERANGE,
					"integer exceeds 64 bits; append .0 for a float");
	if (is_negative && size > 0)
		spokei_build_negative(scan->builder, -(int64_t)(size - 1) - 1);
	else
		spokei_build_natural(scan->builder, size);
	return true;
}

/* Reads the point and the exponent of a number. Returns the end, or NULL: a digit is missing. */
static char *take_rest(struct spokei_json_scan *scan, char *at, struct decimal *decimal)
{
	char *start;

	if (at < scan->end && *at == '.') {
		start = ++at;
		at = take_digits(at, scan->end, decimal);
		if (at == start)
			return spokei_json_fail_at(scan, at, SPOKE_ESYNTAX, "expected a digit");
		decimal->exponent = at - start < EXPONENT_MAX ? -(int)(at - start) : -EXPONENT_MAX;
	}
	if (at < scan->end && (*at == 'e' || *at == 'E')) {
		start = ++at;
		at = take_exponent(at, scan->end, decimal);
		if (at == start) {
			at += at < scan->end && (*at == '-' || *at == '+');
			return spokei_json_fail_at(scan, at, SPOKE_ESYNTAX, "expected a digit");
		}
	}
	return at;
}

char *spokei_json_take_number(struct spokei_json_scan *scan, char *at)
{
	struct decimal decimal = { 0 };
	char *start = at;
	bool is_negative = *at == '-';
	char *first = at + is_negative;
	char *end = take_digits(first, scan->end, &decimal);
	bool is_packed;

	if (end == first || (*first == '0' && end - first > 1))
		return spokei_json_fail_at(scan, start, SPOKE_ESYNTAX,
					   end == first ? "not a JSON value"
							: "leading 0 in a number");
	scan->at = start;
	if (end < scan->end && (*end == '.' || *end == 'e' || *end == 'E')) {
		end = take_rest(scan, end, &decimal);
		is_packed = end &&
			    pack_double(scan, first, (size_t)(end - first), &decimal, is_negative);
	} else {
		is_packed = pack_integer(scan, first, &decimal, is_negative);
	}
	return is_packed ? end : NULL;
}

int spokei_json_integer(struct spokei_json_scan *scan, int64_t *ret)
{
	struct decimal decimal = { 0 };
	bool is_negative = spokei_json_peek(scan) == '-';
	char *first = scan->at + is_negative;
	char *end = take_digits(first, scan->end, &decimal);

	if (end == first || (*first == '0' && end - first > 1))
		return SPOKE_ESYNTAX;
	if (!fits(first, &decimal) || decimal.integer > (uint64_t)INT64_MAX + is_negative)
		return SPOKE_ERANGE;
	*ret = is_negative && decimal.integer ? -(int64_t)(decimal.integer - 1) - 1
					      : (int64_t)decimal.integer;
	scan->at = end;
	return SPOKE_OK;
}

/* --- printing */

#define DIGITS 17 /* of a double, at most */

/* Writes the digits with a point after the first `before` of them, which may be negative or more
 * than there are. Returns the end. */
static char *put_fixed(char *at, const char *digits, int count, int before)
{
	if (before <= 0) {
		/* NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
		memcpy(at, "0.0000", 6);
		at += 2 - before;
		memcpy(at, digits, DIGITS);
		return at + count;
	}
	memcpy(at, digits, DIGITS);
	if (before < count) {
		memmove(at + before + 1, at + before, (size_t)(count - before));
		at[before] = '.';
		return at + count + 1;
	}
	memset(at + count, '0', (size_t)(before - count));
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
	memcpy(at + before, ".0", 2);
	return at + before + 2;
}

/* Writes the digits with an exponent of ten. Returns the end. */
static char *put_exponent(char *at, const char *digits, int count, int exponent)
{
	unsigned size = (unsigned)(exponent < 0 ? -exponent : exponent);

	*at++ = digits[0];
	if (count > 1) {
		*at++ = '.';
		memcpy(at, digits + 1, (size_t)count - 1);
		at += count - 1;
	}
	*at++ = 'e';
	*at++ = exponent < 0 ? '-' : '+';
	if (size >= 100)
		*at++ = (char)('0' + size / 100);
	*at++ = (char)('0' + size / 10 % 10);
	*at++ = (char)('0' + size % 10);
	return at;
}

size_t spokei_json_print_double(double number, char text[SPOKEI_JSON_NUMBER])
{
	char room[SPOKEI_JSON_INTEGER + DIGITS] = { 0 };
	char *digits = room + SPOKEI_JSON_INTEGER;
	char *end = digits;
	char *at = text;
	int exponent = 0;
	int count;

	if (signbit(number)) {
		*at++ = '-';
		number = -number;
	}
	digits = spokei_json_digits(number > 0 ? spokei_decimal_of(number, &exponent) : 0, digits);
	count = (int)(end - digits);
	if (count + exponent > FIXED_MIN && count + exponent <= FIXED_MAX)
		at = put_fixed(at, digits, count, count + exponent);
	else
		at = put_exponent(at, digits, count, count + exponent - 1);
	return (size_t)(at - text);
}
