/* SPDX-License-Identifier: Apache-2.0 */
/* Each balancer chooses the same place as a model that looks at all places, while weights, able
 * places and figures change at random. */
#include "tests/cluster/balancer/balancerrig.h"
#include "tests/support/test.h"

#include "cluster/balancer/weights.h"

#include <string.h>

#define SHAKES 400u
#define TRIED_MAX 4u

static struct balancerrig rig;
static uint64_t seed;

/* --- what all models need */

static uint64_t roll(uint64_t bound)
{
	return dice_roll(&seed) % bound;
}

static uint32_t weight_of(size_t place)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < rig.candidates.count; i++)
		sum += rig.able[i] ? rig.weights[i] : 0;
	if (!rig.able[place])
		return 0;
	return sum > 0 ? rig.weights[place] : 1;
}

/* Writes the weights of the places that may be chosen. */
static uint32_t weights_left(uint32_t *weights)
{
	uint32_t all[RIG_PLACES_MAX];
	uint32_t sum = 0;

	for (size_t i = 0; i < rig.candidates.count; i++)
		all[i] = weights[i] = weight_of(i);
	for (size_t i = 0; i < rig.choice.tried_count; i++)
		weights[rig.choice.tried[i]] = 0;
	for (size_t i = 0; i < rig.candidates.count; i++)
		sum += weights[i];
	if (sum > 0)
		return sum;
	memcpy(weights, all, rig.candidates.count * sizeof(all[0]));
	for (size_t i = 0; i < rig.candidates.count; i++)
		sum += weights[i];
	return sum;
}

/* Draws by weight among the places with the least key. */
static size_t draw_least(const uint64_t *keys, const uint32_t *weights)
{
	uint64_t least = UINT64_MAX;
	uint32_t sum = 0;
	uint32_t lot;

	for (size_t i = 0; i < rig.candidates.count; i++)
		least = weights[i] > 0 && keys[i] < least ? keys[i] : least;
	for (size_t i = 0; i < rig.candidates.count; i++)
		sum += keys[i] == least ? weights[i] : 0;
	lot = spokei_dice_below(rig.choice.dice, sum);
	for (size_t i = 0; i < rig.candidates.count; i++) {
		uint32_t weight = keys[i] == least ? weights[i] : 0;

		if (lot < weight)
			return i;
		lot -= weight;
	}
	return SPOKE_NO_ENDPOINT;
}

/* --- models: called with the random number of the balancer's choice */

static size_t random_model(void)
{
	static const uint64_t keys[RIG_PLACES_MAX];
	uint32_t weights[RIG_PLACES_MAX];

	(void)weights_left(weights);
	return draw_least(keys, weights);
}

static size_t least_active_model(void)
{
	uint64_t keys[RIG_PLACES_MAX];
	uint32_t weights[RIG_PLACES_MAX];

	(void)weights_left(weights);
	for (size_t i = 0; i < rig.candidates.count; i++)
		keys[i] = rig.actives[i];
	return draw_least(keys, weights);
}

/* Idle places without a mean go first, if they were not chosen for a timeout: the one chosen
 * longest ago. */
static size_t shortest_response_model(void)
{
	uint64_t keys[RIG_PLACES_MAX];
	uint32_t weights[RIG_PLACES_MAX];
	uint64_t oldest = UINT64_MAX;

	(void)weights_left(weights);
	for (size_t i = 0; i < rig.candidates.count; i++) {
		bool idle = rig.means_ns[i] == 0 && rig.actives[i] == 0;

		keys[i] = idle ? rig.chosen_ns[i] : UINT64_MAX;
		if (weights[i] > 0 && keys[i] < oldest)
			oldest = keys[i];
	}
	if (oldest == 0 || (oldest < RIG_NOW_NS && RIG_NOW_NS - oldest >= RIG_TIMEOUT_NS))
		return draw_least(keys, weights);
	for (size_t i = 0; i < rig.candidates.count; i++) {
		keys[i] = rig.means_ns[i] * (rig.actives[i] + 1);
		if (rig.means_ns[i] == 0)
			keys[i] = (UINT64_C(1) << 62) + rig.actives[i];
	}
	return draw_least(keys, weights);
}

