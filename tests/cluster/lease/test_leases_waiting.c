/* SPDX-License-Identifier: Apache-2.0 */
/* Asks that wait for a lease: their order, what wakes them, how they end. */
#include "tests/cluster/lease/leaserig.h"
#include "tests/support/test.h"

#define rig leaserig

static struct fakeredis_lock lock_of(const char *name)
{
	struct fakeredis_lock lock;

	assert_true(fakeredis_lock(&rig.server, name, &lock));
	return lock;
}

FIXTURE(leaserig_set_up, leaserig_tear_down);

TEST(waiting_ask_gets_the_lease_when_it_is_released)
{
	struct leaserig_ask *holder = leaserig_hold("reports");
	struct leaserig_ask *waiter = leaserig_wait("reports");

	leaserig_pass(SECOND);
	assert_int_equal(waiter->told, 0);
	leaserig_release(holder);
	leaserig_pass(10 * MS);
	assert_int_equal(waiter->told, 1);
	assert_int_equal(waiter->error, SPOKE_OK);
	assert_int_equal(waiter->fence, holder->fence + 1);
}

TEST(waiting_asks_get_the_lease_in_their_order)
{
	struct leaserig_ask *holder = leaserig_hold("reports");
	struct leaserig_ask *waiters[5];

	for (int i = 0; i < 5; i++)
		waiters[i] = leaserig_wait("reports");
	for (int i = 0; i < 5; i++) {
		leaserig_pass(100 * MS);
		leaserig_release(holder);
		leaserig_pass(10 * MS);
		assert_int_equal(rig.held, i + 2);
		assert_ptr_equal(rig.order[i + 1], waiters[i]);
		holder = waiters[i];
	}
}

TEST(one_message_leads_to_one_try)
{
	uint64_t before;

	fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 60000);
	for (int i = 0; i < 50; i++)
		(void)leaserig_wait("reports");
	leaserig_pass(SECOND);
	before = fakeredis_runs(&rig.server, FAKEREDIS_ACQUIRE);
	fakeredis_unlock(&rig.server, "reports");
	leaserig_pass(SECOND);
	assert_int_equal(rig.held, 1);
	assert_int_equal(fakeredis_runs(&rig.server, FAKEREDIS_ACQUIRE) - before, 1);
}

TEST(ask_that_joins_a_line_leads_to_no_try)
{
	uint64_t before;

	fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 60000);
	(void)leaserig_wait("reports");
	leaserig_pass(SECOND);
	before = fakeredis_runs(&rig.server, FAKEREDIS_ACQUIRE);
	for (int i = 0; i < 50; i++)
		(void)leaserig_wait("reports");
	leaserig_pass(SECOND);
	assert_int_equal(fakeredis_runs(&rig.server, FAKEREDIS_ACQUIRE), before);
}

/* The lock is taken and given back again while the answer to a try is on its way. */
TEST(message_during_a_try_leads_to_another_one)
{
	struct leaserig_ask *ask;

	fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 3600000);
	ask = leaserig_wait("reports");
	leaserig_pass(SECOND);
	rig.server.delay_ns = 100 * MS;
	(void)fakeredis_publish(&rig.server, "redisson_lock__channel:{reports}", "0");
	leaserig_pass(150 * MS);
	rig.server.delay_ns = 0;
	fakeredis_unlock(&rig.server, "reports");
	leaserig_pass(SECOND);
	assert_int_equal(ask->told, 1);
}

TEST(flood_of_messages_leads_to_few_tries)
{
	struct leaserig_ask *ask;
	uint64_t before;

	fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 3600000);
	ask = leaserig_wait("reports");
	leaserig_pass(SECOND);
	before = fakeredis_runs(&rig.server, FAKEREDIS_ACQUIRE);
	for (unsigned i = 0; i < 2000; i++) {
		(void)fakeredis_publish(&rig.server, "redisson_lock__channel:{reports}", "0");
		leaserig_pass(MS);
	}
	assert_in_range(fakeredis_runs(&rig.server, FAKEREDIS_ACQUIRE) - before, 50, 150);
	fakeredis_unlock(&rig.server, "reports");
	leaserig_pass(25 * MS);
	assert_int_equal(ask->told, 1);
}

