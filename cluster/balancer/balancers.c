/* SPDX-License-Identifier: Apache-2.0 */
/* The balancers that choose by weight, in the order of <spoke/balancer.h>, and the list of all. */
#include "cluster/balancer/balancers.h"

#include "cluster/balancer/least.h"

#include <string.h>

/* --- weights */

/* Returns the weight of an able place before scaling: 1 if all of them have 0. */
static uint32_t plain_of(const struct spoke_balancer_candidates *candidates, size_t place,
			 bool flat)
{
	if (!candidates->able[place])
		return 0;
	return flat ? 1 : candidates->weights[place];
}

static uint64_t sum_of(const struct spoke_balancer_candidates *candidates)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < candidates->count; i++)
		sum += candidates->able[i] ? candidates->weights[i] : 0;
	return sum;
}

void spokei_weights_set(struct spokei_weights *weights,
			const struct spoke_balancer_candidates *candidates)
{
	uint64_t sum = sum_of(candidates);
	unsigned shift = 0;
	uint32_t *whole;
	uint32_t *who;

	/* Half the maximum, because the rest is rounded up. */
	while (sum >> shift >= SPOKEI_WEIGHTS_MAX / 2)
		shift++;
	*weights = (struct spokei_weights){
		.room = (uint32_t)candidates->room,
		.places = (uint32_t)candidates->count,
		.even = true,
	};
	whole = weights->of + candidates->room;
	who = whole + candidates->room;
	for (size_t i = 0; i < candidates->count; i++) {
		uint32_t plain = plain_of(candidates, i, sum == 0);
		uint32_t weight = plain >> shift;

		if (plain > 0 && weight == 0)
			weight = 1;
		weights->of[i] = whole[i] = weight;
		if (weight == 0)
			continue;
		who[weights->able++] = (uint32_t)i;
		weights->total += weight;
		weights->even = weights->even && weight == weights->of[who[0]];
	}
}

void spokei_weights_show_tried(struct spokei_weights *weights,
			       const struct spoke_balancer_choice *choice)
{
	const uint32_t *whole = weights->of + weights->room;

	for (size_t i = 0; i < choice->tried_count; i++)
		if (choice->tried[i] < weights->places)
			weights->of[choice->tried[i]] = whole[choice->tried[i]];
}

bool spokei_weights_hide_tried(struct spokei_weights *weights,
			       const struct spoke_balancer_choice *choice)
{
	uint32_t left = weights->able;

	for (size_t i = 0; i < choice->tried_count; i++) {
		size_t place = choice->tried[i];

		if (place >= weights->places || weights->of[place] == 0)
			continue;
		weights->of[place] = 0;
		left--;
	}
	if (left == 0)
		spokei_weights_show(weights, choice);
	return left < weights->able && left > 0;
}

/* The memory of a balancer that needs the weights alone. */
static size_t weights_room(size_t count)
{
	return spokei_weights_room(count, 0);
}

static void weights_changed(void *memory, const struct spoke_balancer_candidates *candidates,
			    bool fresh)
{
	(void)fresh;
	spokei_weights_set(memory, candidates);
}

/* --- at random */

/*
 * Chooses by weight: a random number below the sum of all weights, looked up among their running
 * sums.
 */

/* After the weights: the running sums of all places that have a weight. */
static size_t random_room(size_t count)
{
	return spokei_weights_room(count, sizeof(uint32_t));
}

static void random_changed(void *memory, const struct spoke_balancer_candidates *candidates,
			   bool fresh)
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
	uint32_t sum = 0;
	size_t place;

	(void)spokei_weights_hide(weights, choice);
	for (uint32_t i = 0; i < weights->places; i++)
		sum += weights->of[i];
	place = spokei_weights_draw(weights->of, weights->places,
				    spokei_dice_below(choice->dice, sum));
	spokei_weights_show(weights, choice);
	return place;
}

static size_t random_pick(void *memory, const struct spoke_balancer_candidates *candidates,
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
	.room = random_room,
	.changed = random_changed,
	.pick = random_pick,
};

/* --- fewest calls in flight */

/* Chooses the place with the fewest calls in flight, among equals by weight. The memory: the tree,
 * then the weights. */

