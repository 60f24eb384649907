/* SPDX-License-Identifier: Apache-2.0 */
/* Mixes numbers (splitmix64): for random numbers that may be predictable, and for hashes without a
 * key. Pure. */
#ifndef SPOKEI_CORE_BASE_MIX_H
#define SPOKEI_CORE_BASE_MIX_H

#include <stdint.h>

/* Returns a number of which each bit depends on all bits of this one. Different numbers give
 * different results. */
static inline uint64_t spokei_mix(uint64_t number)
{
	number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
	return number ^ number >> 31;
}

/* Returns the next random number of a generator, whose state may begin with any number. */
static inline uint64_t spokei_mix_next(uint64_t *state)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	return spokei_mix(*state);
}

#endif
