/* SPDX-License-Identifier: Apache-2.0 */
/* The validity of leases when answers are slow, the process is frozen, the machine sleeps. */
#include "tests/cluster/lease/leaserig.h"
#include "tests/support/test.h"

#include <string.h>

#define rig leaserig

static uint64_t valid_ns(uint64_t sent_ns)
{
	return sent_ns + LEASERIG_TTL - LEASERIG_GUARD;
}

FIXTURE(leaserig_set_up, leaserig_tear_down);

TEST(validity_counts_from_when_the_command_was_sent)
{
	uint64_t sent_ns = rig.world.now_ns;
	struct leaserig_ask *ask;

	rig.server.delay_ns = 2 * SECOND;
	ask = leaserig_try("reports");
	leaserig_pass(3 * SECOND);
	assert_int_equal(ask->error, SPOKE_OK);
	assert_int_equal(rig.world.now_ns + spoke_lease_left(ask->lease), valid_ns(sent_ns));
}

TEST(renewal_counts_from_when_it_was_sent)
{
	struct leaserig_ask *ask = leaserig_hold("reports");
	uint64_t before_ns;

	rig.server.delay_ns = 2 * SECOND;
	leaserig_pass(LEASERIG_TTL / 3 + SECOND);
	before_ns = rig.world.now_ns;
	assert_int_equal(leaserig_stat(SPOKE_STAT_LEASE_RENEWALS), 0);
	leaserig_pass(SECOND);
	assert_int_equal(leaserig_stat(SPOKE_STAT_LEASE_RENEWALS), 1);
	assert_true(rig.world.now_ns + spoke_lease_left(ask->lease) < valid_ns(before_ns));
}

/* The world's clock must not be behind what the lease was told. */
TEST(lease_never_outlives_its_time_in_the_store)
{
	struct leaserig_ask *ask = leaserig_hold("reports");
	struct fakeredis_lock lock;

	for (int i = 0; i < 200; i++) {
		leaserig_pass(331 * MS);
		rig.server.delay_ns = (uint64_t)i % 7 * 300 * MS;
		assert_true(fakeredis_lock(&rig.server, "reports", &lock));
		assert_true(spoke_lease_left(ask->lease) <= (uint64_t)lock.ttl_ms * MS);
	}
	assert_int_equal(ask->lost, 0);
}

TEST(lease_is_lost_when_its_validity_ends)
{
	uint64_t sent_ns = rig.world.now_ns;
	struct leaserig_ask *ask = leaserig_hold("reports");

	fakeredis_kill(&rig.server);
	leaserig_pass(LEASERIG_TTL);
	assert_int_equal(ask->lost, 1);
	assert_int_equal(ask->why, SPOKE_LEASE_EXPIRED);
	assert_in_range(ask->lost_ns, valid_ns(sent_ns), valid_ns(sent_ns) + MS + MS / 10);
}

TEST(each_of_many_leases_is_lost_in_its_tick)
{
	struct leaserig_ask *asks[20];
	uint64_t sent_ns[20];

	for (int i = 0; i < 20; i++) {
		char name[] = "a";

		name[0] = (char)('a' + i);
		sent_ns[i] = rig.world.now_ns;
		asks[i] = leaserig_hold(name);
		leaserig_pass(70 * MS);
	}
	fakeredis_kill(&rig.server);
	leaserig_pass(LEASERIG_TTL);
	for (int i = 0; i < 20; i++)
		assert_in_range(asks[i]->lost_ns, valid_ns(sent_ns[i]),
				valid_ns(sent_ns[i]) + MS + MS / 10);
}

/* --- a frozen process */

static unsigned other_callbacks;

/* Whatever runs in a turn: the lease that looks held must be held. */
static void note_alarm(struct spoke_alarm *alarm)
{
	const struct leaserig_ask *ask = &rig.asks[0];

	(void)alarm;
	other_callbacks++;
	if (spoke_lease_left(ask->lease) == 0)
		assert_int_equal(ask->lost, 1);
}

TEST(frozen_holder_learns_of_its_loss_before_anything_else)
{
	struct spoke_alarm alarm = { 0 };
	struct leaserig_ask *ask = leaserig_hold("reports");
	struct leaserig_ask *other;

	other_callbacks = 0;
	assert_int_equal(spoke_alarm_every(rig.one.engine, &alarm, 100 * MS, note_alarm), SPOKE_OK);
	leaserig_join(&rig.two, NULL);
	other = leaserig_ask_with(&rig.two, "reports",
				  &(struct spoke_lease_options){ .wait_ns = SPOKE_LEASE_FOREVER });
	leaserig_pass(SECOND);
	spokei_world_hold(&rig.one.process, LEASERIG_TTL + 5 * SECOND);
	leaserig_pass(LEASERIG_TTL + 4 * SECOND);
	assert_int_equal(ask->lost, 0);
	assert_int_equal(other->error, SPOKE_OK);
	other_callbacks = 0;
	ask->then = NULL;
	leaserig_pass(2 * SECOND);
	assert_int_equal(ask->lost, 1);
	assert_int_equal(ask->why, SPOKE_LEASE_EXPIRED);
	assert_true(other_callbacks > 0);
	assert_true(other->fence > ask->fence);
	assert_int_equal(other->lost, 0);
	(void)spoke_alarm_cancel(&alarm);
}

