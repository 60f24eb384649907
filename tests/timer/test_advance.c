/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Advancing a wheel: budgets, jumps, a clock that goes back, the horizon, callbacks, and the
 * next expiry.
 */
#include "tests/support/test.h"
#include "tests/timer/rig.h"

#include <stdlib.h>
#include <string.h>

/*
 * --- advancing a wheel: budgets, jumps, a clock that goes back, the horizon, and the next
 * expiry
 */

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

#define RIG_TEST(...) TEST_WITH(struct rig *rig, *state, __VA_ARGS__)

RIG_TEST(a_budget_interrupts_and_the_next_advance_goes_on_in_order)
{
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

RIG_TEST(now_stays_at_the_tick_under_work)
{
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

RIG_TEST(timers_scheduled_while_an_advance_is_interrupted_come_last)
{
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

RIG_TEST(timers_can_be_cancelled_while_an_advance_is_interrupted)
{
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

RIG_TEST(a_jump_fires_everything_on_its_way_in_order)
{
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

RIG_TEST(a_clock_that_goes_back_is_ignored_and_counted)
{
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

RIG_TEST(a_clock_that_goes_back_does_not_stop_unfinished_work)
{
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

RIG_TEST(the_last_tick_of_a_coarse_wheel_can_be_reached)
{
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

RIG_TEST(next_is_never_later_than_the_earliest_deadline)
{
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

RIG_TEST(a_loop_that_sleeps_until_next_meets_every_deadline)
{
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

RIG_TEST(a_budget_of_0_is_the_default_one)
{
	enum {
		MANY = SPOKE_WHEEL_BUDGET + 1
	};
	static struct spoke_timer timers[MANY];
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

/* --- operations that a callback may do on the wheel and on other timers, with each geometry */

/* Asserts that nothing is pending and that as many timers ended as were scheduled. */
static void expect_balance(const struct rig *rig)
{
	struct spoke_wheel_counts counts = rig_counts(rig);

	assert_int_equal(counts.pending, 0);
	assert_true(counts.scheduled == counts.fired + counts.cancelled + counts.returned);
	assert_true(spoke_wheel_next(rig->wheel) == SPOKE_WHEEL_NEVER);
}

static void schedule_self_now(struct item *item)
{
	if (item->fired < 5)
		rig_schedule(item->rig, item->id, item->fired_at);
}

RIG_TEST(delay_0_from_a_callback_fires_in_the_next_tick)
{
	rig->items[0].then = schedule_self_now;
	rig_schedule(rig, 0, 30);
	for (unsigned i = 0; i < 5; i++) {
		rig_advance(rig, 30 + i);
		assert_int_equal(rig->items[0].fired, i + 1);
	}
	rig_advance(rig, 100);
	assert_int_equal(rig->items[0].fired, 5);
	expect_balance(rig);
}

static void schedule_self_at_0(struct item *item)
{
	assert_int_equal(spoke_wheel_schedule(item->rig->wheel, &item->timer,
					      item->rig->timer_class, 0),
			 SPOKE_WHEEL_OK);
	item->rig->logged = 0;
}

RIG_TEST(delay_0_for_ever_ends_with_the_advance)
{
	rig->items[0].then = schedule_self_at_0;
	rig_schedule(rig, 0, 30);
	rig_advance(rig, 30);
	assert_int_equal(rig->items[0].fired, 1);
	rig_advance(rig, 130);
	assert_int_equal(rig->items[0].fired, 101);
	assert_true(spoke_wheel_cancel(rig->wheel, &rig->items[0].timer));
	expect_balance(rig);
}

static void cancel_neighbours(struct item *item)
{
	struct rig *rig = item->rig;

	for (int id = item->id - 2; id <= item->id + 2; id++)
		if (id >= 0 && id < RIG_ITEMS)
			(void)spoke_wheel_cancel(rig->wheel, &rig->items[id].timer);
}

RIG_TEST(a_callback_may_cancel_timers_of_its_own_tick)
{
	for (int id = 0; id < RIG_ITEMS; id++) {
		rig->items[id].then = cancel_neighbours;
		rig_schedule(rig, id, 700);
	}
	rig_advance(rig, 700);
	assert_true(rig->logged >= RIG_ITEMS / 5);
	assert_true(rig->logged < RIG_ITEMS);
	expect_balance(rig);
}

/* Cancels all timers and overwrites their memory. The wheel must not access the fired item
 * afterwards. */
static void free_all(struct item *item)
{
	struct rig *rig = item->rig;

	for (int id = 0; id < RIG_ITEMS; id++) {
		(void)spoke_wheel_cancel(rig->wheel, &rig->items[id].timer);
		memset(&rig->items[id].timer, 0xa5, sizeof(rig->items[id].timer));
	}
}

RIG_TEST(a_callback_may_free_itself_and_every_other_timer)
{
	for (int id = 0; id < RIG_ITEMS; id++)
		rig_schedule(rig, id, 700 + (uint64_t)id / 16);
	rig->items[3].then = free_all;
	rig_advance(rig, 10000);
	assert_int_equal(rig->items[3].fired, 1);
	expect_balance(rig);
}

static void disarm_or_detach_all(struct item *item)
{
	struct rig *rig = item->rig;

	for (int id = 0; id < RIG_ITEMS; id++) {
		(void)spoke_wheel_disarm(rig->wheel, &rig->items[id].timer);
		if (id % 2 == 0) {
			assert_int_equal(spoke_wheel_detach(rig->wheel, &rig->items[id].timer), 0);
			memset(&rig->items[id].timer, 0xa5, sizeof(rig->items[id].timer));
		}
	}
}

RIG_TEST(a_callback_may_disarm_and_detach_timers_of_its_own_tick)
{
	for (int id = 0; id < RIG_ITEMS; id++) {
		rig->items[id].then = disarm_or_detach_all;
		rig_schedule(rig, id, 700);
	}
	rig_advance(rig, 10000);
	assert_int_equal(rig->logged, 1);
	expect_balance(rig);
}

static void move_all(struct item *item)
{
	struct rig *rig = item->rig;

	for (int id = 0; id < RIG_ITEMS; id++) {
		int status = spoke_wheel_reschedule(rig->wheel, &rig->items[id].timer,
						    rig_ns(item->fired_at + 1 + (uint64_t)id * 50));

		assert_true(status == SPOKE_WHEEL_OK || status == SPOKE_WHEEL_IDLE);
	}
}

RIG_TEST(a_callback_may_reschedule_timers_of_its_own_tick)
{
	for (int id = 0; id < RIG_ITEMS; id++)
		rig_schedule(rig, id, 700);
	rig->items[0].then = move_all;
	rig->items[RIG_ITEMS - 1].then = move_all;
	rig_advance(rig, 100000);
	for (int id = 0; id < RIG_ITEMS; id++)
		assert_int_equal(rig->items[id].fired, 1);
	expect_balance(rig);
}

static void schedule_a_lap_later(struct item *item)
{
	if (item->fired < 3)
		rig_schedule(item->rig, item->id, item->fired_at + 4096);
}

RIG_TEST(a_callback_may_schedule_into_its_own_slot_a_lap_later)
{
	for (int id = 0; id < RIG_ITEMS; id++) {
		rig->items[id].then = schedule_a_lap_later;
		rig_schedule(rig, id, 700);
	}
	rig_advance(rig, 700);
	assert_int_equal(rig->logged, RIG_ITEMS);
	rig_advance(rig, 700 + 4095);
	assert_int_equal(rig->logged, RIG_ITEMS);
	rig_advance(rig, 700 + 4096);
	assert_int_equal(rig->logged, 2 * RIG_ITEMS);
	rig_advance(rig, 700 + 2 * 4096);
	expect_balance(rig);
}

static void schedule_and_drop_another(struct item *item)
{
	struct rig *rig = item->rig;

	/* Adds a timer to the slot that a wheel of one level is emptying, and removes it again. */
	rig_schedule(rig, 1, item->fired_at + 4096);
	assert_true(spoke_wheel_cancel(rig->wheel, &rig->items[1].timer));
}

RIG_TEST(a_deadline_shared_with_a_callback_is_not_forgotten_after_it)
{
	rig->items[0].then = schedule_and_drop_another;
	rig_schedule(rig, 0, 700);
	rig_advance(rig, 700);
	rig_schedule(rig, 2, 700 + 4096);
	rig_advance(rig, 700 + 4096);
	assert_int_equal(rig->items[2].fired, 1);
}

static void advance_inside(struct item *item)
{
	assert_int_equal(spoke_wheel_advance(item->rig->wheel, rig_ns(100000), 0),
			 SPOKE_WHEEL_BUSY);
}

RIG_TEST(advance_from_a_callback_is_refused)
{
	rig->items[0].then = advance_inside;
	rig_schedule(rig, 0, 30);
	rig_schedule(rig, 1, 30);
	rig_advance(rig, 30);
	assert_int_equal(rig->logged, 2);
}

static void stop_inside(struct item *item)
{
	assert_true(spoke_wheel_stop(item->rig->wheel, NULL, NULL) > 0);
}

RIG_TEST(a_callback_may_stop_the_wheel)
{
	for (int id = 0; id < RIG_ITEMS; id++)
		rig_schedule(rig, id, 30 + (uint64_t)id / 2 * 600);
	rig->items[2].then = stop_inside;
	assert_int_equal(spoke_wheel_advance(rig->wheel, rig_ns(100000), 0), SPOKE_WHEEL_OK);
	assert_true(rig->logged >= 3 && rig->logged <= 4);
	rig_check(rig);
	expect_balance(rig);
}

/*
 * --- the time at which a wheel wants to be advanced: the earliest deadline, where that is
 * known
 */

#define FAR 60000u /* ticks: on an upper level of the geometries with several levels */

static bool has_levels_below(const struct rig *rig)
{
	return rig->levels > 2 && rig->slots >= 64;
}

static uint64_t next_tick(const struct rig *rig)
{
	return (spoke_wheel_next(rig->wheel) - RIG_ORIGIN_NS) / RIG_TICK_NS;
}

/* Advances when the wheel wants it until `tick`. Returns how often nothing fired. */
static unsigned empty_wakes(struct rig *rig, uint64_t tick)
{
	unsigned empty = 0;

	while (spoke_wheel_next(rig->wheel) <= rig_ns(tick)) {
		uint64_t fired = rig_counts(rig).fired;

		rig_advance(rig, next_tick(rig));
		empty += rig_counts(rig).fired == fired;
	}
	return empty;
}

RIG_TEST(next_is_the_earliest_deadline_of_any_level)
{
	if (!has_levels_below(rig))
		return;
	rig_schedule(rig, 0, FAR + 7);
	rig_schedule(rig, 1, FAR);
	assert_int_equal(next_tick(rig), FAR);
	rig_advance(rig, FAR / 2);
	assert_int_equal(next_tick(rig), FAR);
	assert_int_equal(empty_wakes(rig, FAR + 7), 0);
	assert_int_equal(rig->logged, 2);
}

RIG_TEST(a_wheel_at_rest_forgets_timers_that_moved)
{
	if (!has_levels_below(rig))
		return;
	rig_schedule(rig, 0, FAR);
	assert_int_equal(spoke_wheel_reschedule(rig->wheel, &rig->items[0].timer, rig_ns(FAR + 3)),
			 SPOKE_WHEEL_OK);
	spoke_wheel_rest(rig->wheel);
	assert_int_equal(next_tick(rig), FAR + 3);
	assert_int_equal(empty_wakes(rig, FAR + 3), 0);
	rig_schedule(rig, 1, FAR + 5);
	assert_true(spoke_wheel_cancel(rig->wheel, &rig->items[1].timer));
	spoke_wheel_rest(rig->wheel);
	assert_true(spoke_wheel_next(rig->wheel) == SPOKE_WHEEL_NEVER);
	rig_schedule(rig, 1, FAR + 5); /* into a slot that was unmarked */
	assert_int_equal(empty_wakes(rig, FAR + 5), 0);
	assert_int_equal(rig->logged, 2);
}

RIG_TEST(next_is_sooner_when_a_timer_moves_within_its_slot)
{
	if (!has_levels_below(rig))
		return;
	rig_schedule(rig, 0, FAR + 7);
	rig_advance(rig, FAR / 2);
	assert_int_equal(next_tick(rig), FAR + 7);
	assert_int_equal(spoke_wheel_reschedule(rig->wheel, &rig->items[0].timer, rig_ns(FAR + 3)),
			 SPOKE_WHEEL_OK);
	assert_int_equal(next_tick(rig), FAR + 3);
	rig_schedule(rig, 1, FAR + 1); /* into a slot that has a timer */
	assert_int_equal(next_tick(rig), FAR + 1);
	assert_int_equal(empty_wakes(rig, FAR + 7), 0);
	assert_int_equal(rig->logged, 2);
}

/* A timer that was moved to a later deadline is still in the slot of the former one. */
RIG_TEST(next_skips_the_slot_that_a_timer_has_outlived)
{
	if (!has_levels_below(rig))
		return;
	rig_schedule(rig, 0, 10);
	rig_schedule(rig, 1, 20);
	assert_int_equal(spoke_wheel_reschedule(rig->wheel, &rig->items[0].timer, rig_ns(FAR)),
			 SPOKE_WHEEL_OK);
	rig_schedule(rig, 2, 5);
	rig_advance(rig, 5);
	assert_int_equal(next_tick(rig), 20);
	assert_in_range(empty_wakes(rig, FAR), 0, 1);
	assert_int_equal(rig->items[0].fired, 1);
}

RIG_TEST(cancelled_timers_wake_the_wheel_once_together)
{
	if (!has_levels_below(rig))
		return;
	for (int id = 1; id < RIG_ITEMS; id++)
		rig_schedule(rig, id, 100 + 2 * (uint64_t)id);
	rig_schedule(rig, 0, FAR);
	for (int id = 1; id < RIG_ITEMS; id++) {
		if (id % 2)
			assert_true(spoke_wheel_cancel(rig->wheel, &rig->items[id].timer));
		else
			assert_true(spoke_wheel_disarm(rig->wheel, &rig->items[id].timer));
	}
	/* Many timers are looked at in portions. */
	assert_in_range(empty_wakes(rig, FAR), 1, 1 + RIG_ITEMS / 16);
	assert_int_equal(rig->logged, 1);
	assert_int_equal(rig->log[0], 0);
}

RIG_TEST(work_counts_each_slot_and_each_timer_up)
{
	struct spoke_wheel_work before = rig_work(rig);

	assert_int_equal(before.visited_slots, 0);
	assert_int_equal(before.visited_timers, 0);
	rig_schedule(rig, 0, 1);
	rig_schedule(rig, 1, 1);
	rig_schedule(rig, 2, 2);
	rig_advance(rig, 1);
	assert_int_equal(rig_work(rig).visited_slots, 1);
	assert_int_equal(rig_work(rig).visited_timers, 2);
	rig_advance(rig, 2);
	assert_in_range(rig_work(rig).visited_slots, 2, 3); /* with two slots a level ends here */
	assert_in_range(rig_work(rig).visited_timers, 3, 4);
	assert_int_equal(rig_work(rig).backwards, 0);
	assert_int_equal(spoke_wheel_advance(rig->wheel, rig_ns(1), 0), SPOKE_WHEEL_OK);
	assert_int_equal(rig_work(rig).backwards, 1);
}
