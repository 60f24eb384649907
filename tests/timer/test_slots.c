/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slots alone: the slot of a tick, the next occupied slot, and the order of timers in a slot.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "timer/slots.h"

#include <stdlib.h>

static void *make_slots(struct spokei_slots *slots, unsigned bits, unsigned levels)
{
	void *memory = aligned_alloc(64, (spokei_slots_size(bits, levels) + 63) & ~(size_t)63);

	assert_non_null(memory);
	spokei_slots_init(slots, memory, bits, levels);
	return memory;
}

static void place(struct spokei_slots *slots, struct spoke_timer *timer, uint64_t tick,
		  uint64_t from)
{
	timer->key = spokei_timer_key(tick);
	spokei_slots_place(slots, timer, spokei_slots_for(slots, tick, from));
}

static void a_key_keeps_its_tick_and_its_class(void **state)
{
	static const uint64_t ticks[] = { 1, 2, 1000000, SPOKEI_TICK_END - 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++) {
		struct spoke_timer timer = { .key = spokei_timer_key(ticks[i]) | 31 };

		assert_true(spokei_timer_tick(&timer) == ticks[i]);
		assert_true(spoke_timer_armed(&timer));
		assert_true((timer.key & SPOKE_TIMER_CLASS_MASK) == 31);
		timer.key |= SPOKE_TIMER_DISARMED;
		assert_true(spokei_timer_tick(&timer) == ticks[i]);
		assert_false(spoke_timer_armed(&timer));
	}
}

static void a_tick_goes_to_the_level_of_its_highest_differing_digit(void **state)
{
	struct spokei_slots slots;
	void *memory = make_slots(&slots, 4, 3);

	(void)state;
	assert_int_equal(spokei_slots_for(&slots, 0x005, 0x003), 0x05);
	assert_int_equal(spokei_slots_for(&slots, 0x010, 0x00f), 16 + 0x1);
	assert_int_equal(spokei_slots_for(&slots, 0x0ff, 0x010), 16 + 0xf);
	assert_int_equal(spokei_slots_for(&slots, 0x7ab, 0x0ff), 32 + 0x7);
	assert_true(slots.far_min == SPOKEI_TICK_NEVER);
	/* Beyond a lap of 0x1000 ticks: the digit of the top level selects the slot, and far_min is
	 * set. */
	assert_int_equal(spokei_slots_for(&slots, 0x57ab, 0x0ff), 32 + 0x7);
	assert_int_equal(spokei_slots_for(&slots, 0x9123, 0x0ff), 32 + 0x1);
	assert_true(slots.far_min == 0x57ab);
	free(memory);
}

static void the_first_edge_is_that_of_the_lowest_occupied_level(void **state)
{
	struct spokei_slots slots;
	void *memory = make_slots(&slots, 4, 3);
	struct spoke_timer timers[4] = { 0 };

	(void)state;
	assert_true(spokei_slots_find(&slots, 0).tick == SPOKEI_TICK_NEVER);
	place(&slots, &timers[0], 0x57ab, 0);
	assert_true(spokei_slots_find(&slots, 0).tick == 0x700); /* passed one lap too early */
	assert_true(spokei_slots_find(&slots, 0x700).tick == 0x5000);
	assert_int_equal(spokei_slots_find(&slots, 0x700).slot, 32);
	place(&slots, &timers[1], 0x3aa, 0);
	assert_true(spokei_slots_find(&slots, 0).tick == 0x300);
	place(&slots, &timers[2], 0x02a, 0);
	assert_true(spokei_slots_find(&slots, 0).tick == 0x020);
	assert_int_equal(spokei_slots_find(&slots, 0).slot, 16 + 2);
	place(&slots, &timers[3], 0x00a, 0);
	assert_true(spokei_slots_find(&slots, 0).tick == 0x00a);
	assert_true(slots.next == 0x00a);
	/* A slot stays marked until the wheel has visited it. */
	spokei_slots_remove(&timers[3]);
	assert_true(spokei_slots_find(&slots, 0).tick == 0x00a);
	spokei_slots_clear(&slots, 0x0a);
	assert_true(spokei_slots_find(&slots, 0x00a).tick == 0x020);
	free(memory);
}

