/* SPDX-License-Identifier: Apache-2.0 */
/* Inlined spokei_histogram_add() for the hot path: spoke_histogram_add() without a call. */
#ifndef SPOKEI_CORE_BASE_HISTOGRAM_H
#define SPOKEI_CORE_BASE_HISTOGRAM_H

#include "timer/base.h"

#include <spoke/histogram.h>

#define SPOKEI_HISTOGRAM_SUB_BITS 5u /* 2^5 buckets for each power of two */
#define SPOKEI_HISTOGRAM_VALUE_BITS 48u

static inline void spokei_histogram_add(struct spoke_histogram *histogram, uint64_t value)
{
	unsigned top = 63u ^ (unsigned)__builtin_clzll(value | 1);
	unsigned shift = top - SPOKEI_HISTOGRAM_SUB_BITS;

	/* Values below 2^SUB_BITS have a bucket each; they wrap around here and take the path of
	 * clipped values. */
	if (SPOKEI_UNLIKELY(shift >= SPOKEI_HISTOGRAM_VALUE_BITS - SPOKEI_HISTOGRAM_SUB_BITS)) {
		spoke_histogram_add_many(histogram, value, 1);
		return;
	}
	histogram->count++;
	histogram->sum += value;
	histogram->bucket[(shift << SPOKEI_HISTOGRAM_SUB_BITS) + (value >> shift)]++;
	if (SPOKEI_UNLIKELY(value > histogram->max))
		histogram->max = value;
}

#endif
