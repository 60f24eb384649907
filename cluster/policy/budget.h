/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deciders beside the policies: whether the retry budget allows another attempt, and when an
 * attempt is so slow that it may get a backup.
 */
#ifndef SPOKEI_CLUSTER_POLICY_BUDGET_H
#define SPOKEI_CLUSTER_POLICY_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The retry budget of a consumer: in any 10 s at most 100 retries plus a fifth of the calls that
 * begin in that time. Pure: the caller passes the time. On the engine's thread.
 */

#define SPOKEI_BUDGET_SLOT_NS UINT64_C(1000000000)
#define SPOKEI_BUDGET_SLOTS 11u /* that any 10 s may touch */

/* Zero-initialised. */
struct spokei_budget {
	uint64_t second; /* of the present slot */
	uint64_t end_ns; /* when that second ends */
	uint32_t slot;
	uint32_t calls[SPOKEI_BUDGET_SLOTS];
	uint32_t retries[SPOKEI_BUDGET_SLOTS];
	uint64_t calls_sum;   /* of the last 10 slots, with the present one */
	uint64_t retries_sum; /* of all slots, so retries older than 10 s may count */
};

/* Moves on to the present time, and forgets older slots. Time that goes back is ignored. */
void spokei_budget_roll(struct spokei_budget *budget, uint64_t now_ns);

/* Counts a call that has begun. */
static inline void spokei_budget_called(struct spokei_budget *budget, uint64_t now_ns)
{
	if (now_ns >= budget->end_ns)
		spokei_budget_roll(budget, now_ns);
	budget->calls[budget->slot]++;
	budget->calls_sum++;
}

/* Returns whether the budget has a retry left. */
bool spokei_budget_has(struct spokei_budget *budget, uint64_t now_ns);

/* Takes a retry from the budget. Returns false if there is none left. */
bool spokei_budget_take(struct spokei_budget *budget, uint64_t now_ns);

/*
 * When an attempt of a method is slow: after a fixed time, or after a percentile of the method's
 * response times. The percentile is estimated: each answer moves the estimate up or down by a part
 * of itself, and more steps lead up the higher the percentile is. So only whether an answer took
 * longer matters, and the answer of a backup is evidence too: the attempt before would have taken
 * longer still. Pure; part of a method, on the engine's thread.
 */

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
