/* SPDX-License-Identifier: Apache-2.0 */
/* Advancing a wheel: budgets, jumps, a clock that goes back, the horizon, and the next expiry. */
#include "tests/support/test.h"
#include "tests/timer/rig.h"

#include <stdlib.h>

/* Advances with a budget until the wheel is done. Asserts that no call exceeds the budget. */
static unsigned advance_by(struct rig *rig, uint64_t tick, uint32_t budget)
{
	unsigned calls = 0;
	int status;

	do {
		uint64_t before = rig_work(rig).visited_timers;

		status = spoke_wheel_advance(rig->wheel, rig_ns(tick), budget);
		assert_true(rig_work(rig).visited_timers - before <= budget);
		rig_check(rig);
		calls++;
		assert_in_range(calls, 0, 100000);
	} while (status == SPOKE_WHEEL_MORE);
	assert_int_equal(status, SPOKE_WHEEL_OK);
	return calls;
}

RUNNER(rig_run);

TEST(a_budget_interrupts_and_the_next_advance_goes_on_in_order)
{
	struct rig *rig = *state;

	for (uint32_t budget = 1; budget < 9; budget++) {
		uint64_t start = (uint64_t)budget * 200000;

		rig->logged = 0;
		rig_advance(rig, start);
		for (int id = 0; id < RIG_ITEMS; id++)
			rig_schedule(rig, id, start + 1 + (uint64_t)(id / 8) * 700);
		assert_true(advance_by(rig, start + 100000, budget) > 1);
		assert_int_equal(rig->logged, RIG_ITEMS);
		for (unsigned i = 1; i < rig->logged; i++)
			assert_true(rig->log[i - 1] / 8 <= rig->log[i] / 8);
		for (unsigned i = 0; i < rig->logged; i++)
			assert_int_equal(rig->log[i], i);
	}
}

TEST(now_stays_at_the_tick_under_work)
{
	struct rig *rig = *state;

	for (int id = 0; id < 4; id++)
		rig_schedule(rig, id, 700);
	while (rig->logged == 0)
		assert_int_equal(spoke_wheel_advance(rig->wheel, rig_ns(5000), 1),
				 SPOKE_WHEEL_MORE);
	assert_true(spoke_wheel_now(rig->wheel) == rig_ns(700));
	assert_true(spoke_wheel_next(rig->wheel) <= spoke_wheel_now(rig->wheel));
	(void)advance_by(rig, 5000, 1);
	assert_true(spoke_wheel_now(rig->wheel) == rig_ns(5000));
}

TEST(timers_scheduled_while_an_advance_is_interrupted_come_last)
{
	struct rig *rig = *state;
	uint64_t due = 4096 * 3;

	/* The first timers cascade before they fire, and the budget interrupts the cascade. */
	for (int id = 0; id < 20; id++)
		rig_schedule(rig, id, due + 5);
	for (int id = 20; id < 40; id++) {
		(void)spoke_wheel_advance(rig->wheel, rig_ns(due + 4), 1);
		rig_schedule(rig, id, due + 5);
		rig_check(rig);
	}
	(void)advance_by(rig, due + 5, 3);
	assert_int_equal(rig->logged, 40);
	for (unsigned i = 0; i < rig->logged; i++)
		assert_int_equal(rig->log[i], i);
}

TEST(timers_can_be_cancelled_while_an_advance_is_interrupted)
{
	struct rig *rig = *state;

	for (int id = 0; id < RIG_ITEMS; id++)
		rig_schedule(rig, id, 70000 + (uint64_t)id / 4);
	for (int id = 0; id < RIG_ITEMS; id++) {
		(void)spoke_wheel_advance(rig->wheel, rig_ns(80000), 1);
		(void)spoke_wheel_cancel(rig->wheel, &rig->items[(id * 5) % RIG_ITEMS].timer);
		rig_check(rig);
	}
	(void)advance_by(rig, 80000, 1);
	assert_int_equal(rig_counts(rig).pending, 0);
	assert_int_equal(rig_counts(rig).fired + rig_counts(rig).cancelled, RIG_ITEMS);
}

