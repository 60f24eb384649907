/* SPDX-License-Identifier: Apache-2.0 */
/* Token buckets and backoff: rates without rounding errors, bounds, and extreme values. */
#include "core/base/pace.h"
#include "tests/support/test.h"

#define SECOND UINT64_C(1000000000)
#define START (7 * SECOND)

/* Takes single tokens until the bucket is empty. Returns their number. */
static unsigned drain(struct spokei_bucket *bucket, uint64_t now_ns)
{
	unsigned count = 0;

	while (spokei_bucket_take(bucket, 1, now_ns))
		count++;
	return count;
}

TEST(bucket_starts_full_with_its_burst)
{
	struct spokei_bucket bucket = spokei_bucket_make(10, 3, START);

	assert_int_equal(drain(&bucket, START), 3);
	assert_int_equal(drain(&bucket, START + 1000 * SECOND), 3);
}

TEST(bucket_refills_at_its_rate)
{
	struct spokei_bucket bucket = spokei_bucket_make(10, 3, START);

	assert_int_equal(drain(&bucket, START), 3);
	assert_int_equal(drain(&bucket, START + SECOND / 10 - 1), 0);
	assert_int_equal(drain(&bucket, START + SECOND / 10), 1);
	assert_int_equal(drain(&bucket, START + 3 * SECOND / 10), 2);
}

TEST(bucket_accumulates_no_rounding_error)
{
	static const uint32_t rates[] = { 1, 3, 7, 999, 1000003 };

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct spokei_bucket bucket = spokei_bucket_make(rates[i], UINT32_MAX, START);
		unsigned taken = 0;

		bucket.level = 0;
		/* A duration and a step that are multiples of no interval between tokens. */
		for (uint64_t now = START; now < START + 2 * SECOND; now += 1999)
			taken += drain(&bucket, now);
		taken += drain(&bucket, START + 2 * SECOND);
		assert_int_equal(taken, 2 * rates[i]);
	}
}

TEST(bucket_take_is_all_or_none)
{
	struct spokei_bucket bucket = spokei_bucket_make(1, 5, START);

	assert_false(spokei_bucket_take(&bucket, 6, START));
	assert_true(spokei_bucket_take(&bucket, 4, START));
	assert_false(spokei_bucket_take(&bucket, 2, START));
	assert_true(spokei_bucket_take(&bucket, 1, START));
	assert_true(spokei_bucket_take(&bucket, 0, START));
}

TEST(bucket_gains_nothing_when_time_goes_back)
{
	struct spokei_bucket bucket = spokei_bucket_make(1, 5, START);

	assert_int_equal(drain(&bucket, START), 5);
	assert_int_equal(drain(&bucket, START + SECOND), 1);
	assert_int_equal(drain(&bucket, START), 0);
	assert_int_equal(drain(&bucket, 0), 0);
	assert_int_equal(drain(&bucket, START + SECOND), 0);
	assert_int_equal(drain(&bucket, START + 2 * SECOND), 1);
}

TEST(bucket_next_is_first_successful_time)
{
	static const uint32_t rates[] = { 1, 3, 10, 999983, UINT32_MAX };

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct spokei_bucket bucket = spokei_bucket_make(rates[i], 8, START);
		struct spokei_bucket copy;
		uint64_t next;

		assert_true(spokei_bucket_next(&bucket, 8, START) == START);
		assert_true(spokei_bucket_take(&bucket, 8, START));
		next = spokei_bucket_next(&bucket, 5, START);
		assert_true(next > START);
		copy = bucket;
		assert_false(spokei_bucket_take(&copy, 5, next - 1));
		assert_true(spokei_bucket_take(&bucket, 5, next));
	}
}

TEST(bucket_next_is_never_for_impossible_take)
{
	struct spokei_bucket filling = spokei_bucket_make(10, 4, START);
	struct spokei_bucket fixed = spokei_bucket_make(0, 4, START);

	assert_true(spokei_bucket_next(&filling, 5, START) == SPOKEI_PACE_NEVER);
	assert_true(spokei_bucket_next(&fixed, 4, START) == START);
	assert_int_equal(drain(&fixed, START), 4);
	assert_true(spokei_bucket_next(&fixed, 1, START) == SPOKEI_PACE_NEVER);
	assert_int_equal(drain(&fixed, UINT64_MAX), 0);
}

