/* SPDX-License-Identifier: Apache-2.0 */
/* The cap on pending timers, timer classes, and the counters of each class. */
#include "tests/support/test.h"
#include "tests/timer/rig.h"

static void nothing_due(struct spoke_timer *timer, void *arg)
{
	(void)timer;
	(void)arg;
}

RUNNER(rig_run);

#define RIG_TEST(...) TEST_WITH(struct rig *on, *state, __VA_ARGS__)

RIG_TEST(the_cap_refuses_and_changes_nothing)
{
	struct spoke_wheel_options options = { .tick_ns = RIG_TICK_NS,
					       .slots = 16,
					       .levels = on->levels < 5 ? on->levels : 5,
					       .pending_max = 3 };
	struct rig rig;

	rig_init(&rig, &options);
	for (int id = 0; id < 3; id++)
		rig_schedule(&rig, id, 100);
	for (int i = 0; i < 2; i++)
		assert_int_equal(spoke_wheel_schedule(rig.wheel, &rig.items[3].timer,
						      rig.timer_class, rig_ns(100)),
				 SPOKE_WHEEL_FULL);
	assert_false(spoke_timer_armed(&rig.items[3].timer));
	assert_int_equal(rig_counts(&rig).pending, 3);
	assert_int_equal(rig_counts(&rig).rejected, 2);
	/* Capacity is free again, however a timer ended. */
	assert_true(spoke_wheel_disarm(rig.wheel, &rig.items[0].timer));
	rig_schedule(&rig, 3, 100);
	assert_int_equal(spoke_wheel_schedule(rig.wheel, &rig.items[0].timer, rig.timer_class,
					      rig_ns(100)),
			 SPOKE_WHEEL_FULL);
	assert_true(spoke_wheel_cancel(rig.wheel, &rig.items[1].timer));
	rig_schedule(&rig, 0, 100);
	rig_advance(&rig, 100);
	assert_int_equal(rig.logged, 3);
	for (int id = 0; id < 3; id++)
		rig_schedule(&rig, id, 200);
	assert_int_equal(rig_counts(&rig).rejected, 3);
	rig_fini(&rig);
}

TEST(the_cap_holds_across_classes)
{
	struct spoke_wheel_options options = {
		.slots = 16, .levels = 2, .tick_ns = RIG_TICK_NS, .pending_max = 5
	};
	struct rig rig;
	unsigned classes[3];

	rig_init(&rig, &options);
	classes[0] = rig.timer_class;
	for (int i = 1; i < 3; i++)
		assert_int_equal(spoke_wheel_add_class(rig.wheel, "more", nothing_due, NULL,
						       &classes[i]),
				 SPOKE_WHEEL_OK);
	for (int round = 0; round < 20; round++) {
		for (int id = 0; id < 9; id++) {
			unsigned of = classes[(round + id) % 3];

			assert_int_equal(spoke_wheel_schedule(rig.wheel, &rig.items[id].timer, of,
							      rig_ns(50)),
					 id < 5 ? SPOKE_WHEEL_OK : SPOKE_WHEEL_FULL);
			rig_check(&rig);
		}
		assert_int_equal(rig_counts(&rig).pending, 5);
		for (int id = 0; id < 5; id++)
			assert_true(round % 2
					    ? spoke_wheel_cancel(rig.wheel, &rig.items[id].timer)
					    : spoke_wheel_disarm(rig.wheel, &rig.items[id].timer));
	}
	rig_fini(&rig);
}

