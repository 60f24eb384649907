/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suspend of the machine: its detection, the notification of members, and the absence of other
 * effects.
 */
#include "core/engine/engine.h"
#include "core/engine/roll.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"

#include <string.h>

#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

enum {
	MEMBERS = 4,
};

struct member {
	struct spokei_member member;
	struct spokei_task gone;
	unsigned woken;
	struct member *drops; /* leaves when this member is notified, or NULL */
	struct member *joins;
};

struct fixture {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_alarm tick;
	unsigned ticks;
	uint64_t ticks_hash; /* hash of the times of all ticks */
	uint64_t boot_ns;    /* value of the replaced clock */
	uint64_t hold_ns;    /* delay before and after its reading, once */
	struct member members[MEMBERS];
};

static struct fixture fixture;

static void tick(struct spoke_alarm *alarm)
{
	(void)alarm;
	fixture.ticks++;
	fixture.ticks_hash = fixture.ticks_hash * 31 + fixture.world.now_ns;
}

static void begin(void)
{
	struct spoke_engine_options options = { .env = &fixture.process.env };

	memset(&fixture, 0, sizeof(fixture));
	assert_true(spokei_world_init(&fixture.world, 9));
	spokei_world_process_init(&fixture.process, &fixture.world);
	assert_int_equal(spoke_engine_new(&options, &fixture.engine), SPOKE_OK);
	assert_int_equal(spoke_alarm_every(fixture.engine, &fixture.tick, 10 * MS, tick), SPOKE_OK);
}

static void end(void)
{
	spoke_engine_free(fixture.engine);
	fixture.engine = NULL;
	assert_int_equal(fixture.process.blocks, 0);
	spokei_world_process_fini(&fixture.process);
	spokei_world_fini(&fixture.world);
}

static int set_up(void **state)
{
	(void)state;
	begin();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	end();
	return 0;
}

FIXTURE(set_up, tear_down);

static void member_gone(struct spokei_task *task)
{
	struct member *member = spoke_container_of(task, struct member, gone);

	spokei_roll_drop(fixture.engine, &member->member);
}

static void member_close(struct spokei_member *roll)
{
	struct member *member = spoke_container_of(roll, struct member, member);

	member->gone.run = member_gone;
	spokei_engine_dead(fixture.engine, &member->gone);
}

static void member_woke(struct spokei_member *roll)
{
	struct member *member = spoke_container_of(roll, struct member, member);

	member->woken++;
	if (member->drops)
		spokei_roll_drop(fixture.engine, &member->drops->member);
	if (member->joins)
		spokei_roll_add(fixture.engine, &member->joins->member);
	member->joins = NULL;
}

static struct member *init_member(int at)
{
	struct member *member = &fixture.members[at];

	member->member = (struct spokei_member){ .kind = "test",
						 .close = member_close,
						 .woke = member_woke };
	return member;
}

static struct member *add_member(int at)
{
	struct member *member = init_member(at);

	spokei_roll_add(fixture.engine, &member->member);
	return member;
}

static void pass(uint64_t ns)
{
	spokei_world_run(&fixture.world, fixture.world.now_ns + ns);
}

static uint64_t sleeps(void)
{
	return spoke_stat_get(fixture.engine, SPOKE_STAT_SLEEPS);
}

TEST(sleep_is_counted_reported_and_logged_once)
{
	struct member *one = add_member(0);
	struct member *deaf = add_member(1);
	struct member *two = add_member(2);

	deaf->member.woke = NULL;
	pass(S);
	spokei_world_sleep(&fixture.world, 90 * S + 340 * MS);
	pass(S);
	assert_int_equal(sleeps(), 1);
	assert_int_equal(one->woken, 1);
	assert_int_equal(two->woken, 1);
	assert_string_equal(spoke_engine_why(fixture.engine), "the machine slept for 90.3 s");
	spokei_world_sleep(&fixture.world, 2 * S);
	pass(S);
	assert_int_equal(sleeps(), 2);
	assert_int_equal(one->woken, 2);
	assert_string_equal(spoke_engine_why(fixture.engine), "the machine slept for 2.0 s");
}

TEST(a_sleep_before_the_first_turn_counts)
{
	spokei_world_sleep(&fixture.world, 5 * S);
	pass(200 * MS);
	assert_int_equal(sleeps(), 1);
}

TEST(a_sleep_is_noticed_within_a_tenth_of_a_second_of_turns)
{
	pass(S);
	spokei_world_sleep(&fixture.world, 5 * S);
	pass(110 * MS);
	assert_int_equal(sleeps(), 1);
}

