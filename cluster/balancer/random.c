/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses by weight: a random number below the sum of all weights, looked up among their running
 * sums.
 */
#include "cluster/balancer/weights.h"

/* After the weights: the running sums of all places that have a weight. */
static size_t room(size_t count)
{
	return spokei_weights_room(count, sizeof(uint32_t));
}

static void changed(void *memory, const struct spoke_balancer_candidates *candidates, bool fresh)
{
	struct spokei_weights *weights = memory;
	const uint32_t *places;
	uint32_t *sums;
	uint32_t sum = 0;

	(void)fresh;
	spokei_weights_set(weights, candidates);
	places = spokei_weights_places(weights);
	sums = spokei_weights_behind(weights);
	for (uint32_t i = 0; i < weights->able; i++)
		sums[i] = sum += weights->of[places[i]];
}

/* Returns how many of the sums are not above `lot`. There is at least one sum. Without
 * branches. */
static uint32_t look_up(const uint32_t *sums, uint32_t count, uint32_t lot)
{
	const uint32_t *from = sums;

	while (count > 1) {
		uint32_t half = count / 2;

		from += from[half - 1] <= lot ? half : 0;
		count -= half;
	}
	return (uint32_t)(from - sums);
}

static size_t pick_untried(struct spokei_weights *weights,
			   const struct spoke_balancer_choice *choice)
{
	const uint32_t *rest = spokei_weights_untried(weights, choice);
	uint32_t sum = 0;

	for (uint32_t i = 0; i < weights->places; i++)
		sum += rest[i];
	return spokei_weights_draw(rest, weights->places, spokei_dice_below(choice->dice, sum));
}

static size_t pick(void *memory, const struct spoke_balancer_candidates *candidates,
		   const struct spoke_balancer_choice *choice)
{
	struct spokei_weights *weights = memory;
	uint32_t at;

	(void)candidates;
	if (weights->able == 0)
		return SPOKE_NO_ENDPOINT;
	if (choice->tried_count > 0)
		return pick_untried(weights, choice);
	if (weights->even)
		at = spokei_dice_below(choice->dice, weights->able);
	else
		at = look_up(spokei_weights_behind(weights), weights->able,
			     spokei_dice_below(choice->dice, weights->total));
	return spokei_weights_places(weights)[at];
}

const struct spoke_balancer spoke_balancer_random = {
	.name = "random",
	.room = room,
	.changed = changed,
	.pick = pick,
};