TEST(bucket_does_not_overflow_at_maximum)
{
	struct spokei_bucket bucket = spokei_bucket_make(UINT32_MAX, UINT32_MAX, 0);
	struct spokei_bucket slow = spokei_bucket_make(1, UINT32_MAX, 0);

	assert_true(spokei_bucket_take(&bucket, UINT32_MAX, 0));
	assert_false(spokei_bucket_take(&bucket, UINT32_MAX, SECOND - 1));
	assert_true(spokei_bucket_take(&bucket, UINT32_MAX, UINT64_MAX));
	assert_true(spokei_bucket_next(&bucket, 1, UINT64_MAX) == SPOKEI_PACE_NEVER);
	assert_true(spokei_bucket_take(&slow, UINT32_MAX, 0));
	assert_true(spokei_bucket_next(&slow, UINT32_MAX, 0) == UINT32_MAX * SECOND);
	assert_false(spokei_bucket_take(&slow, UINT32_MAX, UINT32_MAX * SECOND - 1));
	assert_true(spokei_bucket_take(&slow, UINT32_MAX, UINT32_MAX * SECOND));
}

/* Returns the random number that selects the middle of the spread, so that the pause is unchanged.
 */
static uint64_t middle_of(uint64_t pause)
{
	return pause / 5;
}

TEST(backoff_grows_by_1_6_up_to_cap)
{
	static const uint64_t pauses[] = {
		100000, 160000, 256000, 409600, 655360, 1000000, 1000000
	};
	struct spokei_backoff backoff = { .first_ns = 100000, .cap_ns = 1000000 };

	for (uint32_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++)
		assert_true(spokei_backoff_pause(&backoff, i, middle_of(pauses[i])) == pauses[i]);
	assert_true(spokei_backoff_pause(&backoff, UINT32_MAX, middle_of(1000000)) == 1000000);
}

TEST(backoff_jitter_is_at_most_20_percent)
{
	struct spokei_backoff backoff = { .first_ns = 1000, .cap_ns = 1000 };
	unsigned seen[401] = { 0 };

	for (uint64_t dice = 0; dice < 401; dice++) {
		uint64_t pause = spokei_backoff_pause(&backoff, 3, dice * 401 + dice);

		assert_in_range(pause, 800, 1200);
		seen[pause - 800]++;
	}
	for (int i = 0; i < 401; i++)
		assert_int_equal(seen[i], 1);
	assert_in_range(spokei_backoff_pause(&backoff, 0, UINT64_MAX), 800, 1200);
}

TEST(backoff_depends_on_attempt_and_dice_only)
{
	struct spokei_backoff backoff = { .first_ns = SECOND / 10, .cap_ns = 30 * SECOND };

	for (uint32_t attempt = 0; attempt < 20; attempt++) {
		uint64_t dice = attempt * UINT64_C(0x9e3779b97f4a7c15);
		uint64_t pause = spokei_backoff_pause(&backoff, attempt, dice);

		assert_true(pause == spokei_backoff_pause(&backoff, attempt, dice));
		assert_true(pause <= 36 * SECOND);
	}
}

TEST(backoff_handles_extreme_values)
{
	uint64_t most = UINT64_C(1) << 62;
	struct spokei_backoff tiny = { .first_ns = 1, .cap_ns = most };
	struct spokei_backoff none = { .first_ns = 0, .cap_ns = most };
	struct spokei_backoff upside_down = { .first_ns = SECOND, .cap_ns = 5 };

	assert_true(spokei_backoff_pause(&tiny, UINT32_MAX, middle_of(most)) == most);
	assert_true(spokei_backoff_pause(&tiny, 100, middle_of(most)) == most);
	assert_true(spokei_backoff_pause(&tiny, 1, 0) == 2);
	assert_true(spokei_backoff_pause(&none, UINT32_MAX, 77) == 0);
	assert_true(spokei_backoff_pause(&upside_down, 0, 1) == 5);
	assert_true(spokei_backoff_pause(&upside_down, 9, 1) == 5);
}