TEST(the_second_clock_is_not_read_in_every_turn)
{
	pass(S);
	spokei_world_sleep(&fixture.world, 5 * S);
	pass(200 * MS);
	assert_int_equal(sleeps(), 1);
	/* Checks are 10 ms or 100 ms apart, so sleeps between two checks count as one. */
	for (int i = 0; i < 3; i++) {
		spokei_world_sleep(&fixture.world, 5 * S);
		pass(20 * MS);
	}
	pass(200 * MS);
	assert_in_range(sleeps(), 2, 3);
}

TEST(small_steps_and_steps_back_are_no_sleep)
{
	struct member *member = add_member(0);

	pass(S);
	for (int i = 0; i < 50; i++) {
		spokei_world_sleep(&fixture.world, S);
		pass(200 * MS);
	}
	for (int i = 0; i < 20; i++) {
		fixture.world.slept_ns -= 2 * S;
		pass(200 * MS);
	}
	assert_int_equal(sleeps(), 0);
	assert_int_equal(member->woken, 0);
	/* A difference of more than one second counts, whatever the drift so far. */
	spokei_world_sleep(&fixture.world, S + 1);
	pass(200 * MS);
	assert_int_equal(sleeps(), 1);
}

TEST(a_clock_that_begins_behind_the_other_is_fine)
{
	fixture.world.slept_ns -= 100 * S; /* below zero, so it wraps */
	pass(S);
	assert_int_equal(sleeps(), 0);
	spokei_world_sleep(&fixture.world, 3 * S);
	pass(S);
	assert_int_equal(sleeps(), 1);
}

/* Holds the process up between the readings of the two clocks, before and after the second one. */
static uint64_t odd_boot_now(void *ctx)
{
	uint64_t read_ns;

	(void)ctx;
	fixture.world.now_ns += fixture.hold_ns;
	read_ns = fixture.world.now_ns;
	fixture.world.now_ns += fixture.hold_ns;
	fixture.hold_ns = 0;
	return read_ns + fixture.world.slept_ns;
}

TEST(being_held_up_between_two_clocks_is_no_sleep)
{
	fixture.process.env.boot_now = odd_boot_now;
	for (int i = 0; i < 20; i++) {
		fixture.hold_ns = 5 * S;
		pass(300 * MS);
		assert_int_equal(fixture.hold_ns, 0);
		pass(i % 2 ? 10 * S : MS);
	}
	assert_int_equal(sleeps(), 0);
	pass(S);
	spokei_world_sleep(&fixture.world, 2 * S);
	pass(S);
	assert_int_equal(sleeps(), 1);
}

TEST(notified_member_may_remove_and_add_members)
{
	struct member *one = add_member(0);
	struct member *two = add_member(1);
	struct member *three = add_member(2);
	struct member *four = init_member(3);

	one->drops = one;
	two->drops = three;
	two->joins = four;
	pass(S);
	spokei_world_sleep(&fixture.world, 5 * S);
	pass(S);
	assert_int_equal(one->woken, 1);
	assert_int_equal(two->woken, 1);
	assert_int_equal(three->woken, 0);
	assert_int_equal(four->woken, 0);
	spokei_world_sleep(&fixture.world, 5 * S);
	pass(S);
	assert_int_equal(one->woken, 1);
	assert_int_equal(two->woken, 2);
	assert_int_equal(four->woken, 1);
}

TEST(closed_member_is_not_notified_of_sleep)
{
	struct member *member = add_member(0);

	pass(S);
	spokei_roll_close_all(fixture.engine);
	spokei_roll_wake_all(fixture.engine);
	assert_int_equal(member->woken, 0);
}

/* Runs one seed with and without sleep: turns, times and random numbers are the same. */
TEST(a_world_that_slept_goes_on_as_one_that_did_not)
{
	uint64_t hash[2];
	uint64_t dice[2];
	unsigned ticks[2];

	for (unsigned slept = 0; slept < 2; slept++) {
		end();
		begin();
		for (int i = 0; i < 20; i++) {
			pass(333 * MS);
			if (slept)
				spokei_world_sleep(&fixture.world, 3600 * S);
		}
		assert_int_equal(sleeps(), slept ? 19 : 0);
		hash[slept] = fixture.ticks_hash;
		dice[slept] = fixture.world.dice;
		ticks[slept] = fixture.ticks;
	}
	assert_int_equal(ticks[0], ticks[1]);
	assert_true(hash[0] == hash[1]);
	assert_true(dice[0] == dice[1]);
	assert_int_equal(spoke_stat_get(fixture.engine, SPOKE_STAT_TURNS_LATE), 0);
}
