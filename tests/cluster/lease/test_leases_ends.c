/* SPDX-License-Identifier: Apache-2.0 */
/* How leases end: freed anywhere, drained, closed with their engine, in a child. */
#include "tests/cluster/lease/leaserig.h"
#include "tests/support/test.h"

#define rig leaserig

static bool is_locked(const char *name)
{
	struct fakeredis_lock lock;

	return fakeredis_lock(&rig.server, name, &lock);
}

static void free_leases(void)
{
	spoke_leases_free(rig.one.leases);
	rig.one.leases = NULL;
}

static void free_inside(struct leaserig_ask *ask)
{
	(void)ask;
	free_leases();
}

FIXTURE(leaserig_set_up, leaserig_tear_down);

TEST(freed_leases_are_lost_and_released)
{
	struct leaserig_ask *held = leaserig_hold("held");
	struct leaserig_ask *waiting = leaserig_wait("held");
	struct leaserig_ask *fresh;

	leaserig_pass(SECOND);
	fresh = leaserig_try("fresh");
	free_leases();
	assert_int_equal(held->lost, 0);
	leaserig_pass(SECOND);
	assert_int_equal(held->why, SPOKE_LEASE_CLOSED);
	assert_int_equal(waiting->error, SPOKE_ECLOSED);
	assert_int_equal(fresh->error, SPOKE_ECLOSED);
	assert_false(is_locked("held"));
	assert_false(is_locked("fresh"));
}

TEST(release_under_way_ends_when_leases_are_freed)
{
	struct leaserig_ask *held = leaserig_hold("held");

	leaserig_release(held);
	free_leases();
	leaserig_pass(SECOND);
	assert_int_equal(held->released, 1);
	assert_int_equal(held->end, SPOKE_ECLOSED);
	assert_false(is_locked("held"));
}

TEST(leases_without_an_ask_end_while_the_engine_goes_on)
{
	free_leases();
	leaserig_pass(SECOND);
}

TEST(leases_freed_inside_told_end)
{
	struct leaserig_ask *first = leaserig_try("first");
	struct leaserig_ask *second = leaserig_try("second");

	first->then = free_inside;
	leaserig_pass(SECOND);
	assert_int_equal(first->why, SPOKE_LEASE_CLOSED);
	assert_int_equal(second->told, 1);
	assert_false(is_locked("first"));
	assert_false(is_locked("second"));
}

TEST(leases_freed_inside_lost_end)
{
	struct leaserig_ask *asks[8];

	for (int i = 0; i < 8; i++) {
		char name[] = { (char)('a' + i), '\0' };

		asks[i] = leaserig_try(name);
	}
	(void)leaserig_wait("a");
	leaserig_pass(SECOND);
	asks[3]->then = free_inside;
	fakeredis_kill(&rig.server);
	leaserig_pass(LEASERIG_TTL);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(asks[i]->lost, 1);
		assert_int_equal(asks[i]->why, i <= 3 ? SPOKE_LEASE_EXPIRED : SPOKE_LEASE_CLOSED);
	}
}

TEST(leases_freed_inside_lost_after_sleep_end)
{
	struct leaserig_ask *first = leaserig_hold("first");
	struct leaserig_ask *second = leaserig_hold("second");

	first->then = free_inside;
	spokei_world_sleep(&rig.world, 2 * LEASERIG_TTL);
	leaserig_pass(LEASERIG_TTL);
	assert_int_equal(first->why, SPOKE_LEASE_EXPIRED);
	assert_int_equal(second->lost, 1);
	assert_int_equal(second->why, SPOKE_LEASE_CLOSED);
}

TEST(leases_freed_inside_a_failed_ask_end)
{
	struct leaserig_ask *asks[3];

	fakeredis_kill(&rig.server);
	leaserig_pass(SECOND);
	for (int i = 0; i < 3; i++) {
		asks[i] = leaserig_try("reports");
		asks[i]->then = free_inside;
	}
	leaserig_pass(20 * SECOND);
	assert_int_equal(asks[0]->error, SPOKE_EUNAVAILABLE);
	assert_int_equal(asks[1]->error, SPOKE_ECLOSED);
	assert_int_equal(asks[2]->error, SPOKE_ECLOSED);
}

