/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one with the fewest calls under way; among equals by weight. The loops have no branches, so
 * that they are done for several places at a time.
 */
#include "cluster/balancer/weights.h"

static size_t room(size_t count)
{
	return spokei_weights_room(count, 0);
}

static void changed(void *memory, const struct spoke_candidates *candidates, bool fresh)
{
	(void)fresh;
	spokei_weights_set(memory, candidates);
}

/* Who has no weight has the most calls under way that there can be. */
static uint32_t load_of(uint32_t actives, uint32_t weight)
{
	return weight == 0 ? UINT32_MAX : actives;
}

static uint32_t fewest(const uint32_t *actives, const uint32_t *weights, size_t count)
{
	uint32_t least = UINT32_MAX;

	for (size_t i = 0; i < count; i++) {
		uint32_t load = load_of(actives[i], weights[i]);

		least = load < least ? load : least;
	}
	return least;
}

/* The weight of all who have so few. */
static uint32_t weight_at(const uint32_t *actives, const uint32_t *weights, size_t count,
			  uint32_t least)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += actives[i] == least ? weights[i] : 0;
	return sum;
}

#define BLOCK 16u

/* As spokei_weights_draw(), among those who have so few; whole blocks of places at a time. */
static size_t draw(const uint32_t *actives, const uint32_t *weights, size_t count, uint32_t least,
		   uint32_t lot)
{
	size_t at = 0;

	for (; at + BLOCK <= count; at += BLOCK) {
		uint32_t sum = weight_at(actives + at, weights + at, BLOCK, least);

		if (lot < sum)
			break;
		lot -= sum;
	}
	for (; at < count; at++) {
		if (actives[at] != least)
			continue;
		if (lot < weights[at])
			return at;
		lot -= weights[at];
	}
	return SPOKE_NOBODY;
}

static size_t pick(void *memory, const struct spoke_candidates *candidates,
		   const struct spoke_choice *choice)
{
	struct spokei_weights *all = memory;
	const uint32_t *weights = spokei_weights_for(all, choice);
	const uint32_t *actives = candidates->actives;
	uint32_t least;
	uint32_t sum;

	least = fewest(actives, weights, all->places);
	sum = weight_at(actives, weights, all->places, least);
	return draw(actives, weights, all->places, least, spokei_dice_below(choice->dice, sum));
}

const struct spoke_balancer spoke_least_active = {
	.name = "leastactive",
	.room = room,
	.changed = changed,
	.pick = pick,
};