/* Smooth weighted round robin over accounts. */
static int64_t funds[RIG_PLACES_MAX];
static bool present[RIG_PLACES_MAX];
static size_t after;

static void round_robin_begin(void)
{
	memset(present, 0, sizeof(present));
	after = 0;
}

static void round_robin_change(void)
{
	int64_t sum = 0;
	int64_t count = 0;
	int64_t total = 0;
	uint32_t first = 0;
	bool even = true;

	for (size_t i = 0; i < rig.candidates.count; i++) {
		uint32_t weight = weight_of(i);

		total += weight;
		first = first ? first : weight;
		even = even && (weight == 0 || weight == first);
		if (weight > 0 && present[i]) {
			sum += funds[i];
			count++;
		}
	}
	for (size_t i = 0; i < rig.candidates.count; i++) {
		int64_t rest = present[i] ? funds[i] - (count > 0 ? sum / count : 0) : 0;

		present[i] = weight_of(i) > 0;
		funds[i] = rest > total ? total : rest < -total ? -total : rest;
		if (even)
			funds[i] = i < after ? -total : 0;
	}
}

static size_t round_robin_model(void)
{
	uint32_t weights[RIG_PLACES_MAX];
	size_t best = SPOKE_NO_ENDPOINT;

	(void)weights_left(weights);
	for (size_t i = 0; i < rig.candidates.count; i++)
		funds[i] += weight_of(i);
	for (size_t i = 0; i < rig.candidates.count; i++)
		if (weights[i] > 0 && (best == SPOKE_NO_ENDPOINT || funds[i] > funds[best]))
			best = i;
	for (size_t i = 0; i < rig.candidates.count; i++)
		funds[best] -= weight_of(i);
	after = best + 1;
	return best;
}

/* --- the comparison */

static const struct model {
	const struct spoke_balancer *balancer;
	size_t (*pick)(void);
	void (*begin)(void);  /* may be NULL, as the next one */
	void (*change)(void); /* weights or able places have changed */
} models[] = {
	{ &spoke_balancer_random, random_model, NULL, NULL },
	{ &spoke_balancer_round_robin, round_robin_model, round_robin_begin, round_robin_change },
	{ &spoke_balancer_least_active, least_active_model, NULL, NULL },
	{ &spoke_balancer_shortest_response, shortest_response_model, NULL, NULL },
};

/* Changes weights and able places; at least one place stays able. */
static void shake(const struct model *model)
{
	for (uint64_t i = roll(4); i > 0; i--) {
		size_t place = roll(rig.candidates.count);

		rig.able[place] = place == 0 || roll(4) > 0;
		rig.weights[place] = (uint32_t)(roll(3) ? 1 + roll(5) : roll(200));
	}
	balancerrig_changed(&rig);
	if (model->change)
		model->change();
}

static void move(void)
{
	size_t place = roll(rig.candidates.count);

	rig.actives[place] = (uint32_t)roll(6);
	rig.means_ns[place] = roll(3) ? 1 + roll(20) : 0;
	rig.chosen_ns[place] = roll(4) ? RIG_NOW_NS - roll(2 * RIG_TIMEOUT_NS) : 0;
	balancerrig_moved(&rig, place);
}

static void compare(const struct model *model, size_t count)
{
	size_t tried[TRIED_MAX];
	size_t place;

	balancerrig_begin(&rig, model->balancer, count);
	rig.choice.tried = tried;
	if (model->begin)
		model->begin();
	for (unsigned i = 0; i < SHAKES; i++) {
		if (i == 0 || roll(8) == 0)
			shake(model);
		/* Now and then more than the list of moves holds. */
		for (uint64_t moves = roll(50) ? roll(5) : 2 * RIG_MOVES; moves > 0; moves--)
			move();
		rig.choice.tried_count = roll(3) ? 0 : roll(TRIED_MAX + 1);
		for (size_t k = 0; k < rig.choice.tried_count; k++)
			tried[k] = roll(count);
		place = balancerrig_pick(&rig); /* rolls the random number */
		assert_int_equal(place, model->pick());
	}
	balancerrig_end(&rig);
}

TEST(each_choice_is_that_of_a_linear_model)
{
	static const size_t sizes[] = { 1, 2, 3, 15, 16, 17, 40, 257, 1000 };

	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++)
			compare(&models[i], sizes[n]);
}
