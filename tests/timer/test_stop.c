/* SPDX-License-Identifier: Apache-2.0 */
/* Stopping a wheel: each pending timer is returned exactly once. */
#include "tests/support/test.h"
#include "tests/timer/rig.h"

static struct spoke_timer *returned[RIG_ITEMS];
static unsigned returned_count;

static void take_back(struct spoke_timer *timer, void *arg)
{
	struct rig *rig = arg;

	assert_false(spoke_timer_armed(timer));
	returned[returned_count++] = timer;
	/* A callback that gets a timer back may cancel another timer. */
	if (returned_count == 1)
		(void)spoke_wheel_cancel(rig->wheel, &rig->items[7].timer);
}

static void move_another(struct spoke_timer *timer, void *arg)
{
	struct rig *rig = arg;

	(void)timer;
	returned_count++;
	for (int id = 0; id < RIG_ITEMS; id++)
		assert_int_equal(spoke_wheel_reschedule(rig->wheel, &rig->items[id].timer,
							rig_ns(1)),
				 SPOKE_WHEEL_STOPPED);
}

RUNNER(rig_run);

TEST(stop_cannot_be_escaped_by_a_move_to_a_slot_it_has_left)
{
	struct rig *rig = *state;

	returned_count = 0;
	for (int id = 0; id < RIG_ITEMS; id++)
		rig_schedule(rig, id, 1 + (uint64_t)id * 100);
	assert_true(spoke_wheel_stop(rig->wheel, move_another, rig) == RIG_ITEMS);
	assert_int_equal(returned_count, RIG_ITEMS);
	assert_true(spoke_wheel_stop(rig->wheel, NULL, NULL) == 0);
	for (int id = 0; id < RIG_ITEMS; id++)
		assert_false(spoke_timer_armed(&rig->items[id].timer));
}

TEST(stop_hands_back_every_timer_that_has_not_fired)
{
	struct rig *rig = *state;

	returned_count = 0;
	for (int id = 0; id < 20; id++)
		rig_schedule(rig, id, 10 + (uint64_t)(id * id * id) * 7);
	rig_advance(rig, 20);
	assert_int_equal(rig->logged, 2);
	assert_true(spoke_wheel_disarm(rig->wheel, &rig->items[5].timer));
	assert_true(spoke_wheel_stop(rig->wheel, take_back, rig) >= 16);
	rig_check(rig);
	for (unsigned i = 0; i < returned_count; i++)
		assert_ptr_not_equal(returned[i], &rig->items[5].timer);
	assert_int_equal(rig_counts(rig).returned, returned_count);
	assert_int_equal(rig_counts(rig).returned + rig_counts(rig).cancelled, 18);
	assert_int_equal(rig_counts(rig).pending, 0);
	assert_true(spoke_wheel_stop(rig->wheel, take_back, rig) == 0);
	assert_int_equal(spoke_wheel_schedule(rig->wheel, &rig->items[0].timer, rig->timer_class,
					      rig_ns(100)),
			 SPOKE_WHEEL_STOPPED);
	assert_int_equal(spoke_wheel_reschedule(rig->wheel, &rig->items[0].timer, rig_ns(100)),
			 SPOKE_WHEEL_STOPPED);
	assert_int_equal(spoke_wheel_advance(rig->wheel, rig_ns(100000), 0), SPOKE_WHEEL_STOPPED);
	assert_true(spoke_wheel_next(rig->wheel) == SPOKE_WHEEL_NEVER);
}
