/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scaled weights of the candidates, at the beginning of every balancer's memory: computed when
 * something has changed, read at each choice. The memory is the caller's. On the engine's
 * thread.
 */
#ifndef SPOKEI_CLUSTER_BALANCER_WEIGHTS_H
#define SPOKEI_CLUSTER_BALANCER_WEIGHTS_H

#include <spoke/balancer.h>

#define SPOKEI_PLACES_MAX ((size_t)1 << 20)
#define SPOKEI_WEIGHTS_MAX (UINT32_C(1) << 30) /* limit of their sum */

struct spokei_weights {
	uint32_t room;   /* places that there is memory for */
	uint32_t places; /* candidates */
	uint32_t able;   /* places with a weight above 0 */
	uint32_t total;  /* sum of all weights */
	bool even;       /* all weights above 0 are equal */
	/*
	 * For each place its weight: 0 if it is not able, or has none while others have. If none
	 * has a weight, all are equal. Large weights are scaled down, but not to 0. Then a copy,
	 * from which hidden weights return, and the places with a weight, in order.
	 */
	uint32_t of[];
};

/* Returns the bytes for `count` places, with `each` more per place after them; SIZE_MAX: too
 * many. */
static inline size_t spokei_weights_room(size_t count, size_t each)
{
	if (count > SPOKEI_PLACES_MAX)
		return SIZE_MAX;
	return sizeof(struct spokei_weights) + count * (3 * sizeof(uint32_t) + each);
}

static inline const uint32_t *spokei_weights_places(const struct spokei_weights *weights)
{
	return weights->of + 2 * (size_t)weights->room;
}

/* Returns the balancer's own memory after the weights, aligned to 32 bits. */
static inline void *spokei_weights_behind(struct spokei_weights *weights)
{
	return weights->of + 3 * (size_t)weights->room;
}

void spokei_weights_set(struct spokei_weights *weights,
			const struct spoke_balancer_candidates *candidates);

/* The rare cases of the next two. */
bool spokei_weights_hide_tried(struct spokei_weights *weights,
			       const struct spoke_balancer_choice *choice);
void spokei_weights_show_tried(struct spokei_weights *weights,
			       const struct spoke_balancer_choice *choice);

/* Takes the weights of the places that a call has tried, unless no other place has one, until
 * spokei_weights_show(). Returns whether some have lost theirs. */
static inline bool spokei_weights_hide(struct spokei_weights *weights,
				       const struct spoke_balancer_choice *choice)
{
	return choice->tried_count > 0 && spokei_weights_hide_tried(weights, choice);
}

static inline void spokei_weights_show(struct spokei_weights *weights,
				       const struct spoke_balancer_choice *choice)
{
	if (choice->tried_count > 0)
		spokei_weights_show_tried(weights, choice);
}

/* Maps 64 random bits to a uniform number in 0 .. bound - 1, without a division. */
static inline uint32_t spokei_dice_below(uint64_t dice, uint32_t bound)
{
	uint64_t high = (dice >> 32) * bound;
	uint64_t low = (dice & UINT32_MAX) * bound;

	return (uint32_t)((high + (low >> 32)) >> 32);
}

/*
 * Returns the place, among the first `count`, at which the running sum of weights passes `lot`;
 * SPOKE_NO_ENDPOINT if it never does.
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
