/* SPDX-License-Identifier: Apache-2.0 */
/* Asks that wait for a lease: their order, what wakes them, how they end. */
#include "tests/cluster/lease/leaserig.h"

#define rig leaserig

static struct fakeredis_lock lock_of(const char *name)
{
	struct fakeredis_lock lock;

	assert_true(fakeredis_lock(&rig.server, name, &lock));
	return lock;
}

static void waiting_ask_gets_the_lease_when_it_is_released(void **state)
{
	struct leaserig_ask *holder = leaserig_hold("reports");
	struct leaserig_ask *waiter = leaserig_wait("reports");

	(void)state;
	leaserig_pass(SECOND);
	assert_int_equal(waiter->told, 0);
	leaserig_release(holder);
	leaserig_pass(10 * MS);
	assert_int_equal(waiter->told, 1);
	assert_int_equal(waiter->error, SPOKE_OK);
	assert_int_equal(waiter->fence, holder->fence + 1);
}

static void waiting_asks_get_the_lease_in_their_order(void **state)
{
	struct leaserig_ask *holder = leaserig_hold("reports");
	struct leaserig_ask *waiters[5];

	(void)state;
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

static void one_message_leads_to_one_try(void **state)
{
	uint64_t before;

	(void)state;
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

static void ask_that_joins_a_line_leads_to_no_try(void **state)
{
	uint64_t before;

	(void)state;
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
static void message_during_a_try_leads_to_another_one(void **state)
{
	struct leaserig_ask *ask;

	(void)state;
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

static void flood_of_messages_leads_to_few_tries(void **state)
{
	struct leaserig_ask *ask;
	uint64_t before;

	(void)state;
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

static void lock_that_is_always_about_to_expire_makes_no_loop(void **state)
{
	uint64_t before;

	(void)state;
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

static void dead_holder_is_followed_when_its_time_is_over(void **state)
{
	struct leaserig_ask *ask;
	uint64_t begin_ns = rig.world.now_ns;

	(void)state;
	fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 5000);
	ask = leaserig_wait("reports");
	leaserig_pass(6 * SECOND);
	assert_int_equal(ask->error, SPOKE_OK);
	assert_in_range(ask->told_ns - begin_ns, 5 * SECOND, 5 * SECOND + 10 * MS);
	assert_true(fakeredis_runs(&rig.server, FAKEREDIS_ACQUIRE) <= 4);
}

static void waiting_ends_after_the_waiting_time(void **state)
{
	struct spoke_lease_options options = { .wait_ns = 3 * SECOND };
	struct leaserig_ask *first, *second;
	uint64_t begin_ns = rig.world.now_ns;

	(void)state;
	fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 60000);
	first = leaserig_ask_with(&rig.one, "reports", &options);
	second = leaserig_ask_with(&rig.one, "reports", &options);
	leaserig_pass(4 * SECOND);
	assert_int_equal(first->error, SPOKE_ETIMEOUT);
	assert_int_equal(second->error, SPOKE_ETIMEOUT);
	assert_in_range(first->told_ns - begin_ns, 3 * SECOND, 3 * SECOND + 2 * MS);
	assert_int_equal(fakeredis_subscribers(&rig.server), 0);
}

static void cancelled_ask_is_told_and_takes_nothing(void **state)
{
	struct leaserig_ask *early = leaserig_wait("reports");
	struct leaserig_ask *late;
	struct fakeredis_lock lock;

	(void)state;
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

static void ask_cancelled_while_it_is_granted_is_released(void **state)
{
	struct leaserig_ask *ask;
	struct fakeredis_lock lock;

	(void)state;
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

static void next_in_line_follows_a_cancelled_first(void **state)
{
	struct leaserig_ask *first, *second;

	(void)state;
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, leaserig_set_up, leaserig_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(waiting_ask_gets_the_lease_when_it_is_released),
		TEST(waiting_asks_get_the_lease_in_their_order),
		TEST(one_message_leads_to_one_try),
		TEST(ask_that_joins_a_line_leads_to_no_try),
		TEST(message_during_a_try_leads_to_another_one),
		TEST(flood_of_messages_leads_to_few_tries),
		TEST(lock_that_is_always_about_to_expire_makes_no_loop),
		TEST(dead_holder_is_followed_when_its_time_is_over),
		TEST(waiting_ends_after_the_waiting_time),
		TEST(cancelled_ask_is_told_and_takes_nothing),
		TEST(ask_cancelled_while_it_is_granted_is_released),
		TEST(next_in_line_follows_a_cancelled_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
