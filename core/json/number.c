/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and prints the numbers of JSON. Most numbers have few digits: they are converted with one
 * multiplication or division, which IEEE 754 rounds correctly. The C library converts the others;
 * its decimal point depends on the locale.
 */
#include "core/json/digits.h"
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

/* The digits of a number, as an integer and a power of ten. */
struct digits {
	uint64_t integer;
	bool too_many; /* the integer does not fit */
	int exponent;
};

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Appends the digits that are next. Returns their number. */
static size_t take_digits(struct spokei_json_scan *scan, struct digits *digits)
{
	size_t start = scan->at;

	while (scan->at < scan->len && is_digit(scan->text[scan->at])) {
		unsigned digit = (unsigned)(scan->text[scan->at++] - '0');

		digits->too_many |= digits->integer > (UINT64_MAX - digit) / 10;
		digits->integer = digits->integer * 10 + digit;
	}
	return scan->at - start;
}

/* Reads the exponent after "e". Returns the number of its digits. */
static size_t take_exponent(struct spokei_json_scan *scan, struct digits *digits)
{
	bool negative = spokei_json_here(scan) == '-';
	size_t start;
	int exponent = 0;

	if (negative || spokei_json_here(scan) == '+')
		scan->at++;
	start = scan->at;
	for (; is_digit(spokei_json_here(scan)); scan->at++)
		if (exponent < EXPONENT_MAX)
			exponent = exponent * 10 + (scan->text[scan->at] - '0');
	digits->exponent += negative ? -exponent : exponent;
	return scan->at - start;
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

/* Converts a number of any length up to TEXT_MAX. */
static bool convert(struct spokei_json_scan *scan, size_t start, double *ret)
{
	size_t len = scan->at - start;
	const char *from = scan->text + start;
	const char *dot = memchr(from, '.', len);
	size_t before = dot ? (size_t)(dot - from) : len;
	char text[TEXT_MAX + 8];
	char point[8];

	if (len >= TEXT_MAX)
		return spokei_json_fail(scan, SPOKE_ERANGE,
					"number has too many digits; at most 511 bytes");
	read_point(point);
	(void)snprintf(text, sizeof(text), "%.*s%s%.*s", (int)before, from, dot ? point : "",
		       dot ? (int)(len - before - 1) : 0, dot ? dot + 1 : "");
	*ret = strtod(text, NULL);
	return true;
}

static bool pack_double(struct spokei_json_scan *scan, size_t start, const struct digits *digits)
{
	bool negative = scan->text[start] == '-';
	double number = 0;

	if (FLT_EVAL_METHOD == 0 && !digits->too_many && digits->integer <= EXACT_MAX &&
	    digits->exponent >= -TENS_MAX && digits->exponent <= TENS_MAX) {
		number = (double)digits->integer;
		number = digits->exponent < 0 ? number / tens[-digits->exponent]
					      : number * tens[digits->exponent];
		number = negative ? -number : number;
	} else if (!convert(scan, start, &number)) {
		return false;
	}
	if (!isfinite(number)) {
		scan->at = start;
		return spokei_json_fail(scan, SPOKE_ERANGE, "number exceeds the range of a double");
	}
	spoke_pack_double(scan->builder, number);
	return true;
}

static bool pack_integer(struct spokei_json_scan *scan, size_t start, const struct digits *digits)
{
	bool negative = scan->text[start] == '-';
	uint64_t size = digits->integer;

	if (digits->too_many || (negative && size > (uint64_t)INT64_MAX + 1)) {
		scan->at = start;
		return spokei_json_fail(scan, SPOKE_ERANGE,
					"integer exceeds 64 bits; append .0 for a float");
	}
	if (!negative)
		spoke_pack_u64(scan->builder, size);
	else
		spoke_pack_i64(scan->builder, size ? -(int64_t)(size - 1) - 1 : 0);
	return true;
}

bool spokei_json_number(struct spokei_json_scan *scan)
{
	struct digits digits = { 0 };
	size_t start = scan->at;
	size_t first;
	size_t count;
	bool exact = true;
	size_t fraction;

	scan->at += scan->text[start] == '-';
	first = scan->at;
	count = take_digits(scan, &digits);
	if (count == 0 || (count > 1 && scan->text[first] == '0')) {
		scan->at = start;
		return spokei_json_fail(scan, SPOKE_ESYNTAX,
					count ? "leading 0 in a number" : "not a JSON value");
	}
	if (spokei_json_here(scan) == '.') {
		exact = false;
		scan->at++;
		fraction = take_digits(scan, &digits);
		count = fraction;
		digits.exponent = fraction < EXPONENT_MAX ? -(int)fraction : -EXPONENT_MAX;
	}
	if (count > 0 && (spokei_json_here(scan) == 'e' || spokei_json_here(scan) == 'E')) {
		exact = false;
		scan->at++;
		count = take_exponent(scan, &digits);
	}
	if (count == 0)
		return spokei_json_fail(scan, SPOKE_ESYNTAX, "expected a digit");
	return exact ? pack_integer(scan, start, &digits) : pack_double(scan, start, &digits);
}

int spokei_json_integer(struct spokei_json_scan *scan, int64_t *ret)
{
	struct digits digits = { 0 };
	bool negative;

	spokei_json_space(scan);
	negative = spokei_json_here(scan) == '-';
	scan->at += negative;
	if (take_digits(scan, &digits) == 0)
		return SPOKE_ESYNTAX;
	if (digits.too_many || digits.integer > (uint64_t)INT64_MAX + negative)
		return SPOKE_ERANGE;
	*ret = negative && digits.integer ? -(int64_t)(digits.integer - 1) - 1
					  : (int64_t)digits.integer;
	return SPOKE_OK;
}

/* --- printing */

#define DIGITS 17 /* of a double, at most */

/* Writes the digits with a point after the first `before` of them, which may be negative or more
 * than there are. Returns the end. */
static char *put_fixed(char *at, const char *digits, int count, int before)
{
	if (before <= 0) {
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
