/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of a wheel, the cap on pending timers, timer classes, and the check of the
 * invariants.
 */
#include "tests/support/test.h"
#include "tests/timer/rig.h"
#include "timer/wheel.h"

#include <stdlib.h>
#include <string.h>

/*
 * --- wheel options: defaults, limits, the error of each bad option, and the memory that a
 * wheel needs
 */

static void nothing_due(struct spoke_timer *timer, void *arg)
{
	(void)timer;
	(void)arg;
}

TEST(each_bad_option_is_refused_with_its_own_reason)
{
	static const struct {
		struct spoke_wheel_options options;
		int status;
	} cases[] = {
		{ { .tick_ns = SPOKE_WHEEL_TICK_MAX_NS + 1 }, SPOKE_WHEEL_BAD_TICK },
		{ { .tick_ns = UINT64_MAX }, SPOKE_WHEEL_BAD_TICK },
		{ { .slots = 1 }, SPOKE_WHEEL_BAD_SLOTS },
		{ { .slots = 4097 }, SPOKE_WHEEL_BAD_SLOTS },
		{ { .slots = UINT32_MAX }, SPOKE_WHEEL_BAD_SLOTS },
		{ { .slots = 2, .levels = 9 }, SPOKE_WHEEL_BAD_LEVELS },
		{ { .levels = UINT32_MAX }, SPOKE_WHEEL_BAD_LEVELS },
		{ { .slots = 4096, .levels = 5 }, SPOKE_WHEEL_BAD_LEVELS },
		{ { .slots = 65, .levels = 7 }, SPOKE_WHEEL_BAD_LEVELS },
		{ { .pending_max = SPOKE_WHEEL_PENDING_MAX + 1 }, SPOKE_WHEEL_BAD_PENDING },
	};
	char memory[64];
	struct spoke_wheel *wheel = NULL;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t size = 77;

		assert_int_equal(spoke_wheel_size(&cases[i].options, &size), cases[i].status);
		assert_int_equal(size, 77);
		assert_int_equal(spoke_wheel_init(memory, sizeof(memory), &cases[i].options, 0,
						  &wheel),
				 cases[i].status);
		assert_null(wheel);
	}
}

