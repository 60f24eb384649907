/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the factor of the conversion from nanoseconds to ticks. */
#include "timer/scale.h"

/*
 * With 2^shift the power of two at or above tick_ns and factor = ceil(2^(63 + shift) / tick_ns),
 * ns * factor >> (63 + shift) is the exact quotient for every ns below 2^63 (Granlund and
 * Montgomery, "Division by invariant integers using multiplication", 1994). The factor comes from a
 * long division, so that no 128-bit type is needed for it.
 */
struct spokei_scale spokei_scale_make(uint64_t origin_ns, uint64_t tick_ns)
{
	unsigned shift = spokei_log2_up(tick_ns);
	uint64_t factor = 0;
	uint64_t rest = 1;

	if (tick_ns == 1)
		return (struct spokei_scale){ origin_ns, tick_ns, UINT64_C(1) << 63, 0 };
	for (unsigned bit = 0; bit < 63 + shift; bit++) {
		rest <<= 1;
		factor <<= 1;
		if (rest >= tick_ns) {
			rest -= tick_ns;
			factor |= 1;
		}
	}
	return (struct spokei_scale){ origin_ns, tick_ns, factor + (rest != 0), (uint8_t)shift };
}
