/* SPDX-License-Identifier: Apache-2.0 */
/* Leases at work: asks that wait and asks that do not, refusals, many leases. */
#include "cluster/lease/script.h"
#include "tests/cluster/lease/leaserig.h"
#include "tests/support/test.h"

#include <spoke/call.h>

#include <stdio.h>
#include <string.h>

#define rig leaserig

static struct fakeredis_lock lock_of(const char *name)
{
	struct fakeredis_lock lock;

	assert_true(fakeredis_lock(&rig.server, name, &lock));
	return lock;
}

FIXTURE(leaserig_set_up, leaserig_tear_down);

TEST(granted_lease_is_held_until_released)
{
	struct leaserig_ask *ask = leaserig_hold("reports");
	struct fakeredis_lock lock = lock_of("reports");
	struct spoke_span name = spoke_lease_name(ask->lease);

	assert_int_equal(ask->fence, 1);
	assert_int_equal(spoke_lease_fence(ask->lease), 1);
	assert_int_equal(name.len, 7);
	assert_memory_equal(name.data, "reports", 7);
	assert_int_equal(lock.count, 1);
	assert_true(lock.ttl_ms > 29900 && lock.ttl_ms <= 30000);
	assert_true(spoke_lease_left(ask->lease) <= LEASERIG_TTL - LEASERIG_GUARD);
	leaserig_release(ask);
	leaserig_pass(10 * MS);
	assert_int_equal(ask->released, 1);
	assert_int_equal(ask->end, SPOKE_OK);
	assert_false(fakeredis_lock(&rig.server, "reports", &lock));
	assert_int_equal(spoke_lease_release(ask->lease, NULL, NULL), SPOKE_ENOENT);
	assert_int_equal(spoke_lease_fence(ask->lease), 0);
}

TEST(holder_is_uuid_and_number_new_for_each_ask)
{
	struct leaserig_ask *ask = leaserig_hold("a");
	struct fakeredis_lock first = lock_of("a");
	struct fakeredis_lock second;

	assert_int_equal(first.holder[8], '-');
	assert_int_equal(first.holder[14], '4');
	assert_int_equal(first.holder[36], ':');
	leaserig_release(ask);
	leaserig_pass(10 * MS);
	ask = leaserig_hold("a");
	second = lock_of("a");
	assert_memory_equal(first.holder, second.holder, 37);
	assert_string_not_equal(first.holder, second.holder);
	assert_int_equal(ask->fence, 2);
}

TEST(ask_that_does_not_wait_is_told_of_the_holder)
{
	struct leaserig_ask *ask;

	fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 7000);
	ask = leaserig_try("reports");
	leaserig_pass(10 * MS);
	assert_int_equal(ask->error, SPOKE_EBUSY);
	assert_true(ask->left_ns > 6900 * MS && ask->left_ns <= 7000 * MS);
	assert_string_equal(lock_of("reports").holder, "peer:1");
}

TEST(lock_without_time_to_live_is_busy_for_ever)
{
	struct leaserig_ask *ask;

	fakeredis_put_lock(&rig.server, "reports", "peer:1", 1, 0);
	ask = leaserig_try("reports");
	leaserig_pass(10 * MS);
	assert_int_equal(ask->error, SPOKE_EBUSY);
	assert_true(ask->left_ns == UINT64_MAX);
}

TEST(held_lease_is_renewed_at_a_third_of_its_time)
{
	struct leaserig_ask *ask = leaserig_hold("reports");

	leaserig_pass(LEASERIG_TTL / 3 - LEASERIG_TTL / 30 - 20 * MS);
	assert_int_equal(leaserig_stat(SPOKE_STAT_LEASE_RENEWALS), 0);
	leaserig_pass(LEASERIG_TTL / 30 + 20 * MS);
	assert_int_equal(leaserig_stat(SPOKE_STAT_LEASE_RENEWALS), 1);
	leaserig_pass(20 * LEASERIG_TTL);
	assert_int_equal(ask->lost, 0);
	assert_true(spoke_lease_left(ask->lease) > LEASERIG_TTL / 2);
	assert_in_range(leaserig_stat(SPOKE_STAT_LEASE_RENEWALS), 60, 62);
	assert_true(lock_of("reports").ttl_ms > 19000);
}

