/* SPDX-License-Identifier: Apache-2.0 */
/* The histogram, compared with sorted samples of several distributions, and its limits. */
#include "tests/support/test.h"

#include <spoke/histogram.h>

#include <stdlib.h>
#include <string.h>

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
