/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that a callback may do on the wheel and on other timers, with each geometry.
 */
#include "tests/support/test.h"
#include "tests/timer/rig.h"

#include <stdlib.h>
#include <string.h>

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

RUNNER(rig_run);

TEST(delay_0_from_a_callback_fires_in_the_next_tick)
{
	struct rig *rig = *state;

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

TEST(delay_0_for_ever_ends_with_the_advance)
{
	struct rig *rig = *state;

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

TEST(a_callback_may_cancel_timers_of_its_own_tick)
{
	struct rig *rig = *state;

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

TEST(a_callback_may_free_itself_and_every_other_timer)
{
	struct rig *rig = *state;

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

TEST(a_callback_may_disarm_and_detach_timers_of_its_own_tick)
{
	struct rig *rig = *state;

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

TEST(a_callback_may_reschedule_timers_of_its_own_tick)
{
	struct rig *rig = *state;

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

TEST(a_callback_may_schedule_into_its_own_slot_a_lap_later)
{
	struct rig *rig = *state;

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

TEST(a_deadline_shared_with_a_callback_is_not_forgotten_after_it)
{
	struct rig *rig = *state;

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

TEST(advance_from_a_callback_is_refused)
{
	struct rig *rig = *state;

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

TEST(a_callback_may_stop_the_wheel)
{
	struct rig *rig = *state;

	for (int id = 0; id < RIG_ITEMS; id++)
		rig_schedule(rig, id, 30 + (uint64_t)id / 2 * 600);
	rig->items[2].then = stop_inside;
	assert_int_equal(spoke_wheel_advance(rig->wheel, rig_ns(100000), 0), SPOKE_WHEEL_OK);
	assert_true(rig->logged >= 3 && rig->logged <= 4);
	rig_check(rig);
	expect_balance(rig);
}
