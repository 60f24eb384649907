/* SPDX-License-Identifier: Apache-2.0 */
/* The balancers that use calls in flight and response times. */
#include "tests/cluster/balancer/balancerrig.h"
#include "tests/support/test.h"

#include <string.h>

static struct balancerrig rig;

/* Begins with these mean response times in ms. Each place was chosen a moment ago. */
static void begin(const struct spoke_balancer *balancer, size_t count, const uint64_t *means_ms)
{
	balancerrig_begin(&rig, balancer, count);
	for (size_t i = 0; i < count; i++) {
		rig.means_ns[i] = means_ms ? means_ms[i] * MS : MS;
		rig.chosen_ns[i] = RIG_NOW_NS - MS;
	}
}

/* Asserts that every pick is the same place, and returns it. */
static size_t always(void)
{
	size_t place = balancerrig_pick(&rig);

	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(balancerrig_pick(&rig), place);
	return place;
}

TEST(least_active_chooses_fewest_calls)
{
	static const size_t sizes[] = { 2, 15, 16, 17, 100, 1000 };
	uint64_t seed = 1;

	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		begin(&spoke_balancer_least_active, sizes[n], NULL);
		for (unsigned round = 0; round < 50; round++) {
			size_t least = (size_t)dice_roll(&seed) % sizes[n];

			for (size_t i = 0; i < sizes[n]; i++) {
				rig.actives[i] = i == least
							 ? round % 8
							 : 8 + (uint32_t)(dice_roll(&seed) % 100);
				balancerrig_moved(&rig, i);
			}
			assert_int_equal(always(), least);
		}
		balancerrig_end(&rig);
	}
}

TEST(least_active_breaks_ties_by_weight)
{
	uint32_t counts[4];

	begin(&spoke_balancer_least_active, 4, NULL);
	rig.actives[0] = 3;
	rig.actives[1] = rig.actives[3] = 2;
	rig.actives[2] = 1;
	rig.able[2] = 0;
	rig.weights[3] = 300;
	balancerrig_changed(&rig);
	balancerrig_count(&rig, 100000, counts);
	assert_int_equal(counts[0] + counts[2], 0);
	balancerrig_assert_share(counts[1], 100000, 0.25);
	balancerrig_assert_share(counts[3], 100000, 0.75);
	balancerrig_end(&rig);
}

TEST(shortest_response_chooses_smallest_product)
{
	static const uint64_t means_ms[] = { 10, 6, 20, 5 };

	begin(&spoke_balancer_shortest_response, 4, means_ms);
	assert_int_equal(always(), 3); /* 5 */
	rig.actives[3] = 1;
	assert_int_equal(always(), 1); /* 6 of 10, 6, 20, 10 */
	rig.actives[1] = 3;
	rig.actives[0] = 2;
	assert_int_equal(always(), 3); /* 10 of 30, 24, 20, 10 */
	rig.able[3] = 0;
	balancerrig_changed(&rig);
	assert_int_equal(always(), 2);
	balancerrig_end(&rig);
}

TEST(shortest_response_handles_huge_numbers)
{
	static const uint64_t means_ms[] = { 1, 1, 1 };

	begin(&spoke_balancer_shortest_response, 3, means_ms);
	rig.means_ns[0] = rig.means_ns[1] = UINT64_MAX;
	rig.actives[0] = rig.actives[2] = UINT32_MAX;
	rig.means_ns[2] = 1;
	assert_int_equal(always(), 2); /* the products of the others would overflow */
	rig.actives[2] = 0;
	assert_int_equal(always(), 2);
	rig.able[2] = 0;
	balancerrig_changed(&rig);
	assert_int_equal(always(), 1);
	/* Only the call count is out of bounds: 2^32 calls times this mean would wrap to 2^32. */
	rig.means_ns[0] = rig.means_ns[1] = (UINT64_C(1) << 38) + 1;
	rig.actives[1] = 5;
	assert_int_equal(always(), 1);
	/* Only the mean is out of bounds: times four calls it would wrap to 4. */
	rig.means_ns[0] = (UINT64_C(1) << 62) + 1;
	rig.actives[0] = 3;
	assert_int_equal(always(), 1);
	balancerrig_end(&rig);
}

TEST(shortest_response_sends_unknown_one_call_at_a_time)
{
	static const uint64_t means_ms[] = { 1, 0, 3 };

	begin(&spoke_balancer_shortest_response, 3, means_ms);
	rig.chosen_ns[1] = 0;
	assert_int_equal(always(), 1);
	/* While its call is in flight, the others are preferred, however busy they are. */
	rig.actives[1] = 1;
	rig.chosen_ns[1] = RIG_NOW_NS - 10 * SECOND;
	rig.actives[0] = rig.actives[2] = 1000000;
	assert_int_equal(always(), 0);
	/* After a failure it is not tried again before a call's timeout has passed. */
	rig.actives[1] = 0;
	rig.chosen_ns[1] = RIG_NOW_NS - RIG_TIMEOUT_NS + 1;
	assert_int_equal(always(), 0);
	rig.chosen_ns[1]--;
	assert_int_equal(always(), 1);
	balancerrig_end(&rig);
}

