/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts between doubles and decimals. Most numbers have few digits: they are read with one
 * multiplication or division, which IEEE 754 rounds correctly; others with 128 bits of a power of
 * ten; and by the C library, whose decimal point depends on the locale, where these do not decide.
 *
 * The decimal of the fewest digits within the interval of a double, and of several the nearest one,
 * is found by Giulietti's Schubfach ("The Schubfach way to render doubles", 2021). The number and
 * the borders of its interval are multiplied by a power of ten, so that the interval contains one
 * to twenty integers; the candidates are the integers and the multiples of ten next to the number.
 */
#include "core/json/number.h"

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
#define FRACTION_BITS 52
#define EXACT_POWER_MAX 55 /* 128 bits hold 10^0 to this one exactly */
#define HIDDEN (UINT64_C(1) << FRACTION_BITS)
#define BIAS (1023 + FRACTION_BITS)

/* --- powers of ten */

#define TABLE_MIN (-351)
#define TABLE_STEP 27

/* Every 27th power of ten, to 160 bits rounded down. */
static const struct {
	uint64_t high;
	uint64_t middle;
	uint32_t low;
} table[] = {
	{ UINT64_C(0x8049a4ac0c5811ae), UINT64_C(0x205b896d777d6278), UINT32_C(0xac261e9f) },
	{ UINT64_C(0xcf42894a5dce35ea), UINT64_C(0x52064cac828675b9), UINT32_C(0x475f2b7d) },
	{ UINT64_C(0xa76c582338ed2621), UINT64_C(0xaf2af2b80af6f24e), UINT32_C(0x657c8f4d) },
	{ UINT64_C(0x873e4f75e2224e68), UINT64_C(0x5a7744a6e804a291), UINT32_C(0xcc35eddf) },
	{ UINT64_C(0xda7f5bf590966848), UINT64_C(0xaf39a475506a899e), UINT32_C(0xa30294cc) },
	{ UINT64_C(0xb080392cc4349dec), UINT64_C(0xbd8d794d96aacfb3), UINT32_C(0xfe13a5c8) },
	{ UINT64_C(0x8e938662882af53e), UINT64_C(0x547eb47b7282ee9c), UINT32_C(0x41b0230e) },
	{ UINT64_C(0xe65829b3046b0afa), UINT64_C(0x0cb4a5a3112a5112), UINT32_C(0xa3b561b1) },
	{ UINT64_C(0xba121a4650e4ddeb), UINT64_C(0x92f34d62616ce413), UINT32_C(0x21a0183e) },
	{ UINT64_C(0x964e858c91ba2655), UINT64_C(0x3a6a07f8d510f86f), UINT32_C(0xe9082f25) },
	{ UINT64_C(0xf2d56790ab41c2a2), UINT64_C(0xfae27299423fb9c3), UINT32_C(0x3695dad7) },
	{ UINT64_C(0xc428d05aa4751e4c), UINT64_C(0xaa97e14c3c26b886), UINT32_C(0x96842dc9) },
	{ UINT64_C(0x9e74d1b791e07e48), UINT64_C(0x775ea264cf55347d), UINT32_C(0xca49f1c0) },
	{ UINT64_C(0x8000000000000000), UINT64_C(0x0000000000000000), UINT32_C(0x00000000) },
	{ UINT64_C(0xcecb8f27f4200f3a), UINT64_C(0x0000000000000000), UINT32_C(0x00000000) },
	{ UINT64_C(0xa70c3c40a64e6c51), UINT64_C(0x999090b65f67d924), UINT32_C(0x00000000) },
	{ UINT64_C(0x86f0ac99b4e8dafd), UINT64_C(0x69a028bb3ded71a3), UINT32_C(0xdf9f9156) },
	{ UINT64_C(0xda01ee641a708de9), UINT64_C(0xe80e6f4820cc9495), UINT32_C(0xd74baad0) },
	{ UINT64_C(0xb01ae745b101e9e4), UINT64_C(0x5ec05dcff72e7f8f), UINT32_C(0xc04c79ff) },
	{ UINT64_C(0x8e41ade9fbebc27d), UINT64_C(0x14588f13be847307), UINT32_C(0x23bd6a20) },
	{ UINT64_C(0xe5d3ef282a242e81), UINT64_C(0x8f1668c8a86da5fa), UINT32_C(0xf0b5ccf5) },
	{ UINT64_C(0xb9a74a0637ce2ee1), UINT64_C(0x6d953e2bd7173692), UINT32_C(0x88efb003) },
	{ UINT64_C(0x95f83d0a1fb69cd9), UINT64_C(0x4abdaf101564f98e), UINT32_C(0x0d5a4af7) },
	{ UINT64_C(0xf24a01a73cf2dccf), UINT64_C(0xbc633b39673c8cec), UINT32_C(0x3d9c44cd) },
	{ UINT64_C(0xc3b8358109e84f07), UINT64_C(0x0a862f80ec4700c8), UINT32_C(0x02606ea0) },
	{ UINT64_C(0x9e19db92b4e31ba9), UINT64_C(0x6c07a2c26a8346d1), UINT32_C(0x4944d9f5) },
};

