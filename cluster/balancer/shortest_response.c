/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the smallest product of mean response time and calls in flight (counting the new one),
 * among equals by weight. The speed of a place without a mean is unknown: it gets a call at once,
 * but one call at a time and one per timeout. Otherwise it comes after all places with a mean.
 *
 * Means are capped at 9 minutes, calls in flight at 16 million.
 */
#include "cluster/balancer/weights.h"

#define MEAN_MAX ((UINT64_C(1) << 39) - 1)
#define ACTIVES_MAX ((UINT32_C(1) << 24) - 1)
#define UNKNOWN (UINT64_C(1) << 63) /* larger than any product */

/* The memory: a product per place, computed for each choice; then the weights. */
static struct spokei_weights *weights_of(void *memory, size_t count)
{
	return (void *)((uint64_t *)memory + count);
}

static size_t room(size_t count)
{
	return spokei_weights_room(count, sizeof(uint64_t));
}

static void changed(void *memory, const struct spoke_balancer_candidates *candidates, bool fresh)
{
	(void)fresh;
	spokei_weights_set(weights_of(memory, candidates->count), candidates);
}

static uint64_t product_of_unknown(const struct spoke_balancer_candidates *candidates,
				   const struct spoke_balancer_choice *choice, size_t place)
{
	uint64_t chosen = candidates->chosen_ns[place];
	uint64_t since = choice->now_ns > chosen ? choice->now_ns - chosen : 0;

	if (candidates->actives[place] == 0 && (chosen == 0 || since >= choice->timeout_ns))
		return 0;
	return UNKNOWN + candidates->actives[place];
}

/* Returns the smallest product of the weighted places; UINT64_MAX if there is none. */
static uint64_t multiply(uint64_t *restrict products,
			 const struct spoke_balancer_candidates *candidates,
			 const struct spoke_balancer_choice *choice,
			 const uint32_t *restrict weights)
{
	const uint64_t *means = candidates->means_ns;
	const uint32_t *actives = candidates->actives;
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < candidates->count; i++) {
		uint64_t mean = means[i] < MEAN_MAX ? means[i] : MEAN_MAX;
		uint64_t calls = (actives[i] < ACTIVES_MAX ? actives[i] : ACTIVES_MAX) + 1;
		uint64_t product = mean * calls;

		if (mean == 0)
			product = product_of_unknown(candidates, choice, i);
		product |= weights[i] == 0 ? UINT64_MAX : 0;
		products[i] = product;
		least = product < least ? product : least;
	}
	return least;
}

/*
 * The common case in one short loop: all places have a mean, one product is the smallest, and its
 * factors are in range. Else returns SPOKE_NO_ENDPOINT. `first` and `last` are the first and the
 * last place with the smallest product. A product that wraps is harmless: the true one would be
 * larger, and if the wrapped one is the smallest, its factors show that.
 */
static size_t pick_usual(const struct spokei_weights *weights,
			 const struct spoke_balancer_candidates *candidates)
{
	const uint32_t *places = spokei_weights_places(weights);
	const uint64_t *means = candidates->means_ns;
	const uint32_t *actives = candidates->actives;
	uint64_t least = UINT64_MAX;
	size_t first = 0;
	size_t last = 0;

	for (uint32_t i = 0; i < weights->able; i++) {
		size_t place = places[i];
		uint64_t product = means[place] * ((uint64_t)actives[place] + 1);

		if (product > least)
			continue;
		first = product < least ? place : first;
		last = place;
		least = product;
	}
	if (first != last || least == 0 || weights->able == 0 || means[first] > MEAN_MAX ||
	    actives[first] > ACTIVES_MAX)
		return SPOKE_NO_ENDPOINT;
	return first;
}

/* Chooses by weight among the places with the smallest product, nearly always one. */
static size_t draw(const uint64_t *products, const uint32_t *weights, size_t count, uint64_t least,
		   uint64_t dice)
{
	uint32_t sum = 0;
	uint32_t lot;

	for (size_t i = 0; i < count; i++)
		sum += products[i] == least ? weights[i] : 0;
	lot = spokei_dice_below(dice, sum);
	for (size_t i = 0; i < count; i++) {
		if (products[i] != least)
			continue;
		if (lot < weights[i])
			return i;
		lot -= weights[i];
	}
	return SPOKE_NO_ENDPOINT;
}

static size_t pick(void *memory, const struct spoke_balancer_candidates *candidates,
		   const struct spoke_balancer_choice *choice)
{
	struct spokei_weights *all = weights_of(memory, candidates->count);
	const uint32_t *weights = spokei_weights_for(all, choice);
	size_t place = weights == all->of ? pick_usual(all, candidates) : SPOKE_NO_ENDPOINT;

	if (place == SPOKE_NO_ENDPOINT) {
		uint64_t least = multiply(memory, candidates, choice, weights);

		place = draw(memory, weights, candidates->count, least, choice->dice);
	}
	return place;
}

const struct spoke_balancer spoke_balancer_shortest_response = {
	.name = "shortestresponse",
	.room = room,
	.changed = changed,
	.pick = pick,
};
