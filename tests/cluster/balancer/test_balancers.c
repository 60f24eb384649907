/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of all balancers: places that must not be chosen, and the choice when no other is left. */
#include "tests/cluster/balancer/balancerrig.h"
#include "tests/support/test.h"

#include "cluster/balancer/balancers.h"

#include <string.h>

static struct balancerrig rig;

/* Picks with another key each time, for balancers that use it. */
static size_t pick(uint64_t *seed)
{
	uint64_t key = dice_roll(seed);

	return balancerrig_pick_by(&rig, &key, sizeof(key));
}

TEST(each_balancer_is_found_by_name)
{
	for (unsigned i = 0; spokei_balancers[i]; i++)
		assert_ptr_equal(spoke_balancer_find(spokei_balancers[i]->name),
				 spokei_balancers[i]);
	assert_ptr_equal(spoke_balancer_find("twochoices"), &spoke_balancer_two_choices);
	assert_null(spoke_balancer_find("unbalanced"));
	assert_null(spoke_balancer_find(NULL));
}

TEST(only_able_endpoints_are_chosen)
{
	static const size_t sizes[] = { 2, 3, 17, 100 };
	uint64_t seed = 3;

	for (unsigned which = 0; spokei_balancers[which]; which++) {
		for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
			static uint32_t counts[RIG_PLACES_MAX];

			memset(counts, 0, sizeof(counts));
			balancerrig_begin(&rig, spokei_balancers[which], sizes[n]);
			for (size_t i = 0; i < sizes[n]; i++)
				rig.able[i] = i % 2;
			balancerrig_changed(&rig);
			for (unsigned i = 0; i < 20000; i++)
				counts[pick(&seed)]++;
			for (size_t i = 0; i < sizes[n]; i++)
				assert_int_equal(counts[i] > 0, i % 2);
			balancerrig_end(&rig);
		}
	}
}

TEST(zero_weight_is_chosen_only_if_all_are_zero)
{
	uint64_t seed = 4;

	for (unsigned which = 0; spokei_balancers[which]; which++) {
		unsigned seen[3] = { 0 };

		balancerrig_begin(&rig, spokei_balancers[which], 3);
		rig.weights[0] = rig.weights[2] = 0;
		balancerrig_changed(&rig);
		for (unsigned i = 0; i < 1000; i++)
			assert_int_equal(pick(&seed), 1);
		rig.able[1] = 0; /* the others have weight 0, and are the only able ones */
		balancerrig_changed(&rig);
		for (unsigned i = 0; i < 1000; i++)
			seen[pick(&seed)]++;
		assert_true(seen[0] > 0 && seen[1] == 0 && seen[2] > 0);
		rig.able[1] = 1;
		balancerrig_changed(&rig);
		assert_int_equal(pick(&seed), 1);
		balancerrig_end(&rig);
	}
}

TEST(tried_endpoints_are_chosen_last)
{
	static const size_t tried[] = { 1, 3, 1, 77 }; /* one id twice, and one that is unknown */
	uint64_t seed = 5;

	for (unsigned which = 0; spokei_balancers[which]; which++) {
		for (unsigned uneven = 0; uneven < 2; uneven++) {
			unsigned seen[5] = { 0 };

			balancerrig_begin(&rig, spokei_balancers[which], 5);
			rig.weights[4] += uneven;
			balancerrig_changed(&rig);
			rig.choice.tried = tried;
			rig.choice.tried_count = 4;
			for (unsigned i = 0; i < 2000; i++)
				seen[pick(&seed)]++;
			assert_true(seen[0] > 0 && seen[2] > 0 && seen[4] > 0);
			assert_true(seen[1] == 0 && seen[3] == 0);
			memset(seen, 0, sizeof(seen));
			rig.able[0] = rig.able[2] = rig.able[4] = 0;
			balancerrig_changed(&rig);
			for (unsigned i = 0; i < 2000; i++)
				seen[pick(&seed)]++;
			assert_true(seen[1] > 0 && seen[3] > 0);
			balancerrig_end(&rig);
		}
	}
}

TEST(single_endpoint_is_chosen_and_none_without_any)
{
	uint64_t seed = 6;

	for (unsigned which = 0; spokei_balancers[which]; which++) {
		static const size_t tried[] = { 0 };

		balancerrig_begin(&rig, spokei_balancers[which], 1);
		assert_int_equal(pick(&seed), 0);
		rig.choice.tried = tried;
		rig.choice.tried_count = 1;
		assert_int_equal(pick(&seed), 0);
		rig.able[0] = 0;
		balancerrig_changed(&rig);
		assert_int_equal(pick(&seed), SPOKE_NO_ENDPOINT);
		balancerrig_end(&rig);
	}
}