/* Whatever runs in a turn: each lease that is over was told as lost. */
static void note_all(struct spoke_alarm *alarm)
{
	(void)alarm;
	other_callbacks++;
	for (unsigned i = 0; i < rig.asked; i++)
		if (spoke_lease_left(rig.asks[i].lease) == 0)
			assert_int_equal(rig.asks[i].lost, 1);
}

/* They are granted in another order than that in which they end. */
TEST(each_of_several_leases_is_lost_before_anything_else)
{
	static const uint64_t ttls_s[] = { 60, 20, 40, 10 };
	static const unsigned ends[] = { 3, 1, 2, 0 };
	struct leaserig_ask *asks[4];
	struct spoke_alarm alarm = { 0 };

	for (unsigned i = 0; i < 4; i++) {
		char name[] = "a";

		name[0] = (char)('a' + i);
		asks[i] = leaserig_ask_with(&rig.one, name,
					    &(struct spoke_lease_options){
						    .ttl_ns = ttls_s[i] * SECOND, .fixed = true });
		leaserig_pass(100 * MS);
		assert_int_equal(asks[i]->error, SPOKE_OK);
	}
	assert_int_equal(spoke_alarm_every(rig.one.engine, &alarm, 100 * MS, note_all), SPOKE_OK);
	leaserig_pass(SECOND);
	for (unsigned i = 0; i < 4; i++) {
		const struct leaserig_ask *next = asks[ends[i]];
		uint64_t frozen_ns = spoke_lease_left(next->lease) + 500 * MS;

		other_callbacks = 0;
		assert_int_equal(next->lost, 0);
		spokei_world_hold(&rig.one.process, frozen_ns);
		leaserig_pass(frozen_ns + SECOND);
		assert_int_equal(next->lost, 1);
		assert_true(other_callbacks > 0);
	}
	(void)spoke_alarm_cancel(&alarm);
}

static struct leaserig_ask *waited; /* its answer lies in the socket when the process continues */
static bool lost_before_answer;

static void note_order(struct leaserig_ask *ask)
{
	if (ask == waited && ask->told == 1)
		lost_before_answer = rig.asks[0].lost == 1;
}

TEST(loss_comes_before_answers_that_lie_in_the_socket)
{
	struct leaserig_ask *ask = leaserig_hold("reports");

	fakeredis_put_lock(&rig.server, "other", "peer:1", 1, 0);
	rig.server.delay_ns = 50 * MS;
	waited = leaserig_try("other");
	waited->then = note_order;
	lost_before_answer = false;
	leaserig_pass(10 * MS);
	spokei_world_hold(&rig.one.process, LEASERIG_TTL);
	leaserig_pass(LEASERIG_TTL + SECOND);
	assert_int_equal(ask->lost, 1);
	assert_int_equal(waited->error, SPOKE_EBUSY);
	assert_true(lost_before_answer);
}

TEST(freeze_of_half_the_time_is_survived)
{
	uint64_t sent_ns = rig.world.now_ns;
	struct leaserig_ask *ask = leaserig_hold("reports");

	spokei_world_hold(&rig.one.process, LEASERIG_TTL / 2);
	leaserig_pass(LEASERIG_TTL / 2 + 100 * MS);
	assert_int_equal(ask->lost, 0);
	assert_int_equal(leaserig_stat(SPOKE_STAT_LEASE_RENEWALS), 1);
	assert_true(rig.world.now_ns + spoke_lease_left(ask->lease) >
		    valid_ns(sent_ns) + LEASERIG_TTL / 3);
	assert_true(spoke_lease_left(ask->lease) <= LEASERIG_TTL - LEASERIG_GUARD);
	leaserig_pass(5 * LEASERIG_TTL);
	assert_int_equal(ask->lost, 0);
}

/* --- grants that come too late */

