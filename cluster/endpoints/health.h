/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The health of an endpoint: recent response times and successes, and its ejection. Pure: time and
 * random numbers are parameters. Part of an endpoint, on its thread.
 */
#ifndef SPOKEI_CLUSTER_ENDPOINTS_HEALTH_H
#define SPOKEI_CLUSTER_ENDPOINTS_HEALTH_H

#include "cluster/config/owners.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- score */

#define SPOKEI_SCORE_ONE (UINT32_C(1) << 16)
#define SPOKEI_SCORE_NS UINT64_C(30000000000) /* older values are ignored */
#define SPOKEI_SCORE_SHARE 16u
#define SPOKEI_SCORE_MEAN_MAX_NS (UINT64_C(1) << 48) /* 78 hours */

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
static inline void spokei_score_answered(struct spokei_score *score, uint64_t took_ns,
					 uint64_t now_ns)
{
	uint64_t pause_ns = now_ns - score->seen_ns;
	uint64_t took = took_ns < SPOKEI_SCORE_MEAN_MAX_NS ? took_ns : SPOKEI_SCORE_MEAN_MAX_NS;
	/* 0 means "no mean". */
	int64_t sample = took ? (int64_t)took : 1;
	int64_t mean = (int64_t)score->mean_ns;

	if (mean == 0 || pause_ns >= SPOKEI_SCORE_NS)
		mean = sample;
	else if (pause_ns <= SPOKEI_SCORE_NS / SPOKEI_SCORE_SHARE)
		mean += (sample - mean) / (int64_t)SPOKEI_SCORE_SHARE;
	else
		/* In units of 1/1024, so that it cannot overflow. */
		mean += (sample - mean) / 1024 * (int64_t)(pause_ns / (SPOKEI_SCORE_NS / 1024));
	score->mean_ns = mean > 0 ? (uint64_t)mean : 1;
	score->seen_ns = now_ns;
}

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

/*
 * --- outlier ejection: an endpoint is excluded after consecutive failures, or when too many of the
 * attempts of an interval fail, or when it is much slower than the others; for a time that grows by
 * 1.6 each time. After that one attempt (the probe) decides. Attempts that began before the
 * ejection do not count. Refused attempts count neither as failures nor as answers: a provider that
 * sheds load is no outlier, and the speed of a refusal says nothing.
 */

#define SPOKEI_EJECT_CAP_NS UINT64_C(300000000000)

/* The attempts of an interval. Zero-initialised: none has begun. */
struct spokei_eject_window {
	uint64_t begun_ns; /* 0: no interval */
	uint64_t ended;    /* attempts that had ended when it began */
	uint32_t failed;   /* since then */
};

/* Zero-initialised: not ejected. */
struct spokei_eject {
	uint32_t row;                      /* consecutive failures */
	uint32_t times;                    /* ejections, minus one for each quiet period since */
	bool aside;                        /* ejected, until an attempt is answered */
	bool probing;                      /* the probe is in flight */
	uint64_t since_ns;                 /* start of the ejection */
	uint64_t until_ns;                 /* earliest time of the probe */
	uint64_t calm_ns;                  /* end of the current quiet period */
	uint64_t ignored;                  /* attempts whose results did not matter */
	struct spokei_eject_window errors; /* begins with a failure */
	struct spokei_eject_window pace;   /* of answers, for their mean */
};

/* Returns whether the endpoint is excluded. */
static inline bool spokei_eject_excludes(const struct spokei_eject *eject, uint64_t now_ns)
{
	return eject->aside && (eject->probing || now_ns < eject->until_ns);
}

/* Counts the beginning of an attempt, which is the probe if one is due. */
static inline void spokei_eject_begun(struct spokei_eject *eject, uint64_t now_ns)
{
	eject->probing |= eject->aside && now_ns >= eject->until_ns;
}

/* Counts a failed attempt that began at `begun_ns`. `alone`: no other endpoint can take calls,
 * so this one is not ejected. Returns whether it is ejected now. */
bool spokei_eject_failed(struct spokei_eject *eject, const struct spokei_eject_rule *rule,
			 uint64_t begun_ns, uint64_t now_ns, bool alone, uint64_t dice);

/* Counts a failed attempt in its interval. `ended`: attempts that have ever ended, without the
 * ignored ones, this one included. Returns whether the endpoint is to be ejected for its errors. */
bool spokei_eject_rate(struct spokei_eject *eject, const struct spokei_eject_rule *rule,
		       uint64_t ended, uint64_t now_ns);

/* Returns whether the endpoint is to be ejected for its latency: `mean_ns` is that of its answers,
 * `others_ns` that of the others, 0: not known. */
bool spokei_eject_slow(struct spokei_eject *eject, const struct spokei_eject_rule *rule,
		       uint64_t ended, uint64_t mean_ns, uint64_t others_ns, uint64_t now_ns);

/* Ejects the endpoint for one of these two. */
void spokei_eject_start(struct spokei_eject *eject, const struct spokei_eject_rule *rule,
			uint64_t now_ns, uint64_t dice);

/* Returns how many of `count` endpoints may be ejected at once for these two, if others are
 * ejected: a share in percent, at least one. */
static inline size_t spokei_eject_most(size_t count, uint32_t share)
{
	size_t most = count * share / 100;

	return most > 0 ? most : 1;
}

/* Returns whether it is ejected, or was recently. If not, an answer ends the row of failures only.
 */
static inline bool spokei_eject_remembers(const struct spokei_eject *eject)
{
	return eject->aside || eject->times > 0;
}

/* Counts an answered attempt that began at `begun_ns`. Returns whether that ends an ejection. */
bool spokei_eject_answered(struct spokei_eject *eject, const struct spokei_eject_rule *rule,
			   uint64_t begun_ns, uint64_t now_ns);

/* Counts an attempt whose result does not matter. */
static inline void spokei_eject_over(struct spokei_eject *eject)
{
	eject->probing = false;
	eject->ignored++;
}

/* Returns whether one more failure would eject the endpoint. */
static inline bool spokei_eject_near(const struct spokei_eject *eject,
				     const struct spokei_eject_rule *rule)
{
	return rule->failures > 0 && !eject->aside && eject->row + 1 >= rule->failures;
}

#endif
