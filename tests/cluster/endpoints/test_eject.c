/* SPDX-License-Identifier: Apache-2.0 */
/* Health of endpoints: ejection, response times, and weights during warm-up. */
#include "cluster/endpoints/endpoint.h"
#include "cluster/endpoints/health.h"
#include "tests/support/test.h"

#define DICE (UINT64_MAX / 2)

static const struct spokei_eject_rule rule = { .failures = 2, .first_ns = SECOND };

static uint64_t pause_of(const struct spokei_eject *eject)
{
	return eject->until_ns - eject->since_ns;
}

static void assert_near(uint64_t value, uint64_t wanted)
{
	assert_in_range(value, wanted - wanted / 5, wanted + wanted / 5);
}

static bool failed(struct spokei_eject *eject, uint64_t now_ns)
{
	return spokei_eject_failed(eject, &rule, now_ns, now_ns, false, DICE);
}

TEST(ejections_grow_up_to_five_minutes)
{
	struct spokei_eject eject = { .row = 0 };
	uint64_t now_ns = SECOND;

	assert_false(failed(&eject, now_ns));
	assert_true(failed(&eject, now_ns));
	assert_near(pause_of(&eject), SECOND);
	for (int i = 0; i < 20; i++) {
		now_ns = eject.until_ns;
		assert_true(spokei_eject_excludes(&eject, now_ns - 1));
		assert_false(spokei_eject_excludes(&eject, now_ns));
		spokei_eject_begun(&eject, now_ns);
		assert_true(spokei_eject_excludes(&eject, now_ns));
		assert_true(failed(&eject, now_ns));
		if (i == 0)
			assert_near(pause_of(&eject), SECOND * 16 / 10);
		if (i == 1)
			assert_near(pause_of(&eject), SECOND * 256 / 100);
	}
	assert_near(pause_of(&eject), SPOKEI_EJECT_CAP_NS);
}

TEST(quiet_periods_shorten_ejections)
{
	struct spokei_eject eject = { .row = 0 };
	uint64_t now_ns = SECOND;

	for (int i = 0; i < 4; i++) {
		(void)failed(&eject, now_ns);
		(void)failed(&eject, now_ns);
		now_ns = eject.until_ns;
		spokei_eject_begun(&eject, now_ns);
		assert_true(spokei_eject_answered(&eject, &rule, now_ns, now_ns));
	}
	assert_int_equal(eject.times, 4);
	for (int i = 0; i < 100; i++)
		assert_false(spokei_eject_answered(&eject, &rule, now_ns, now_ns));
	assert_int_equal(eject.times, 4);
	for (int i = 3; i >= 0; i--) {
		now_ns += SECOND;
		(void)spokei_eject_answered(&eject, &rule, now_ns, now_ns);
		assert_int_equal(eject.times, i);
	}
}

TEST(attempts_begun_before_ejection_do_not_count)
{
	struct spokei_eject eject = { .row = 0 };
	uint64_t old_ns = SECOND;
	uint64_t now_ns = 2 * SECOND;

	(void)failed(&eject, now_ns);
	assert_true(failed(&eject, now_ns));
	now_ns = eject.until_ns;
	spokei_eject_begun(&eject, now_ns);
	assert_false(spokei_eject_failed(&eject, &rule, old_ns, now_ns, false, DICE));
	assert_false(spokei_eject_answered(&eject, &rule, old_ns, now_ns));
	assert_true(eject.probing);
	assert_true(spokei_eject_answered(&eject, &rule, now_ns, now_ns));
}

TEST(probe_without_verdict_is_followed_by_another)
{
	struct spokei_eject eject = { .row = 0 };

	(void)failed(&eject, SECOND);
	(void)failed(&eject, SECOND);
	spokei_eject_begun(&eject, eject.until_ns);
	assert_true(spokei_eject_excludes(&eject, eject.until_ns));
	spokei_eject_over(&eject);
	assert_false(spokei_eject_excludes(&eject, eject.until_ns));
}

