/* SPDX-License-Identifier: Apache-2.0 */
/* Counting a value where each instruction counts: what spoke_histogram_add() does, without a call.
 */
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

	/* Values that have a bucket each wrap around here, and go with those that are clipped. */
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