/* 10^0 to 10^26, shifted so that the highest bit is set. They are exact, as 5^26 has 61 bits. */
static const uint64_t factors[TABLE_STEP] = {
	UINT64_C(0x8000000000000000), UINT64_C(0xa000000000000000), UINT64_C(0xc800000000000000),
	UINT64_C(0xfa00000000000000), UINT64_C(0x9c40000000000000), UINT64_C(0xc350000000000000),
	UINT64_C(0xf424000000000000), UINT64_C(0x9896800000000000), UINT64_C(0xbebc200000000000),
	UINT64_C(0xee6b280000000000), UINT64_C(0x9502f90000000000), UINT64_C(0xba43b74000000000),
	UINT64_C(0xe8d4a51000000000), UINT64_C(0x9184e72a00000000), UINT64_C(0xb5e620f480000000),
	UINT64_C(0xe35fa931a0000000), UINT64_C(0x8e1bc9bf04000000), UINT64_C(0xb1a2bc2ec5000000),
	UINT64_C(0xde0b6b3a76400000), UINT64_C(0x8ac7230489e80000), UINT64_C(0xad78ebc5ac620000),
	UINT64_C(0xd8d726b7177a8000), UINT64_C(0x878678326eac9000), UINT64_C(0xa968163f0a57b400),
	UINT64_C(0xd3c21bcecceda100), UINT64_C(0x84595161401484a0), UINT64_C(0xa56fa5b99019a5c8),
};

/* Multiplies to 128 bits. */
#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 wide;

static inline struct spokei_power multiply(uint64_t a, uint64_t b)
{
	wide product = (wide)a * b;

	return (struct spokei_power){ (uint64_t)(product >> 64), (uint64_t)product };
}
#else
static inline struct spokei_power multiply(uint64_t a, uint64_t b)
{
	uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX);
	uint64_t left = (a >> 32) * (b & UINT32_MAX);
	uint64_t right = (a & UINT32_MAX) * (b >> 32);
	uint64_t middle = (low >> 32) + (left & UINT32_MAX) + (right & UINT32_MAX);

	return (struct spokei_power){ (a >> 32) * (b >> 32) + (left >> 32) + (right >> 32) +
					      (middle >> 32),
				      middle << 32 | (low & UINT32_MAX) };
}
#endif

/* Multiplies 128 bits by 64, and returns the upper 128 bits of 192. */
static inline struct spokei_power times(struct spokei_power power, uint64_t number)
{
	struct spokei_power upper = multiply(power.high, number);
	struct spokei_power lower = multiply(power.low, number);

	upper.low += lower.high;
	upper.high += upper.low < lower.high;
	return upper;
}

/* The 32 bits beyond 128 of the rows suffice for each power to be exactly rounded down. Numbers
 * from 1e-10 to 1e16 need a factor alone. */
struct spokei_power spokei_power_of_ten(int power)
{
	unsigned row = (unsigned)(power - TABLE_MIN) / TABLE_STEP;
	uint64_t factor = factors[(unsigned)(power - TABLE_MIN) % TABLE_STEP];
	struct spokei_power upper;
	struct spokei_power middle;
	uint64_t lower;

	if (power >= 0 && power < TABLE_STEP)
		return (struct spokei_power){ factor, 0 };
	upper = multiply(table[row].high, factor);
	middle = multiply(table[row].middle, factor);
	lower = multiply((uint64_t)table[row].low << 32, factor).high;
	middle.low += lower;
	middle.high += middle.low < lower;
	upper.low += middle.high;
	upper.high += upper.low < middle.high;
	if (upper.high >> 63 == 0) {
		upper.high = upper.high << 1 | upper.low >> 63;
		upper.low = upper.low << 1 | middle.low >> 63;
	}
	return upper;
}

/* --- from decimals */

