/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of the weighted balancers: 100,000 picks, within 3 %. */
#include "tests/cluster/balancer/balancerrig.h"
#include "tests/support/test.h"

#include <string.h>

#define PICKS 100000u

static struct balancerrig rig;
static uint32_t counts[RIG_PLACES_MAX];

static const struct spoke_balancer *const by_weight[] = { &spoke_balancer_random,
							  &spoke_balancer_round_robin,
							  &spoke_balancer_least_active,
							  &spoke_balancer_shortest_response };

#define BY_WEIGHT (sizeof(by_weight) / sizeof(by_weight[0]))

/* Begins with equal response times, so that no place is preferred for having none. */
static void begin(const struct spoke_balancer *balancer, const uint32_t *weights, size_t count)
{
	balancerrig_begin(&rig, balancer, count);
	for (size_t i = 0; i < count; i++) {
		rig.means_ns[i] = 1000000;
		if (weights)
			rig.weights[i] = weights[i];
	}
	balancerrig_changed(&rig);
}

static void expect_shares(const uint32_t *weights, size_t count)
{
	double total = 0;

	for (size_t i = 0; i < count; i++)
		total += weights[i];
	balancerrig_count(&rig, PICKS, counts);
	for (size_t i = 0; i < count; i++)
		balancerrig_assert_share(counts[i], PICKS, weights[i] / total);
}

TEST(places_are_chosen_in_proportion_to_weight)
{
	static const struct {
		size_t count;
		uint32_t weights[6];
	} cases[] = {
		{ 3, { 100, 100, 100 } },
		{ 3, { 100, 200, 300 } },
		{ 6, { 7, 100, 1, 50, 0, 42 } },
		{ 2, { UINT32_MAX, UINT32_MAX } },
		{ 4, { UINT32_MAX, UINT32_MAX / 2, UINT32_MAX / 2, UINT32_MAX } },
		{ 5, { 1, 2, 3, 4, 5 } },
	};

	for (size_t which = 0; which < BY_WEIGHT; which++) {
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			if (cases[i].weights[2] == 1 &&
			    by_weight[which] != &spoke_balancer_round_robin)
				continue; /* too few picks for 3 % */
			begin(by_weight[which], cases[i].weights, cases[i].count);
			expect_shares(cases[i].weights, cases[i].count);
			balancerrig_end(&rig);
		}
	}
}

TEST(equal_places_are_chosen_equally)
{
	static const size_t sizes[] = { 1, 2, 10, 16, 50 };

	for (size_t which = 0; which < BY_WEIGHT; which++) {
		for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
			begin(by_weight[which], NULL, sizes[n]);
			balancerrig_count(&rig, PICKS * 4, counts);
			for (size_t i = 0; i < sizes[n]; i++)
				balancerrig_assert_share(counts[i], PICKS * 4,
							 1.0 / (double)sizes[n]);
			balancerrig_end(&rig);
		}
	}
}

TEST(shares_follow_changes_of_weights_and_places)
{
	static const uint32_t without[] = { 100, 0, 300, 100 };
	static const uint32_t turned[] = { 400, 300, 200, 100 };

	for (size_t which = 0; which < BY_WEIGHT; which++) {
		begin(by_weight[which], without, 4);
		rig.weights[1] = 200;
		rig.able[1] = 0;
		balancerrig_changed(&rig);
		expect_shares(without, 4);
		memcpy(rig.weights, turned, sizeof(turned));
		rig.able[1] = 1;
		balancerrig_changed(&rig);
		expect_shares(turned, 4);
		balancerrig_end(&rig);
	}
}

/* Picks by the textbook algorithm, in numbers that cannot overflow. */
static size_t textbook(int64_t *funds, const uint32_t *weights, size_t count)
{
	size_t best = 0;

	for (size_t i = 0; i < count; i++) {
		funds[i] += weights[i];
		if (funds[i] > funds[best])
			best = i;
	}
	for (size_t i = 0; i < count; i++)
		funds[best] -= weights[i];
	return best;
}

TEST(round_robin_matches_smooth_weighted_sequence)
{
	uint64_t seed = 9;

	for (unsigned round = 0; round < 200; round++) {
		int64_t funds[40] = { 0 };
		uint32_t weights[40];
		size_t count = 1 + (size_t)dice_roll(&seed) % 40;

		for (size_t i = 0; i < count; i++)
			weights[i] = round % 4 == 0 ? 5 : 1 + (uint32_t)(dice_roll(&seed) % 300);
		/* Begin with new memory, because the previous state matters. */
		balancerrig_begin(&rig, &spoke_balancer_round_robin, count);
		memcpy(rig.weights, weights, count * sizeof(weights[0]));
		balancerrig_changed(&rig);
		for (unsigned i = 0; i < 500; i++)
			assert_int_equal(balancerrig_pick(&rig), textbook(funds, weights, count));
		balancerrig_end(&rig);
	}
}