static size_t least_active_room(size_t count)
{
	return spokei_least_room(1, count);
}

static void keys_of_actives(const struct spoke_balancer_candidates *candidates, size_t from,
			    size_t count, uint64_t *keys)
{
	for (size_t i = 0; i < count; i++)
		keys[i] = candidates->actives[from + i];
}

static struct spokei_least actives_in(void *memory,
				      const struct spoke_balancer_candidates *candidates)
{
	return spokei_least_at(memory, 1, 0, candidates, keys_of_actives);
}

static void least_active_changed(void *memory, const struct spoke_balancer_candidates *candidates,
				 bool fresh)
{
	const struct spokei_least least = actives_in(memory, candidates);

	(void)fresh;
	spokei_weights_set(least.weights, candidates);
	spokei_least_build(&least);
}

static void least_active_moved(void *memory, const struct spoke_balancer_candidates *candidates,
			       size_t place)
{
	const struct spokei_least least = actives_in(memory, candidates);

	spokei_least_update(&least, place);
}

static size_t least_active_pick(void *memory, const struct spoke_balancer_candidates *candidates,
				const struct spoke_balancer_choice *choice)
{
	const struct spokei_least least = actives_in(memory, candidates);

	return spokei_least_pick(&least, NULL, choice);
}

const struct spoke_balancer spoke_balancer_least_active = {
	.name = "leastactive",
	.room = least_active_room,
	.changed = least_active_changed,
	.moved = least_active_moved,
	.pick = least_active_pick,
};

/* --- shortest response */

/*
 * Chooses the smallest product of mean response time and calls in flight (counting the new one),
 * among equals by weight. The speed of a place without a mean is unknown: it gets a call at once,
 * but one call at a time and one per timeout; of several such places the one chosen longest ago.
 * Otherwise it comes after all places with a mean.
 *
 * Means are capped at 9 minutes, calls in flight at 16 million.
 */

#define MEAN_MAX ((UINT64_C(1) << 39) - 1)
#define ACTIVES_MAX ((UINT32_C(1) << 24) - 1)
#define UNKNOWN (UINT64_C(1) << 63) /* larger than any product */

static uint64_t least_of(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

static void keys_of_products(const struct spoke_balancer_candidates *candidates, size_t from,
			     size_t count, uint64_t *keys)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t mean = least_of(candidates->means_ns[from + i], MEAN_MAX);
		uint64_t calls = least_of(candidates->actives[from + i], ACTIVES_MAX);

		keys[i] = mean > 0 ? mean * (calls + 1) : UNKNOWN + calls;
	}
}

/* When the idle places without a mean were chosen. */
static void keys_of_unknown(const struct spoke_balancer_candidates *candidates, size_t from,
			    size_t count, uint64_t *keys)
{
	for (size_t i = 0; i < count; i++) {
		bool known = candidates->means_ns[from + i] > 0 ||
			     candidates->actives[from + i] > 0;

		keys[i] = known ? UINT64_MAX : candidates->chosen_ns[from + i];
	}
}

/* The memory: both trees, then the weights. */
static struct spokei_least products_in(void *memory,
				       const struct spoke_balancer_candidates *candidates)
{
	return spokei_least_at(memory, 2, 0, candidates, keys_of_products);
}

static struct spokei_least unknown_in(void *memory,
				      const struct spoke_balancer_candidates *candidates)
{
	return spokei_least_at(memory, 2, 1, candidates, keys_of_unknown);
}

static size_t shortest_response_room(size_t count)
{
	return spokei_least_room(2, count);
}

static void shortest_response_changed(void *memory,
				      const struct spoke_balancer_candidates *candidates,
				      bool fresh)
{
	const struct spokei_least products = products_in(memory, candidates);
	const struct spokei_least unknown = unknown_in(memory, candidates);

	(void)fresh;
	spokei_weights_set(products.weights, candidates);
	spokei_least_build(&products);
	spokei_least_build(&unknown);
}

static void shortest_response_moved(void *memory,
				    const struct spoke_balancer_candidates *candidates,
				    size_t place)
{
	const struct spokei_least products = products_in(memory, candidates);
	const struct spokei_least unknown = unknown_in(memory, candidates);

	spokei_least_update(&products, place);
	spokei_least_update(&unknown, place);
}