TEST(leases_freed_while_a_batch_is_disowned_end)
{
	struct leaserig_ask *asks[5];

	for (int i = 0; i < 5; i++) {
		char name[] = { (char)('a' + i), '\0' };

		asks[i] = leaserig_try(name);
	}
	leaserig_pass(SECOND);
	asks[1]->then = free_inside;
	fakeredis_wipe(&rig.server);
	leaserig_pass(LEASERIG_TTL / 3);
	for (int i = 0; i < 5; i++)
		assert_int_equal(asks[i]->why, i <= 1 ? SPOKE_LEASE_TAKEN : SPOKE_LEASE_CLOSED);
}

TEST(freed_engine_ends_all_leases)
{
	struct leaserig_ask *held = leaserig_hold("held");

	rig.one.leases = NULL;
	spoke_engine_free(rig.one.engine);
	rig.one.engine = NULL;
	leaserig_pass(SECOND);
	assert_int_equal(held->why, SPOKE_LEASE_CLOSED);
	assert_false(is_locked("held"));
}

/* --- what callbacks may do */

static void release_inside(struct leaserig_ask *ask)
{
	if (ask->error == SPOKE_OK && ask->lost == 0)
		leaserig_release(ask);
}

TEST(lease_released_inside_told_is_free)
{
	struct leaserig_ask *ask = leaserig_wait("reports");

	ask->then = release_inside;
	leaserig_pass(SECOND);
	assert_int_equal(ask->end, SPOKE_OK);
	assert_false(is_locked("reports"));
}

static void release_others_inside(struct leaserig_ask *ask)
{
	(void)ask;
	for (unsigned i = 1; i < rig.asked; i++) {
		if (!rig.asks[i].given && !rig.asks[i].lost &&
		    spoke_lease_fence(rig.asks[i].lease) > 0)
			leaserig_release(&rig.asks[i]);
	}
}

TEST(leases_released_inside_lost_are_released)
{
	struct leaserig_ask *ask = leaserig_try("a");

	(void)leaserig_try("b");
	(void)leaserig_try("c");
	leaserig_pass(SECOND);
	ask->then = release_others_inside;
	(void)fakeredis_remove(&rig.server, "a");
	leaserig_pass(LEASERIG_TTL / 3);
	assert_int_equal(ask->why, SPOKE_LEASE_TAKEN);
	assert_int_equal(rig.asks[1].end, SPOKE_OK);
	assert_int_equal(rig.asks[2].end, SPOKE_OK);
	assert_false(is_locked("b"));
}

static void ask_again_inside(struct leaserig_ask *ask)
{
	if (ask->lost == 1)
		(void)leaserig_wait("reports");
}

TEST(lost_lease_is_asked_for_again_inside_lost)
{
	struct leaserig_ask *ask = leaserig_hold("reports");

	ask->then = ask_again_inside;
	(void)fakeredis_remove(&rig.server, "reports");
	leaserig_pass(LEASERIG_TTL / 3 + SECOND);
	assert_int_equal(ask->lost, 1);
	assert_int_equal(rig.asks[1].error, SPOKE_OK);
}

/* --- drain */

TEST(drain_waits_for_held_leases)
{
	struct leaserig_ask *held = leaserig_hold("held");
	struct leaserig_ask *waiting = leaserig_wait("held");

	leaserig_pass(SECOND);
	assert_int_equal(spoke_engine_drain(rig.one.engine, UINT64_MAX), SPOKE_OK);
	leaserig_pass(LEASERIG_TTL);
	assert_int_equal(waiting->error, SPOKE_ECLOSED);
	assert_int_equal(held->lost, 0);
	assert_true(is_locked("held"));
	leaserig_release(held);
	leaserig_pass(SECOND);
	assert_int_equal(held->end, SPOKE_OK);
	assert_int_equal(fakeredis_conns(&rig.server), 0);
}

static void note_never(void *arg, struct spoke_lease lease, const struct spoke_lease_answer *answer)
{
	(void)arg;
	(void)lease;
	(void)answer;
	fail_msg("an ask that was rejected was told");
}