TEST(lone_endpoint_is_ejected_once_another_is_usable)
{
	struct spokei_eject eject = { .row = 0 };

	for (int i = 0; i < 10; i++)
		assert_false(spokei_eject_failed(&eject, &rule, SECOND, SECOND, true, DICE));
	assert_true(failed(&eject, SECOND));
}

TEST(no_rule_means_no_ejection)
{
	const struct spokei_eject_rule none = { .failures = 0, .first_ns = SECOND };
	struct spokei_eject eject = { .row = 0 };

	for (int i = 0; i < 10; i++)
		assert_false(spokei_eject_failed(&eject, &none, SECOND, SECOND, false, DICE));
}

TEST(failed_probe_ejects_again_whatever_the_first_reason)
{
	const struct spokei_eject_rule none = { .failures = 0, .first_ns = SECOND };
	struct spokei_eject eject = { .row = 0 };
	uint64_t now_ns;

	spokei_eject_start(&eject, &none, SECOND, DICE);
	now_ns = eject.until_ns;
	spokei_eject_begun(&eject, now_ns);
	assert_true(spokei_eject_failed(&eject, &none, now_ns, now_ns, false, DICE));
	now_ns = eject.until_ns;
	assert_false(spokei_eject_excludes(&eject, now_ns));
}

/* --- rates */

static const struct spokei_eject_rule rates = {
	.first_ns = SECOND,
	.errors = 50,
	.calls = 10,
	.interval_ns = 10 * SECOND,
	.latency = 4,
};

/* Counts failures and successes in turn, `failures` of ten attempts. Returns after how many
 * attempts the endpoint was to be ejected; 0: never. */
static uint64_t rate(struct spokei_eject *eject, unsigned failures, unsigned attempts,
		     uint64_t pause_ns)
{
	uint64_t now_ns = SECOND;

	for (uint64_t ended = 1; ended <= attempts; ended++, now_ns += pause_ns)
		if (ended % 10 < failures && spokei_eject_rate(eject, &rates, ended, now_ns))
			return ended;
	return 0;
}

TEST(rate_of_errors_ejects_after_enough_attempts)
{
	struct spokei_eject eject = { .row = 0 };

	assert_int_equal(rate(&eject, 10, 1000, 0), 10);
	eject = (struct spokei_eject){ .row = 0 };
	assert_in_range(rate(&eject, 6, 1000, 0), 10, 20);
	eject = (struct spokei_eject){ .row = 0 };
	assert_int_equal(rate(&eject, 3, 1000, 0), 0);
}

TEST(few_attempts_have_no_rate)
{
	struct spokei_eject eject = { .row = 0 };

	assert_int_equal(rate(&eject, 10, 9, 0), 0);
	/* Each interval is judged by itself. */
	eject = (struct spokei_eject){ .row = 0 };
	assert_int_equal(rate(&eject, 10, 1000, 2 * SECOND), 0);
}

TEST(interval_begins_with_a_failure_after_successes)
{
	struct spokei_eject eject = { .row = 0 };

	for (uint64_t i = 1; i < 10; i++)
		assert_false(spokei_eject_rate(&eject, &rates, 1000000 + i, i * SECOND));
	assert_true(spokei_eject_rate(&eject, &rates, 1000010, 10 * SECOND));
	eject = (struct spokei_eject){ .row = 0 };
	assert_false(spokei_eject_rate(&eject, &rates, 1000001, SECOND));
	assert_false(spokei_eject_rate(&eject, &rates, 1000100, 2 * SECOND));
}

TEST(ejection_begins_a_new_interval)
{
	struct spokei_eject eject = { .row = 0 };

	assert_int_equal(rate(&eject, 10, 1000, 0), 10);
	spokei_eject_start(&eject, &rates, SECOND, DICE);
	assert_near(pause_of(&eject), SECOND);
	assert_false(spokei_eject_rate(&eject, &rates, 11, 2 * SECOND));
	spokei_eject_begun(&eject, eject.until_ns);
	assert_true(spokei_eject_answered(&eject, &rates, eject.until_ns, eject.until_ns));
	assert_false(spokei_eject_rate(&eject, &rates, 13, eject.until_ns));
}