TEST(shortest_response_equals_least_active_without_means)
{
	static const uint64_t means_ms[] = { 0, 0, 0 };

	begin(&spoke_balancer_shortest_response, 3, means_ms);
	rig.actives[0] = 2;
	rig.actives[1] = 1;
	rig.actives[2] = 2;
	assert_int_equal(always(), 1);
	balancerrig_end(&rig);
}

TEST(two_choices_chooses_better_of_two)
{
	static const uint64_t means_ms[] = { 10, 20 };

	begin(&spoke_balancer_two_choices, 2, means_ms);
	assert_int_equal(always(), 0); /* 10 : 20 */
	rig.actives[0] = 2;
	assert_int_equal(always(), 1); /* 30 : 20 */
	rig.weights[0] = 200;
	balancerrig_changed(&rig);
	assert_int_equal(always(), 0); /* 15 : 20 */
	rig.successes[0] = 65536 / 2;
	assert_int_equal(always(), 1); /* 30 : 20 */
	rig.successes[1] = 65536 / 10;
	assert_int_equal(always(), 0); /* 30 : 200 */
	rig.means_ns[0] = 0;
	rig.successes[0] = 65536;
	assert_int_equal(always(), 0); /* 3 / 2 : 10, without response times */
	rig.successes[1] = 65536;
	assert_int_equal(always(), 1); /* 3 / 2 : 1 */
	balancerrig_end(&rig);
}

TEST(two_choices_chooses_long_unused_endpoint)
{
	static const uint64_t means_ms[] = { 1, 1000 };

	begin(&spoke_balancer_two_choices, 2, means_ms);
	rig.chosen_ns[1] = RIG_NOW_NS - 2 * RIG_TIMEOUT_NS;
	assert_int_equal(always(), 0);
	rig.chosen_ns[1] -= 2;
	assert_int_equal(always(), 1);
	rig.chosen_ns[0] = rig.chosen_ns[1] - 1;
	assert_int_equal(always(), 0);
	rig.chosen_ns[1] = 0;
	assert_int_equal(always(), 1);
	rig.choice.timeout_ns = UINT64_MAX; /* never over, unless never chosen */
	assert_int_equal(always(), 1);
	rig.chosen_ns[1] = 1;
	assert_int_equal(always(), 0);
	rig.chosen_ns[1] = RIG_NOW_NS + SECOND; /* in the future: a later reading of the clock */
	assert_int_equal(always(), 0);
	balancerrig_end(&rig);
}

TEST(two_choices_samples_pairs_uniformly)
{
	uint32_t counts[5];

	begin(&spoke_balancer_two_choices, 5, NULL);
	balancerrig_count(&rig, 100000, counts);
	for (size_t i = 0; i < 5; i++)
		balancerrig_assert_share(counts[i], 100000, 0.2);
	/* The worst place is never the better of two, the second worst only against the worst. */
	rig.actives[4] = 2;
	rig.actives[3] = 1;
	balancerrig_count(&rig, 1000000, counts);
	assert_int_equal(counts[4], 0);
	balancerrig_assert_share(counts[3], 1000000, 0.1);
	for (size_t i = 0; i < 3; i++)
		balancerrig_assert_share(counts[i], 1000000, 0.3);
	balancerrig_end(&rig);
}

/* End times of the calls in flight at each place; 0 means none. */
static uint64_t ends[4][64];

static void end_calls(size_t place, uint64_t took_ns, uint64_t now)
{
	for (size_t i = 0; i < 64; i++) {
		if (ends[place][i] == 0 || ends[place][i] > now)
			continue;
		ends[place][i] = 0;
		rig.actives[place]--;
		rig.means_ns[place] = took_ns;
	}
}

static void begin_call(size_t place, uint64_t took_ns, uint64_t now)
{
	size_t i = 0;

	while (ends[place][i] > 0)
		assert_true(++i < 64);
	ends[place][i] = now + took_ns;
	rig.actives[place]++;
	rig.chosen_ns[place] = now;
}

/* Makes a call every millisecond, each with the response time of its place. Counts the calls of
 * each. */
static void serve(const uint64_t *took_ms, uint32_t *counts)
{
	uint64_t now = RIG_NOW_NS;

	memset(ends, 0, sizeof(ends));
	for (unsigned i = 0; i < 40000; i++, now += MS) {
		size_t place;

		for (size_t each = 0; each < 4; each++)
			end_calls(each, took_ms[each] * MS, now);
		rig.choice.now_ns = now;
		place = balancerrig_pick(&rig);
		begin_call(place, took_ms[place] * MS, now);
		counts[place]++;
	}
}

TEST(slow_endpoint_gets_fewer_calls_but_some)
{
	static const struct spoke_balancer *const judges[] = { &spoke_balancer_least_active,
							       &spoke_balancer_shortest_response,
							       &spoke_balancer_two_choices };
	static const uint64_t took_ms[] = { 5, 5, 5, 50 };

	for (size_t which = 0; which < sizeof(judges) / sizeof(judges[0]); which++) {
		uint32_t counts[4] = { 0 };

		balancerrig_begin(&rig, judges[which], 4);
		serve(took_ms, counts);
		for (size_t i = 0; i < 3; i++) {
			assert_true(counts[i] > 40000 / 5);
			assert_true(counts[3] < counts[i] / 2);
		}
		assert_true(counts[3] > 0);
		balancerrig_end(&rig);
	}
}
