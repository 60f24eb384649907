/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded random numbers (splitmix64), the same in every run. */
#ifndef TESTS_CLUSTER_DICE_H
#define TESTS_CLUSTER_DICE_H

#include <stdint.h>

/* Returns 64 random bits. */
static inline uint64_t dice_roll(uint64_t *seed)
{
	uint64_t word = *seed += UINT64_C(0x9e3779b97f4a7c15);

	word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
	return word ^ word >> 31;
}

#endif
