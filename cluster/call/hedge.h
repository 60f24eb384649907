/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When an attempt of a method is slow: after a fixed time, or after a percentile of the method's
 * response times. The percentile is estimated: each answer moves the estimate up or down by a part
 * of itself, and more steps lead up the higher the percentile is. So only whether an answer took
 * longer matters, and the answer of a backup is evidence too: the attempt before would have taken
 * longer still. Pure; part of a method, on the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_HEDGE_H
#define SPOKEI_CLUSTER_CALL_HEDGE_H

#include <stdint.h>

#define SPOKEI_HEDGE_LEAST 100u /* answers before an estimate is used */
#define SPOKEI_HEDGE_MIN_NS UINT64_C(1000000)

/* Zero-initialised. */
struct spokei_hedge {
	uint64_t slow_ns; /* the estimate; 0: none yet */
	uint32_t answers; /* up to SPOKEI_HEDGE_LEAST */
};

/* Counts an answer that took `took_ns`. `after`: the setting, a time or a percentile. */
void spokei_hedge_note(struct spokei_hedge *hedge, uint64_t after, uint64_t took_ns);

/* Returns how long an attempt may be open before it is slow; 0: not known, or `after` is 0. */
uint64_t spokei_hedge_after(const struct spokei_hedge *hedge, uint64_t after);

#endif
