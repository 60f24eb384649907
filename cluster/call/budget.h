/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many attempts a consumer may make beside the first ones: in any 10 s at most a fifth of the
 * calls that were begun in them, and 100. A decider: time comes in. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_BUDGET_H
#define SPOKEI_CLUSTER_CALL_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define SPOKEI_BUDGET_SLOT_NS UINT64_C(1000000000)
#define SPOKEI_BUDGET_SLOTS 11u /* 10 s that may begin anywhere reach into so many */

/* All zero at first. */
struct spokei_budget {
	uint64_t second; /* the present slot is of this one ... */
	uint64_t end_ns; /* ... which ends then */
	uint32_t slot;
	uint32_t calls[SPOKEI_BUDGET_SLOTS];
	uint32_t retries[SPOKEI_BUDGET_SLOTS];
	uint64_t calls_sum;   /* of the last 10 slots, the present one too */
	uint64_t retries_sum; /* of all slots: what is older than 10 s may still count */
};

/* Time passes: what is older is forgotten. A time before the last one is taken for the last. */
void spokei_budget_roll(struct spokei_budget *budget, uint64_t now_ns);

/* A call was begun. */
static inline void spokei_budget_called(struct spokei_budget *budget, uint64_t now_ns)
{
	if (now_ns >= budget->end_ns)
		spokei_budget_roll(budget, now_ns);
	budget->calls[budget->slot]++;
	budget->calls_sum++;
}

/* May another attempt be made now? Then it counts. */
bool spokei_budget_take(struct spokei_budget *budget, uint64_t now_ns);

#endif