TEST(too_many_places_are_rejected)
{
	const struct spoke_balancer *one;

	for (unsigned which = 0; (one = spokei_balancers[which]) != NULL; which++) {
		assert_true(one->room(0) < 100);
		assert_true(one->room(1000) < 2000000);
		assert_int_equal(one->room(SIZE_MAX), SIZE_MAX);
#if SIZE_MAX > UINT32_MAX
		assert_int_equal(one->room((size_t)UINT32_MAX + 1), SIZE_MAX);
#endif
	}
}

/* Returns a value that is mostly ordinary, sometimes the maximum. */
static uint64_t any(uint64_t *seed, uint64_t usual, uint64_t most)
{
	switch (dice_roll(seed) % 4) {
	case 0:
		return 0;
	case 1:
		return most - dice_roll(seed) % 2;
	default:
		return dice_roll(seed) % usual;
	}
}

static void shake(uint64_t *seed)
{
	size_t place = (size_t)dice_roll(seed) % rig.candidates.count;

	rig.able[place] = dice_roll(seed) % 4 > 0;
	rig.weights[place] = (uint32_t)any(seed, 200, UINT32_MAX);
	rig.actives[place] = (uint32_t)any(seed, 20, UINT32_MAX);
	rig.means_ns[place] = any(seed, 1000000, UINT64_MAX);
	rig.successes[place] = (uint32_t)any(seed, 65536, 65536);
	rig.chosen_ns[place] = any(seed, RIG_NOW_NS, UINT64_MAX);
	balancerrig_changed(&rig);
}

static bool fits(size_t place, bool weight, const size_t *tried, size_t tried_count)
{
	if (!rig.able[place] || (weight && rig.weights[place] == 0))
		return false;
	for (size_t i = 0; i < tried_count; i++)
		if (tried[i] == place)
			return false;
	return true;
}

static bool anybody(bool weight, const size_t *tried, size_t tried_count)
{
	for (size_t i = 0; i < rig.candidates.count; i++)
		if (fits(i, weight, tried, tried_count))
			return true;
	return false;
}

static void check_a_pick(uint64_t *seed)
{
	size_t tried[4];
	size_t tried_count = (size_t)(dice_roll(seed) % 5);
	bool weight = anybody(true, NULL, 0);
	size_t place;

	for (size_t i = 0; i < tried_count; i++)
		tried[i] = (size_t)dice_roll(seed) % rig.candidates.count;
	rig.choice.tried = tried;
	rig.choice.tried_count = tried_count;
	rig.choice.timeout_ns = any(seed, RIG_TIMEOUT_NS, UINT64_MAX);
	place = pick(seed);
	if (!anybody(weight, tried, tried_count))
		tried_count = 0;
	if (!anybody(weight, tried, tried_count))
		assert_int_equal(place, SPOKE_NO_ENDPOINT);
	else
		assert_true(fits(place, weight, tried, tried_count));
}

TEST(able_endpoint_is_chosen_for_any_numbers)
{
	static const size_t sizes[] = { 1, 2, 3, 16, 33, 100 };
	uint64_t seed = 8;

	for (unsigned which = 0; spokei_balancers[which]; which++) {
		for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
			balancerrig_begin(&rig, spokei_balancers[which], sizes[n]);
			for (unsigned i = 0; i < 3000; i++) {
				if (i % 3 == 0)
					shake(&seed);
				check_a_pick(&seed);
			}
			balancerrig_end(&rig);
		}
	}
}

static size_t pick_last(void *memory, const struct spoke_balancer_candidates *candidates,
			const struct spoke_balancer_choice *choice)
{
	(void)memory;
	(void)choice;
	for (size_t i = candidates->count; i-- > 0;)
		if (candidates->able[i])
			return i;
	return SPOKE_NO_ENDPOINT;
}

TEST(balancer_of_a_program_needs_pick_only)
{
	static const struct spoke_balancer last = { .name = "last", .pick = pick_last };

	balancerrig_begin(&rig, &last, 3);
	assert_int_equal(balancerrig_pick(&rig), 2);
	rig.able[2] = 0;
	balancerrig_changed(&rig);
	assert_int_equal(balancerrig_pick(&rig), 1);
	balancerrig_end(&rig);
}