TEST(lock_that_is_always_about_to_expire_makes_no_loop)
{
	uint64_t before;

	fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 3600000);
	(void)leaserig_wait("reports");
	leaserig_pass(SECOND);
	before = fakeredis_runs(&rig.server, FAKEREDIS_ACQUIRE);
	(void)fakeredis_publish(&rig.server, "redisson_lock__channel:{reports}", "0");
	for (unsigned i = 0; i < 2000; i++) {
		fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 2);
		leaserig_pass(MS);
	}
	assert_in_range(fakeredis_runs(&rig.server, FAKEREDIS_ACQUIRE) - before, 50, 150);
}

TEST(dead_holder_is_followed_when_its_time_is_over)
{
	struct leaserig_ask *ask;
	uint64_t begin_ns = rig.world.now_ns;

	fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 5000);
	ask = leaserig_wait("reports");
	leaserig_pass(6 * SECOND);
	assert_int_equal(ask->error, SPOKE_OK);
	assert_in_range(ask->told_ns - begin_ns, 5 * SECOND, 5 * SECOND + 10 * MS);
	assert_true(fakeredis_runs(&rig.server, FAKEREDIS_ACQUIRE) <= 4);
}

TEST(waiting_ends_after_the_waiting_time)
{
	struct spoke_lease_options options = { .wait_ns = 3 * SECOND };
	struct leaserig_ask *first, *second;
	uint64_t begin_ns = rig.world.now_ns;

	fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 60000);
	first = leaserig_ask_with(&rig.one, "reports", &options);
	second = leaserig_ask_with(&rig.one, "reports", &options);
	leaserig_pass(4 * SECOND);
	assert_int_equal(first->error, SPOKE_ETIMEOUT);
	assert_int_equal(second->error, SPOKE_ETIMEOUT);
	assert_in_range(first->told_ns - begin_ns, 3 * SECOND, 3 * SECOND + 2 * MS);
	assert_int_equal(fakeredis_subscribers(&rig.server), 0);
}

TEST(cancelled_ask_is_told_and_takes_nothing)
{
	struct leaserig_ask *early = leaserig_wait("reports");
	struct leaserig_ask *late;
	struct fakeredis_lock lock;

	leaserig_release(early);
	leaserig_pass(10 * MS);
	assert_int_equal(early->error, SPOKE_ECANCELED);
	assert_int_equal(early->released, 1);
	assert_int_equal(early->end, SPOKE_OK);
	assert_false(fakeredis_lock(&rig.server, "reports", &lock));
	fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 60000);
	late = leaserig_wait("reports");
	leaserig_pass(SECOND);
	leaserig_release(late);
	leaserig_pass(10 * MS);
	assert_int_equal(late->error, SPOKE_ECANCELED);
	assert_string_equal(lock_of("reports").holder, "peer:1");
}

TEST(ask_cancelled_while_it_is_granted_is_released)
{
	struct leaserig_ask *ask;
	struct fakeredis_lock lock;

	rig.server.delay_ns = 100 * MS;
	ask = leaserig_wait("reports");
	leaserig_pass(50 * MS);
	assert_true(fakeredis_lock(&rig.server, "reports", &lock));
	leaserig_release(ask);
	leaserig_pass(SECOND);
	assert_int_equal(ask->error, SPOKE_ECANCELED);
	assert_int_equal(ask->released, 1);
	assert_false(fakeredis_lock(&rig.server, "reports", &lock));
}

TEST(next_in_line_follows_a_cancelled_first)
{
	struct leaserig_ask *first, *second;

	fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 2000);
	first = leaserig_wait("reports");
	second = leaserig_wait("reports");
	leaserig_pass(SECOND);
	leaserig_release(first);
	leaserig_pass(1010 * MS);
	assert_int_equal(first->error, SPOKE_ECANCELED);
	assert_int_equal(second->told, 1);
	assert_int_equal(second->error, SPOKE_OK);
}