static void jump_with_nothing_due(const struct geometry *geometry)
{
	struct spoke_wheel_options options = { .tick_ns = 1,
					       .slots = geometry->slots,
					       .levels = geometry->levels };
	uint64_t far_ns = RIG_ORIGIN_NS + (UINT64_C(1) << 41);
	struct rig rig;

	rig_init(&rig, &options);
	/* Only far timers, some of them cancelled or disarmed; nothing is due. */
	for (unsigned id = 0; id < RIG_ITEMS; id++) {
		assert_int_equal(spoke_wheel_schedule(rig.wheel, &rig.items[id].timer,
						      rig.timer_class, far_ns + id * 12345),
				 SPOKE_WHEEL_OK);
	}
	assert_true(spoke_wheel_cancel(rig.wheel, &rig.items[0].timer));
	assert_true(spoke_wheel_disarm(rig.wheel, &rig.items[1].timer));
	assert_int_equal(spoke_wheel_advance(rig.wheel, RIG_ORIGIN_NS + (UINT64_C(1) << 40),
					     SPOKE_WHEEL_NO_BUDGET),
			 SPOKE_WHEEL_OK);
	assert_int_equal(rig.logged, 0);
	assert_in_range(rig_work(&rig).visited_slots, 0,
			2 * (uint64_t)geometry->slots * geometry->levels);
	assert_in_range(rig_work(&rig).visited_timers, 0, 2 * RIG_ITEMS);
	rig_fini(&rig);
}

TEST(jump_of_2_to_the_40_ticks_visits_bounded_slots)
{
	const struct rig *on = *state;
	struct geometry geometry = { on->slots, on->levels };

	if (on->levels > 1)
		jump_with_nothing_due(&geometry);
}

TEST(a_jump_fires_everything_on_its_way_in_order)
{
	struct rig *rig = *state;
	uint64_t tick = 1;

	for (int id = 0; id < 22; id++, tick *= 4)
		rig_schedule(rig, 21 - id, tick);
	rig_advance(rig, UINT64_C(1) << 43);
	assert_int_equal(rig->logged, 22);
	for (unsigned i = 0; i < rig->logged; i++)
		assert_int_equal(rig->log[i], 21 - i);
}

TEST(timer_placed_as_a_lap_begins_does_not_turn_the_wheel_back)
{
	struct spoke_wheel_options options = { .tick_ns = RIG_TICK_NS, .slots = 16, .levels = 2 };
	struct rig rig;
	uint64_t next;

	rig_init(&rig, &options);
	/* A lap is 256 ticks. Two timers of the second lap are far and cascade when that lap
	 * begins. */
	rig_schedule(&rig, 0, 261);
	rig_schedule(&rig, 1, 261);
	assert_int_equal(spoke_wheel_advance(rig.wheel, rig_ns(256), 1), SPOKE_WHEEL_MORE);
	/* The current tick is still in the first lap, so both timers look far, but only one is. */
	rig_schedule(&rig, 2, 300);
	rig_schedule(&rig, 3, 2000);
	(void)advance_by(&rig, 256, 1);
	while ((next = spoke_wheel_next(rig.wheel)) != SPOKE_WHEEL_NEVER) {
		assert_true(next > spoke_wheel_now(rig.wheel));
		(void)advance_by(&rig, (next - RIG_ORIGIN_NS) / RIG_TICK_NS, 1);
	}
	assert_int_equal(rig.logged, 4);
	assert_true(rig.items[2].fired_at == 300);
	assert_true(rig.items[3].fired_at == 2000);
	rig_fini(&rig);
}

