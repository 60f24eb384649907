/* SPDX-License-Identifier: Apache-2.0 */
/* A rolling restart: providers drain and start again one after another, under calls that are never
 * retried. */
#include "tests/cluster/clusterrig.h"
#include "tests/support/test.h"

#include <spoke/engine.h>

#define ROUNDS 3u
#define EVERY (2 * MS) /* between two calls */

static struct spoke_method *echo;

/* Makes calls for this long. */
static void call_for(uint64_t ns)
{
	for (uint64_t end_ns = clusterrig.world.now_ns + ns; clusterrig.world.now_ns < end_ns;) {
		(void)clusterrig_call(echo);
		clusterrig_pass(EVERY);
	}
}

/* Drains a provider, starts it again, and waits until it is connected. */
static void restart(unsigned which)
{
	const struct rig_provider *by = &clusterrig.providers[which];

	assert_int_equal(spoke_engine_drain(by->engine, 10 * SECOND), 0);
	call_for(200 * MS);
	assert_int_equal(spoke_provider_connections(by->provider), 0);
	clusterrig_kill(which);
	call_for(100 * MS);
	clusterrig_start(which);
	for (unsigned i = 0; i < 100 && spoke_consumer_ready(clusterrig.consumer) < 2; i++)
		call_for(20 * MS);
	assert_int_equal(spoke_consumer_ready(clusterrig.consumer), 2);
}

FIXTURE(clusterrig_set_up, clusterrig_tear_down);

/* Requests are on their way for 15 ms, as is READONLY. */
TEST(rolling_restart_loses_no_call)
{
	static const struct spokei_vnet_link slow = { .latency_ns = 15 * MS };

	spokei_vnet_set_all(clusterrig.world.net, &slow);
	clusterrig_provide(2);
	clusterrig_consume("retries=0&timeout=500", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 2 * ROUNDS; i++)
		restart(i % 2);
	clusterrig_pass(SECOND);
	assert_int_equal(clusterrig.ended, clusterrig.call_count);
	for (unsigned i = 0; i < clusterrig.call_count; i++)
		assert_int_equal(clusterrig.calls[i].error, SPOKE_OK);
	assert_true(clusterrig.call_count > 1000);
}
