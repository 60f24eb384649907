/* SPDX-License-Identifier: Apache-2.0 */
/* The conversion of nanoseconds to ticks equals exact division, without a division at run time. */
#include "tests/support/test.h"
#include "timer/wheel.h"

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void expect_division(uint64_t ns, uint64_t tick_ns)
{
	struct spokei_scale scale = spokei_scale_make(0, tick_ns);

	if (spokei_scale_ticks(&scale, ns) != ns / tick_ns)
		fail_msg("%llu / %llu", (unsigned long long)ns, (unsigned long long)tick_ns);
	if (ns < scale.few_ns && spokei_scale_few(&scale, ns) != ns / tick_ns)
		fail_msg("%llu / %llu, few", (unsigned long long)ns, (unsigned long long)tick_ns);
}

TEST(ticks_are_the_exact_quotient_at_every_edge)
{
	static const uint64_t ticks[] = { 1,
					  2,
					  3,
					  5,
					  7,
					  10,
					  641,
					  1000,
					  1000000,
					  999999937,
					  UINT64_C(3600000000000),
					  UINT64_C(1) << 40 };
	static const uint64_t top = (UINT64_C(1) << 63) - 1;

	for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++) {
		uint64_t last = top / ticks[i] * ticks[i];
		uint64_t few_ns = spokei_scale_make(0, ticks[i]).few_ns;

		for (uint64_t off = 0; off < 3; off++) {
			expect_division(off, ticks[i]);
			expect_division(ticks[i] - 1 + off, ticks[i]);
			expect_division(last - off, ticks[i]);
			expect_division(top - off, ticks[i]);
			if (few_ns > off)
				expect_division(few_ns - 1 - off, ticks[i]);
		}
	}
}

TEST(ticks_are_the_exact_quotient_of_random_numbers)
{
	uint64_t seed = 20;

	for (int i = 0; i < 200000; i++) {
		uint64_t tick_ns = next_random(&seed) >> (22 + next_random(&seed) % 41);
		uint64_t ns = next_random(&seed) >> (1 + next_random(&seed) % 62);

		if (tick_ns == 0)
			continue;
		expect_division(ns, tick_ns);
		expect_division(ns / tick_ns * tick_ns, tick_ns);
		if (ns >= tick_ns)
			expect_division(ns / tick_ns * tick_ns - 1, tick_ns);
	}
}

TEST(time_of_a_tick_counts_from_the_origin)
{
	struct spokei_scale scale = spokei_scale_make(77, 1000);

	assert_true(spokei_scale_time(&scale, 0) == 77);
	assert_true(spokei_scale_time(&scale, 3) == 3077);
}

TEST(powers_of_two_are_rounded_up)
{
	assert_int_equal(spokei_log2_up(0), 0);
	assert_int_equal(spokei_log2_up(1), 0);
	assert_int_equal(spokei_log2_up(2), 1);
	assert_int_equal(spokei_log2_up(10), 4);
	assert_int_equal(spokei_log2_up(16), 4);
	assert_int_equal(spokei_log2_up(17), 5);
	assert_int_equal(spokei_log2_up(UINT64_MAX), 64);
}
