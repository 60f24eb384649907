/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the place with the fewest calls in flight, among equals by weight. The loops have no
 * branches that depend on data, because branch prediction would fail.
 */
#include "cluster/balancer/weights.h"

static size_t room(size_t count)
{
	return spokei_weights_room(count, 0);
}

static void changed(void *memory, const struct spoke_balancer_candidates *candidates, bool fresh)
{
	(void)fresh;
	spokei_weights_set(memory, candidates);
}

/* Returns all bits set if the condition is true. */
static uint32_t mask_if(bool is_so)
{
	return 0 - (uint32_t)is_so;
}

/* Returns the fewest calls in flight at any place with a weight. */
static uint32_t fewest(const uint32_t *actives, const uint32_t *weights, size_t count)
{
	uint32_t least = UINT32_MAX;

	for (size_t i = 0; i < count; i++) {
		uint32_t load = actives[i] | mask_if(weights[i] == 0);

		least = load < least ? load : least;
	}
	return least;
}

/* Returns the sum of the weights of all places with this many calls. */
static uint32_t weight_at(const uint32_t *actives, const uint32_t *weights, size_t count,
			  uint32_t least)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += weights[i] & mask_if(actives[i] == least);
	return sum;
}

/* Block size for which compilers generate vector code. */
#define BLOCK 20u

/* Returns how many places come before the one at which the sum of weights passes `lot`. */
static size_t count_before(const uint32_t *actives, const uint32_t *weights, size_t count,
			   uint32_t least, uint32_t lot)
{
	uint32_t sum = 0;
	size_t before = 0;

	for (size_t i = 0; i < count; i++) {
		sum += weights[i] & mask_if(actives[i] == least);
		before += sum <= lot;
	}
	return before;
}

/* Same as spokei_weights_draw(), among the places with this many calls. Skips whole blocks. */
static size_t draw(const uint32_t *actives, const uint32_t *weights, size_t count, uint32_t least,
		   uint32_t lot)
{
	size_t at = 0;

	for (; at + BLOCK <= count; at += BLOCK) {
		uint32_t sum = weight_at(actives + at, weights + at, BLOCK, least);

		if (lot < sum)
			return at + count_before(actives + at, weights + at, BLOCK, least, lot);
		lot -= sum;
	}
	at += count_before(actives + at, weights + at, count - at, least, lot);
	return at < count ? at : SPOKE_NO_ENDPOINT;
}

static size_t pick(void *memory, const struct spoke_balancer_candidates *candidates,
		   const struct spoke_balancer_choice *choice)
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

const struct spoke_balancer spoke_balancer_least_active = {
	.name = "leastactive",
	.room = room,
	.changed = changed,
	.pick = pick,
};