TEST(round_robin_continues_when_able_places_change)
{
	balancerrig_begin(&rig, &spoke_balancer_round_robin, 5);
	assert_int_equal(balancerrig_pick(&rig), 0);
	assert_int_equal(balancerrig_pick(&rig), 1);
	rig.able[2] = 0;
	balancerrig_changed(&rig);
	assert_int_equal(balancerrig_pick(&rig), 3);
	rig.able[2] = rig.able[3] = 1;
	rig.able[4] = 0;
	balancerrig_changed(&rig);
	assert_int_equal(balancerrig_pick(&rig), 0);
	assert_int_equal(balancerrig_pick(&rig), 1);
	assert_int_equal(balancerrig_pick(&rig), 2);
	balancerrig_end(&rig);
}

/* A place leaves or returns before every few picks. The shares stay about fair. */
TEST(round_robin_is_fair_while_places_change)
{
	uint64_t seed = 10;

	for (unsigned uneven = 0; uneven < 2; uneven++) {
		balancerrig_begin(&rig, &spoke_balancer_round_robin, 10);
		rig.weights[9] += uneven;
		balancerrig_changed(&rig);
		memset(counts, 0, sizeof(counts));
		for (unsigned i = 0; i < PICKS; i++) {
			if (dice_roll(&seed) % 7 == 0) {
				rig.able[3] = !rig.able[3];
				balancerrig_changed(&rig);
			}
			counts[balancerrig_pick(&rig)]++;
		}
		/* The place is present half of the time: 9.5 places on average. The place that
		 * follows it gets more. */
		for (size_t i = 0; i < 10; i++) {
			double share = i == 3 ? 0.05 : 0.95 / 9;

			assert_in_range(counts[i], (uint32_t)(PICKS * share * 0.8),
					(uint32_t)(PICKS * share * 1.2));
		}
		balancerrig_end(&rig);
	}
}

/* A place that leaves after each of its turns and soon returns does not wait longer each time. */
TEST(round_robin_does_not_delay_returning_place)
{
	unsigned picks = 0;

	balancerrig_begin(&rig, &spoke_balancer_round_robin, 10);
	rig.weights[9]++;
	balancerrig_changed(&rig);
	for (unsigned round = 0; round < 200; round++) {
		while (balancerrig_pick(&rig) != 0)
			picks++;
		rig.able[0] = 0;
		balancerrig_changed(&rig);
		(void)balancerrig_pick(&rig);
		rig.able[0] = 1;
		balancerrig_changed(&rig);
	}
	assert_in_range(picks, 1, 200 * 6);
	balancerrig_end(&rig);
}

/* Credit earned with large weights counts for at most a round of small ones. */
TEST(round_robin_adapts_after_large_weights)
{
	static const uint32_t large[] = { 1000000, 999999, 999000 };
	static const uint32_t small[] = { 1, 2, 3 };

	balancerrig_begin(&rig, &spoke_balancer_round_robin, 3);
	memcpy(rig.weights, large, sizeof(large));
	balancerrig_changed(&rig);
	for (unsigned i = 0; i < 5; i++)
		(void)balancerrig_pick(&rig);
	memcpy(rig.weights, small, sizeof(small));
	balancerrig_changed(&rig);
	balancerrig_count(&rig, 60, counts);
	for (size_t i = 0; i < 3; i++)
		assert_in_range(counts[i], 10 * small[i] - 6, 10 * small[i] + 6);
	balancerrig_end(&rig);
}

TEST(random_uses_weights_among_untried_places)
{
	static const uint32_t weights[] = { 100, 200, 300, 400 };
	static const size_t tried[] = { 2 };

	for (size_t which = 0; which < BY_WEIGHT; which++) {
		if (by_weight[which] == &spoke_balancer_round_robin)
			continue; /* a tried place keeps its turn for later */
		begin(by_weight[which], weights, 4);
		rig.choice.tried = tried;
		rig.choice.tried_count = 1;
		balancerrig_count(&rig, PICKS, counts);
		balancerrig_assert_share(counts[0], PICKS, 1.0 / 7);
		balancerrig_assert_share(counts[1], PICKS, 2.0 / 7);
		balancerrig_assert_share(counts[3], PICKS, 4.0 / 7);
		balancerrig_end(&rig);
	}
}
