/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How values are spread: counts in buckets that grow with the values, so that any percentile is
 * known to within 1/32 of itself, from 0 to 2^48 - 1 ns (78 hours); what is larger counts as that.
 * A plain struct of 11 KiB: zero-initialise it, copy it, compare it. Any thread, one at a time.
 */
#ifndef SPOKE_HISTOGRAM_H
#define SPOKE_HISTOGRAM_H

#include <spoke/base.h>

#include <stddef.h>
#include <stdint.h>

SPOKE_BEGIN_DECLS

/* 32 of each power of two, from 2^5 to 2^47, and 32 below. */
#define SPOKE_HISTOGRAM_BUCKETS 1408u

struct spoke_histogram {
	uint64_t count;
	uint64_t sum; /* modulo 2^64: 584 years */
	uint64_t max;
	uint64_t bucket[SPOKE_HISTOGRAM_BUCKETS];
};

/* The largest value that is counted in this bucket, and in none below; of one that is none, 2^48
 * - 1.
 */
SPOKE_API uint64_t spoke_histogram_bucket_end(size_t bucket);

/* Counts a value. */
SPOKE_API void spoke_histogram_add(struct spoke_histogram *histogram, uint64_t value);

/* Counts a value `times` times. */
SPOKE_API void spoke_histogram_add_many(struct spoke_histogram *histogram, uint64_t value,
					uint64_t times);

/* Adds what another one has counted. */
SPOKE_API void spoke_histogram_merge(struct spoke_histogram *histogram,
				     const struct spoke_histogram *other);

/* Takes away what an earlier copy of it has counted: what came since is left. `max` is then that of
 * the highest bucket that is left. */
SPOKE_API void spoke_histogram_since(struct spoke_histogram *histogram,
				     const struct spoke_histogram *before);

/* The value that `per_million` of them do not exceed, as 990,000 for p99: the upper end of its
 * bucket, and never more than max. 0 if nothing was counted. */
SPOKE_API uint64_t spoke_histogram_percentile(const struct spoke_histogram *histogram,
					      uint32_t per_million);

/* The mean, rounded down; 0 if nothing was counted. */
SPOKE_API uint64_t spoke_histogram_mean(const struct spoke_histogram *histogram);

SPOKE_END_DECLS

#endif
