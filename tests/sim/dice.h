/* SPDX-License-Identifier: Apache-2.0 */
/* The dice of a plan and of a world: the same seed throws the same. */
#ifndef TESTS_SIM_DICE_H
#define TESTS_SIM_DICE_H

#include <stdbool.h>
#include <stdint.h>

struct sim_dice {
	uint64_t state;
};

struct sim_dice sim_dice_make(uint64_t seed);

uint64_t sim_throw(struct sim_dice *dice);

/* From `least` to `most`, all equally likely. */
uint64_t sim_between(struct sim_dice *dice, uint64_t least, uint64_t most);

/* The same, each order of magnitude equally likely; least > 0. */
uint64_t sim_magnitude(struct sim_dice *dice, uint64_t least, uint64_t most);

bool sim_chance(struct sim_dice *dice, unsigned permille);

#endif
