/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the recent response time and success rate of an endpoint. */
#include "cluster/endpoints/score.h"

#define SHARE 16u
#define MEAN_MAX_NS (UINT64_C(1) << 48) /* 78 hours */

void spokei_score_answered(struct spokei_score *score, uint64_t took_ns, uint64_t now_ns)
{
	uint64_t pause_ns = now_ns - score->seen_ns;
	uint64_t took = took_ns < MEAN_MAX_NS ? took_ns : MEAN_MAX_NS;
	/* 0 means "no mean". */
	int64_t sample = took ? (int64_t)took : 1;
	int64_t mean = (int64_t)score->mean_ns;

	if (mean == 0 || pause_ns >= SPOKEI_SCORE_NS)
		mean = sample;
	else if (pause_ns <= SPOKEI_SCORE_NS / SHARE)
		mean += (sample - mean) / (int64_t)SHARE;
	else
		/* In units of 1/1024, so that it cannot overflow. */
		mean += (sample - mean) / 1024 * (int64_t)(pause_ns / (SPOKEI_SCORE_NS / 1024));
	score->mean_ns = mean > 0 ? (uint64_t)mean : 1;
	score->seen_ns = now_ns;
}
