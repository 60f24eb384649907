/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether there may be a retry, and when an attempt is slow: from counters, without a
 * clock.
 */
#include "cluster/policy/budget.h"

#include "core/engine/engine.h"
#include "core/text/option.h"

/* --- the retry budget, as counters for each second. Any 10 s begin within one slot: the retries of
 * that slot count, and its calls do not, so that the budget errs on the safe side. */

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

bool spokei_budget_has(struct spokei_budget *budget, uint64_t now_ns)
{
	spokei_budget_roll(budget, now_ns);
	return (budget->retries_sum + 1) * CALLS_PER_RETRY <=
	       budget->calls_sum + FREE_RETRIES * CALLS_PER_RETRY;
}

bool spokei_budget_take(struct spokei_budget *budget, uint64_t now_ns)
{
	if (!spokei_budget_has(budget, now_ns))
		return false;
	budget->retries[budget->slot]++;
	budget->retries_sum++;
	return true;
}

/* --- slow attempts: estimates a percentile of response times from one number */

#define PARTS 2000u /* a step is a percentage of this part of the estimate: at most 5% */

void spokei_hedge_note(struct spokei_hedge *hedge, uint64_t after, uint64_t took_ns)
{
	unsigned percent = spokei_option_percentile(after);
	uint64_t part = hedge->slow_ns / PARTS + 1;

	if (percent == 0)
		return;
	hedge->answers += hedge->answers < SPOKEI_HEDGE_LEAST;
	if (hedge->slow_ns == 0)
		hedge->slow_ns = took_ns;
	else if (took_ns > hedge->slow_ns)
		hedge->slow_ns = spokei_later(hedge->slow_ns, part * percent);
	else
		hedge->slow_ns -= hedge->slow_ns > part * (100 - percent) ? part * (100 - percent)
									  : hedge->slow_ns - 1;
}

uint64_t spokei_hedge_after(const struct spokei_hedge *hedge, uint64_t after)
{
	if (spokei_option_percentile(after) == 0)
		return after;
	if (hedge->answers < SPOKEI_HEDGE_LEAST)
		return 0;
	return hedge->slow_ns < SPOKEI_HEDGE_MIN_NS ? SPOKEI_HEDGE_MIN_NS : hedge->slow_ns;
}
