/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram of durations in ns. Bucket widths grow with the values, so that every percentile is
 * accurate to 1/32 of its value. The range is 0 to 2^48 - 1 ns (78 hours); larger values count as
 * the maximum. The struct takes 11 KiB and may be zero-initialised, copied and compared. Any
 * thread, one at a time.
 */
#ifndef SPOKE_HISTOGRAM_H
#define SPOKE_HISTOGRAM_H

#include <spoke/base.h>

#include <stddef.h>
#include <stdint.h>

SPOKE_BEGIN_DECLS

/* Number of buckets: 32 for each power of two from 2^5 to 2^47, and 32 below. */
#define SPOKE_HISTOGRAM_BUCKETS 1408u

/* The counts. Zero-initialised: empty. */
struct spoke_histogram {
	uint64_t count;
	uint64_t sum; /* modulo 2^64: 584 years */
	uint64_t max;
	uint64_t bucket[SPOKE_HISTOGRAM_BUCKETS];
};

/* Returns the largest value counted in this bucket; 2^48 - 1 for an index that is too large. */
SPOKE_API uint64_t spoke_histogram_bucket_end(size_t bucket);

/* Counts a value. */
SPOKE_API void spoke_histogram_add(struct spoke_histogram *histogram, uint64_t value);

/* Counts a value `times` times. */
SPOKE_API void spoke_histogram_add_many(struct spoke_histogram *histogram, uint64_t value,
					uint64_t times);

/* Adds the counts of `other`. */
SPOKE_API void spoke_histogram_merge(struct spoke_histogram *histogram,
				     const struct spoke_histogram *other);

/* Subtracts the counts of an earlier copy of the same histogram, so that the newer values remain.
 * `max` becomes the upper end of the highest bucket that is not empty. */
SPOKE_API void spoke_histogram_since(struct spoke_histogram *histogram,
				     const struct spoke_histogram *before);

/* Returns a percentile: `per_million` of the values do not exceed it, e.g. 990,000 for p99. The
 * result is the upper end of a bucket, at most `max`; 0 if the histogram is empty. */
SPOKE_API uint64_t spoke_histogram_percentile(const struct spoke_histogram *histogram,
					      uint32_t per_million);

/* Returns the mean, rounded down; 0 if the histogram is empty. */
SPOKE_API uint64_t spoke_histogram_mean(const struct spoke_histogram *histogram);

SPOKE_END_DECLS

#endif
