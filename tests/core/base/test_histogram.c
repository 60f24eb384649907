/* SPDX-License-Identifier: Apache-2.0 */
/* The histogram, token buckets and backoff, SipHash. */
#include "core/base/pace.h"
#include "core/base/siphash.h"
#include "tests/support/test.h"

#include <spoke/histogram.h>

#include <stdlib.h>
#include <string.h>

/* --- the histogram, compared with sorted samples of several distributions, and its limits */

#define TOP ((UINT64_C(1) << 48) - 1)
#define MILLION 1000000u

enum {
	SAMPLES = 3000,
	ROUNDS = 200
};

static uint64_t roll(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Fills in samples that are spread over all powers of two, or lie close together. */
static size_t fill(uint64_t *samples, uint64_t *seed)
{
	size_t count = (size_t)(1 + roll(seed) % SAMPLES);
	uint64_t narrow = roll(seed) % 48;

	for (size_t i = 0; i < count; i++)
		samples[i] = (roll(seed) & TOP) >> (roll(seed) & 1 ? narrow : roll(seed) % 48);
	return count;
}

/* Asserts that the value is the upper end of the sample's bucket: at most 1/32 too large, and at
 * most max. */
static void assert_near(uint64_t got, uint64_t exact, uint64_t max)
{
	assert_true(got >= exact);
	assert_true(got <= exact + exact / 32);
	assert_true(got <= max);
}

TEST(percentiles_match_sorted_samples)
{
	static const uint32_t asked[] = { 0,      1,      100000, 500000, 900000,
					  990000, 999000, 999900, MILLION };
	static struct spoke_histogram histogram;
	static uint64_t samples[SAMPLES];
	uint64_t seed = 7;

	for (int round = 0; round < ROUNDS; round++) {
		size_t count = fill(samples, &seed);
		uint64_t sum = 0;

		memset(&histogram, 0, sizeof(histogram));
		for (size_t i = 0; i < count; i++) {
			spoke_histogram_add(&histogram, samples[i]);
			sum += samples[i];
		}
		qsort(samples, count, sizeof(samples[0]), by_size);
		assert_int_equal(histogram.count, count);
		assert_int_equal(histogram.max, samples[count - 1]);
		assert_int_equal(spoke_histogram_mean(&histogram), sum / count);
		for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
			size_t rank = (count * asked[i] + MILLION - 1) / MILLION;

			assert_near(spoke_histogram_percentile(&histogram, asked[i]),
				    samples[rank > 0 ? rank - 1 : 0], histogram.max);
		}
		assert_int_equal(spoke_histogram_percentile(&histogram, MILLION),
				 samples[count - 1]);
	}
}

TEST(value_lies_within_ends_of_its_bucket)
{
	uint64_t from = 0;

	for (size_t i = 0; i < SPOKE_HISTOGRAM_BUCKETS; i++) {
		uint64_t end = spoke_histogram_bucket_end(i);
		const uint64_t values[] = { from, from + (end - from) / 2, end };

		for (size_t v = 0; v < 3; v++) {
			struct spoke_histogram histogram = { 0 };

			spoke_histogram_add(&histogram, values[v]);
			assert_int_equal(histogram.bucket[i], 1);
		}
		assert_true(end >= from);
		from = end + 1;
	}
	assert_int_equal(from, TOP + 1);
	assert_int_equal(spoke_histogram_bucket_end(SPOKE_HISTOGRAM_BUCKETS), TOP);
}

TEST(too_large_value_counts_as_largest)
{
	struct spoke_histogram histogram = { 0 };

	spoke_histogram_add(&histogram, TOP + 1);
	spoke_histogram_add(&histogram, UINT64_MAX);
	assert_int_equal(histogram.bucket[SPOKE_HISTOGRAM_BUCKETS - 1], 2);
	assert_int_equal(histogram.max, TOP);
	assert_int_equal(histogram.sum, 2 * TOP);
	assert_int_equal(spoke_histogram_percentile(&histogram, 500000), TOP);
}

TEST(empty_histogram_returns_zero)
{
	struct spoke_histogram histogram = { 0 };

	spoke_histogram_add_many(&histogram, 5, 0);
	assert_int_equal(histogram.max, 0);
	assert_int_equal(spoke_histogram_percentile(&histogram, MILLION), 0);
	assert_int_equal(spoke_histogram_mean(&histogram), 0);
}

TEST(percentiles_work_near_maximum_count)
{
	struct spoke_histogram histogram = { 0 };

	spoke_histogram_add_many(&histogram, 1, UINT64_MAX / 2);
	spoke_histogram_add_many(&histogram, 2, UINT64_MAX / 2);
	assert_int_equal(spoke_histogram_percentile(&histogram, 499999), 1);
	assert_int_equal(spoke_histogram_percentile(&histogram, 500001), 2);
	assert_int_equal(spoke_histogram_percentile(&histogram, UINT32_MAX), 2);
}