static const double tens[TENS_MAX + 1] = {
	1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

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
static bool scale_exactly(const struct spokei_decimal *decimal, double *ret)
{
	int zeros = __builtin_clzll(decimal->integer);
	struct spokei_power product;
	int top;       /* the highest bit of the product */
	uint64_t bits; /* 54: those of the significand, and the one that decides on the rounding */
	uint64_t rest; /* the bits below within the upper 64 */
	int exponent;

	if (decimal->exponent < SPOKEI_POWER_MIN || decimal->exponent > SPOKEI_POWER_MAX)
		return false;
	product = times(spokei_power_of_ten(decimal->exponent), decimal->integer << zeros);
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

bool spokei_decimal_to_double(const struct spokei_decimal *decimal, const char *text, size_t len,
			      double *ret)
{
	int exponent = decimal->exponent;

	if (decimal->digits > SPOKEI_DECIMAL_SAFE)
		return convert(text, len, ret);
	if (FLT_EVAL_METHOD == 0 && decimal->integer <= EXACT_MAX && exponent >= -TENS_MAX &&
	    exponent <= TENS_MAX) {
		*ret = (double)decimal->integer;
		*ret = exponent < 0 ? *ret / tens[-exponent] : *ret * tens[exponent];
	} else if (decimal->integer == 0) {
		*ret = 0;
	} else if (!scale_exactly(decimal, ret)) {
		return convert(text, len, ret);
	}
	return true;
}

/* --- to decimals */

/* Multiplies by a power of ten, and drops the lower 128 bits; the lowest bit that stays is set if
 * they are not zero, so that comparisons with multiples of two are exact. */
static uint64_t scale(struct spokei_power power, uint64_t number)
{
	struct spokei_power product = times(power, number);

	return product.high | (product.low > 1);
}

/* Returns the exponent of ten of the unit of the integers: the logarithm of the interval's width,
 * rounded down. Below a power of two the gap is half as wide. */
static int unit_of(int exponent, bool is_narrow)
{
	return is_narrow ? (exponent * 315653 - 131237) >> 20 : (exponent * 315653) >> 20;
}

static struct spokei_decimal shorten(uint64_t significand, int exponent, bool is_narrow)
{
	int unit = unit_of(exponent, is_narrow);
	int shift = exponent + ((-unit * 217707) >> 16) + 1;
	struct spokei_power power = spokei_power_of_ten(-unit);
	uint64_t odd = significand & 1; /* the borders belong to an even number only */
	uint64_t lower;
	uint64_t upper;
	uint64_t number;
	uint64_t whole;
	bool is_low;
	bool is_high;

	/* The algorithm needs powers that are rounded up. */
	if ((-unit < 0 || -unit > EXACT_POWER_MAX) && ++power.low == 0)
		power.high++;
	lower = scale(power, (4 * significand - 2 + is_narrow) << shift) + odd;
	number = scale(power, (4 * significand) << shift);
	upper = scale(power, (4 * significand + 2) << shift) - odd;
	whole = number / 4;
	if (whole >= 10) {
		uint64_t tenth = whole / 10;

		is_low = lower <= 40 * tenth;
		is_high = 40 * tenth + 40 <= upper;
		if (is_low != is_high)
			return (struct spokei_decimal){ .integer = tenth + is_high,
							.exponent = unit + 1 };
	}
	is_low = lower <= 4 * whole;
	is_high = 4 * whole + 4 <= upper;
	if (is_low != is_high)
		return (struct spokei_decimal){ .integer = whole + is_high, .exponent = unit };
	/* Both or neither: the nearer one, and of two the even one. */
	is_high = number > 4 * whole + 2 || (number == 4 * whole + 2 && whole % 2 != 0);
	return (struct spokei_decimal){ .integer = whole + is_high, .exponent = unit };
}

/* Removes zeros at the end of the significand, this many at a time. */
static void strip(struct spokei_decimal *decimal, uint64_t divisor, int zeros)
{
	while (decimal->integer % divisor == 0) {
		decimal->integer /= divisor;
		decimal->exponent += zeros;
	}
}

struct spokei_decimal spokei_decimal_of(double number)
{
	struct spokei_decimal decimal;
	uint64_t bits;
	uint64_t fraction;
	int exponent;

	memcpy(&bits, &number, sizeof(bits));
	fraction = bits & (HIDDEN - 1);
	exponent = (int)(bits >> FRACTION_BITS & 0x7ff);
	decimal = exponent > 0 ? shorten(fraction | HIDDEN, exponent - BIAS,
					 fraction == 0 && exponent > 1)
			       : shorten(fraction, 1 - BIAS, false);
	strip(&decimal, 100000000, 8);
	strip(&decimal, 10000, 4);
	strip(&decimal, 100, 2);
	strip(&decimal, 10, 1);
	return decimal;
}

/* --- printing integers */

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
			    "25262728293031323334353637383940414243444546474849"
			    "50515253545556575859606162636465666768697071727374"
			    "75767778798081828384858687888990919293949596979899";

char *spokei_json_digits(uint64_t number, char *end)
{
	while (number >= 100) {
		end -= 2;
		memcpy(end, pairs + 2 * (number % 100), 2);
		number /= 100;
	}
	if (number >= 10) {
		end -= 2;
		memcpy(end, pairs + 2 * number, 2);
	} else {
		*--end = (char)('0' + number);
	}
	return end;
}

/* --- printing doubles */

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
	struct spokei_decimal decimal = { 0 };
	int count;

	if (signbit(number)) {
		*at++ = '-';
		number = -number;
	}
	if (number > 0)
		decimal = spokei_decimal_of(number);
	digits = spokei_json_digits(decimal.integer, digits);
	count = (int)(end - digits);
	if (count + decimal.exponent > FIXED_MIN && count + decimal.exponent <= FIXED_MAX)
		at = put_fixed(at, digits, count, count + decimal.exponent);
	else
		at = put_exponent(at, digits, count, count + decimal.exponent - 1);
	return (size_t)(at - text);
}