TEST(drained_leases_take_no_asks)
{
	(void)leaserig_hold("held");
	assert_int_equal(spoke_engine_drain(rig.one.engine, UINT64_MAX), SPOKE_OK);
	leaserig_pass(SECOND);
	assert_int_equal(spoke_lease_ask(rig.one.leases, "more", NULL, note_never, NULL),
			 SPOKE_ECLOSED);
}

TEST(drain_without_leases_ends_at_once)
{
	assert_int_equal(spoke_engine_drain(rig.one.engine, UINT64_MAX), SPOKE_OK);
	leaserig_pass(10 * MS);
	assert_int_equal(fakeredis_conns(&rig.server), 0);
	assert_int_equal(spoke_lease_ask(rig.one.leases, "more", NULL, note_never, NULL),
			 SPOKE_ECLOSED);
}

TEST(leases_left_at_the_end_of_a_drain_are_closed)
{
	struct leaserig_ask *held = leaserig_hold("held");

	assert_int_equal(spoke_engine_drain(rig.one.engine, 5 * SECOND), SPOKE_OK);
	leaserig_pass(6 * SECOND);
	assert_int_equal(held->why, SPOKE_LEASE_CLOSED);
	assert_false(is_locked("held"));
}

/* --- children and misuse */

static unsigned forks;

TEST(child_neither_asks_nor_holds)
{
	struct leaserig_ask *held;
	struct spoke_leases *leases;

	forks = 0;
	spoke_engine_free(rig.two.engine);
	rig.two.faulty.env.forks = &forks;
	assert_int_equal(
		spoke_engine_new(&(struct spoke_engine_options){ .env = &rig.two.faulty.env },
				 &rig.two.engine),
		SPOKE_OK);
	leaserig_join(&rig.two, NULL);
	held = leaserig_ask_with(&rig.two, "held", NULL);
	leaserig_pass(10 * MS);
	assert_true(spoke_lease_left(held->lease) > 0);
	(void)leaserig_ask_with(&rig.two, "queued", NULL);
	forks = 1;
	assert_int_equal(spoke_lease_left(held->lease), 0);
	assert_int_equal(spoke_lease_ask(rig.two.leases, "more", NULL, note_never, NULL),
			 SPOKE_EFORKED);
	assert_int_equal(spoke_lease_release(held->lease, NULL, NULL), SPOKE_EFORKED);
	assert_int_equal(spoke_leases_new(rig.two.engine,
					  &(struct spoke_leases_options){
						  .store = "redis://" LEASERIG_AT },
					  &leases),
			 SPOKE_EFORKED);
	leaserig_leave(&rig.two);
	leaserig_pass(SECOND);
	assert_true(is_locked("held"));
	assert_false(is_locked("queued"));
}

TEST(names_of_ended_leases_are_noticed)
{
	struct leaserig_ask *ask = leaserig_hold("reports");
	struct spoke_lease none = { 0 };

	leaserig_release(ask);
	leaserig_pass(SECOND);
	assert_int_equal(spoke_lease_left(ask->lease), 0);
	assert_int_equal(spoke_lease_fence(ask->lease), 0);
	assert_int_equal(spoke_lease_name(ask->lease).len, 0);
	assert_int_equal(spoke_lease_release(ask->lease, NULL, NULL), SPOKE_ENOENT);
	assert_int_equal(spoke_lease_left(none), 0);
	assert_int_equal(spoke_lease_fence(none), 0);
	assert_int_equal(spoke_lease_name(none).len, 0);
	assert_int_equal(spoke_lease_release(none, NULL, NULL), SPOKE_ENOENT);
	spoke_leases_free(NULL);
}

TEST(ended_engine_takes_no_leases)
{
	struct spoke_leases *leases;

	assert_int_equal(spoke_engine_drain(rig.two.engine, UINT64_MAX), SPOKE_OK);
	assert_int_equal(spoke_leases_new(rig.two.engine,
					  &(struct spoke_leases_options){
						  .store = "redis://" LEASERIG_AT },
					  &leases),
			 SPOKE_ECLOSED);
}
