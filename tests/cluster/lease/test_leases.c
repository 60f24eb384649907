/* SPDX-License-Identifier: Apache-2.0 */
/* Leases at a store that works: asked for, renewed, released; their names, limits and counters. */
#include "tests/cluster/lease/leaserig.h"
#include "tests/support/test.h"

#include <spoke/call.h>

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