static bool is_due(uint64_t chosen_ns, const struct spoke_balancer_choice *choice)
{
	return chosen_ns == 0 ||
	       (choice->now_ns > chosen_ns && choice->now_ns - chosen_ns >= choice->timeout_ns);
}

static size_t shortest_response_pick(void *memory,
				     const struct spoke_balancer_candidates *candidates,
				     const struct spoke_balancer_choice *choice)
{
	const struct spokei_least products = products_in(memory, candidates);
	const struct spokei_least unknown = unknown_in(memory, candidates);
	size_t place = spokei_least_pick(&unknown, is_due, choice);

	return place != SPOKE_NO_ENDPOINT ? place : spokei_least_pick(&products, NULL, choice);
}

const struct spoke_balancer spoke_balancer_shortest_response = {
	.name = "shortestresponse",
	.room = shortest_response_room,
	.changed = shortest_response_changed,
	.moved = shortest_response_moved,
	.pick = shortest_response_pick,
};

/* --- two choices */

/*
 * Chooses the better of two random places, so that the best one is not overrun, and the cost does
 * not grow with their number. The load of each is
 *
 *     mean response time * (calls in flight + 1) / (success rate * weight)
 *
 * without the times if one of the two has no mean. A place that was not chosen for twice the
 * timeout, or never, is chosen, because its figures are old; of two such places the older one.
 */

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

/* Returns the `index`-th place that has a weight; `hidden`: some places are. */
static size_t seek(const struct spokei_weights *weights, bool hidden, uint32_t index)
{
	const uint32_t *places = spokei_weights_places(weights);
	uint32_t at = 0;

	if (!hidden)
		return places[index];
	for (;; at++)
		if (weights->of[places[at]] > 0 && index-- == 0)
			return places[at];
}

static uint32_t count_of(const struct spokei_weights *weights, bool hidden)
{
	uint32_t count = 0;

	if (!hidden)
		return weights->able;
	for (uint32_t i = 0; i < weights->places; i++)
		count += weights->of[i] > 0;
	return count;
}

static size_t choose_of_two(const struct spokei_weights *weights, bool hidden,
			    const struct spoke_balancer_candidates *candidates,
			    const struct spoke_balancer_choice *choice)
{
	uint32_t count = count_of(weights, hidden);
	uint32_t one;
	uint32_t other;

	if (count == 0)
		return SPOKE_NO_ENDPOINT;
	if (count == 1)
		return seek(weights, hidden, 0);
	one = (uint32_t)((choice->dice >> 32) * count >> 32);
	other = (uint32_t)((choice->dice & UINT32_MAX) * (count - 1) >> 32);
	if (other >= one)
		other++;
	return better_of(weights, candidates, choice, seek(weights, hidden, one),
			 seek(weights, hidden, other));
}

static size_t two_choices_pick(void *memory, const struct spoke_balancer_candidates *candidates,
			       const struct spoke_balancer_choice *choice)
{
	struct spokei_weights *weights = memory;
	bool hidden = spokei_weights_hide(weights, choice);
	size_t place = choose_of_two(weights, hidden, candidates, choice);

	spokei_weights_show(weights, choice);
	return place;
}

const struct spoke_balancer spoke_balancer_two_choices = {
	.name = "twochoices",
	.room = weights_room,
	.changed = weights_changed,
	.pick = two_choices_pick,
};

/* --- all */

/* One without a declaration in the header is written here: &(const struct spoke_balancer){ ... }.
 */
const struct spoke_balancer *const spokei_balancers[] = {
	&spoke_balancer_random,
	&spoke_balancer_round_robin,
	&spoke_balancer_least_active,
	&spoke_balancer_consistent_hash,
	&spoke_balancer_shortest_response,
	&spoke_balancer_two_choices,
	NULL,
};

const struct spoke_balancer *spoke_balancer_find(const char *name)
{
	for (unsigned i = 0; name && spokei_balancers[i]; i++)
		if (strcmp(spokei_balancers[i]->name, name) == 0)
			return spokei_balancers[i];
	return NULL;
}