TEST(grant_after_its_validity_is_returned_and_asked_for_again)
{
	struct leaserig_ask *ask;
	uint64_t resumed_ns;

	rig.server.delay_ns = 20 * MS;
	ask = leaserig_wait("reports");
	leaserig_pass(MS);
	/* The answer is on its way when the process freezes. */
	spokei_world_hold(&rig.one.process, LEASERIG_TTL - LEASERIG_GUARD + 10 * MS);
	leaserig_pass(LEASERIG_TTL - LEASERIG_GUARD + 10 * MS);
	resumed_ns = rig.world.now_ns;
	assert_int_equal(ask->told, 0);
	leaserig_pass(5 * SECOND);
	assert_int_equal(ask->told, 1);
	assert_int_equal(ask->error, SPOKE_OK);
	assert_true(ask->told_ns > resumed_ns);
	assert_int_equal(fakeredis_runs(&rig.server, FAKEREDIS_RELEASE), 1);
	assert_int_equal(ask->fence, 2);
	assert_true(rig.world.now_ns + spoke_lease_left(ask->lease) > valid_ns(resumed_ns));
}

TEST(late_grant_of_ask_that_does_not_wait_is_released)
{
	const struct spoke_lease_options options = { .ttl_ns = SECOND };
	struct fakeredis_lock lock;
	struct leaserig_ask *ask;

	rig.server.delay_ns = 20 * MS;
	ask = leaserig_ask_with(&rig.one, "reports", &options);
	leaserig_pass(MS);
	spokei_world_hold(&rig.one.process, 950 * MS);
	leaserig_pass(960 * MS);
	assert_int_equal(ask->error, SPOKE_EUNAVAILABLE);
	assert_false(fakeredis_lock(&rig.server, "reports", &lock));
	assert_int_equal(fakeredis_runs(&rig.server, FAKEREDIS_RELEASE), 1);
}

/* --- clocks */

TEST(sleep_of_the_machine_counts)
{
	struct leaserig_ask *ask = leaserig_hold("reports");
	uint64_t left_ns = spoke_lease_left(ask->lease);

	spokei_world_sleep(&rig.world, 5 * SECOND);
	assert_int_equal(spoke_lease_left(ask->lease), left_ns - 5 * SECOND);
	spokei_world_sleep(&rig.world, LEASERIG_TTL);
	assert_int_equal(spoke_lease_left(ask->lease), 0);
	leaserig_pass(LEASERIG_TTL / 3);
	assert_int_equal(ask->lost, 1);
	assert_int_equal(ask->why, SPOKE_LEASE_EXPIRED);
}

TEST(lease_that_survived_sleep_is_renewed_at_once)
{
	struct leaserig_ask *ask = leaserig_hold("reports");
	struct spoke_alarm alarm = { 0 };

	other_callbacks = 0;
	assert_int_equal(spoke_alarm_every(rig.one.engine, &alarm, 200 * MS, note_alarm), SPOKE_OK);
	leaserig_pass(SECOND);
	spokei_world_sleep(&rig.world, 15 * SECOND);
	leaserig_pass(300 * MS);
	assert_int_equal(leaserig_stat(SPOKE_STAT_SLEEPS), 1);
	assert_int_equal(leaserig_stat(SPOKE_STAT_LEASE_RENEWALS), 1);
	assert_true(spoke_lease_left(ask->lease) > LEASERIG_TTL - LEASERIG_GUARD - SECOND);
	leaserig_pass(3 * LEASERIG_TTL);
	assert_int_equal(ask->lost, 0);
	(void)spoke_alarm_cancel(&alarm);
}

static uint64_t wall_step_ns;

static uint64_t stepped_wall(void *ctx)
{
	(void)ctx;
	return rig.world.now_ns + wall_step_ns;
}

TEST(steps_of_the_wall_clock_change_nothing)
{
	struct leaserig_ask *ask;
	uint64_t left_ns;

	wall_step_ns = 1000000 * SECOND;
	rig.one.faulty.env.wall = stepped_wall;
	ask = leaserig_hold("reports");
	left_ns = spoke_lease_left(ask->lease);
	wall_step_ns += 86400 * SECOND;
	assert_int_equal(spoke_lease_left(ask->lease), left_ns);
	leaserig_pass(LEASERIG_TTL);
	wall_step_ns -= 2 * 86400 * SECOND;
	leaserig_pass(LEASERIG_TTL);
	assert_int_equal(ask->lost, 0);
}

TEST(lease_is_over_for_others_only_after_its_holder_knows)
{
	struct leaserig_ask *one = leaserig_hold("reports");
	struct leaserig_ask *two;

	leaserig_join(&rig.two, NULL);
	two = leaserig_ask_with(&rig.two, "reports",
				&(struct spoke_lease_options){ .wait_ns = SPOKE_LEASE_FOREVER });
	leaserig_pass(SECOND);
	for (int i = 0; i < 40; i++) {
		if (i == 12)
			spokei_world_hold(&rig.one.process, 2 * LEASERIG_TTL);
		leaserig_pass(SECOND);
		assert_true(spoke_lease_left(one->lease) == 0 || spoke_lease_left(two->lease) == 0);
	}
	assert_int_equal(two->error, SPOKE_OK);
}
