/* SPDX-License-Identifier: Apache-2.0 */
/* Leases at a store that fails or is away: lost answers, lost locks, lost messages. */
#include "tests/cluster/lease/leaserig.h"
#include "tests/support/test.h"

#include <string.h>

#define rig leaserig

static bool is_locked(const char *name)
{
	struct fakeredis_lock lock;

	return fakeredis_lock(&rig.server, name, &lock);
}

static uint64_t count_of(const char *name)
{
	struct fakeredis_lock lock;

	assert_true(fakeredis_lock(&rig.server, name, &lock));
	return lock.count;
}

/* --- answers that are lost */

FIXTURE(leaserig_set_up, leaserig_tear_down);

TEST(short_lease_does_not_take_a_distant_store_for_a_silent_one)
{
	const struct spoke_lease_options brief = { .ttl_ns = 200 * MS };
	struct leaserig_ask *one;
	struct leaserig_ask *other;

	rig.server.delay_ns = 60 * MS;
	one = leaserig_ask_with(&rig.one, "brief", &brief);
	leaserig_pass(SECOND);
	assert_int_equal(one->told, 1);
	other = leaserig_try("reports");
	leaserig_pass(60 * SECOND);
	assert_int_equal(other->error, SPOKE_OK);
	assert_int_equal(other->lost, 0);
	assert_int_equal(leaserig_stat(SPOKE_STAT_LEASE_RECONNECTS), 0);
}

TEST(answers_stay_with_their_asks_without_memory)
{
	fakeredis_put_lock(&rig.server, "taken", "peer:1", 1, 3600000);
	for (unsigned nth = 1; nth <= 8; nth++) {
		struct leaserig_ask *taken;
		struct leaserig_ask *free;

		leaserig_join(&rig.two, NULL);
		spokei_faults_fail(&rig.two.faulty, SPOKEI_FAULTS_MEMORY, nth, -1, false);
		taken = leaserig_ask_if(&rig.two, "taken", NULL);
		free = leaserig_ask_if(&rig.two, "free", NULL);
		spokei_faults_heal(&rig.two.faulty);
		leaserig_pass(SECOND);
		assert_true(taken == NULL || taken->error == SPOKE_EBUSY);
		assert_true(free == NULL || free->error == SPOKE_OK);
		spoke_leases_free(rig.two.leases);
		rig.two.leases = NULL;
		leaserig_pass(SECOND);
		(void)fakeredis_remove(&rig.server, "free");
	}
}

TEST(repeated_grant_without_its_counter_has_a_number)
{
	struct leaserig_ask *ask;

	fakeredis_cut(&rig.server, FAKEREDIS_CUT_AFTER, "EVALSHA", FAKEREDIS_ACQUIRE, 0);
	ask = leaserig_try("reports");
	while (!is_locked("reports"))
		leaserig_pass(MS);
	assert_true(fakeredis_remove(&rig.server, "redisson_lock_token:{reports}"));
	leaserig_pass(5 * SECOND);
	assert_int_equal(ask->error, SPOKE_OK);
	assert_int_equal(ask->fence, 1);
}

TEST(lost_answer_to_an_ask_is_asked_for_again)
{
	static const enum fakeredis_cut cuts[] = { FAKEREDIS_CUT_BEFORE, FAKEREDIS_CUT_AFTER,
						   FAKEREDIS_CUT_MUTE };

	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		struct leaserig_ask *ask;

		fakeredis_cut(&rig.server, cuts[i], "EVALSHA", FAKEREDIS_ACQUIRE, 0);
		ask = leaserig_try("reports");
		leaserig_pass(5 * SECOND);
		assert_int_equal(ask->told, 1);
		assert_int_equal(ask->error, SPOKE_OK);
		assert_int_equal(ask->fence, i + 1);
		assert_int_equal(count_of("reports"), 1);
		leaserig_release(ask);
		leaserig_pass(10 * MS);
		assert_false(is_locked("reports"));
	}
}

TEST(ask_cancelled_with_a_lost_answer_leaves_no_lock)
{
	struct leaserig_ask *ask;

	fakeredis_cut(&rig.server, FAKEREDIS_CUT_AFTER, "EVALSHA", FAKEREDIS_ACQUIRE, 0);
	ask = leaserig_wait("reports");
	leaserig_pass(20 * MS);
	assert_true(is_locked("reports"));
	leaserig_release(ask);
	leaserig_pass(2 * SECOND);
	assert_int_equal(ask->error, SPOKE_ECANCELED);
	assert_int_equal(ask->released, 1);
	assert_int_equal(ask->end, SPOKE_OK);
	assert_false(is_locked("reports"));
}

