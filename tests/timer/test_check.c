/* SPDX-License-Identifier: Apache-2.0 */
/* The check of the invariants: each of its sentences is returned for a wheel broken on purpose. */
#include "tests/support/test.h"
#include "tests/timer/rig.h"

#include "timer/wheel.h"

#include <stdlib.h>

/* Makes a wheel of two levels with timers at ticks 5, 6 and 300; the first two are neighbours. */
static void make_busy(struct rig *rig)
{
	struct spoke_wheel_options options = {
		.tick_ns = RIG_TICK_NS, .slots = 16, .levels = 2, .pending_max = 8
	};

	rig_init(rig, &options);
	rig_schedule(rig, 0, 5);
	for (int id = 1; id < 6; id++)
		rig_schedule(rig, id, 6);
	rig_schedule(rig, 6, 300);
	rig_schedule(rig, 7, 200);
	rig_check(rig);
}

static void unlink_at_one_end(struct rig *rig)
{
	rig->items[1].timer.place.next->prev = &rig->items[0].timer.place;
}

static void end_a_list_early(struct rig *rig)
{
	struct spoke_list *slot = &rig->wheel->slots.slot[6];

	slot->prev = slot;
}

static void idle_a_linked_timer(struct rig *rig)
{
	rig->items[1].timer.key = 0;
}

static void give_an_unknown_class(struct rig *rig)
{
	rig->items[1].timer.key |= 7;
}

static void arm_in_the_past(struct rig *rig)
{
	rig->wheel->now = 9;
}

static void seat_behind_its_tick(struct rig *rig)
{
	rig->items[0].timer.key = spokei_timer_key(4);
}

static void raise_the_first_edge(struct rig *rig)
{
	rig->wheel->slots.next = 7;
}

static void lower_a_least_key(struct rig *rig)
{
	rig->items[1].timer.least--;
}

static void raise_a_least_key(struct rig *rig)
{
	rig->items[6].timer.least += UINT64_C(256) << SPOKE_TIMER_TICK_SHIFT;
}

static void answer_another_next(struct rig *rig)
{
	rig->wheel->front.next_ns++;
}

static void unmark_a_slot(struct rig *rig)
{
	rig->wheel->slots.marked[0] &= ~(UINT64_C(1) << 6);
}

static void unmark_a_word(struct rig *rig)
{
	rig->wheel->slots.summary[0] = 0;
}

static void set_aside_at_rest(struct rig *rig)
{
	rig->wheel->slot = 16 + 300 / 16 % 16;
	spokei_slots_remove(&rig->items[6].timer);
	spokei_list_append(&rig->wheel->slots.aside, &rig->items[6].timer.place);
}

static void forget_to_move_on(struct rig *rig)
{
	rig->wheel->slots.next = 0;
}

static void count_one_more(struct rig *rig)
{
	rig->wheel->class_of[0].fired++;
}

static void count_one_end_more(struct rig *rig)
{
	rig->wheel->front.ended++;
}

static void lower_the_cap(struct rig *rig)
{
	rig->wheel->pending_max = 7;
}

static void raise_a_quota(struct rig *rig)
{
	rig->wheel->front.quota++;
}

static void keep_an_old_deadline(struct rig *rig)
{
	rig->wheel->front.shared_key = spokei_timer_key(SPOKEI_TICK_END);
}

static void keep_another_tick(struct rig *rig)
{
	rig->wheel->front.shared_key -= UINT64_C(1) << SPOKE_TIMER_TICK_SHIFT;
}

static void keep_an_unmarked_slot(struct rig *rig)
{
	rig->wheel->front.shared_slot = 1;
}

static void keep_a_slot_for_nothing(struct rig *rig)
{
	rig->wheel->front.shared_key = SPOKE_WHEEL_NOT_SHARED;
}

static void stop_without_taking_out(struct rig *rig)
{
	rig->wheel->stopped = true;
}

TEST(check_names_each_violated_invariant)
{
	static const struct {
		void (*do_break)(struct rig *rig);
		const char *said;
	} cases[] = {
		{ unlink_at_one_end, "a slot's links do not match" },
		{ end_a_list_early, "a slot's links do not match" },
		{ idle_a_linked_timer, "an idle timer is linked into a slot" },
		{ give_an_unknown_class, "a timer has a class that does not exist" },
		{ arm_in_the_past, "an armed timer is in the past" },
		{ seat_behind_its_tick, "the wheel would visit an armed timer too late" },
		{ raise_the_first_edge, "the wheel would sleep past an armed timer" },
		{ lower_a_least_key, "a timer's least key is not that of its slot" },
		{ raise_a_least_key, "a timer's least key is above its own" },
		{ answer_another_next, "the cached answer of next() is not that of the wheel" },
		{ unmark_a_slot, "a slot with timers is not marked" },
		{ unmark_a_word, "the summary does not match a word of the bitmap" },
		{ set_aside_at_rest, "timers are set aside while the wheel rests" },
		{ forget_to_move_on, "the wheel is behind its next tick" },
		{ count_one_more, "a class's counts do not add up" },
		{ count_one_end_more, "the wheel's counts are not the sum of its classes" },
		{ lower_the_cap, "more timers are pending than pending_max" },
		{ raise_a_quota, "the wheel may schedule more than pending_max leaves" },
		{ keep_an_old_deadline,
		  "the shared deadline is in the past or beyond the horizon" },
		{ keep_another_tick, "the shared deadline has another tick" },
		{ keep_an_unmarked_slot, "the slot of the shared deadline is not marked" },
		{ keep_a_slot_for_nothing, "a slot is shared without a deadline" },
		{ stop_without_taking_out, "a stopped wheel has armed timers" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig rig;
		const char *said;

		make_busy(&rig);
		cases[i].do_break(&rig);
		said = spoke_wheel_check(rig.wheel);
		assert_non_null(said);
		assert_string_equal(said, cases[i].said);
		free(rig.memory);
	}
}
