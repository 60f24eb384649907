/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the decimal of the fewest digits that is within the interval of a double, and of several
 * the nearest one, by Giulietti's Schubfach ("The Schubfach way to render doubles", 2021). The
 * number and the borders of its interval are multiplied by a power of ten, so that the interval
 * contains one to twenty integers; the candidates are the integers and the multiples of ten next to
 * the number.
 */
#include "core/json/digits.h"

#include "core/json/powers.h"

#include <stdbool.h>
#include <string.h>

#define FRACTION_BITS 52
#define HIDDEN (UINT64_C(1) << FRACTION_BITS)
#define BIAS (1023 + FRACTION_BITS)

/* 10^exponent x significand */
struct decimal {
	uint64_t significand;
	int exponent;
};

/* Multiplies by a power of ten, and drops the lower 128 bits; the lowest bit that stays is set if
 * they are not zero, so that comparisons with multiples of two are exact. */
static uint64_t scale(const uint64_t power[2], uint64_t number)
{
	struct spokei_product product = spokei_power_times(power, number);

	return product.high | (product.low > 1);
}

/* Returns the exponent of ten of the unit of the integers: the logarithm of the interval's width,
 * rounded down. Below a power of two the gap is half as wide. */
static int unit_of(int exponent, bool is_narrow)
{
	return is_narrow ? (exponent * 315653 - 131237) >> 20 : (exponent * 315653) >> 20;
}

static struct decimal shorten(uint64_t significand, int exponent, bool is_narrow)
{
	int unit = unit_of(exponent, is_narrow);
	int shift = exponent + ((-unit * 217707) >> 16) + 1;
	const uint64_t *row = spokei_powers[-unit - SPOKEI_POWER_MIN];
	uint64_t power[2] = { row[0], row[1] };
	uint64_t odd = significand & 1; /* the borders belong to an even number only */
	uint64_t lower;
	uint64_t upper;
	uint64_t number;
	uint64_t whole;
	bool is_low;
	bool is_high;

	/* The algorithm needs powers that are rounded up. */
	if (!spokei_power_is_exact(-unit) && ++power[1] == 0)
		power[0]++;
	lower = scale(power, (4 * significand - 2 + is_narrow) << shift) + odd;
	number = scale(power, (4 * significand) << shift);
	upper = scale(power, (4 * significand + 2) << shift) - odd;
	whole = number / 4;
	if (whole >= 10) {
		uint64_t tens = whole / 10;

		is_low = lower <= 40 * tens;
		is_high = 40 * tens + 40 <= upper;
		if (is_low != is_high)
			return (struct decimal){ tens + is_high, unit + 1 };
	}
	is_low = lower <= 4 * whole;
	is_high = 4 * whole + 4 <= upper;
	if (is_low != is_high)
		return (struct decimal){ whole + is_high, unit };
	/* Both or neither: the nearer one, and of two the even one. */
	is_high = number > 4 * whole + 2 || (number == 4 * whole + 2 && whole % 2 != 0);
	return (struct decimal){ whole + is_high, unit };
}

/* Removes zeros at the end of the significand, this many at a time. */
static void strip(struct decimal *decimal, uint64_t divisor, int zeros)
{
	while (decimal->significand % divisor == 0) {
		decimal->significand /= divisor;
		decimal->exponent += zeros;
	}
}

uint64_t spokei_decimal_of(double number, int *ret_exponent)
{
	struct decimal decimal;
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
	*ret_exponent = decimal.exponent;
	return decimal.significand;
}
