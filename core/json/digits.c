/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds few decimal digits that give the same double again, by Loitsch's Grisu2 ("Printing
 * Floating-Point Numbers Quickly and Accurately with Integers", 2010). All integers: the number and
 * the borders of its interval are scaled by a power of ten, so that digits can be cut off while
 * they stay within the interval. Nearly always there are no fewer digits that would do.
 */
#include "core/json/digits.h"

#include <string.h>

#define FRACTION_BITS 52
#define HIDDEN (UINT64_C(1) << FRACTION_BITS)
#define BIAS (1023 + FRACTION_BITS)
#define POWER_FIRST (-348) /* exponents of ten in the table, in steps of 8 */
#define POWER_STEP 8
#define SCALED_MIN (-60) /* exponent of two of a scaled number */

/* significand x 2^exponent */
struct scaled {
	uint64_t significand;
	int exponent;
};

/* Powers of ten, rounded to 64 bits. */
static const struct scaled powers[] = {
	{ UINT64_C(0xfa8fd5a0081c0288), -1220 }, { UINT64_C(0xbaaee17fa23ebf76), -1193 },
	{ UINT64_C(0x8b16fb203055ac76), -1166 }, { UINT64_C(0xcf42894a5dce35ea), -1140 },
	{ UINT64_C(0x9a6bb0aa55653b2d), -1113 }, { UINT64_C(0xe61acf033d1a45df), -1087 },
	{ UINT64_C(0xab70fe17c79ac6ca), -1060 }, { UINT64_C(0xff77b1fcbebcdc4f), -1034 },
	{ UINT64_C(0xbe5691ef416bd60c), -1007 }, { UINT64_C(0x8dd01fad907ffc3c), -980 },
	{ UINT64_C(0xd3515c2831559a83), -954 },  { UINT64_C(0x9d71ac8fada6c9b5), -927 },
	{ UINT64_C(0xea9c227723ee8bcb), -901 },  { UINT64_C(0xaecc49914078536d), -874 },
	{ UINT64_C(0x823c12795db6ce57), -847 },  { UINT64_C(0xc21094364dfb5637), -821 },
	{ UINT64_C(0x9096ea6f3848984f), -794 },  { UINT64_C(0xd77485cb25823ac7), -768 },
	{ UINT64_C(0xa086cfcd97bf97f4), -741 },  { UINT64_C(0xef340a98172aace5), -715 },
	{ UINT64_C(0xb23867fb2a35b28e), -688 },  { UINT64_C(0x84c8d4dfd2c63f3b), -661 },
	{ UINT64_C(0xc5dd44271ad3cdba), -635 },  { UINT64_C(0x936b9fcebb25c996), -608 },
	{ UINT64_C(0xdbac6c247d62a584), -582 },  { UINT64_C(0xa3ab66580d5fdaf6), -555 },
	{ UINT64_C(0xf3e2f893dec3f126), -529 },  { UINT64_C(0xb5b5ada8aaff80b8), -502 },
	{ UINT64_C(0x87625f056c7c4a8b), -475 },  { UINT64_C(0xc9bcff6034c13053), -449 },
	{ UINT64_C(0x964e858c91ba2655), -422 },  { UINT64_C(0xdff9772470297ebd), -396 },
	{ UINT64_C(0xa6dfbd9fb8e5b88f), -369 },  { UINT64_C(0xf8a95fcf88747d94), -343 },
	{ UINT64_C(0xb94470938fa89bcf), -316 },  { UINT64_C(0x8a08f0f8bf0f156b), -289 },
	{ UINT64_C(0xcdb02555653131b6), -263 },  { UINT64_C(0x993fe2c6d07b7fac), -236 },
	{ UINT64_C(0xe45c10c42a2b3b06), -210 },  { UINT64_C(0xaa242499697392d3), -183 },
	{ UINT64_C(0xfd87b5f28300ca0e), -157 },  { UINT64_C(0xbce5086492111aeb), -130 },
	{ UINT64_C(0x8cbccc096f5088cc), -103 },  { UINT64_C(0xd1b71758e219652c), -77 },
	{ UINT64_C(0x9c40000000000000), -50 },   { UINT64_C(0xe8d4a51000000000), -24 },
	{ UINT64_C(0xad78ebc5ac620000), 3 },     { UINT64_C(0x813f3978f8940984), 30 },
	{ UINT64_C(0xc097ce7bc90715b3), 56 },    { UINT64_C(0x8f7e32ce7bea5c70), 83 },
	{ UINT64_C(0xd5d238a4abe98068), 109 },   { UINT64_C(0x9f4f2726179a2245), 136 },
	{ UINT64_C(0xed63a231d4c4fb27), 162 },   { UINT64_C(0xb0de65388cc8ada8), 189 },
	{ UINT64_C(0x83c7088e1aab65db), 216 },   { UINT64_C(0xc45d1df942711d9a), 242 },
	{ UINT64_C(0x924d692ca61be758), 269 },   { UINT64_C(0xda01ee641a708dea), 295 },
	{ UINT64_C(0xa26da3999aef774a), 322 },   { UINT64_C(0xf209787bb47d6b85), 348 },
	{ UINT64_C(0xb454e4a179dd1877), 375 },   { UINT64_C(0x865b86925b9bc5c2), 402 },
	{ UINT64_C(0xc83553c5c8965d3d), 428 },   { UINT64_C(0x952ab45cfa97a0b3), 455 },
	{ UINT64_C(0xde469fbd99a05fe3), 481 },   { UINT64_C(0xa59bc234db398c25), 508 },
	{ UINT64_C(0xf6c69a72a3989f5c), 534 },   { UINT64_C(0xb7dcbf5354e9bece), 561 },
	{ UINT64_C(0x88fcf317f22241e2), 588 },   { UINT64_C(0xcc20ce9bd35c78a5), 614 },
	{ UINT64_C(0x98165af37b2153df), 641 },   { UINT64_C(0xe2a0b5dc971f303a), 667 },
	{ UINT64_C(0xa8d9d1535ce3b396), 694 },   { UINT64_C(0xfb9b7cd9a4a7443c), 720 },
	{ UINT64_C(0xbb764c4ca7a44410), 747 },   { UINT64_C(0x8bab8eefb6409c1a), 774 },
	{ UINT64_C(0xd01fef10a657842c), 800 },   { UINT64_C(0x9b10a4e5e9913129), 827 },
	{ UINT64_C(0xe7109bfba19c0c9d), 853 },   { UINT64_C(0xac2820d9623bf429), 880 },
	{ UINT64_C(0x80444b5e7aa7cf85), 907 },   { UINT64_C(0xbf21e44003acdd2d), 933 },
	{ UINT64_C(0x8e679c2f5e44ff8f), 960 },   { UINT64_C(0xd433179d9c8cb841), 986 },
	{ UINT64_C(0x9e19db92b4e31ba9), 1013 },  { UINT64_C(0xeb96bf6ebadf77d9), 1039 },
	{ UINT64_C(0xaf87023b9bf0ee6b), 1066 },
};