static void expect_found(struct spokei_slots *slots, uint64_t tick)
{
	struct spoke_timer timer = { 0 };
	struct spokei_edge edge;

	place(slots, &timer, tick, 0);
	edge = spokei_slots_find(slots, 0);
	assert_true(edge.tick == tick);
	assert_int_equal(edge.slot, spokei_timer_slot(&timer));
	spokei_slots_remove(&timer);
	spokei_slots_clear(slots, edge.slot);
	assert_true(spokei_slots_find(slots, 0).tick == SPOKEI_TICK_NEVER);
}

static void every_slot_is_found_in_every_geometry(void **state)
{
	(void)state;
	for (unsigned bits = 1; bits <= 12; bits++) {
		for (unsigned levels = 1; levels <= 4; levels++) {
			struct spokei_slots slots;
			void *memory = make_slots(&slots, bits, levels);

			for (unsigned shift = 0; shift < levels * bits; shift += bits)
				for (uint64_t digit = 1; digit >> bits == 0; digit++)
					expect_found(&slots, digit << shift);
			free(memory);
		}
	}
}

static void timers_of_a_slot_come_first_in_first_out_over_all_lanes(void **state)
{
	struct spokei_slots slots;
	void *memory = make_slots(&slots, 4, 1);
	struct spoke_timer timers[40] = { 0 };
	uint64_t next_seat = 0;
	struct spoke_timer *timer;
	size_t expected = 0;

	(void)state;
	for (size_t i = 0; i < 40; i++)
		place(&slots, &timers[i], 9, 0);
	/* Leave gaps of each length up to more than the number of lanes. */
	for (size_t i = 0; i < 40; i++)
		if (i % 7 == 2 || (i > 20 && i < 29))
			spokei_slots_remove(&timers[i]);
	while ((timer = spokei_slots_first(&slots, 9, SPOKE_WHEEL_FIFO, &next_seat))) {
		while (expected % 7 == 2 || (expected > 20 && expected < 29))
			expected++;
		assert_ptr_equal(timer, &timers[expected++]);
		spokei_slots_remove(timer);
	}
	assert_int_equal(expected, 40);
	free(memory);
}

static void timers_set_aside_come_back_in_order(void **state)
{
	struct spokei_slots slots;
	void *memory = make_slots(&slots, 4, 1);
	struct spoke_timer timers[10] = { 0 };
	uint64_t next_seat = 0;

	(void)state;
	for (size_t i = 0; i < 10; i++)
		place(&slots, &timers[i], 9, 0);
	for (size_t i = 0; i < 10; i++) {
		assert_ptr_equal(spokei_slots_first(&slots, 9, SPOKE_WHEEL_FIFO, &next_seat),
				 &timers[i]);
		spokei_slots_remove(&timers[i]);
		spokei_slots_set_aside(&slots, &timers[i]);
	}
	spokei_slots_clear(&slots, 9);
	assert_true(spokei_slots_find(&slots, 0).tick == SPOKEI_TICK_NEVER);
	spokei_slots_restore(&slots, 9);
	assert_true(spokei_slots_find(&slots, 0).tick == 9);
	next_seat = 0;
	for (size_t i = 0; i < 10; i++) {
		assert_ptr_equal(spokei_slots_first(&slots, 9, SPOKE_WHEEL_FIFO, &next_seat),
				 &timers[i]);
		spokei_slots_remove(&timers[i]);
	}
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_keeps_its_tick_and_its_class),
		cmocka_unit_test(a_tick_goes_to_the_level_of_its_highest_differing_digit),
		cmocka_unit_test(the_first_edge_is_that_of_the_lowest_occupied_level),
		cmocka_unit_test(every_slot_is_found_in_every_geometry),
		cmocka_unit_test(timers_of_a_slot_come_first_in_first_out_over_all_lanes),
		cmocka_unit_test(timers_set_aside_come_back_in_order),
	};

	return cmocka_run_group_tests_name("slots", tests, NULL, NULL);
}
