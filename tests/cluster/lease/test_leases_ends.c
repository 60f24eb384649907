/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of leases: losses, times, faults of the store. */
#include "tests/cluster/lease/leaserig.h"
#include "tests/support/test.h"

#include <string.h>

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

/* --- The validity of leases when answers are slow, the process is frozen, the machine sleeps */

static uint64_t valid_ns(uint64_t sent_ns)
{
	return sent_ns + LEASERIG_TTL - LEASERIG_GUARD;
}

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

/* --- Leases at a store that fails or is away: lost answers, lost locks, lost messages */

static uint64_t count_of(const char *name)
{
	struct fakeredis_lock lock;

	assert_true(fakeredis_lock(&rig.server, name, &lock));
	return lock.count;
}

/* --- answers that are lost */

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
