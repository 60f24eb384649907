/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts nanoseconds to ticks and back. A division would cost more than the rest of arming a
 * timer, so the conversion multiplies. A plain value; any thread.
 */
#ifndef SPOKEI_TIMER_SCALE_H
#define SPOKEI_TIMER_SCALE_H

#include <stdint.h>

/* Largest time after tick 0 that can be converted, for every length of a tick. */
#define SPOKEI_SCALE_MAX_NS (UINT64_C(1) << 62)

#define SPOKEI_SCALE_FEW_MAX_NS (UINT64_C(1) << 44)

struct spokei_scale {
	uint64_t origin_ns; /* time of tick 0 */
	uint64_t tick_ns;
	uint64_t factor; /* floor(ns / tick_ns) == 2 * ns * factor >> (64 + shift) */
	uint8_t shift;
	/* For ns below few_ns, which is few_ticks ticks: floor(ns / tick_ns) == ns * few >> 64. */
	uint64_t few;
	uint64_t few_ns;
	uint64_t few_ticks;
};

/* Returns the exponent of the smallest power of two that is not below `value`; 0 for 0. */
static inline unsigned spokei_log2_up(uint64_t value)
{
	return value <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(value - 1);
}

struct spokei_scale spokei_scale_make(uint64_t origin_ns, uint64_t tick_ns);

/* Returns the whole ticks in `ns` (below 2^63) after tick 0. */
#if defined(__SIZEOF_INT128__) && !defined(SPOKEI_SCALE_DIVIDES)
__extension__ typedef unsigned __int128 spokei_uint128;

static inline uint64_t spokei_scale_ticks(const struct spokei_scale *scale, uint64_t ns)
{
	return (uint64_t)((spokei_uint128)(ns << 1) * scale->factor >> 64) >> scale->shift;
}

/* Returns the same for `ns` below few_ns, a little faster. */
static inline uint64_t spokei_scale_few(const struct spokei_scale *scale, uint64_t ns)
{
	return (uint64_t)((spokei_uint128)ns * scale->few >> 64);
}
#else
static inline uint64_t spokei_scale_ticks(const struct spokei_scale *scale, uint64_t ns)
{
	return ns / scale->tick_ns;
}

static inline uint64_t spokei_scale_few(const struct spokei_scale *scale, uint64_t ns)
{
	return ns / scale->tick_ns;
}
#endif

/* Returns the time of a tick on the caller's clock. */
static inline uint64_t spokei_scale_time(const struct spokei_scale *scale, uint64_t tick)
{
	return scale->origin_ns + tick * scale->tick_ns;
}

#endif
