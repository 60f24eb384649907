/* SPDX-License-Identifier: Apache-2.0 */
/* The balancers that choose by weight, in the order of <spoke/balancer.h>, and the list of all. */
#include "cluster/balancer/balancers.h"

#include "cluster/balancer/weights.h"

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
	uint32_t *who;

	/* Half the maximum, because the rest is rounded up. */
	while (sum >> shift >= SPOKEI_WEIGHTS_MAX / 2)
		shift++;
	*weights = (struct spokei_weights){
		.places = (uint32_t)candidates->count,
		.even = true,
	};
	who = weights->of + 2 * candidates->count;
	for (size_t i = 0; i < candidates->count; i++) {
		uint32_t plain = plain_of(candidates, i, sum == 0);
		uint32_t weight = plain >> shift;

		if (plain > 0 && weight == 0)
			weight = 1;
		weights->of[i] = weight;
		if (weight == 0)
			continue;
		who[weights->able++] = (uint32_t)i;
		weights->total += weight;
		weights->even = weights->even && weight == weights->of[who[0]];
	}
}

const uint32_t *spokei_weights_untried(struct spokei_weights *weights,
				       const struct spoke_balancer_choice *choice)
{
	uint32_t *rest = weights->of + weights->places;
	uint32_t left = weights->able;

	memcpy(rest, weights->of, weights->places * sizeof(*rest));
	for (size_t i = 0; i < choice->tried_count; i++) {
		size_t place = choice->tried[i];

		if (place >= weights->places || rest[place] == 0)
			continue;
		rest[place] = 0;
		left--;
	}
	return left > 0 ? rest : weights->of;
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
	const uint32_t *rest = spokei_weights_untried(weights, choice);
	uint32_t sum = 0;

	for (uint32_t i = 0; i < weights->places; i++)
		sum += rest[i];
	return spokei_weights_draw(rest, weights->places, spokei_dice_below(choice->dice, sum));
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

/* --- in turn */

/*
 * Chooses each place in turn, in proportion to its weight, evenly mixed: every account gains its
 * weight, the first place with the largest account is chosen and pays the sum of all weights.
 * With equal weights that is plain round robin, and needs no accounts.
 *
 * A place that returns starts with an empty account. The remaining places keep theirs, minus the
 * common part, so that a new place is neither preferred nor delayed.
 */

#define ABSENT INT32_MIN /* the account of a place without a weight: never the largest */

/* The balancer's memory after the weights. */
struct turns {
	uint32_t next; /* with equal weights: the turn, as an index into the list of weighted places
			*/
	uint32_t after;  /* the place chosen last, plus 1; 0: none yet */
	int32_t funds[]; /* one account per place; all 0 while weights are equal */
};

static size_t round_robin_room(size_t count)
{
	size_t size = spokei_weights_room(count, sizeof(int32_t));

	return size == SIZE_MAX ? size : size + sizeof(struct turns);
}

/* Returns the average account of the places that were there before. */
static int64_t average(const struct spokei_weights *weights, const struct turns *turns)
{
	int64_t sum = 0;
	int64_t count = 0;

	for (uint32_t i = 0; i < weights->places; i++) {
		if (weights->of[i] == 0 || turns->funds[i] == ABSENT)
			continue;
		sum += turns->funds[i];
		count++;
	}
	return count > 0 ? sum / count : 0;
}

static int32_t settled(const struct spokei_weights *weights, int32_t funds, int64_t common)
{
	int64_t rest = funds == ABSENT ? 0 : funds - common;
	int64_t most = weights->total;

	return (int32_t)(rest > most ? most : rest < -most ? -most : rest);
}

static void round_robin_changed(void *memory, const struct spoke_balancer_candidates *candidates,
				bool fresh)
{
	struct spokei_weights *weights = memory;
	const uint32_t *places;
	struct turns *turns;
	int64_t common;

	(void)fresh;
	spokei_weights_set(weights, candidates);
	turns = spokei_weights_behind(weights);
	common = average(weights, turns);
	for (uint32_t i = 0; i < weights->places; i++) {
		if (weights->even)
			turns->funds[i] = 0;
		else if (weights->of[i] == 0)
			turns->funds[i] = ABSENT;
		else
			turns->funds[i] = settled(weights, turns->funds[i], common);
	}
	places = spokei_weights_places(weights);
	turns->next = 0;
	while (turns->next < weights->able && places[turns->next] < turns->after)
		turns->next++;
}

/* Plain round robin; skips places without a weight in `weights`. */
static size_t pick_next(struct spokei_weights *all, struct turns *turns, const uint32_t *weights)
{
	const uint32_t *places = spokei_weights_places(all);

	for (uint32_t i = 0; i < all->able; i++) {
		uint32_t at = turns->next < all->able ? turns->next : 0;

		turns->next = at + 1;
		if (weights[places[at]] > 0)
			return places[at];
	}
	return SPOKE_NO_ENDPOINT;
}

/* Adds the weights to the accounts. Returns the largest account. */
static int32_t gain(int32_t *restrict funds, const uint32_t *restrict weights, size_t count)
{
	int32_t most = ABSENT;

	for (size_t i = 0; i < count; i++) {
		int32_t mine = funds[i] + (int32_t)weights[i];

		funds[i] = mine;
		most = mine > most ? mine : most;
	}
	return most;
}

#define ACCOUNTS 16u

/* Returns the first place with this account. There is one. */
static size_t find_account(const int32_t *funds, size_t count, int32_t most)
{
	size_t at = 0;

	for (; at + ACCOUNTS <= count; at += ACCOUNTS) {
		int32_t hits = 0;

		for (size_t i = 0; i < ACCOUNTS; i++)
			hits |= funds[at + i] == most;
		if (hits)
			break;
	}
	while (at < count && funds[at] != most)
		at++;
	return at < count ? at : SPOKE_NO_ENDPOINT;
}

/* Chooses the place with the largest account among those in `weights`, of which there is at
 * least one. */
static size_t find_among(const int32_t *funds, size_t count, const uint32_t *weights)
{
	size_t best = SPOKE_NO_ENDPOINT;

	for (size_t i = 0; i < count; i++)
		if (weights[i] > 0 && (best == SPOKE_NO_ENDPOINT || funds[i] > funds[best]))
			best = i;
	return best;
}

static size_t round_robin_pick(void *memory, const struct spoke_balancer_candidates *candidates,
			       const struct spoke_balancer_choice *choice)
{
	struct spokei_weights *all = memory;
	struct turns *turns = spokei_weights_behind(all);
	const uint32_t *weights = spokei_weights_for(all, choice);
	int32_t most;
	size_t place;

	(void)candidates;
	if (all->able == 0)
		return SPOKE_NO_ENDPOINT;
	if (all->even) {
		place = pick_next(all, turns, weights);
	} else {
		most = gain(turns->funds, all->of, all->places);
		place = weights == all->of ? find_account(turns->funds, all->places, most)
					   : find_among(turns->funds, all->places, weights);
		turns->funds[place] -= (int32_t)all->total;
	}
	turns->after = (uint32_t)place + 1;
	return place;
}

const struct spoke_balancer spoke_balancer_round_robin = {
	.name = "roundrobin",
	.room = round_robin_room,
	.changed = round_robin_changed,
	.pick = round_robin_pick,
};

/* --- fewest calls in flight */

/*
 * Chooses the place with the fewest calls in flight, among equals by weight. The loops have no
 * branches that depend on data, because branch prediction would fail.
 */

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
#define PLACES 20u

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
static size_t least_active_draw(const uint32_t *actives, const uint32_t *weights, size_t count,
				uint32_t least, uint32_t lot)
{
	size_t at = 0;

	for (; at + PLACES <= count; at += PLACES) {
		uint32_t sum = weight_at(actives + at, weights + at, PLACES, least);

		if (lot < sum)
			return at + count_before(actives + at, weights + at, PLACES, least, lot);
		lot -= sum;
	}
	at += count_before(actives + at, weights + at, count - at, least, lot);
	return at < count ? at : SPOKE_NO_ENDPOINT;
}

static size_t least_active_pick(void *memory, const struct spoke_balancer_candidates *candidates,
				const struct spoke_balancer_choice *choice)
{
	struct spokei_weights *all = memory;
	const uint32_t *weights = spokei_weights_for(all, choice);
	const uint32_t *actives = candidates->actives;
	uint32_t least;
	uint32_t sum;

	least = fewest(actives, weights, all->places);
	sum = weight_at(actives, weights, all->places, least);
	return least_active_draw(actives, weights, all->places, least,
				 spokei_dice_below(choice->dice, sum));
}

const struct spoke_balancer spoke_balancer_least_active = {
	.name = "leastactive",
	.room = weights_room,
	.changed = weights_changed,
	.pick = least_active_pick,
};

/* --- shortest response */

/*
 * Chooses the smallest product of mean response time and calls in flight (counting the new one),
 * among equals by weight. The speed of a place without a mean is unknown: it gets a call at once,
 * but one call at a time and one per timeout. Otherwise it comes after all places with a mean.
 *
 * Means are capped at 9 minutes, calls in flight at 16 million.
 */

#define MEAN_MAX ((UINT64_C(1) << 39) - 1)
#define ACTIVES_MAX ((UINT32_C(1) << 24) - 1)
#define UNKNOWN (UINT64_C(1) << 63) /* larger than any product */

/* The memory: a product per place, computed for each choice; then the weights. */
static struct spokei_weights *weights_of(void *memory, size_t count)
{
	return (void *)((uint64_t *)memory + count);
}

static size_t shortest_response_room(size_t count)
{
	return spokei_weights_room(count, sizeof(uint64_t));
}

static void shortest_response_changed(void *memory,
				      const struct spoke_balancer_candidates *candidates,
				      bool fresh)
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
static size_t shortest_response_draw(const uint64_t *products, const uint32_t *weights,
				     size_t count, uint64_t least, uint64_t dice)
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

static size_t shortest_response_pick(void *memory,
				     const struct spoke_balancer_candidates *candidates,
				     const struct spoke_balancer_choice *choice)
{
	struct spokei_weights *all = weights_of(memory, candidates->count);
	const uint32_t *weights = spokei_weights_for(all, choice);
	size_t place = weights == all->of ? pick_usual(all, candidates) : SPOKE_NO_ENDPOINT;

	if (place == SPOKE_NO_ENDPOINT) {
		uint64_t least = multiply(memory, candidates, choice, weights);

		place = shortest_response_draw(memory, weights, candidates->count, least,
					       choice->dice);
	}
	return place;
}

const struct spoke_balancer spoke_balancer_shortest_response = {
	.name = "shortestresponse",
	.room = shortest_response_room,
	.changed = shortest_response_changed,
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

static size_t two_choices_pick(void *memory, const struct spoke_balancer_candidates *candidates,
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
