/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded random numbers for property tests: splitmix64, the same on every machine. */
#ifndef TESTS_TRANSPORT_DICE_H
#define TESTS_TRANSPORT_DICE_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t dice_throw(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Returns a number below `count`. */
static inline size_t dice_below(uint64_t *state, size_t count)
{
	return (size_t)(dice_throw(state) % count);
}

#endif