static const uint64_t tens[] = {
	UINT64_C(1),
	UINT64_C(10),
	UINT64_C(100),
	UINT64_C(1000),
	UINT64_C(10000),
	UINT64_C(100000),
	UINT64_C(1000000),
	UINT64_C(10000000),
	UINT64_C(100000000),
	UINT64_C(1000000000),
	UINT64_C(10000000000),
	UINT64_C(100000000000),
	UINT64_C(1000000000000),
	UINT64_C(10000000000000),
	UINT64_C(100000000000000),
	UINT64_C(1000000000000000),
	UINT64_C(10000000000000000),
	UINT64_C(100000000000000000),
	UINT64_C(1000000000000000000),
	UINT64_C(10000000000000000000),
};

/* Multiplies, and rounds to the upper 64 bits. */
static struct scaled multiply(struct scaled a, struct scaled b)
{
	const uint64_t mask = UINT32_MAX;
	uint64_t high = (a.significand >> 32) * (b.significand >> 32);
	uint64_t left = (a.significand >> 32) * (b.significand & mask);
	uint64_t right = (a.significand & mask) * (b.significand >> 32);
	uint64_t low = (a.significand & mask) * (b.significand & mask);
	uint64_t middle = (low >> 32) + (left & mask) + (right & mask) + (UINT64_C(1) << 31);

