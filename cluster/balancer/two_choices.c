/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the better of two random places, so that the best one is not overrun, and the cost does
 * not grow with their number. The load of each is
 *
 *     mean response time * (calls in flight + 1) / (success rate * weight)
 *
 * without the times if one of the two has no mean. A place that was not chosen for twice the
 * timeout, or never, is chosen, because its figures are old; of two such places the older one.
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

static bool is_stale(const struct spoke_balancer_candidates *candidates,
		     const struct spoke_balancer_choice *choice, size_t place)
{
	uint64_t chosen = candidates->chosen_ns[place];

	return chosen == 0 ||
	       (choice->now_ns > chosen && (choice->now_ns - chosen) / 2 > choice->timeout_ns);
}

/* Rounds, because the exact product may overflow; an estimate is enough. */
static double load_of(const struct spoke_balancer_candidates *candidates, size_t place,
		      uint32_t weight, bool timed)
{
	double calls = (double)candidates->actives[place] + 1;
	double worth = ((double)candidates->successes[place] + 1) * weight;

	return (timed ? (double)candidates->means_ns[place] * calls : calls) / worth;
}

static size_t better_of(const struct spokei_weights *weights,
			const struct spoke_balancer_candidates *candidates,
			const struct spoke_balancer_choice *choice, size_t one, size_t other)
{
	bool one_is_stale = is_stale(candidates, choice, one);
	bool other_is_stale = is_stale(candidates, choice, other);
	bool timed = candidates->means_ns[one] > 0 && candidates->means_ns[other] > 0;

	if (one_is_stale && other_is_stale)
		return candidates->chosen_ns[other] < candidates->chosen_ns[one] ? other : one;
	if (one_is_stale || other_is_stale)
		return one_is_stale ? one : other;
	return load_of(candidates, other, weights->of[other], timed) <
			       load_of(candidates, one, weights->of[one], timed)
		       ? other
		       : one;
}

/* Returns the `index`-th place in `weights`. */
static size_t seek(const struct spokei_weights *all, const uint32_t *weights, uint32_t index)
{
	const uint32_t *places = spokei_weights_places(all);
	uint32_t at = 0;

	if (weights == all->of)
		return places[index];
	for (;; at++)
		if (weights[places[at]] > 0 && index-- == 0)
			return places[at];
}

static uint32_t count_of(const struct spokei_weights *all, const uint32_t *weights)
{
	uint32_t count = 0;

	if (weights == all->of)
		return all->able;
	for (uint32_t i = 0; i < all->places; i++)
		count += weights[i] > 0;
	return count;
}

static size_t pick(void *memory, const struct spoke_balancer_candidates *candidates,
		   const struct spoke_balancer_choice *choice)
{
	struct spokei_weights *all = memory;
	const uint32_t *weights = spokei_weights_for(all, choice);
	uint32_t count = count_of(all, weights);
	uint32_t one;
	uint32_t other;

	if (count == 0)
		return SPOKE_NO_ENDPOINT;
	if (count == 1)
		return seek(all, weights, 0);
	one = (uint32_t)((choice->dice >> 32) * count >> 32);
	other = (uint32_t)((choice->dice & UINT32_MAX) * (count - 1) >> 32);
	if (other >= one)
		other++;
	return better_of(all, candidates, choice, seek(all, weights, one),
			 seek(all, weights, other));
}

const struct spoke_balancer spoke_balancer_two_choices = {
	.name = "twochoices",
	.room = room,
	.changed = changed,
	.pick = pick,
};