TEST(merged_histograms_equal_one_histogram)
{
	static struct spoke_histogram one;
	static struct spoke_histogram two;
	static struct spoke_histogram all;
	static uint64_t samples[SAMPLES];
	uint64_t seed = 9;

	for (int round = 0; round < ROUNDS; round++) {
		size_t count = fill(samples, &seed);

		for (size_t i = 0; i < count; i++) {
			spoke_histogram_add(roll(&seed) & 1 ? &one : &two, samples[i]);
			spoke_histogram_add(&all, samples[i]);
		}
		spoke_histogram_merge(&one, &two);
		assert_memory_equal(&one, &all, sizeof(one));
		memset(&two, 0, sizeof(two));
	}
}

TEST(difference_to_copy_is_later_values)
{
	static struct spoke_histogram histogram;
	static struct spoke_histogram before;
	static struct spoke_histogram later;
	static uint64_t samples[SAMPLES];
	uint64_t seed = 11;

	for (int round = 0; round < ROUNDS; round++) {
		struct spoke_histogram since;
		size_t count = fill(samples, &seed);

		before = histogram;
		memset(&later, 0, sizeof(later));
		for (size_t i = 0; i < count; i++) {
			spoke_histogram_add(&histogram, samples[i]);
			spoke_histogram_add(&later, samples[i]);
		}
		since = histogram;
		spoke_histogram_since(&since, &before);
		assert_near(since.max, later.max, histogram.max);
		since.max = later.max;
		assert_memory_equal(&since, &later, sizeof(since));
	}
	before = histogram;
	spoke_histogram_since(&histogram, &before);
	memset(&later, 0, sizeof(later));
	assert_memory_equal(&histogram, &later, sizeof(later));
}

/* --- token buckets and backoff: rates without rounding errors, bounds, and extreme values */

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

/* --- sipHash-1-3: published vectors */

/* The key is 00 01 .. 0f, and a text of `len` bytes is 00 01 02 ..: the vectors of the authors'
 * program, here as the Rust library has them. */
TEST(siphash_1_3_gives_published_hashes)
{
	static const struct {
		size_t len;
		uint64_t hash;
	} vectors[] = {
		{ 0, UINT64_C(0xabac0158050fc4dc) },  { 1, UINT64_C(0xc9f49bf37d57ca93) },
		{ 2, UINT64_C(0x82cb9b024dc7d44d) },  { 3, UINT64_C(0x8bf80ab8e7ddf7fb) },
		{ 4, UINT64_C(0xcf75576088d38328) },  { 5, UINT64_C(0xdef9d52f49533b67) },
		{ 6, UINT64_C(0xc50d2b50c59f22a7) },  { 7, UINT64_C(0xd3927d989bb11140) },
		{ 8, UINT64_C(0x369095118d299a8e) },  { 9, UINT64_C(0x25a48eb36c063de4) },
		{ 10, UINT64_C(0x79de85ee92ff097f) }, { 11, UINT64_C(0x70c118c1f94dc352) },
		{ 12, UINT64_C(0x78a384b157b4d9a2) }, { 13, UINT64_C(0x306f760c1229ffa7) },
		{ 14, UINT64_C(0x605aa111c0f95d34) }, { 15, UINT64_C(0xd320d86d2a519956) },
		{ 16, UINT64_C(0xcc4fdd1a7d908b66) }, { 63, UINT64_C(0x9d199062b7bbb3a8) },
	};
	static const uint64_t key[2] = { UINT64_C(0x0706050403020100),
					 UINT64_C(0x0f0e0d0c0b0a0908) };
	unsigned char text[1 + 63]; /* also without alignment */

	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		for (size_t at = 0; at < 63; at++)
			text[i % 2 + at] = (unsigned char)at;
		assert_int_equal(spokei_siphash(key, text + i % 2, vectors[i].len),
				 vectors[i].hash);
	}
}

TEST(siphash_depends_on_both_halves_of_its_key)
{
	static const uint64_t keys[3][2] = { { 0, 0 }, { 1, 0 }, { 0, 1 } };
	uint64_t hashes[3];

	for (unsigned i = 0; i < 3; i++)
		hashes[i] = spokei_siphash(keys[i], "service", 7);
	assert_int_not_equal(hashes[0], hashes[1]);
	assert_int_not_equal(hashes[0], hashes[2]);
	assert_int_not_equal(hashes[1], hashes[2]);
}
