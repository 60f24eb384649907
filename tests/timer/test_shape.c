/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that show a wheel's state: cursor positions and the number of timers in each slot.
 */
#include "tests/support/test.h"
#include "tests/timer/rig.h"
#include "timer/wheel.h"

#include <stdlib.h>
#include <string.h>

#define OPERATIONS 3000
#define EVERY 97 /* operations between two checks of all slots */

static uint32_t throw_dice(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state * UINT64_C(0x2545f4914f6cdd1d) >> 32);
}

static unsigned bits_of(uint32_t slots)
{
	return (unsigned)__builtin_ctz(slots);
}

static uint32_t count_list(const struct spoke_list *list)
{
	uint32_t count = 0;

	for (const struct spoke_list *at = list->next; at != list; at = at->next)
		count++;
	return count;
}

/* Counts the timers in the list of each slot. Returns the number of all linked timers. */
static unsigned count_by_hand(const struct rig *rig, uint32_t slots, uint32_t *counts)
{
	const struct spokei_slots *all = &rig->wheel->slots;
	unsigned linked = 0;

	memset(counts, 0, sizeof(*counts) * slots * rig->levels);
	for (uint32_t i = 0; i < slots * rig->levels; i++)
		counts[i] = count_list(&all->slot[i]);
	counts[rig->wheel->slot] += count_list(&all->aside);
	for (int id = 0; id < RIG_ITEMS; id++)
		linked += spokei_timer_linked(&rig->items[id].timer);
	return linked;
}

static void look_at_all(const struct rig *rig, uint32_t *counts)
{
	struct spoke_wheel_shape shape;
	unsigned linked;
	uint64_t sum = 0;

	spoke_wheel_shape(rig->wheel, &shape);
	linked = count_by_hand(rig, shape.slots, counts);
	for (uint32_t level = 0; level < shape.levels; level++) {
		for (uint32_t slot = 0; slot < shape.slots; slot++) {
			uint32_t by_hand = counts[level << bits_of(shape.slots) | slot];
			uint32_t count = spoke_wheel_occupancy(rig->wheel, level, slot, UINT32_MAX,
							       NULL);

			assert_int_equal(count, by_hand);
			sum += count;
			if (by_hand > 1)
				assert_int_equal(spoke_wheel_occupancy(rig->wheel, level, slot,
								       by_hand - 1, NULL),
						 by_hand - 1);
			assert_int_equal(spoke_wheel_occupancy(rig->wheel, level, slot, 0, NULL),
					 0);
		}
	}
	assert_int_equal(sum, linked);
	assert_true(sum >= rig_counts(rig).pending);
}

RUNNER(rig_run);

#define RIG_TEST(...) TEST_WITH(struct rig *rig, *state, __VA_ARGS__)

RIG_TEST(shape_matches_the_options)
{
	struct spoke_wheel_shape shape;

	memset(&shape, 0xa5, sizeof(shape));
	spoke_wheel_shape(rig->wheel, &shape);
	assert_int_equal(shape.slots, rig->slots);
	assert_int_equal(shape.levels, rig->levels);
	assert_int_equal(shape.tick_ns, RIG_TICK_NS);
	assert_int_equal(shape.tick, 0);
	for (unsigned level = 0; level < SPOKE_WHEEL_LEVELS_MAX; level++)
		assert_int_equal(shape.cursor[level], 0);
}

RIG_TEST(cursors_are_the_digits_of_the_tick)
{
	static const uint64_t ticks[] = { 1, 31, 32, 511, 512, 4097, 1000003, 123456789 };
	struct spoke_wheel_shape shape;

	for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++) {
		uint64_t rest = ticks[i];

		rig_advance(rig, ticks[i]);
		spoke_wheel_shape(rig->wheel, &shape);
		assert_true(shape.tick == ticks[i]);
		for (uint32_t level = 0; level < rig->levels; level++) {
			assert_int_equal(shape.cursor[level], rest % rig->slots);
			rest /= rig->slots;
		}
	}
}

static void due(struct spoke_timer *timer, void *arg)
{
	(void)timer;
	(void)arg;
}

RIG_TEST(occupancy_of_a_missing_slot_is_0)
{
	rig_schedule(rig, 0, 1);
	assert_int_equal(spoke_wheel_occupancy(rig->wheel, 0, 1, 9, NULL), 1);
	assert_int_equal(spoke_wheel_occupancy(rig->wheel, rig->levels, 0, 9, NULL), 0);
	assert_int_equal(spoke_wheel_occupancy(rig->wheel, 0, rig->slots, 9, NULL), 0);
	assert_int_equal(spoke_wheel_occupancy(rig->wheel, UINT32_MAX, UINT32_MAX, 9, NULL), 0);
}

