/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers of the simulator: a generator with a seed; the same seed gives the same sequence.
 */
#ifndef TESTS_SIM_DICE_H
#define TESTS_SIM_DICE_H

#include <stdbool.h>
#include <stdint.h>

struct sim_dice {
	uint64_t state;
};

struct sim_dice sim_dice_make(uint64_t seed);

uint64_t sim_throw(struct sim_dice *dice);

/* Returns a number from `least` to `most`, uniformly distributed. */
uint64_t sim_between(struct sim_dice *dice, uint64_t least, uint64_t most);

/* Returns a number from `least` to `most`, each order of magnitude equally likely; least > 0. */
uint64_t sim_magnitude(struct sim_dice *dice, uint64_t least, uint64_t most);

bool sim_chance(struct sim_dice *dice, unsigned permille);

#endif