TEST(a_clock_that_goes_back_is_ignored_and_counted)
{
	struct rig *rig = *state;

	rig_schedule(rig, 0, 150);
	rig_advance(rig, 100);
	assert_int_equal(spoke_wheel_advance(rig->wheel, rig_ns(99), 0), SPOKE_WHEEL_OK);
	assert_int_equal(spoke_wheel_advance(rig->wheel, 0, 0), SPOKE_WHEEL_OK);
	assert_true(spoke_wheel_now(rig->wheel) == rig_ns(100));
	assert_int_equal(rig_work(rig).backwards, 2);
	rig_advance(rig, 149);
	assert_int_equal(rig->items[0].fired, 0);
	rig_advance(rig, 150);
	assert_int_equal(rig->items[0].fired, 1);
}

TEST(a_clock_that_goes_back_does_not_stop_unfinished_work)
{
	struct rig *rig = *state;

	for (int id = 0; id < 10; id++)
		rig_schedule(rig, id, 20);
	assert_int_equal(spoke_wheel_advance(rig->wheel, rig_ns(30), 3), SPOKE_WHEEL_MORE);
	assert_int_equal(spoke_wheel_advance(rig->wheel, 0, 100), SPOKE_WHEEL_OK);
	assert_int_equal(rig->logged, 10);
}

TEST(deadline_beyond_the_horizon_is_refused)
{
	const struct rig *on = *state;
	struct spoke_wheel_options options = { .tick_ns = 1, .slots = 16, .levels = on->levels };
	uint64_t horizon = (UINT64_C(1) << 48) - 1;
	struct spoke_timer *timer;
	struct rig rig;

	rig_init(&rig, &options);
	timer = &rig.items[0].timer;
	for (int i = 0; i < 3; i++) {
		static const uint64_t beyond[] = { 0, 1, UINT64_C(1) << 62 };

		assert_int_equal(spoke_wheel_schedule(rig.wheel, timer, rig.timer_class,
						      RIG_ORIGIN_NS + horizon + beyond[i]),
				 SPOKE_WHEEL_HORIZON);
	}
	assert_int_equal(spoke_wheel_schedule(rig.wheel, timer, rig.timer_class, UINT64_MAX),
			 SPOKE_WHEEL_HORIZON);
	assert_false(spoke_timer_armed(timer));
	assert_int_equal(rig_counts(&rig).rejected, 4);
	assert_int_equal(spoke_wheel_schedule(rig.wheel, timer, rig.timer_class,
					      RIG_ORIGIN_NS + horizon - 1),
			 SPOKE_WHEEL_OK);
	assert_int_equal(spoke_wheel_reschedule(rig.wheel, timer, UINT64_MAX), SPOKE_WHEEL_HORIZON);
	assert_true(spoke_wheel_deadline(rig.wheel, timer) == RIG_ORIGIN_NS + horizon - 1);
	assert_int_equal(spoke_wheel_advance(rig.wheel, RIG_ORIGIN_NS + horizon - 2, 0), 0);
	assert_int_equal(rig.items[0].fired, 0);
	/* The last tick still fires. After it the wheel does not move and rejects timers. */
	assert_int_equal(spoke_wheel_advance(rig.wheel, UINT64_MAX, 0), SPOKE_WHEEL_OK);
	assert_int_equal(rig.items[0].fired, 1);
	assert_int_equal(spoke_wheel_schedule(rig.wheel, timer, rig.timer_class, 0),
			 SPOKE_WHEEL_HORIZON);
	rig_fini(&rig);
}

TEST(the_last_tick_of_a_coarse_wheel_can_be_reached)
{
	struct rig *rig = *state;
	uint64_t last_ns = RIG_ORIGIN_NS + (UINT64_C(1) << 62) / RIG_TICK_NS * RIG_TICK_NS;
	struct spoke_timer *timer = &rig->items[0].timer;

	assert_int_equal(spoke_wheel_schedule(rig->wheel, timer, rig->timer_class,
					      RIG_ORIGIN_NS + (UINT64_C(1) << 62)),
			 SPOKE_WHEEL_HORIZON);
	assert_int_equal(spoke_wheel_schedule(rig->wheel, timer, rig->timer_class, last_ns), 0);
	assert_int_equal(spoke_wheel_advance(rig->wheel, UINT64_MAX, SPOKE_WHEEL_NO_BUDGET), 0);
	assert_int_equal(rig->items[0].fired, 1);
	assert_int_equal(spoke_wheel_schedule(rig->wheel, timer, rig->timer_class, 0),
			 SPOKE_WHEEL_HORIZON);
	assert_true(spoke_wheel_next(rig->wheel) == SPOKE_WHEEL_NEVER);
}