TEST(latency_of_many_times_that_of_others_ejects)
{
	struct spokei_eject eject = { .row = 0 };
	uint64_t now_ns = SECOND;

	assert_false(spokei_eject_slow(&eject, &rates, 100, 4000, 1000, now_ns));
	assert_false(spokei_eject_slow(&eject, &rates, 109, 4000, 1000, now_ns));
	assert_false(spokei_eject_slow(&eject, &rates, 110, 3999, 1000, now_ns));
	assert_false(spokei_eject_slow(&eject, &rates, 110, 4000, 0, now_ns));
	assert_true(spokei_eject_slow(&eject, &rates, 110, 4000, 1000, now_ns));
	/* The next interval needs answers of its own. */
	assert_false(spokei_eject_slow(&eject, &rates, 200, 4000, 1000, now_ns + 10 * SECOND));
	eject.aside = true;
	assert_false(spokei_eject_slow(&eject, &rates, 300, 4000, 1000, now_ns + 10 * SECOND));
}

TEST(share_of_ejected_endpoints_is_bounded_and_at_least_one)
{
	assert_int_equal(spokei_eject_most(1, 30), 1);
	assert_int_equal(spokei_eject_most(3, 30), 1);
	assert_int_equal(spokei_eject_most(10, 30), 3);
	assert_int_equal(spokei_eject_most(10, 100), 10);
	assert_int_equal(spokei_eject_most(65536, 1), 655);
}

/* --- scores */

TEST(newest_response_times_have_most_weight)
{
	struct spokei_score score = spokei_score_make();
	uint64_t now_ns = 100 * SECOND;

	assert_int_equal(spokei_score_mean(&score, now_ns), 0);
	spokei_score_answered(&score, 16000, now_ns);
	assert_int_equal(spokei_score_mean(&score, now_ns), 16000);
	spokei_score_answered(&score, 32000, now_ns);
	assert_int_equal(spokei_score_mean(&score, now_ns), 17000);
	/* After half of the period a new sample counts for about half. */
	now_ns += SPOKEI_SCORE_NS / 2;
	spokei_score_answered(&score, 1017000, now_ns);
	assert_in_range(spokei_score_mean(&score, now_ns), 510000, 520000);
	now_ns += SPOKEI_SCORE_NS;
	assert_int_equal(spokei_score_mean(&score, now_ns), 0);
	spokei_score_answered(&score, 5, now_ns);
	assert_int_equal(spokei_score_mean(&score, now_ns), 5);
}

TEST(response_times_of_any_size_are_handled)
{
	struct spokei_score score = spokei_score_make();
	uint64_t now_ns = 100 * SECOND;

	for (int i = 0; i < 1000; i++) {
		now_ns += (uint64_t)i * SECOND / 20;
		spokei_score_answered(&score, i % 2 ? UINT64_MAX : 0, now_ns);
		assert_true(score.mean_ns > 0 && score.mean_ns <= UINT64_C(1) << 48);
	}
}

TEST(success_rate_falls_to_zero_and_recovers)
{
	struct spokei_score score = spokei_score_make();

	for (int i = 0; i < 300; i++)
		spokei_score_ended(&score, true);
	assert_true(score.successes < SPOKEI_SCORE_ONE / 1000);
	for (int i = 0; i < 300; i++)
		spokei_score_ended(&score, false);
	assert_int_equal(score.successes, SPOKEI_SCORE_ONE);
}

/* --- weights */

TEST(warm_up_weight_matches_dubbo)
{
	assert_int_equal(spokei_endpoint_warm(100, 600000, -5), 1);
	assert_int_equal(spokei_endpoint_warm(100, 600000, 0), 1);
	assert_int_equal(spokei_endpoint_warm(100, 600000, 5999), 1);
	assert_int_equal(spokei_endpoint_warm(100, 600000, 300000), 50);
	assert_int_equal(spokei_endpoint_warm(100, 600000, 599999), 99);
	assert_int_equal(spokei_endpoint_warm(100, 600000, 600000), 100);
	assert_int_equal(spokei_endpoint_warm(100, 0, 1), 100);
	assert_int_equal(spokei_endpoint_warm(0, 600000, -5), 0);
}
