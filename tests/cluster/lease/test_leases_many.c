/* SPDX-License-Identifier: Apache-2.0 */
/* Ten thousand leases of one program: how much memory they need, how often the store is asked, and
 * what happens when all are lost at once. */
#include "tests/cluster/lease/leaserig.h"
#include "tests/support/test.h"

#include <stdio.h>

#define rig leaserig

#define MANY 10000u
#define FIXED 524288u /* bytes of buffers and commands, however many leases there are */

/* Asks for leases, as many a second. */
static void hold_many(unsigned count, unsigned a_second)
{
	for (unsigned i = 0; i < count; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "lease-%08u", i);
		(void)leaserig_try(name);
		if (i % 100 == 99)
			leaserig_pass(100 * SECOND / a_second);
	}
	leaserig_pass(SECOND);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(rig.asks[i].error, SPOKE_OK);
}

static void assert_all_held(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(rig.asks[i].lost, 0);
}

static void assert_commands(uint64_t seconds, uint64_t most)
{
	uint64_t before = rig.server.commands;
	uint64_t renewed = leaserig_stat(SPOKE_STAT_LEASE_RENEWALS);

	leaserig_pass(seconds * SECOND);
	assert_in_range(rig.server.commands - before, 1, most);
	assert_in_range(leaserig_stat(SPOKE_STAT_LEASE_RENEWALS) - renewed,
			MANY * seconds / 10 - MANY / 10, MANY * seconds / 10 + MANY / 10);
}

FIXTURE(leaserig_set_up, leaserig_tear_down);

TEST(held_leases_need_little_memory)
{
	size_t before;

	(void)leaserig_hold("first");
	before = rig.one.faulty.bytes;
	hold_many(MANY, 10000);
	assert_true(rig.one.faulty.bytes - before < MANY * 192 + FIXED);
}

/* Commands under way are limited, and so is their memory; the others wait in their lists. */
TEST(leases_asked_for_in_one_turn_need_no_more)
{
	size_t before = rig.one.faulty.bytes;

	for (unsigned i = 0; i < MANY; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "lease-%08u", i);
		(void)leaserig_wait(name);
	}
	leaserig_pass(SECOND);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(rig.asks[i].error, SPOKE_OK);
	assert_true(rig.one.faulty.bytes - before < MANY * 192 + FIXED);
}

TEST(renewals_of_leases_taken_at_once_go_in_batches)
{
	hold_many(MANY, 10000);
	assert_commands(100, 100 * 10 + 10);
	assert_all_held(MANY);
}

TEST(renewals_of_leases_taken_one_by_one_go_in_batches)
{
	hold_many(MANY, 1000);
	assert_commands(100, 100 * 10 + 100);
	assert_all_held(MANY);
}

TEST(renewals_with_other_times_go_in_batches_of_their_own)
{
	const struct spoke_lease_options brief = { .ttl_ns = 3 * SECOND };
	uint64_t before;

	for (unsigned i = 0; i < 200; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "lease-%u", i);
		(void)leaserig_ask_with(&rig.one, name, i % 2 ? &brief : NULL);
		leaserig_pass(7 * MS);
	}
	leaserig_pass(LEASERIG_TTL);
	before = rig.server.commands;
	leaserig_pass(30 * SECOND);
	/* Those of 3 s are due within 100 ms of each other, at most ten times a second; the others
	 * in three seconds of ten. */
	assert_true(rig.server.commands - before <= 30 * 11 + 4 * 3);
	assert_all_held(200);
}

TEST(all_leases_are_lost_in_their_turn)
{
	hold_many(MANY, 10000);
	fakeredis_kill(&rig.server);
	leaserig_pass(LEASERIG_TTL);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(rig.asks[i].why, SPOKE_LEASE_EXPIRED);
}

TEST(leases_survive_a_restart_of_the_store)
{
	uint64_t before;

	hold_many(MANY, 10000);
	leaserig_pass(2 * SECOND);
	fakeredis_kill(&rig.server);
	leaserig_pass(10 * SECOND);
	fakeredis_start(&rig.server, &rig.world, LEASERIG_AT);
	before = rig.server.commands;
	leaserig_pass(8 * SECOND);
	assert_true(rig.server.commands - before < 300);
	leaserig_pass(LEASERIG_TTL);
	assert_all_held(MANY);
}

TEST(ten_thousand_releases_free_all)
{
	struct spoke_leases_look look;

	hold_many(MANY, 10000);
	for (unsigned i = 0; i < MANY; i++)
		leaserig_release(&rig.asks[i]);
	leaserig_pass(5 * SECOND);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(rig.asks[i].end, SPOKE_OK);
	spoke_leases_look(rig.one.leases, &look);
	assert_int_equal(look.held, 0);
	assert_int_equal(rig.server.key_count, MANY);
}

TEST(asks_made_together_are_granted_in_turn)
{
	struct leaserig_ask *asks[3];

	for (unsigned i = 0; i < 3; i++)
		asks[i] = leaserig_wait("reports");
	for (unsigned i = 0; i < 3; i++) {
		leaserig_pass(50 * MS);
		assert_int_equal(asks[i]->told, 1);
		assert_int_equal(asks[i]->error, SPOKE_OK);
		assert_int_equal(rig.held, i + 1);
		leaserig_release(asks[i]);
	}
	leaserig_pass(10 * MS);
}
