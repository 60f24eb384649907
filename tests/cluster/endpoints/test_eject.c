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