TEST(next_is_never_later_than_the_earliest_deadline)
{
	struct rig *rig = *state;
	uint64_t seed = 88172645463325252;
	uint64_t now = 0;

	for (int round = 0; round < 300; round++) {
		uint64_t earliest = SPOKE_WHEEL_NEVER;
		uint64_t next;

		for (int id = 0; id < RIG_ITEMS; id++) {
			struct spoke_timer *timer = &rig->items[id].timer;
			uint64_t deadline;

			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
			if (seed >> 60 == 0)
				(void)spoke_wheel_cancel(rig->wheel, timer);
			else if (seed >> 60 == 1)
				(void)spoke_wheel_disarm(rig->wheel, timer);
			else if (seed >> 60 == 2 && !spoke_timer_armed(timer))
				rig_schedule(rig, id, now + (seed >> 33) % 5000);
			deadline = spoke_wheel_deadline(rig->wheel, timer);
			earliest = deadline < earliest ? deadline : earliest;
		}
		next = spoke_wheel_next(rig->wheel);
		assert_true(next <= earliest);
		assert_int_equal(next == SPOKE_WHEEL_NEVER, earliest == SPOKE_WHEEL_NEVER);
		if (next != SPOKE_WHEEL_NEVER) {
			assert_true(next > spoke_wheel_now(rig->wheel));
			now = (next - RIG_ORIGIN_NS) / RIG_TICK_NS;
			rig->logged = 0;
			rig_advance(rig, now);
		}
	}
}

TEST(a_loop_that_sleeps_until_next_meets_every_deadline)
{
	struct rig *rig = *state;
	uint64_t next;

	for (int id = 0; id < RIG_ITEMS; id++)
		rig_schedule(rig, id, 1 + (uint64_t)(id * id) * 31);
	while ((next = spoke_wheel_next(rig->wheel)) != SPOKE_WHEEL_NEVER) {
		assert_true(next > spoke_wheel_now(rig->wheel));
		assert_int_equal(spoke_wheel_advance(rig->wheel, next, 0), SPOKE_WHEEL_OK);
	}
	assert_int_equal(rig->logged, RIG_ITEMS);
	for (int id = 0; id < RIG_ITEMS; id++)
		assert_true(rig->items[id].fired_at == 1 + (uint64_t)(id * id) * 31);
	assert_int_equal(rig_counts(rig).late_max_ns, 0);
}

TEST(a_budget_of_0_is_the_default_one)
{
	enum {
		MANY = SPOKE_WHEEL_BUDGET + 1
	};
	static struct spoke_timer timers[MANY];
	struct rig *rig = *state;
	unsigned timer_class;

	assert_int_equal(spoke_wheel_add_class(rig->wheel, "many", (spoke_timer_due_fn)abort, NULL,
					       &timer_class),
			 SPOKE_WHEEL_OK);
	for (int i = 0; i < MANY; i++) {
		timers[i] = (struct spoke_timer){ 0 };
		assert_int_equal(spoke_wheel_schedule(rig->wheel, &timers[i], timer_class,
						      rig_ns(9)),
				 SPOKE_WHEEL_OK);
		assert_true(spoke_wheel_disarm(rig->wheel, &timers[i]));
	}
	assert_int_equal(spoke_wheel_advance(rig->wheel, rig_ns(9), 0), SPOKE_WHEEL_MORE);
	assert_int_equal(rig_work(rig).visited_timers, SPOKE_WHEEL_BUDGET);
	assert_int_equal(spoke_wheel_advance(rig->wheel, rig_ns(9), 0), SPOKE_WHEEL_OK);
}
