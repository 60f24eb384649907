/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The random numbers of the benchmark: splitmix64, so that every peer and every run gets the same
 * sequence. Its outputs do not depend on each other, unlike those of a xorshift. The processor
 * computes the next ones during a timer operation, so their cost is not part of the measurement.
 */
#ifndef BENCH_DICE_H
#define BENCH_DICE_H

#include <stdint.h>

#define DICE_SEED UINT64_C(1)

struct dice {
	uint64_t state;
};

/* Returns 64 random bits. */
static inline uint64_t dice_roll(struct dice *dice)
{
	uint64_t word = dice->state += UINT64_C(0x9e3779b97f4a7c15);

	word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
	return word ^ word >> 31;
}

/* Maps 32 random bits to 0 .. bound - 1 without a division. */
static inline uint32_t dice_below(uint32_t word, uint32_t bound)
{
	return (uint32_t)(((uint64_t)word * bound) >> 32);
}

#endif
