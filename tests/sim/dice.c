/* SPDX-License-Identifier: Apache-2.0 */
/* The random generator of the simulator: SplitMix64. */
#include "tests/sim/dice.h"

#include "core/base/mix.h"

struct sim_dice sim_dice_make(uint64_t seed)
{
	return (struct sim_dice){ seed * UINT64_C(0xd1342543de82ef95) + 1 };
}

uint64_t sim_throw(struct sim_dice *dice)
{
	return spokei_mix_next(&dice->state);
}

uint64_t sim_between(struct sim_dice *dice, uint64_t least, uint64_t most)
{
	return least + sim_throw(dice) % (most - least + 1);
}

uint64_t sim_magnitude(struct sim_dice *dice, uint64_t least, uint64_t most)
{
	unsigned doublings = 0;
	uint64_t low;
	uint64_t high;

	while (least << doublings < most)
		doublings++;
	low = least << sim_between(dice, 0, doublings ? doublings - 1 : 0);
	high = 2 * low < most ? 2 * low : most;
	return sim_between(dice, low, high);
}

bool sim_chance(struct sim_dice *dice, unsigned permille)
{
	return sim_throw(dice) % 1000 < permille;
}
