/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a keeper, and failed allocations. */
#include "tests/cluster/discovery/keeperrig.h"
#include "tests/support/test.h"

FIXTURE(keeperrig_set_up, keeperrig_tear_down);

TEST(freed_keeper_withdraws_first)
{
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_publish(OTHER);
	keeperrig_pass(10 * MS);
	spokei_keeper_free(keeperrig.keeper);
	assert_int_equal(fakereg_listed(ECHO), 2);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 0);
	assert_int_equal(fakereg.closes, 1);
	keeperrig.keeper = NULL;
}

TEST(keeper_freed_while_publishing_leaves_nothing)
{
	fakereg.delay_ns = 100 * MS;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(50 * MS);
	spokei_keeper_free(keeperrig.keeper);
	keeperrig_pass(SECOND);
	assert_int_equal(fakereg_listed(ECHO), 0);
	assert_int_equal(fakereg.withdraws, 1);
	assert_int_equal(fakereg.closes, 1);
	keeperrig.keeper = NULL;
}

TEST(freed_keeper_gives_up_after_timeout)
{
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	fakereg.mute = true;
	spokei_keeper_free(keeperrig.keeper);
	keeperrig_pass(2990 * MS);
	assert_int_equal(fakereg.closes, 0);
	keeperrig_pass(20 * MS);
	assert_int_equal(fakereg.closes, 1);
	keeperrig.keeper = NULL;
}

TEST(keeper_with_failing_withdrawal_is_freed_at_once)
{
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	fakereg.fails = SPOKE_ECONNECT;
	spokei_keeper_free(keeperrig.keeper);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg.closes, 1);
	keeperrig.keeper = NULL;
}

TEST(ending_engine_does_not_wait_for_withdrawals)
{
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_publish(OTHER);
	keeperrig_pass(10 * MS);
	keeperrig_free_engine();
	assert_int_equal(fakereg.withdraws, 2); /* the requests were made */
	assert_int_equal(fakereg.closes, 1);
}

TEST(ending_engine_frees_withdrawing_keepers)
{
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	fakereg.mute = true;
	spokei_keeper_free(keeperrig.keeper);
	keeperrig_pass(MS);
	keeperrig_free_engine();
	assert_int_equal(fakereg.closes, 1);
}

TEST(drain_waits_for_withdrawals)
{
	fakereg.delay_ns = 100 * MS;
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(200 * MS);
	assert_int_equal(spoke_engine_drain(keeperrig.engine, 10 * SECOND), 0);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 1); /* the keeper is not freed yet */
	spokei_keeper_free(keeperrig.keeper);
	keeperrig.keeper = NULL;
	keeperrig_pass(SECOND);
	assert_int_equal(fakereg_listed(ECHO), 0);
	assert_int_equal(fakereg.closes, 1);
}

TEST(keeper_closed_by_drain_stays_until_freed)
{
	keeperrig_keep(NULL);
	keeperrig_publish(PLACE);
	keeperrig_pass(10 * MS);
	assert_int_equal(spoke_engine_drain(keeperrig.engine, 20 * MS), 0);
	keeperrig_pass(SECOND);
	assert_int_equal(fakereg.closes, 1);
	assert_int_equal(spokei_keeper_publish(keeperrig.keeper, ECHO, OTHER), SPOKE_ECLOSED);
	assert_int_equal(spokei_keeper_subscribe(keeperrig.keeper, ECHO, SPOKE_REGISTRY_PROVIDERS),
			 SPOKE_ECLOSED);
	spokei_keeper_withdraw_all(keeperrig.keeper);
	assert_int_equal(keeperrig_true(), 0);
}

TEST(enomem_counts_as_failure)
{
	for (unsigned nth = 1; nth < 60; nth++) {
		struct spokei_keeper *keeper = NULL;

		spokei_faults_fail(&keeperrig.faulty, SPOKEI_FAULTS_MEMORY, nth, -12, false);
		if (keeperrig_try(NULL) == 0) {
			keeper = keeperrig.keeper;
			if (spokei_keeper_publish(keeper, ECHO, PLACE) == 0) {
				keeperrig_pass(10 * SECOND);
				assert_int_equal(keeperrig_true(), 1);
			}
			if (spokei_keeper_subscribe(keeper, ECHO, SPOKE_REGISTRY_PROVIDERS) == 0) {
				keeperrig_pass(10 * SECOND);
				assert_int_equal(keeperrig.count, fakereg_listed(ECHO));
			}
		}
		spokei_faults_heal(&keeperrig.faulty);
		spokei_keeper_free(keeper);
		keeperrig.keeper = NULL;
		keeperrig.count = 0;
		keeperrig_pass(SECOND);
		assert_int_equal(fakereg_listed(ECHO), 0);
	}
	assert_true(keeperrig.faulty.failed[SPOKEI_FAULTS_MEMORY] > 3);
}
