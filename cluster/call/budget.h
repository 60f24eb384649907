/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The retry budget of a consumer: in any 10 s at most 100 retries plus a fifth of the calls that
 * begin in that time. Pure: the caller passes the time. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_BUDGET_H
#define SPOKEI_CLUSTER_CALL_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

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

/* Takes a retry from the budget. Returns false if there is none left. */
bool spokei_budget_take(struct spokei_budget *budget, uint64_t now_ns);

#endif
