/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may be chosen, and how often, as every balancer has it at the beginning of its memory: made
 * when something has changed, read at each choice. Memory is the caller's, and may be moved. On the
 * engine's thread.
 */
#ifndef SPOKEI_CLUSTER_BALANCER_WEIGHTS_H
#define SPOKEI_CLUSTER_BALANCER_WEIGHTS_H

#include <spoke/balancer.h>

#define SPOKEI_PLACES_MAX ((size_t)1 << 20)
#define SPOKEI_WEIGHTS_MAX (UINT32_C(1) << 30) /* what all of them are less than together */

struct spokei_weights {
	uint32_t places;
	uint32_t able;  /* places that have a weight */
	uint32_t total; /* of all weights */
	bool even;      /* those that have one have the same */
	/*
	 * For each place its weight: 0 for who is not able, or has none while others have. If none
	 * has, all are equal. Large ones are made smaller, but not 0. Then room for a copy, and the
	 * places that have a weight, in order.
	 */
	uint32_t of[];
};

/* Bytes for so many places, with `each` more for every place behind it; SIZE_MAX: too many. */
static inline size_t spokei_weights_room(size_t count, size_t each)
{
	if (count > SPOKEI_PLACES_MAX)
		return SIZE_MAX;
	return sizeof(struct spokei_weights) + count * (3 * sizeof(uint32_t) + each);
}

static inline const uint32_t *spokei_weights_who(const struct spokei_weights *weights)
{
	return weights->of + 2 * (size_t)weights->places;
}

/* What a balancer has behind the weights, as numbers of 32 bits. */
static inline void *spokei_weights_behind(struct spokei_weights *weights)
{
	return weights->of + 3 * (size_t)weights->places;
}

void spokei_weights_set(struct spokei_weights *weights,
			const struct spoke_balancer_candidates *candidates);

/*
 * The weights that count for a choice: those of places the call was not at yet, if there are any;
 * the others have 0. Valid until the next choice. The rare case of spokei_weights_for().
 */
const uint32_t *spokei_weights_untried(struct spokei_weights *weights,
				       const struct spoke_balancer_choice *choice);

static inline const uint32_t *spokei_weights_for(struct spokei_weights *weights,
						 const struct spoke_balancer_choice *choice)
{
	return choice->tried_count == 0 ? weights->of : spokei_weights_untried(weights, choice);
}

/* 64 random bits as an even number of 0 .. bound - 1, without a division. */
static inline uint32_t spokei_dice_below(uint64_t dice, uint32_t bound)
{
	uint64_t high = (dice >> 32) * bound;
	uint64_t low = (dice & UINT32_MAX) * bound;

	return (uint32_t)((high + (low >> 32)) >> 32);
}

/*
 * Among the first `count` places the one at which the sum of weights, each from its place on,
 * passes `lot`; SPOKE_NO_ENDPOINT if it never does.
 */
static inline size_t spokei_weights_draw(const uint32_t *weights, size_t count, uint32_t lot)
{
	for (size_t i = 0; i < count; i++) {
		if (lot < weights[i])
			return i;
		lot -= weights[i];
	}
	return SPOKE_NO_ENDPOINT;
}

#endif
