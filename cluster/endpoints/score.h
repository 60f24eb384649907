/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recent health of an endpoint: mean response time and success rate. Pure: time is a parameter.
 * Part of an endpoint, on its thread.
 */
#ifndef SPOKEI_CLUSTER_ENDPOINTS_SCORE_H
#define SPOKEI_CLUSTER_ENDPOINTS_SCORE_H

#include <stdbool.h>
#include <stdint.h>

#define SPOKEI_SCORE_ONE (UINT32_C(1) << 16)
#define SPOKEI_SCORE_NS UINT64_C(30000000000) /* older values are ignored */

struct spokei_score {
	uint64_t mean_ns;   /* weighted mean of answered attempts; 0: none */
	uint64_t seen_ns;   /* time of the last answer */
	uint32_t successes; /* success rate in 1/65,536 */
};

static inline struct spokei_score spokei_score_make(void)
{
	return (struct spokei_score){ .successes = SPOKEI_SCORE_ONE };
}

/* Adds a response time. It counts for 1/16 of the mean, and more after a pause, up to all of
 * it after SPOKEI_SCORE_NS. */
void spokei_score_answered(struct spokei_score *score, uint64_t took_ns, uint64_t now_ns);

/* Adds the result of an attempt. */
static inline void spokei_score_ended(struct spokei_score *score, bool failed)
{
	if (failed)
		score->successes -= score->successes / 16;
	else
		score->successes += (SPOKEI_SCORE_ONE - score->successes + 15) / 16;
}

/* Returns the current mean. */
static inline uint64_t spokei_score_mean(const struct spokei_score *score, uint64_t now_ns)
{
	return now_ns - score->seen_ns >= SPOKEI_SCORE_NS ? 0 : score->mean_ns;
}

#endif