TEST(fixed_lease_is_lost_at_the_end_of_its_time)
{
	struct leaserig_ask *ask = leaserig_ask_with(&rig.one, "reports",
						     &(struct spoke_lease_options){
							     .fixed = true, .ttl_ns = 2 * SECOND });
	uint64_t asked_ns = rig.world.now_ns;
	uint64_t valid_ns = 2 * SECOND - 200 * MS - 20 * MS - 2 * MS;

	leaserig_pass(5 * SECOND);
	assert_int_equal(ask->lost, 1);
	assert_int_equal(ask->why, SPOKE_LEASE_EXPIRED);
	assert_in_range(ask->lost_ns - asked_ns, valid_ns, valid_ns + 2 * MS);
	assert_int_equal(leaserig_stat(SPOKE_STAT_LEASE_RENEWALS), 0);
}

TEST(programs_exclude_each_other)
{
	struct leaserig_ask *one = leaserig_hold("reports");
	struct leaserig_ask *two;

	leaserig_join(&rig.two, NULL);
	two = leaserig_ask_with(&rig.two, "reports",
				&(struct spoke_lease_options){ .wait_ns = SPOKE_LEASE_FOREVER });
	leaserig_pass(3 * LEASERIG_TTL);
	assert_int_equal(two->told, 0);
	leaserig_release(one);
	leaserig_pass(10 * MS);
	assert_int_equal(two->error, SPOKE_OK);
	assert_int_equal(two->fence, 2);
}

static void never_told(void *arg, struct spoke_lease lease, const struct spoke_lease_answer *answer)
{
	(void)arg;
	(void)lease;
	(void)answer;
	fail_msg("an ask that was rejected was told");
}

TEST(name_of_any_length_is_the_key)
{
	static char name[SPOKE_LEASE_NAME_MAX + 2];
	struct spoke_span found;
	struct leaserig_ask *ask;

	for (size_t len = 1; len <= SPOKE_LEASE_NAME_MAX; len += len < 30 ? 1 : 199) {
		memset(name, 'n', len);
		name[len] = '\0';
		ask = leaserig_hold(name);
		found = spoke_lease_name(ask->lease);
		assert_int_equal(found.len, len);
		assert_memory_equal(found.data, name, len);
		(void)lock_of(name);
	}
	memset(name, 'n', SPOKE_LEASE_NAME_MAX + 1);
	assert_int_equal(spoke_lease_ask(rig.one.leases, name, NULL, never_told, NULL),
			 SPOKE_EINVAL);
}

TEST(wrong_asks_are_rejected)
{
	const struct spoke_lease_options brief = { .ttl_ns = 99 * MS };
	const struct spoke_lease_options lasting = { .ttl_ns = 90000 * SECOND };
	struct spoke_leases *leases = rig.one.leases;

	assert_int_equal(spoke_lease_ask(leases, "", NULL, never_told, NULL), SPOKE_EINVAL);
	assert_int_equal(spoke_lease_ask(leases, NULL, NULL, never_told, NULL), SPOKE_EINVAL);
	assert_int_equal(spoke_lease_ask(leases, "\xff", NULL, never_told, NULL), SPOKE_EINVAL);
	assert_int_equal(spoke_lease_ask(leases, "a", NULL, NULL, NULL), SPOKE_EINVAL);
	assert_int_equal(spoke_lease_ask(NULL, "a", NULL, never_told, NULL), SPOKE_EINVAL);
	assert_int_equal(spoke_lease_ask(leases, "a", &brief, never_told, NULL), SPOKE_ERANGE);
	assert_int_equal(spoke_lease_ask(leases, "a", &lasting, never_told, NULL), SPOKE_ERANGE);
	assert_int_equal(leaserig_stat(SPOKE_STAT_LEASES_ASKED), 0);
}

TEST(asks_beyond_the_limit_are_rejected)
{
	struct leaserig_ask *ask;

	leaserig_join(&rig.two, &(struct spoke_leases_options){ .leases_max = 2 });
	ask = leaserig_ask_with(&rig.two, "a", NULL);
	(void)leaserig_ask_with(&rig.two, "b", NULL);
	assert_int_equal(spoke_lease_ask(rig.two.leases, "c", NULL, never_told, NULL),
			 SPOKE_ELIMIT);
	leaserig_pass(10 * MS);
	leaserig_release(ask);
	leaserig_pass(10 * MS);
	(void)leaserig_ask_with(&rig.two, "c", NULL);
	leaserig_pass(10 * MS);
	assert_int_equal(rig.held, 3);
}

TEST(look_shows_what_leases_do)
{
	struct spoke_leases_look look;

	spoke_leases_look(rig.one.leases, &look);
	assert_true(look.connected);
	assert_int_equal(look.asked, 0);
	assert_int_equal(look.held, 0);
	assert_true(look.left_min_ns == UINT64_MAX);
	assert_string_equal(look.store, LEASERIG_AT);
	(void)leaserig_hold("a");
	leaserig_pass(SECOND);
	(void)leaserig_hold("b");
	(void)leaserig_wait("a");
	leaserig_pass(SECOND);
	spoke_leases_look(rig.one.leases, &look);
	assert_int_equal(look.asked, 1);
	assert_int_equal(look.held, 2);
	assert_in_range(look.left_min_ns, LEASERIG_TTL - LEASERIG_GUARD - 2100 * MS,
			LEASERIG_TTL - LEASERIG_GUARD - 1900 * MS);
}

