/* SPDX-License-Identifier: Apache-2.0 */
/* A log-linear histogram: one bucket for each value below 32, then 32 buckets for each power of
 * two. */
#include "core/base/histogram.h"

#define SUB_BITS SPOKEI_HISTOGRAM_SUB_BITS
#define SUBS (UINT64_C(1) << SUB_BITS)
#define VALUE_BITS SPOKEI_HISTOGRAM_VALUE_BITS
#define VALUE_MAX ((UINT64_C(1) << VALUE_BITS) - 1)
#define MILLION 1000000u

_Static_assert(SPOKE_HISTOGRAM_BUCKETS == SUBS * (VALUE_BITS - SUB_BITS + 1),
	       "every value has a bucket");

static uint64_t clip(uint64_t value)
{
	return value < VALUE_MAX ? value : VALUE_MAX;
}

/* Returns the bucket of a clipped value. */
static size_t bucket_of(uint64_t value)
{
	unsigned top;

	if (value < SUBS)
		return (size_t)value;
	top = 63u - (unsigned)__builtin_clzll(value);
	return (size_t)((top - SUB_BITS) * SUBS + (value >> (top - SUB_BITS)));
}

uint64_t spoke_histogram_bucket_end(size_t bucket)
{
	if (bucket < SUBS)
		return bucket;
	if (bucket >= SPOKE_HISTOGRAM_BUCKETS)
		return VALUE_MAX;
	return ((bucket % SUBS + SUBS + 1) << (bucket / SUBS - 1)) - 1;
}

void spoke_histogram_add(struct spoke_histogram *histogram, uint64_t value)
{
	spokei_histogram_add(histogram, value);
}

SPOKEI_NOINLINE void spoke_histogram_add_many(struct spoke_histogram *histogram, uint64_t value,
					      uint64_t times)
{
	uint64_t clipped = clip(value);

	if (times == 0)
		return;
	histogram->count += times;
	histogram->sum += clipped * times;
	histogram->bucket[bucket_of(clipped)] += times;
	if (clipped > histogram->max)
		histogram->max = clipped;
}

void spoke_histogram_merge(struct spoke_histogram *histogram, const struct spoke_histogram *other)
{
	histogram->count += other->count;
	histogram->sum += other->sum;
	if (other->max > histogram->max)
		histogram->max = other->max;
	for (size_t i = 0; i < SPOKE_HISTOGRAM_BUCKETS; i++)
		histogram->bucket[i] += other->bucket[i];
}

void spoke_histogram_since(struct spoke_histogram *histogram, const struct spoke_histogram *before)
{
	uint64_t max = 0;

	histogram->count -= before->count;
	histogram->sum -= before->sum;
	for (size_t i = 0; i < SPOKE_HISTOGRAM_BUCKETS; i++) {
		histogram->bucket[i] -= before->bucket[i];
		if (histogram->bucket[i] > 0)
			max = spoke_histogram_bucket_end(i);
	}
	if (max < histogram->max)
		histogram->max = max;
}

/* Returns the rank of a quantile among `count` values: rounded up, at least 1, without overflow. */
static uint64_t rank_of(uint64_t count, uint32_t per_million)
{
	uint64_t share = per_million < MILLION ? per_million : MILLION;
	uint64_t rank = count / MILLION * share + (count % MILLION * share + MILLION - 1) / MILLION;

	return rank > 0 ? rank : 1;
}

uint64_t spoke_histogram_percentile(const struct spoke_histogram *histogram, uint32_t per_million)
{
	uint64_t rank = rank_of(histogram->count, per_million);
	uint64_t seen = 0;

	if (histogram->count == 0)
		return 0;
	for (size_t i = 0; i < SPOKE_HISTOGRAM_BUCKETS; i++) {
		seen += histogram->bucket[i];
		if (seen >= rank) {
			uint64_t end = spoke_histogram_bucket_end(i);

			return end < histogram->max ? end : histogram->max;
		}
	}
	return histogram->max;
}

uint64_t spoke_histogram_mean(const struct spoke_histogram *histogram)
{
	return histogram->count > 0 ? histogram->sum / histogram->count : 0;
}