TEST(lost_answer_to_a_release_is_asked_for_again)
{
	struct leaserig_ask *ask = leaserig_hold("reports");
	struct leaserig_ask *next;

	fakeredis_cut(&rig.server, FAKEREDIS_CUT_AFTER, "EVALSHA", FAKEREDIS_RELEASE, 0);
	leaserig_release(ask);
	leaserig_pass(20 * MS);
	fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 60000);
	leaserig_pass(2 * SECOND);
	assert_int_equal(ask->released, 1);
	assert_int_equal(ask->end, SPOKE_OK);
	assert_int_equal(fakeredis_runs(&rig.server, FAKEREDIS_RELEASE), 2);
	next = leaserig_try("reports");
	leaserig_pass(10 * MS);
	assert_int_equal(next->error, SPOKE_EBUSY);
}

TEST(unanswered_renewal_is_sent_again_on_a_new_connection)
{
	struct leaserig_ask *ask = leaserig_hold("reports");
	uint64_t clients = rig.server.clients;

	fakeredis_cut(&rig.server, FAKEREDIS_CUT_MUTE, "EVALSHA", FAKEREDIS_RENEW, 0);
	leaserig_pass(LEASERIG_TTL / 3 + LEASERIG_TTL / 12 + SECOND);
	assert_true(rig.server.clients > clients);
	assert_int_equal(leaserig_stat(SPOKE_STAT_LEASE_RENEWALS), 1);
	leaserig_pass(3 * LEASERIG_TTL);
	assert_int_equal(ask->lost, 0);
}

TEST(store_frozen_for_half_the_time_is_survived)
{
	struct leaserig_ask *ask = leaserig_hold("reports");

	leaserig_pass(LEASERIG_TTL / 3 - 2 * SECOND);
	spokei_world_hold(&rig.server.process, LEASERIG_TTL / 2);
	leaserig_pass(5 * LEASERIG_TTL);
	assert_int_equal(ask->lost, 0);
	assert_int_equal(count_of("reports"), 1);
}

/* --- locks that are lost */

TEST(lease_that_the_store_forgot_is_lost_at_once)
{
	struct leaserig_ask *ask = leaserig_hold("reports");

	(void)fakeredis_remove(&rig.server, "reports");
	leaserig_pass(LEASERIG_TTL / 3 + 10 * MS);
	assert_int_equal(ask->lost, 1);
	assert_int_equal(ask->why, SPOKE_LEASE_TAKEN);
	leaserig_pass(LEASERIG_TTL);
	assert_false(is_locked("reports"));
	assert_int_equal(fakeredis_runs(&rig.server, FAKEREDIS_ACQUIRE), 1);
}

TEST(broken_lease_is_lost_and_a_waiter_gets_it)
{
	struct leaserig_ask *ask = leaserig_hold("reports");
	struct leaserig_ask *waiter = leaserig_wait("reports");
	uint64_t broken_ns;

	leaserig_pass(SECOND);
	fakeredis_unlock(&rig.server, "reports");
	broken_ns = rig.world.now_ns;
	leaserig_pass(LEASERIG_TTL / 3);
	assert_in_range(waiter->told_ns, broken_ns, broken_ns + 5 * MS);
	assert_int_equal(ask->why, SPOKE_LEASE_TAKEN);
	assert_int_equal(waiter->error, SPOKE_OK);
	assert_int_equal(waiter->lost, 0);
}

TEST(restarted_empty_store_loses_all_leases)
{
	struct leaserig_ask *one = leaserig_hold("one");
	struct leaserig_ask *two = leaserig_hold("two");

	fakeredis_kill(&rig.server);
	fakeredis_wipe(&rig.server);
	leaserig_pass(LEASERIG_TTL / 3);
	fakeredis_start(&rig.server, &rig.world, LEASERIG_AT);
	leaserig_pass(6 * SECOND);
	assert_int_equal(one->why, SPOKE_LEASE_TAKEN);
	assert_int_equal(two->why, SPOKE_LEASE_TAKEN);
	assert_false(is_locked("one"));
}

TEST(release_of_a_lock_that_is_gone_is_told_so)
{
	struct leaserig_ask *ask = leaserig_hold("reports");

	(void)fakeredis_remove(&rig.server, "reports");
	leaserig_release(ask);
	leaserig_pass(10 * MS);
	assert_int_equal(ask->end, SPOKE_ENOENT);
}

TEST(release_that_finds_no_store_ends_with_the_time_to_live)
{
	struct leaserig_ask *ask = leaserig_hold("reports");
	uint64_t begin_ns = rig.world.now_ns;

	fakeredis_kill(&rig.server);
	leaserig_release(ask);
	leaserig_pass(2 * LEASERIG_TTL);
	assert_int_equal(ask->end, SPOKE_EUNAVAILABLE);
	assert_in_range(ask->released_ns - begin_ns, LEASERIG_TTL - SECOND,
			LEASERIG_TTL + LEASERIG_TTL / 12);
}

