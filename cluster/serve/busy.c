/* SPDX-License-Identifier: Apache-2.0 */
/* Counts requests for which the pool is too small, and reports it at most once a minute. */
#include "cluster/serve/busy.h"

#include "core/engine/engine.h"

#include <inttypes.h>

#define NS_PER_MS UINT64_C(1000000)
#define LONG_NS (100 * NS_PER_MS)   /* a wait that is counted and reported ... */
#define TOLD_NS (60000 * NS_PER_MS) /* ... at most once in this time */

static void report(struct spoke_engine *engine, uint64_t waited_ns)
{
	struct spoke_pool pool;

	if (engine->pool_told_ns && engine->begin_ns - engine->pool_told_ns < TOLD_NS)
		return;
	engine->pool_told_ns = engine->begin_ns;
	spoke_engine_pool(engine, &pool);
	spokei_event(engine, SPOKE_ELIMIT,
		     "requests wait for the pool (%" PRIu64 " ms, %u queued of %u, %u threads): "
		     "raise pool.threads or pool.queue, or reply later instead of blocking",
		     waited_ns / NS_PER_MS, pool.queued, pool.queue_max, pool.threads_max);
}

void spokei_busy_waited(struct spoke_engine *engine, uint64_t waited_ns)
{
	if (waited_ns < LONG_NS)
		return;
	spokei_count(engine, SPOKE_STAT_POOL_WAITED);
	report(engine, waited_ns);
}

void spokei_busy_full(struct spoke_engine *engine)
{
	spokei_count(engine, SPOKE_STAT_POOL_FULL);
	report(engine, 0);
}