/* Disarmed timers keep their class. */
RIG_TEST(occupancy_is_told_by_class)
{
	uint32_t of_class[SPOKE_WHEEL_CLASSES_MAX];
	unsigned other;

	assert_int_equal(spoke_wheel_add_class(rig->wheel, "other", due, NULL, &other), 0);
	rig_schedule(rig, 0, 1);
	rig_schedule(rig, 1, 1);
	assert_int_equal(spoke_wheel_schedule(rig->wheel, &rig->items[2].timer, other, rig_ns(1)),
			 SPOKE_WHEEL_OK);
	(void)spoke_wheel_disarm(rig->wheel, &rig->items[2].timer);
	assert_int_equal(spoke_wheel_occupancy(rig->wheel, 0, 1, 9, of_class), 3);
	assert_int_equal(of_class[rig->timer_class], 2);
	assert_int_equal(of_class[other], 1);
	assert_int_equal(spoke_wheel_occupancy(rig->wheel, 0, 1, 2, of_class), 2);
	assert_int_equal(of_class[rig->timer_class] + of_class[other], 2);
	assert_int_equal(spoke_wheel_occupancy(rig->wheel, rig->levels, 0, 9, of_class), 0);
	assert_int_equal(of_class[rig->timer_class] + of_class[other], 0);
}

/* A timer beyond the current lap of the top level waits in that level and is counted there. */
RIG_TEST(far_timers_are_counted_where_they_wait)
{
	unsigned span = bits_of(rig->slots) * rig->levels;
	uint64_t top = UINT64_C(1) << (span - bits_of(rig->slots));
	uint64_t far = span < 40 ? (UINT64_C(3) << span) + top : top;

	rig_schedule(rig, 0, far);
	assert_int_equal(spoke_wheel_occupancy(rig->wheel, rig->levels - 1, 1, 9, NULL), 1);
	(void)spoke_wheel_cancel(rig->wheel, &rig->items[0].timer);
	assert_int_equal(spoke_wheel_occupancy(rig->wheel, rig->levels - 1, 1, 9, NULL), 0);
}

static void do_something(struct rig *rig, uint64_t *dice, uint64_t *tick)
{
	struct item *item = &rig->items[throw_dice(dice) % RIG_ITEMS];
	uint64_t reach = UINT64_C(1) << throw_dice(dice) % 24;
	uint64_t due = rig_ns(*tick + 1 + throw_dice(dice) % reach);

	switch (throw_dice(dice) % 8) {
	case 0:
		(void)spoke_wheel_cancel(rig->wheel, &item->timer);
		break;
	case 1:
	case 2:
		(void)spoke_wheel_disarm(rig->wheel, &item->timer);
		break;
	case 3:
		*tick += throw_dice(dice) % reach;
		(void)spoke_wheel_advance(rig->wheel, rig_ns(*tick), 1 + throw_dice(dice) % 3);
		break;
	default:
		if (spoke_wheel_reschedule(rig->wheel, &item->timer, due) == SPOKE_WHEEL_IDLE)
			assert_int_equal(spoke_wheel_schedule(rig->wheel, &item->timer,
							      rig->timer_class, due),
					 SPOKE_WHEEL_OK);
		break;
	}
	rig->logged = 0;
}

/* Includes disarmed timers and counts taken in the middle of an advance. */
RIG_TEST(all_slots_together_have_all_timers)
{
	uint32_t *counts = calloc((size_t)rig->slots * rig->levels, sizeof(*counts));
	uint64_t dice = 0x9e3779b97f4a7c15;
	uint64_t tick = 0;
	unsigned every = rig->slots * rig->levels > 2048 ? 8 * EVERY : EVERY;

	assert_non_null(counts);
	for (unsigned i = 0; i < OPERATIONS; i++) {
		do_something(rig, &dice, &tick);
		if (i % every == 0)
			look_at_all(rig, counts);
	}
	look_at_all(rig, counts);
	free(counts);
}

/* On a wheel of one level, timers of later laps are set aside while their slot is emptied. */
RIG_TEST(timers_set_aside_count_in_their_slot)
{
	uint32_t slots = rig->slots;
	unsigned here = rig->levels == 1 ? 6 : 3;

	for (int id = 0; id < 6; id++)
		rig_schedule(rig, id, 1 + (uint64_t)(id % 2) * slots);
	assert_int_equal(spoke_wheel_occupancy(rig->wheel, 0, 1 % slots, 99, NULL), here);
	for (unsigned left = 3; left > 0; left--) {
		int status = spoke_wheel_advance(rig->wheel, rig_ns(1), 1);

		if (rig->levels == 1)
			assert_int_equal(spoke_wheel_occupancy(rig->wheel, 0, 1 % slots, 99, NULL),
					 6 - rig_counts(rig).fired);
		if (status == SPOKE_WHEEL_OK)
			break;
	}
}