/* Also of failures that have no event, because others came before. */
TEST(look_tells_why_the_store_takes_no_commands)
{
	struct spoke_leases_look look;

	spoke_leases_look(rig.one.leases, &look);
	assert_string_equal(look.why, "");
	fakeredis_stop(&rig.server);
	leaserig_pass(SECOND);
	spoke_leases_look(rig.one.leases, &look);
	assert_false(look.connected);
	assert_non_null(strstr(look.why, "refused"));
	memset(&rig.server, 0, sizeof(rig.server));
	fakeredis_start(&rig.server, &rig.world, LEASERIG_AT);
	rig.server.forbidden[0] = "config|get";
	rig.server.forbidden[1] = "script|load";
	leaserig_pass(20 * SECOND);
	spoke_leases_look(rig.one.leases, &look);
	assert_false(look.connected);
	assert_non_null(strstr(look.why, "SCRIPT LOAD: NOPERM"));
	rig.server.forbidden[1] = NULL;
	leaserig_pass(20 * SECOND);
	spoke_leases_look(rig.one.leases, &look);
	assert_true(look.connected);
	assert_string_equal(look.why, "");
}

TEST(counters_add_up)
{
	struct leaserig_ask *ask = leaserig_hold("a");

	(void)leaserig_try("a");
	leaserig_pass(10 * MS);
	leaserig_release(ask);
	leaserig_pass(10 * MS);
	assert_int_equal(leaserig_stat(SPOKE_STAT_LEASES_ASKED), 2);
	assert_int_equal(leaserig_stat(SPOKE_STAT_LEASES_HELD), 1);
	assert_int_equal(leaserig_stat(SPOKE_STAT_LEASES_FAILED), 1);
	assert_int_equal(leaserig_stat(SPOKE_STAT_LEASES_RELEASED), 1);
	assert_int_equal(leaserig_stat(SPOKE_STAT_LEASES_LOST), 0);
}

TEST(names_in_events_are_escaped)
{
	struct spoke_event event = { 0 };
	bool found = false;

	(void)leaserig_hold("a\"\n");
	for (uint64_t n = 1; spoke_event_get(rig.one.engine, n, &event) == 0; n = event.number + 1)
		found = found || (event.user == SPOKE_EVENT_OF_LEASE &&
				  strcmp(event.text, "lease \"a\\\"\\x0a\" is held, fence 1") == 0);
	assert_true(found);
}

TEST(reasons_of_losses_have_names, .bare = true)
{
	assert_string_equal(spoke_lease_loss_name(SPOKE_LEASE_EXPIRED), "expired");
	assert_string_equal(spoke_lease_loss_name(SPOKE_LEASE_TAKEN), "taken");
	assert_string_equal(spoke_lease_loss_name(SPOKE_LEASE_CLOSED), "closed");
	assert_null(spoke_lease_loss_name((enum spoke_lease_loss)0));
}

/* --- Asks that wait for a lease: their order, what wakes them, how they end */

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

/* --- Leases at a store that refuses commands, and at one with a replica */

static const struct spoke_lease_options waits = { .wait_ns = SPOKE_LEASE_FOREVER };

/* --- refusals */

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

/* --- Ten thousand leases of one program: how much memory they need, how often the store is asked,
 * and what happens when all are lost at once */

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

/* --- the scripts */

/* A changed text changes what runs in C, in tests/support/redis/scripts.c, and then this. */
TEST(texts_of_the_product_are_those_that_run_in_c)
{
	static const char *const sha1[SPOKEI_SCRIPTS] = {
		[SPOKEI_SCRIPT_ACQUIRE] = "ded303e81df9c711db7823b8f10441f167b64579",
		[SPOKEI_SCRIPT_RENEW] = "34877be206bcd0c14a3395b55e27a53830c341c0",
		[SPOKEI_SCRIPT_RELEASE] = "f05069c5f00844dd047a5d9e9f563f217b2aef3a",
	};

	for (unsigned i = SPOKEI_SCRIPT_ACQUIRE; i < SPOKEI_SCRIPTS; i++)
		assert_string_equal(rig.server.scripts[i - SPOKEI_SCRIPT_ACQUIRE].sha1, sha1[i]);
}
