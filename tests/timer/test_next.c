/* SPDX-License-Identifier: Apache-2.0 */
/* The time at which a wheel wants to be advanced: the earliest deadline, where that is known. */
#include "tests/support/test.h"
#include "tests/timer/rig.h"

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

RUNNER(rig_run);

TEST(next_is_the_earliest_deadline_of_any_level)
{
	struct rig *rig = *state;

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

TEST(next_is_sooner_when_a_timer_moves_within_its_slot)
{
	struct rig *rig = *state;

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
TEST(next_skips_the_slot_that_a_timer_has_outlived)
{
	struct rig *rig = *state;

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

TEST(cancelled_timers_wake_the_wheel_once_together)
{
	struct rig *rig = *state;

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

TEST(work_counts_each_slot_and_each_timer_up)
{
	struct rig *rig = *state;
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
