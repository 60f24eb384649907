/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduling, rescheduling and cancelling timers, with each geometry and in both firing orders. */
#include "tests/support/test.h"
#include "tests/timer/rig.h"

#include <string.h>

RUNNER(rig_run);

TEST(a_timer_fires_once_at_its_tick_and_not_before)
{
	static const uint64_t ticks[] = { 1, 2, 15, 16, 17, 255, 256, 511, 512, 513, 70000 };
	struct rig *rig = *state;
	int count = (int)(sizeof(ticks) / sizeof(ticks[0]));

	for (int i = 0; i < count; i++)
		rig_schedule(rig, i, ticks[i]);
	for (int i = 0; i < count; i++) {
		rig_advance(rig, ticks[i] - 1);
		assert_int_equal(rig->items[i].fired, 0);
		rig_advance(rig, ticks[i]);
		assert_int_equal(rig->items[i].fired, 1);
		assert_true(rig->items[i].fired_at == ticks[i]);
	}
	rig_advance(rig, 200000);
	assert_int_equal(rig->logged, count);
}

TEST(a_deadline_between_ticks_is_rounded_up)
{
	struct rig *rig = *state;
	struct spoke_timer *timer = &rig->items[0].timer;

	assert_int_equal(spoke_wheel_schedule(rig->wheel, timer, rig->timer_class, rig_ns(7) + 1),
			 SPOKE_WHEEL_OK);
	assert_true(spoke_wheel_deadline(rig->wheel, timer) == rig_ns(8));
	assert_int_equal(spoke_wheel_advance(rig->wheel, rig_ns(8) - 1, 0), SPOKE_WHEEL_OK);
	assert_int_equal(rig->items[0].fired, 0);
	assert_int_equal(spoke_wheel_advance(rig->wheel, rig_ns(8), 0), SPOKE_WHEEL_OK);
	assert_int_equal(rig->items[0].fired, 1);
}

TEST(a_deadline_that_has_passed_is_the_next_tick)
{
	struct rig *rig = *state;

	rig_advance(rig, 1000);
	rig_schedule(rig, 0, 1000);
	rig_schedule(rig, 1, 3);
	assert_int_equal(spoke_wheel_schedule(rig->wheel, &rig->items[2].timer, rig->timer_class,
					      0),
			 SPOKE_WHEEL_OK);
	rig_advance(rig, 1000);
	assert_int_equal(rig->logged, 0);
	rig_advance(rig, 1001);
	assert_int_equal(rig->logged, 3);
}

TEST(timers_fire_in_the_order_of_their_ticks)
{
	struct rig *rig = *state;

	for (int id = 0; id < RIG_ITEMS; id++)
		rig_schedule(rig, id, 1 + (uint64_t)((id * 37) % RIG_ITEMS) * 97);
	rig_advance(rig, 100000);
	assert_int_equal(rig->logged, RIG_ITEMS);
	for (unsigned i = 0; i < rig->logged; i++)
		assert_int_equal((rig->log[i] * 37) % RIG_ITEMS, i);
}

TEST(timers_of_one_tick_fire_in_the_order_of_placement)
{
	struct rig *rig = *state;

	/* Half of them are placed from far away and cascade, half from near. Some in between are
	 * cancelled. */
	for (int id = 0; id < RIG_ITEMS / 2; id++)
		rig_schedule(rig, id, 5000);
	rig_advance(rig, 4990);
	for (int id = RIG_ITEMS / 2; id < RIG_ITEMS; id++)
		rig_schedule(rig, id, 5000);
	for (int id = 0; id < RIG_ITEMS; id += 5)
		assert_true(spoke_wheel_cancel(rig->wheel, &rig->items[id].timer));
	rig_advance(rig, 5000);
	assert_int_equal(rig->logged, RIG_ITEMS - RIG_ITEMS / 5 - 1);
	for (unsigned i = 1; i < rig->logged; i++)
		assert_true(rig->log[i - 1] < rig->log[i]);
}

TEST(a_cancelled_timer_does_not_fire_and_may_be_freed_at_once)
{
	struct rig *rig = *state;

	for (int id = 0; id < RIG_ITEMS; id++)
		rig_schedule(rig, id, 100 + (uint64_t)id % 3);
	for (int id = 0; id < RIG_ITEMS; id += 2) {
		assert_true(spoke_wheel_cancel(rig->wheel, &rig->items[id].timer));
		memset(&rig->items[id].timer, 0xa5, sizeof(rig->items[id].timer));
	}
	rig_advance(rig, 1000);
	assert_int_equal(rig->logged, RIG_ITEMS / 2);
	for (unsigned i = 0; i < rig->logged; i++)
		assert_int_equal(rig->log[i] % 2, 1);
}

TEST(cancel_and_disarm_return_whether_the_timer_was_armed)
{
	struct rig *rig = *state;
	struct spoke_timer *timer = &rig->items[0].timer;

	assert_false(spoke_wheel_cancel(rig->wheel, timer));
	assert_false(spoke_wheel_disarm(rig->wheel, timer));
	rig_schedule(rig, 0, 10);
	assert_true(spoke_wheel_disarm(rig->wheel, timer));
	assert_false(spoke_wheel_disarm(rig->wheel, timer));
	assert_false(spoke_wheel_cancel(rig->wheel, timer));
	rig_schedule(rig, 0, 10);
	assert_true(spoke_wheel_cancel(rig->wheel, timer));
	rig_schedule(rig, 0, 10);
	rig_advance(rig, 10);
	assert_false(spoke_wheel_cancel(rig->wheel, timer));
	assert_int_equal(rig_counts(rig).cancelled, 2);
	assert_int_equal(rig_counts(rig).fired, 1);
}