/* Between the lease's end here and in the store is more time than before any attempt to connect. */
TEST(expired_lease_is_released_when_the_store_is_back)
{
	const struct spoke_lease_options slow = { .ttl_ns = 3 * LEASERIG_TTL };
	struct leaserig_ask *ask = leaserig_ask_with(&rig.one, "reports", &slow);

	leaserig_pass(LEASERIG_TTL + SECOND);
	fakeredis_kill(&rig.server);
	leaserig_pass(3 * (LEASERIG_TTL - LEASERIG_GUARD));
	assert_int_equal(ask->why, SPOKE_LEASE_EXPIRED);
	fakeredis_start(&rig.server, &rig.world, LEASERIG_AT);
	fakeredis_put_lock(&rig.server, "x", "y:1", 1, 1000);
	leaserig_pass(6 * SECOND);
	assert_int_equal(fakeredis_runs(&rig.server, FAKEREDIS_RELEASE), 1);
}

/* --- a store that is away */

TEST(ask_that_does_not_wait_ends_if_no_store_is_there)
{
	struct leaserig_ask *first, *second;

	fakeredis_kill(&rig.server);
	leaserig_pass(SECOND);
	first = leaserig_try("reports");
	leaserig_pass(10 * SECOND);
	assert_int_equal(first->error, SPOKE_EUNAVAILABLE);
	assert_true(strlen(first->text) > 0);
	second = leaserig_try("reports");
	leaserig_pass(10 * SECOND);
	assert_int_equal(second->error, SPOKE_EUNAVAILABLE);
}

TEST(first_ask_that_does_not_wait_waits_for_the_first_connection)
{
	struct leaserig_ask *ask;

	assert_int_equal(spoke_leases_new(rig.two.engine,
					  &(struct spoke_leases_options){
						  .store = "redis://" LEASERIG_AT },
					  &rig.two.leases),
			 SPOKE_OK);
	ask = leaserig_ask_with(&rig.two, "reports", NULL);
	leaserig_pass(20 * MS);
	assert_int_equal(ask->told, 1);
	assert_int_equal(ask->error, SPOKE_OK);
}

TEST(waiting_asks_wait_for_a_store)
{
	struct leaserig_ask *ask, *limited;
	uint64_t begin_ns;

	fakeredis_kill(&rig.server);
	leaserig_pass(SECOND);
	begin_ns = rig.world.now_ns;
	ask = leaserig_wait("reports");
	limited = leaserig_ask_with(&rig.one, "reports",
				    &(struct spoke_lease_options){ .wait_ns = 10 * SECOND });
	leaserig_pass(20 * SECOND);
	assert_int_equal(ask->told, 0);
	assert_int_equal(limited->error, SPOKE_ETIMEOUT);
	assert_in_range(limited->told_ns - begin_ns, 10 * SECOND, 10 * SECOND + 2 * MS);
	fakeredis_start(&rig.server, &rig.world, LEASERIG_AT);
	leaserig_pass(7 * SECOND);
	assert_int_equal(ask->error, SPOKE_OK);
}

TEST(waiter_misses_no_release_while_it_hears_nothing)
{
	struct leaserig_ask *ask;

	fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 3600000);
	ask = leaserig_wait("reports");
	leaserig_pass(SECOND);
	fakeredis_reset(&rig.server, true);
	fakeredis_unlock(&rig.server, "reports");
	leaserig_pass(SECOND);
	assert_int_equal(ask->error, SPOKE_OK);
}

/* --- other programs at the same lock */

TEST(reentered_lock_of_a_peer_is_waited_for)
{
	struct leaserig_ask *ask;

	fakeredis_put_lock(&rig.server, "reports", "peer:1", 2, 60000);
	ask = leaserig_wait("reports");
	leaserig_pass(SECOND);
	fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 60000);
	(void)fakeredis_publish(&rig.server, "redisson_lock__channel:{reports}", "0");
	leaserig_pass(SECOND);
	assert_int_equal(ask->told, 0);
	fakeredis_unlock(&rig.server, "reports");
	leaserig_pass(10 * MS);
	assert_int_equal(ask->error, SPOKE_OK);
}

TEST(noise_on_the_channel_harms_nothing)
{
	struct leaserig_ask *ask;

	fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 60000);
	ask = leaserig_wait("reports");
	leaserig_pass(SECOND);
	for (int i = 0; i < 100; i++)
		(void)fakeredis_publish(&rig.server, "redisson_lock__channel:{reports}", "1");
	leaserig_pass(SECOND);
	assert_int_equal(ask->told, 0);
	assert_true(fakeredis_runs(&rig.server, FAKEREDIS_ACQUIRE) < 10);
}