TEST(a_timer_may_change_its_class_when_armed_again)
{
	struct rig *rig = *state;
	struct spoke_wheel_counts counts;
	unsigned other;

	assert_int_equal(spoke_wheel_add_class(rig->wheel, "other", nothing_due, NULL, &other), 0);
	rig_schedule(rig, 0, 50);
	rig_schedule(rig, 1, 50);
	assert_true(spoke_wheel_disarm(rig->wheel, &rig->items[0].timer));
	assert_int_equal(spoke_wheel_schedule(rig->wheel, &rig->items[0].timer, other, rig_ns(50)),
			 SPOKE_WHEEL_OK);
	rig_advance(rig, 50);
	assert_int_equal(rig->items[0].fired, 0);
	assert_int_equal(rig->items[1].fired, 1);
	assert_int_equal(spoke_wheel_class_counts(rig->wheel, other, &counts, NULL), 0);
	assert_int_equal(counts.fired, 1);
}

TEST(counts_are_kept_per_class)
{
	struct rig *rig = *state;
	struct spoke_wheel_counts one;
	struct spoke_wheel_counts other;
	const char *name;

	rig_schedule(rig, 0, 10);
	rig_schedule(rig, 1, 10);
	assert_true(spoke_wheel_cancel(rig->wheel, &rig->items[1].timer));
	assert_int_equal(spoke_wheel_advance(rig->wheel, rig_ns(12) + 5, 0), SPOKE_WHEEL_OK);
	assert_int_equal(spoke_wheel_class_counts(rig->wheel, rig->timer_class, &one, &name), 0);
	assert_string_equal(name, "item");
	assert_int_equal(one.scheduled, 2);
	assert_int_equal(one.cancelled, 1);
	assert_int_equal(one.fired, 1);
	assert_int_equal(one.pending, 0);
	assert_int_equal(one.late_max_ns, 2 * RIG_TICK_NS + 5);
	other = rig_counts(rig);
	assert_memory_equal(&one, &other, sizeof(one));
}

/* The lateness of one second is recent for two minutes, and for an eighth longer at most. */
TEST(lateness_is_recent_for_two_minutes)
{
	struct rig *rig = *state;
	const uint64_t second = UINT64_C(1000000000) / RIG_TICK_NS;

	rig_schedule(rig, 0, 1);
	rig_advance(rig, 1 + 14 * second);
	assert_int_equal(rig_counts(rig).late_recent_ns, 14 * second * RIG_TICK_NS);
	rig_schedule(rig, 0, 15 * second);
	rig_advance(rig, 15 * second + 3);
	assert_int_equal(rig_counts(rig).late_recent_ns, 14 * second * RIG_TICK_NS);
	rig_advance(rig, 134 * second);
	assert_int_equal(rig_counts(rig).late_recent_ns, 14 * second * RIG_TICK_NS);
	rig_advance(rig, 136 * second);
	assert_int_equal(rig_counts(rig).late_recent_ns, 3 * RIG_TICK_NS);
	rig_advance(rig, 9000 * second);
	assert_int_equal(rig_counts(rig).late_recent_ns, 0);
	assert_int_equal(rig_counts(rig).late_max_ns, 14 * second * RIG_TICK_NS);
}

TEST(an_unknown_class_is_refused)
{
	struct rig *rig = *state;
	struct spoke_wheel_counts counts;

	for (unsigned wrong = rig->timer_class + 1; wrong < 70000; wrong *= 3)
		assert_int_equal(spoke_wheel_schedule(rig->wheel, &rig->items[0].timer, wrong,
						      rig_ns(60)),
				 SPOKE_WHEEL_NO_CLASS);
	/* The class is checked even where a store would be enough to arm the timer. */
	rig_schedule(rig, 0, 60);
	assert_true(spoke_wheel_disarm(rig->wheel, &rig->items[0].timer));
	for (unsigned wrong = rig->timer_class + 1; wrong < 70000; wrong += wrong < 40 ? 1 : 777)
		assert_int_equal(spoke_wheel_schedule(rig->wheel, &rig->items[0].timer, wrong,
						      rig_ns(60)),
				 SPOKE_WHEEL_NO_CLASS);
	assert_int_equal(spoke_wheel_class_counts(rig->wheel, rig->timer_class + 1, &counts, NULL),
			 SPOKE_WHEEL_NO_CLASS);
}