	return (struct scaled){ high + (left >> 32) + (right >> 32) + (middle >> 32),
				a.exponent + b.exponent + 64 };
}

/* Moves the highest bit of the significand to the top. */
static struct scaled normalise(struct scaled number)
{
	while (number.significand >> 63 == 0) {
		number.significand <<= 1;
		number.exponent--;
	}
	return number;
}

/* Returns a power of ten that brings an exponent of two into the range in which the integer part
 * has 32 bits at most, and its exponent. */
static struct scaled find_power(int exponent, int *ret_power)
{
	size_t at = 0;

	/* The exponents of the table rise by 26 or 27. */
	while (at + 1 < sizeof(powers) / sizeof(powers[0]) &&
	       exponent + powers[at].exponent + 64 < SCALED_MIN)
		at++;
	*ret_power = POWER_FIRST + POWER_STEP * (int)at;
	return powers[at];
}

/* Lowers the last digit while that comes closer to the number. All lengths are measured from the
 * upper border of the interval: `rest` that of the digits, `number` that of the number. */
static void approach(char *last, uint64_t width, uint64_t rest, uint64_t unit, uint64_t number)
{
	while (rest < number && width - rest >= unit &&
	       (rest + unit < number || number - rest > rest + unit - number)) {
		--*last;
		rest += unit;
	}
}

static unsigned count_digits(uint32_t number)
{
	unsigned count = 1;

	while (count < 10 && number >= tens[count])
		count++;
	return count;
}

/* Writes the digits of the upper border until the rest is within the interval. Returns their
 * number; adds to the exponent of ten. */
static unsigned generate(struct scaled number, struct scaled upper, uint64_t width, char *digits,
			 int *exponent)
{
	const int shift = -upper.exponent;
	const uint64_t one = UINT64_C(1) << shift;
	uint64_t distance = upper.significand - number.significand;
	uint32_t whole = (uint32_t)(upper.significand >> shift);
	uint64_t part = upper.significand & (one - 1);
	unsigned left = count_digits(whole);
	unsigned count = 0;

	while (left > 0) {
		uint32_t unit = (uint32_t)tens[--left];
		uint64_t rest;

		digits[count++] = (char)('0' + whole / unit);
		whole %= unit;
		rest = ((uint64_t)whole << shift) + part;
		if (rest <= width) {
			*exponent += (int)left;
			approach(&digits[count - 1], width, rest, tens[left] << shift, distance);
			return count;
		}
	}
	for (;;) {
		part *= 10;
		width *= 10;
		distance *= 10;
		digits[count++] = (char)('0' + (part >> shift));
		part &= one - 1;
		--*exponent;
		if (part < width) {
			approach(&digits[count - 1], width, part, one, distance);
			return count;
		}
	}
}

unsigned spokei_digits_of(double number, char digits[SPOKEI_DIGITS_MAX], int *ret_exponent)
{
	struct scaled value;
	struct scaled upper;
	struct scaled lower;
	struct scaled power;
	uint64_t bits;
	int tens_power;

	memcpy(&bits, &number, sizeof(bits));
	value.significand = bits & (HIDDEN - 1);
	value.exponent = (int)(bits >> FRACTION_BITS & 0x7ff) - BIAS;
	if (value.exponent > -BIAS)
		value.significand |= HIDDEN;
	else
		value.exponent++;
	/* The borders lie halfway to the next numbers. Below a power of two the gap is half as
	 * wide. */
	upper = normalise((struct scaled){ (value.significand << 1) + 1, value.exponent - 1 });
	lower = value.significand == HIDDEN
			? (struct scaled){ (value.significand << 2) - 1, value.exponent - 2 }
			: (struct scaled){ (value.significand << 1) - 1, value.exponent - 1 };
	lower.significand <<= lower.exponent - upper.exponent;
	lower.exponent = upper.exponent;
	power = find_power(upper.exponent, &tens_power);
	value = multiply(normalise(value), power);
	upper = multiply(upper, power);
	lower = multiply(lower, power);
	/* The products have an error of one unit. */
	upper.significand--;
	lower.significand++;
	*ret_exponent = -tens_power;
	return generate(value, upper, upper.significand - lower.significand, digits, ret_exponent);
}
