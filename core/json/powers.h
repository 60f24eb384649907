/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Powers of ten to 128 bits, for the conversion between doubles and decimals: 10^q is at least
 * g x 2^(e - 127) and less than (g + 1) x 2^(e - 127), where g is the row of q in the table, with
 * its highest bit set, and e is the logarithm of 10^q to base 2, rounded down. Pure.
 */
#ifndef SPOKEI_CORE_JSON_POWERS_H
#define SPOKEI_CORE_JSON_POWERS_H

#include <stdbool.h>
#include <stdint.h>

#define SPOKEI_POWER_MIN (-342)
#define SPOKEI_POWER_MAX 324

extern const uint64_t spokei_powers[SPOKEI_POWER_MAX - SPOKEI_POWER_MIN + 1][2];

/* Returns the exponent of two, e, of a power of ten within the table. */
static inline int spokei_power_log2(int power)
{
	return (power * 217706) >> 16;
}

/* Is this power of ten g x 2^(e - 127) exactly? */
static inline bool spokei_power_is_exact(int power)
{
	return power >= 0 && power <= 55;
}

struct spokei_product {
	uint64_t high;
	uint64_t low;
};

/* Multiplies to 128 bits. */
#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 spokei_wide;

static inline struct spokei_product spokei_multiply(uint64_t a, uint64_t b)
{
	spokei_wide product = (spokei_wide)a * b;

	return (struct spokei_product){ (uint64_t)(product >> 64), (uint64_t)product };
}
#else
static inline struct spokei_product spokei_multiply(uint64_t a, uint64_t b)
{
	uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX);
	uint64_t left = (a >> 32) * (b & UINT32_MAX);
	uint64_t right = (a & UINT32_MAX) * (b >> 32);
	uint64_t middle = (low >> 32) + (left & UINT32_MAX) + (right & UINT32_MAX);

	return (struct spokei_product){ (a >> 32) * (b >> 32) + (left >> 32) + (right >> 32) +
						(middle >> 32),
					middle << 32 | (low & UINT32_MAX) };
}
#endif

/* Multiplies a power of ten, i.e. its row of the table, by `number`. Returns the upper 128 bits of
 * 192. */
static inline struct spokei_product spokei_power_times(const uint64_t power[2], uint64_t number)
{
	struct spokei_product upper = spokei_multiply(power[0], number);
	struct spokei_product lower = spokei_multiply(power[1], number);

	upper.low += lower.high;
	upper.high += upper.low < lower.high;
	return upper;
}

#endif
