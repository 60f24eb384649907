/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates a percentile of response times from one number. */
#include "cluster/call/hedge.h"

#include "core/engine/engine.h"
#include "core/text/option.h"

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