TEST(a_disarmed_timer_does_not_fire_and_can_be_scheduled_again)
{
	struct rig *rig = *state;
	struct spoke_timer *timer = &rig->items[0].timer;

	rig_schedule(rig, 0, 300);
	assert_true(spoke_wheel_disarm(rig->wheel, timer));
	assert_false(spoke_timer_armed(timer));
	assert_true(spoke_wheel_next(rig->wheel) == SPOKE_WHEEL_NEVER);
	rig_advance(rig, 200);
	rig_schedule(rig, 0, 900); /* later: keeps its slot */
	rig_advance(rig, 899);
	assert_int_equal(rig->items[0].fired, 0);
	rig_advance(rig, 900);
	assert_int_equal(rig->items[0].fired, 1);

	rig_schedule(rig, 0, 5000);
	assert_true(spoke_wheel_disarm(rig->wheel, timer));
	rig_schedule(rig, 0, 950); /* earlier: must change its slot */
	rig_advance(rig, 949);
	assert_int_equal(rig->items[0].fired, 1);
	rig_advance(rig, 950);
	assert_int_equal(rig->items[0].fired, 2);
}

TEST(a_disarmed_timer_leaves_the_wheel_when_its_slot_comes_round)
{
	struct rig *rig = *state;

	rig_schedule(rig, 0, 300);
	assert_true(spoke_wheel_disarm(rig->wheel, &rig->items[0].timer));
	rig_advance(rig, 300);
	/* The wheel has no pointer to the timer any more, so its memory may be overwritten. */
	memset(&rig->items[0].timer, 0xa5, sizeof(rig->items[0].timer));
	rig_advance(rig, 10000);
	assert_int_equal(rig->logged, 0);
}

TEST(detach_frees_a_disarmed_timer_and_refuses_an_armed_one)
{
	struct rig *rig = *state;
	struct spoke_timer *timer = &rig->items[0].timer;

	assert_int_equal(spoke_wheel_detach(rig->wheel, timer), SPOKE_WHEEL_OK);
	rig_schedule(rig, 0, 300);
	assert_int_equal(spoke_wheel_detach(rig->wheel, timer), SPOKE_WHEEL_ARMED);
	assert_true(spoke_timer_armed(timer));
	assert_true(spoke_wheel_disarm(rig->wheel, timer));
	assert_int_equal(spoke_wheel_detach(rig->wheel, timer), SPOKE_WHEEL_OK);
	memset(timer, 0xa5, sizeof(*timer));
	rig_advance(rig, 10000);
	assert_int_equal(rig_counts(rig).cancelled, 1);
}

TEST(an_armed_timer_cannot_be_scheduled_twice)
{
	struct rig *rig = *state;

	rig_schedule(rig, 0, 50);
	assert_int_equal(spoke_wheel_schedule(rig->wheel, &rig->items[0].timer, rig->timer_class,
					      rig_ns(60)),
			 SPOKE_WHEEL_ARMED);
	assert_true(spoke_wheel_deadline(rig->wheel, &rig->items[0].timer) == rig_ns(50));
	assert_int_equal(rig_counts(rig).scheduled, 1);
}

TEST(reschedule_moves_a_timer_to_any_deadline)
{
	static const uint64_t moves[] = { 600, 601, 90000, 89999, 599, 250, 16, 15, 3 };
	struct rig *rig = *state;
	struct spoke_timer *timer = &rig->items[0].timer;

	rig_schedule(rig, 0, 500);
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		assert_int_equal(spoke_wheel_reschedule(rig->wheel, timer, rig_ns(moves[i])),
				 SPOKE_WHEEL_OK);
		assert_true(spoke_wheel_deadline(rig->wheel, timer) == rig_ns(moves[i]));
		rig_check(rig);
	}
	rig_advance(rig, 2);
	assert_int_equal(rig->items[0].fired, 0);
	rig_advance(rig, 3);
	assert_int_equal(rig->items[0].fired, 1);
	assert_int_equal(spoke_wheel_reschedule(rig->wheel, timer, rig_ns(9)), SPOKE_WHEEL_IDLE);
	assert_int_equal(rig_counts(rig).rescheduled, sizeof(moves) / sizeof(moves[0]));
}

TEST(reschedule_to_a_later_deadline_is_a_store_and_still_exact)
{
	struct rig *rig = *state;
	struct spoke_timer *timer = &rig->items[0].timer;
	struct spoke_list before;

	rig_schedule(rig, 0, 40);
	rig_schedule(rig, 1, 40);
	before = timer->place;
	for (uint64_t tick = 41; tick < 3000; tick += 13) {
		assert_int_equal(spoke_wheel_reschedule(rig->wheel, timer, rig_ns(tick)), 0);
		assert_memory_equal(&timer->place, &before, sizeof(before));
	}
	rig_advance(rig, 2999 / 13 * 13);
	assert_int_equal(rig->items[0].fired, 0);
	rig_advance(rig, 3000);
	assert_int_equal(rig->items[0].fired, 1);
	assert_true(rig->items[0].fired_at > 2980);
}
