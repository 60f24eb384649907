/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an endpoint did of late, as one sums up what was seen of its attempts. Judges only: time is a
 * parameter. Part of an endpoint, on its thread.
 */
#ifndef SPOKEI_CLUSTER_ENDPOINTS_SCORE_H
#define SPOKEI_CLUSTER_ENDPOINTS_SCORE_H

#include <stdbool.h>
#include <stdint.h>

#define SPOKEI_SCORE_ONE (UINT32_C(1) << 16)
#define SPOKEI_SCORE_NS UINT64_C(30000000000) /* what is older counts no more */

struct spokei_score {
	uint64_t mean_ns;   /* of the times of answered attempts, the newest count most; 0: none */
	uint64_t seen_ns;   /* when the last of them was answered */
	uint32_t successes; /* running share of attempts that did not fail, in 1/65,536 */
};

static inline struct spokei_score spokei_score_make(void)
{
	return (struct spokei_score){ .successes = SPOKEI_SCORE_ONE };
}

/* An attempt was answered after `took_ns`. Its share in the mean is a 16th, and more after a pause:
 * after SPOKEI_SCORE_NS all of it. */
void spokei_score_answered(struct spokei_score *score, uint64_t took_ns, uint64_t now_ns);

/* An attempt ended; it has failed or not. */
static inline void spokei_score_ended(struct spokei_score *score, bool failed)
{
	if (failed)
		score->successes -= score->successes / 16;
	else
		score->successes += (SPOKEI_SCORE_ONE - score->successes + 15) / 16;
}

/* The mean as of now. */
static inline uint64_t spokei_score_mean(const struct spokei_score *score, uint64_t now_ns)
{
	return now_ns - score->seen_ns >= SPOKEI_SCORE_NS ? 0 : score->mean_ns;
}

#endif