TEST(the_largest_options_are_accepted)
{
	static const struct spoke_wheel_options cases[] = {
		{ .tick_ns = SPOKE_WHEEL_TICK_MAX_NS, .slots = 4096, .levels = 4 },
		{ .tick_ns = 1, .slots = 64, .levels = 8 },
		{ .pending_max = SPOKE_WHEEL_PENDING_MAX, .slots = 2, .levels = 1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spoke_wheel *wheel;
		size_t size;
		void *memory;

		assert_int_equal(spoke_wheel_size(&cases[i], &size), SPOKE_WHEEL_OK);
		memory = malloc(size);
		assert_int_equal(spoke_wheel_init(memory, size, &cases[i], 0, &wheel), 0);
		assert_null(spoke_wheel_check(wheel));
		free(memory);
	}
}

TEST(zero_options_select_the_documented_defaults)
{
	struct spoke_wheel_options zero = { 0 };
	struct spoke_wheel_options same = {
		.tick_ns = 1000000, .slots = 256, .levels = 4, .pending_max = 16777216
	};
	size_t size[3];
	struct spoke_wheel *wheel[2];
	void *memory[2];

	assert_int_equal(spoke_wheel_size(NULL, &size[0]), SPOKE_WHEEL_OK);
	assert_int_equal(spoke_wheel_size(&zero, &size[1]), SPOKE_WHEEL_OK);
	assert_int_equal(spoke_wheel_size(&same, &size[2]), SPOKE_WHEEL_OK);
	assert_int_equal(size[0], size[1]);
	assert_int_equal(size[0], size[2]);
	for (int i = 0; i < 2; i++) {
		memory[i] = malloc(size[0]);
		assert_int_equal(spoke_wheel_init(memory[i], size[0], i ? &same : NULL, 0,
						  &wheel[i]),
				 SPOKE_WHEEL_OK);
	}
	assert_int_equal(wheel[0]->scale.tick_ns, wheel[1]->scale.tick_ns);
	assert_int_equal(wheel[0]->pending_max, wheel[1]->pending_max);
	assert_int_equal(wheel[0]->slots.bits, wheel[1]->slots.bits);
	assert_int_equal(wheel[0]->slots.top, wheel[1]->slots.top);
	for (int i = 0; i < 2; i++)
		free(memory[i]);
}

TEST(a_time_that_would_wrap_is_refused)
{
	size_t size;
	struct spoke_wheel *wheel = NULL;
	void *memory;

	assert_int_equal(spoke_wheel_size(NULL, &size), SPOKE_WHEEL_OK);
	memory = malloc(size);
	assert_int_equal(spoke_wheel_init(memory, size, NULL, SPOKE_WHEEL_NOW_MAX_NS + 1, &wheel),
			 SPOKE_WHEEL_BAD_NOW);
	assert_null(wheel);
	assert_int_equal(spoke_wheel_init(memory, size, NULL, SPOKE_WHEEL_NOW_MAX_NS, &wheel), 0);
	free(memory);
}

TEST(slots_are_rounded_up_to_a_power_of_two)
{
	struct spoke_wheel_options ten = { .slots = 10, .levels = 2 };
	struct spoke_wheel_options sixteen = { .slots = 16, .levels = 2 };
	struct spoke_wheel_options seventeen = { .slots = 17, .levels = 2 };
	size_t size[3];

	assert_int_equal(spoke_wheel_size(&ten, &size[0]), SPOKE_WHEEL_OK);
	assert_int_equal(spoke_wheel_size(&sixteen, &size[1]), SPOKE_WHEEL_OK);
	assert_int_equal(spoke_wheel_size(&seventeen, &size[2]), SPOKE_WHEEL_OK);
	assert_int_equal(size[0], size[1]);
	assert_true(size[2] > size[1]);
}

TEST(memory_that_is_missing_or_short_by_a_byte_is_refused)
{
	struct spoke_wheel *wheel = NULL;
	size_t size;
	void *memory;

	assert_int_equal(spoke_wheel_size(NULL, &size), SPOKE_WHEEL_OK);
	memory = malloc(size);
	assert_int_equal(spoke_wheel_init(NULL, size, NULL, 0, &wheel), SPOKE_WHEEL_BAD_MEMORY);
	assert_int_equal(spoke_wheel_init(memory, size - 1, NULL, 0, &wheel),
			 SPOKE_WHEEL_BAD_MEMORY);
	assert_null(wheel);
	free(memory);
}

/* Under a sanitizer this test also proves that the wheel stays inside the memory that it requested.
 */
TEST(memory_of_any_alignment_is_accepted)
{
	struct spoke_wheel_options options = { .slots = 16, .levels = 2 };
	size_t size;

	assert_int_equal(spoke_wheel_size(&options, &size), SPOKE_WHEEL_OK);
	for (size_t off = 0; off < 64; off++) {
		char *memory = malloc(size + off);
		struct spoke_wheel *wheel;
		struct spoke_timer timer = { 0 };
		unsigned timer_class;

		assert_int_equal(spoke_wheel_init(memory + off, size, &options, 0, &wheel), 0);
		assert_int_equal(spoke_wheel_add_class(wheel, "x", nothing_due, NULL, &timer_class),
				 0);
		assert_int_equal(spoke_wheel_schedule(wheel, &timer, timer_class, 1u << 30), 0);
		assert_null(spoke_wheel_check(wheel));
		assert_true(spoke_wheel_stop(wheel, NULL, NULL) == 1);
		free(memory);
	}
}

TEST(a_class_needs_a_name_and_a_callback_and_there_are_at_most_32)
{
	struct spoke_wheel_options options = { .slots = 16, .levels = 1 };
	struct rig rig;
	unsigned timer_class = 77;

	rig_init(&rig, &options);
	assert_int_equal(spoke_wheel_add_class(rig.wheel, NULL, nothing_due, NULL, &timer_class),
			 SPOKE_WHEEL_BAD_CLASS);
	assert_int_equal(spoke_wheel_add_class(rig.wheel, "x", NULL, NULL, &timer_class),
			 SPOKE_WHEEL_BAD_CLASS);
	assert_int_equal(timer_class, 77);
	for (unsigned i = 1; i < SPOKE_WHEEL_CLASSES_MAX; i++) {
		assert_int_equal(spoke_wheel_add_class(rig.wheel, "x", nothing_due, NULL,
						       &timer_class),
				 0);
		assert_int_equal(timer_class, i);
	}
	assert_int_equal(spoke_wheel_add_class(rig.wheel, "x", nothing_due, NULL, &timer_class),
			 SPOKE_WHEEL_CLASSES_FULL);
	rig_fini(&rig);
}

TEST(every_status_has_a_sentence_of_its_own)
{
	const char *unknown = spoke_wheel_text(-1);

	assert_string_equal(spoke_wheel_text(SPOKE_WHEEL_BAD_NOW + 1), unknown);
	for (int i = SPOKE_WHEEL_OK; i <= SPOKE_WHEEL_BAD_NOW; i++) {
		assert_non_null(spoke_wheel_text(i));
		assert_string_not_equal(spoke_wheel_text(i), unknown);
		for (int j = SPOKE_WHEEL_OK; j < i; j++)
			assert_string_not_equal(spoke_wheel_text(i), spoke_wheel_text(j));
	}
}

TEST(a_timer_is_at_most_32_bytes)
{
	assert_true(sizeof(struct spoke_timer) <= 32);
}

/*
 * --- the check of the invariants: each of its sentences is returned for a wheel broken on
 * purpose
 */

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
