/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses each place in turn, in proportion to its weight, evenly mixed: every account gains its
 * weight, the first place with the largest account is chosen and pays the sum of all weights.
 * With equal weights that is plain round robin, and needs no accounts.
 *
 * A place that returns starts with an empty account. The remaining places keep theirs, minus the
 * common part, so that a new place is neither preferred nor delayed.
 */
#include "cluster/balancer/weights.h"

#define ABSENT INT32_MIN /* the account of a place without a weight: never the largest */

/* The balancer's memory after the weights. */
struct turns {
	uint32_t next; /* with equal weights: the turn, as an index into the list of weighted places
			*/
	uint32_t after;  /* the place chosen last, plus 1; 0: none yet */
	int32_t funds[]; /* one account per place; all 0 while weights are equal */
};

static size_t room(size_t count)
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

static void changed(void *memory, const struct spoke_balancer_candidates *candidates, bool fresh)
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

#define BLOCK 16u

/* Returns the first place with this account. There is one. */
static size_t find(const int32_t *funds, size_t count, int32_t most)
{
	size_t at = 0;

	for (; at + BLOCK <= count; at += BLOCK) {
		int32_t hits = 0;

		for (size_t i = 0; i < BLOCK; i++)
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

static size_t pick(void *memory, const struct spoke_balancer_candidates *candidates,
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
		place = weights == all->of ? find(turns->funds, all->places, most)
					   : find_among(turns->funds, all->places, weights);
		turns->funds[place] -= (int32_t)all->total;
	}
	turns->after = (uint32_t)place + 1;
	return place;
}

const struct spoke_balancer spoke_balancer_round_robin = {
	.name = "roundrobin",
	.room = room,
	.changed = changed,
	.pick = pick,
};
