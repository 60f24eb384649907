/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The textbook example: timers of 220 ms, 410 ms and 1930 ms on a wheel with a tick of 100 ms. Ten
 * slots are requested and sixteen are made. A timer never fires early, so they fire at ticks 3, 5
 * and 20.
 */
#include "tests/support/test.h"
#include "tests/timer/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)

struct textbook {
	struct spoke_wheel *wheel;
	struct spoke_timer a, b, c;
	uint64_t now_ms;
	char story[80]; /* "A@300 B@500 ..." */
};

static void due(struct spoke_timer *timer, void *arg)
{
	struct textbook *book = arg;
	size_t len = strlen(book->story);
	char name = timer == &book->a ? 'A' : timer == &book->b ? 'B' : 'C';

	(void)snprintf(book->story + len, sizeof(book->story) - len, "%c@%u ", name,
		       (unsigned)book->now_ms);
}

static void *open_book(struct textbook *book, uint32_t levels)
{
	struct spoke_wheel_options options = { .tick_ns = 100 * MS, .slots = 10, .levels = levels };
	unsigned timer_class;
	size_t size;
	void *memory;

	assert_int_equal(spoke_wheel_size(&options, &size), SPOKE_WHEEL_OK);
	memory = malloc(size);
	assert_int_equal(spoke_wheel_init(memory, size, &options, 0, &book->wheel), SPOKE_WHEEL_OK);
	assert_int_equal(spoke_wheel_add_class(book->wheel, "book", due, book, &timer_class),
			 SPOKE_WHEEL_OK);
	assert_int_equal(spoke_wheel_schedule(book->wheel, &book->a, timer_class, 220 * MS), 0);
	assert_int_equal(spoke_wheel_schedule(book->wheel, &book->b, timer_class, 410 * MS), 0);
	assert_int_equal(spoke_wheel_schedule(book->wheel, &book->c, timer_class, 1930 * MS), 0);
	return memory;
}

/* Runs the wheel as a loop does: sleeps until the next expiry, until no timer is pending. */
static void read_book(struct textbook *book, char *wakes, size_t size)
{
	uint64_t next;

	while ((next = spoke_wheel_next(book->wheel)) != SPOKE_WHEEL_NEVER) {
		size_t len = strlen(wakes);

		book->now_ms = next / MS;
		(void)snprintf(wakes + len, size - len, "%u ", (unsigned)book->now_ms);
		assert_int_equal(spoke_wheel_advance(book->wheel, next, 0), SPOKE_WHEEL_OK);
		assert_null(spoke_wheel_check(book->wheel));
	}
}

TEST(one_level_keeps_the_far_timer_in_its_slot_for_another_round)
{
	struct textbook book = { 0 };
	void *memory = open_book(&book, 1);
	char wakes[80] = "";

	read_book(&book, wakes, sizeof(wakes));
	assert_string_equal(book.story, "A@300 B@500 C@2000 ");
	/* C, due at tick 20, is in slot 20 % 16 = 4. The wheel passes that slot at tick 4 and again
	 * one lap later; the new lap begins at tick 16. */
	assert_string_equal(wakes, "300 400 500 1600 2000 ");
	free(memory);
}

TEST(two_levels_let_the_far_timer_sink_to_the_fine_one)
{
	struct textbook book = { 0 };
	void *memory = open_book(&book, 2);
	char wakes[80] = "";

	read_book(&book, wakes, sizeof(wakes));
	assert_string_equal(book.story, "A@300 B@500 C@2000 ");
	/* C waits in the coarse level, in the slot of ticks 16 to 31, and cascades at tick 16. */
	assert_string_equal(wakes, "300 500 1600 2000 ");
	free(memory);
}
