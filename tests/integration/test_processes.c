/* SPDX-License-Identifier: Apache-2.0 */
/* Providers and consumers that are killed, and come again. */
#include "tests/integration/rig.h"

#include <stdio.h>

static struct rig_process *provider;
static struct rig_process *consumer;
static char address[64];

static void row_35_a_provider_that_is_killed_and_comes_again_is_found(void **state)
{
	struct rig_table table;

	(void)state;
	provider = rig_provider(NULL, "heartbeat=500");
	(void)snprintf(address, sizeof(address), "%s", rig_address(provider));
	consumer = rig_consumer(NULL, "url=dubbo://%s/demo.EchoService every=2 heartbeat=500",
				address);
	rig_until_stat(consumer, "calls_ok", 10);
	rig_kill(provider);
	provider = rig_provider(NULL, "listen=dubbo://%s", address);
	(void)rig_address(provider);
	rig_until_stat(provider, "requests_ok", 10);
	table = assert_all_ended_once(consumer);
	assert_in_range(table.ok, 20, table.taken);
	assert_ends_well(consumer);
	assert_ends_well(provider);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		RIG_TEST(row_35_a_provider_that_is_killed_and_comes_again_is_found),
	};

	return cmocka_run_group_tests_name("processes", tests, NULL, NULL);
}
