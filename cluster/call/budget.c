/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The retry budget, as counters for each second. Any 10 s begin within one slot: the retries of
 * that slot count, and its calls do not, so that the budget errs on the safe side.
 */
#include "cluster/call/budget.h"

#define CALLS_PER_RETRY UINT64_C(5)
#define FREE_RETRIES UINT64_C(100)

static unsigned slot_after(unsigned slot)
{
	return (slot + 1) % SPOKEI_BUDGET_SLOTS;
}

/* Reuses the oldest slot for the next second. Its calls have not counted any more. */
static void step(struct spokei_budget *budget)
{
	unsigned oldest = slot_after(budget->slot);

	budget->second++;
	budget->slot = oldest;
	budget->retries_sum -= budget->retries[oldest];
	budget->retries[oldest] = 0;
	budget->calls[oldest] = 0;
	budget->calls_sum -= budget->calls[slot_after(oldest)];
}

void spokei_budget_roll(struct spokei_budget *budget, uint64_t now_ns)
{
	uint64_t second = now_ns / SPOKEI_BUDGET_SLOT_NS;

	if (now_ns < budget->end_ns)
		return;
	if (second - budget->second >= SPOKEI_BUDGET_SLOTS)
		*budget = (struct spokei_budget){ .second = second };
	while (budget->second < second)
		step(budget);
	budget->end_ns = (second + 1) * SPOKEI_BUDGET_SLOT_NS;
}

bool spokei_budget_take(struct spokei_budget *budget, uint64_t now_ns)
{
	spokei_budget_roll(budget, now_ns);
	if ((budget->retries_sum + 1) * CALLS_PER_RETRY >
	    budget->calls_sum + FREE_RETRIES * CALLS_PER_RETRY)
		return false;
	budget->retries[budget->slot]++;
	budget->retries_sum++;
	return true;
}
