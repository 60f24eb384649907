/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the factor of the conversion from nanoseconds to ticks. */
#include "timer/scale.h"

/*
 * With 2^shift the power of two at or above tick_ns and factor = ceil(2^(63 + shift) / tick_ns),
 * ns * factor >> (63 + shift) is the exact quotient for every ns below 2^63 (Granlund and
 * Montgomery, "Division by invariant integers using multiplication", 1994). The factor comes from a
 * long division, so that no 128-bit type is needed for it.
 */
static uint64_t factor_of(uint64_t tick_ns, unsigned shift)
{
	uint64_t factor = 0;
	uint64_t rest = 1;

	for (unsigned bit = 0; bit < 63 + shift; bit++) {
		rest <<= 1;
		factor <<= 1;
		if (rest >= tick_ns) {
			rest -= tick_ns;
			factor |= 1;
		}
	}
	return factor + (rest != 0);
}

/*
 * With few = ceil(2^64 / tick_ns) the quotient is exact for every ns with ns * excess < 2^64, where
 * excess = few * tick_ns - 2^64. For ticks of 1 ns `few` would not fit.
 */
struct spokei_scale spokei_scale_make(uint64_t origin_ns, uint64_t tick_ns)
{
	unsigned shift = spokei_log2_up(tick_ns);
	uint64_t few = UINT64_MAX / tick_ns + 1;
	uint64_t excess = few * tick_ns;
	uint64_t few_ns = SPOKEI_SCALE_FEW_MAX_NS;

	if (tick_ns == 1)
		return (struct spokei_scale){ origin_ns, tick_ns, UINT64_C(1) << 63, 0, 0, 0, 0 };
	if (excess > 0 && UINT64_MAX / excess < few_ns)
		few_ns = UINT64_MAX / excess;
	return (struct spokei_scale){
		.origin_ns = origin_ns,
		.tick_ns = tick_ns,
		.factor = factor_of(tick_ns, shift),
		.shift = (uint8_t)shift,
		.few = few,
		.few_ns = few_ns / tick_ns * tick_ns,
		.few_ticks = few_ns / tick_ns,
	};
}
