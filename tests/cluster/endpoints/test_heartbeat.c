/* SPDX-License-Identifier: Apache-2.0 */
/* The heartbeat interval in a provider's URL: the shorter one of both sides counts. */
#include "tests/cluster/endpoints/dirrig.h"
#include "tests/support/test.h"

#define MINUTE (60 * SECOND)

/* Connects to a provider that is listed with these parameters, and returns the number of heartbeats
 * in a minute without calls, after the first one. */
static unsigned count_heartbeats(const char *url, uint64_t own_ns)
{
	const struct spoke_consumer_options options = { .heartbeat_ns = own_ns };
	uint64_t before;

	dirrig_start(0);
	dirrig_consume("", &options);
	assert_int_equal(dirrig_list((const char *const[]){ url, NULL }), 0);
	dirrig_pass(10 * MS);
	assert_int_equal(spoke_consumer_ready(dirrig.consumer), 1);
	before = spoke_stat_get(dirrig.engine, SPOKE_STAT_PROBES_WRITTEN);
	dirrig_pass(MINUTE);
	return (unsigned)(spoke_stat_get(dirrig.engine, SPOKE_STAT_PROBES_WRITTEN) - before);
}

FIXTURE(dirrig_set_up, dirrig_tear_down);

TEST(shorter_interval_of_provider_counts)
{
	assert_in_range(count_heartbeats(A "?heartbeat=5000", MINUTE), 11, 12);
}

TEST(longer_interval_of_provider_does_not_count)
{
	assert_in_range(count_heartbeats(A "?heartbeat=60000", 10 * SECOND), 5, 6);
}

TEST(consumer_without_heartbeats_sends_none)
{
	assert_int_equal(count_heartbeats(A "?heartbeat=5000", SPOKE_OFF), 0);
}

TEST(tiny_interval_of_provider_is_bounded)
{
	assert_in_range(count_heartbeats(A "?heartbeat=1", MINUTE), 55, 60);
}

TEST(invalid_intervals_count_as_unset)
{
	static const char *const urls[] = {
		A "?heartbeat=0",  A "?heartbeat=-5",
		A "?heartbeat=",   A "?heartbeat=99999999999999999999",
		A "?heartbeat=5x",
	};
	uint64_t before;

	assert_in_range(count_heartbeats(A, 20 * SECOND), 2, 3);
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		assert_int_equal(dirrig_list((const char *const[]){ urls[i], NULL }), 0);
		before = spoke_stat_get(dirrig.engine, SPOKE_STAT_PROBES_WRITTEN);
		dirrig_pass(MINUTE);
		assert_in_range(spoke_stat_get(dirrig.engine, SPOKE_STAT_PROBES_WRITTEN),
				before + 2, before + 3);
	}
}

TEST(changed_interval_takes_effect)
{
	uint64_t before;

	assert_in_range(count_heartbeats(A, MINUTE), 0, 1);
	LIST(A "?heartbeat=2s");
	dirrig_pass(SECOND);
	before = spoke_stat_get(dirrig.engine, SPOKE_STAT_PROBES_WRITTEN);
	dirrig_pass(MINUTE);
	assert_in_range(spoke_stat_get(dirrig.engine, SPOKE_STAT_PROBES_WRITTEN), before + 29,
			before + 30);
	assert_int_equal(dirrig_call(), SPOKE_OK);
}
