/* SPDX-License-Identifier: Apache-2.0 */
/* Leases at a store that refuses commands, and at one with a replica. */
#include "tests/cluster/lease/leaserig.h"
#include "tests/support/test.h"

#include <string.h>

#define rig leaserig

static const struct spoke_lease_options waits = { .wait_ns = SPOKE_LEASE_FOREVER };

/* --- refusals */

FIXTURE(leaserig_set_up, leaserig_tear_down);

TEST(key_of_another_type_is_told_once)
{
	struct leaserig_ask *ask;
	uint64_t commands;

	fakeredis_put(&rig.server, "reports", "text");
	ask = leaserig_wait("reports");
	leaserig_pass(10 * MS);
	assert_int_equal(ask->error, SPOKE_ESTORE);
	assert_memory_equal(ask->text, "WRONGTYPE", 9);
	commands = rig.server.commands;
	leaserig_pass(10 * SECOND);
	assert_int_equal(rig.server.commands, commands);
}

TEST(busy_store_is_asked_again_with_pauses)
{
	static const enum fakeredis_phase phases[] = { FAKEREDIS_LOADING, FAKEREDIS_BUSY,
						       FAKEREDIS_OOM, FAKEREDIS_MISCONF };

	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		struct leaserig_ask *asks[40];
		uint64_t commands = rig.server.commands;

		rig.server.phase = phases[i];
		for (int j = 0; j < 40; j++) {
			char name[] = { (char)('0' + j), (char)('a' + (int)i), '\0' };

			asks[j] = leaserig_ask_with(&rig.one, name, &waits);
		}
		leaserig_pass(10 * SECOND);
		assert_true(rig.server.commands - commands < 1000);
		for (int j = 0; j < 40; j++)
			assert_int_equal(asks[j]->told, 0);
		rig.server.phase = FAKEREDIS_NORMAL;
		leaserig_pass(8 * SECOND);
		for (int j = 0; j < 40; j++)
			assert_int_equal(asks[j]->error, SPOKE_OK);
	}
}

TEST(busy_store_is_spared_new_asks)
{
	uint64_t commands;

	rig.server.phase = FAKEREDIS_LOADING;
	(void)leaserig_ask_with(&rig.one, "first", &waits);
	leaserig_pass(20 * MS);
	commands = rig.server.commands;
	for (int i = 0; i < 20; i++) {
		char name[] = { (char)('a' + i), '\0' };

		(void)leaserig_ask_with(&rig.one, name, &waits);
	}
	leaserig_pass(40 * MS);
	assert_int_equal(rig.server.commands, commands);
	rig.server.phase = FAKEREDIS_NORMAL;
	leaserig_pass(SECOND);
	assert_int_equal(rig.held, 21);
}

TEST(busy_store_is_unavailable_for_asks_that_do_not_wait)
{
	struct leaserig_ask *ask;

	rig.server.phase = FAKEREDIS_OOM;
	ask = leaserig_try("reports");
	leaserig_pass(10 * MS);
	assert_int_equal(ask->error, SPOKE_EUNAVAILABLE);
	assert_memory_equal(ask->text, "OOM", 3);
	rig.server.phase = FAKEREDIS_NORMAL;
}

TEST(busy_store_does_not_end_leases)
{
	struct leaserig_ask *ask = leaserig_hold("reports");

	leaserig_pass(LEASERIG_TTL / 3 - SECOND);
	rig.server.phase = FAKEREDIS_BUSY;
	leaserig_pass(5 * SECOND);
	assert_true(rig.server.commands < 200);
	rig.server.phase = FAKEREDIS_NORMAL;
	leaserig_pass(2 * LEASERIG_TTL);
	assert_int_equal(ask->lost, 0);
}

TEST(flushed_scripts_are_loaded_again)
{
	struct leaserig_ask *held = leaserig_hold("held");
	struct leaserig_ask *ask;

	fakeredis_flush_scripts(&rig.server);
	ask = leaserig_ask_with(&rig.one, "reports", &waits);
	leaserig_pass(SECOND);
	assert_int_equal(ask->error, SPOKE_OK);
	fakeredis_flush_scripts(&rig.server);
	leaserig_pass(LEASERIG_TTL);
	assert_int_equal(held->lost, 0);
	fakeredis_flush_scripts(&rig.server);
	leaserig_release(held);
	leaserig_pass(SECOND);
	assert_int_equal(held->end, SPOKE_OK);
}

TEST(one_key_of_another_type_ends_no_other_lease)
{
	struct leaserig_ask *good = leaserig_hold("good");
	struct leaserig_ask *bad = leaserig_hold("bad");

	fakeredis_put(&rig.server, "bad", "text");
	leaserig_pass(2 * LEASERIG_TTL);
	assert_int_equal(good->lost, 0);
	assert_int_equal(bad->lost, 1);
}

/* --- a replica */

static void set_up_replica(uint64_t delay_ns)
{
	fakeredis_start(&rig.replica, &rig.world, "127.0.0.1:6380");
	fakeredis_follow(&rig.replica, &rig.server, delay_ns);
}

TEST(failover_shows_in_the_fence)
{
	struct leaserig_ask *ask;
	struct fakeredis_lock lock;

	set_up_replica(0);
	leaserig_release(leaserig_hold("reports"));
	leaserig_pass(SECOND);
	fakeredis_cut_off(&rig.replica, true);
	ask = leaserig_hold("reports");
	assert_int_equal(ask->fence, 2);
	fakeredis_promote(&rig.replica);
	assert_false(fakeredis_lock(&rig.replica, "reports", &lock));
	assert_int_equal(fakeredis_token(&rig.replica, "reports"), 1);
}

TEST(server_that_became_a_replica_is_left)
{
	struct leaserig_ask *ask;
	uint64_t commands;

	fakeredis_start(&rig.replica, &rig.world, "127.0.0.1:6380");
	fakeredis_follow(&rig.server, &rig.replica, 0);
	commands = rig.server.commands;
	ask = leaserig_wait("reports");
	leaserig_pass(5 * SECOND);
	assert_int_equal(ask->told, 0);
	assert_true(rig.server.commands - commands < 200);
	fakeredis_promote(&rig.server);
	leaserig_pass(7 * SECOND);
	assert_int_equal(ask->error, SPOKE_OK);
}
