/* SPDX-License-Identifier: Apache-2.0 */
/* The retry budget, compared with a list of all times, from which the last 10 s are exact. */
#include "cluster/call/retry_queue.h"
#include "tests/cluster/dice.h"
#include "tests/support/test.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define START (1000 * SECOND)
#define TIMES_MAX 200000u

struct times {
	size_t count;
	uint64_t at[TIMES_MAX]; /* ascending */
};

/* Counts the times less than `span_ns` before `now_ns`. */
static size_t within(const struct times *times, uint64_t now_ns, uint64_t span_ns)
{
	size_t count = 0;

	while (count < times->count && now_ns - times->at[times->count - 1 - count] < span_ns)
		count++;
	return count;
}

static void note(struct times *times, uint64_t now_ns)
{
	assert_true(times->count < TIMES_MAX);
	times->at[times->count++] = now_ns;
}

static unsigned drain(struct spokei_budget *budget, uint64_t now_ns)
{
	unsigned count = 0;

	while (spokei_budget_take(budget, now_ns))
		count++;
	return count;
}

static void call(struct spokei_budget *budget, unsigned count, uint64_t now_ns)
{
	for (unsigned i = 0; i < count; i++)
		spokei_budget_called(budget, now_ns);
}

TEST(budget_allows_100_retries_without_calls)
{
	struct spokei_budget budget = { 0 };

	assert_int_equal(drain(&budget, START), 100);
	assert_int_equal(drain(&budget, START + 9 * SECOND), 0);
	assert_int_equal(drain(&budget, START + 10 * SECOND), 0);
	assert_int_equal(drain(&budget, START + 11 * SECOND), 100);
}

TEST(budget_grows_by_one_retry_for_five_calls)
{
	struct spokei_budget budget = { 0 };

	call(&budget, 1004, START);
	assert_int_equal(drain(&budget, START), 300);
	call(&budget, 1, START + 1);
	assert_int_equal(drain(&budget, START + 1), 1);
}

TEST(calls_expire_before_retries)
{
	struct spokei_budget budget = { 0 };

	call(&budget, 500, START);
	assert_int_equal(drain(&budget, START + 9 * SECOND + 999 * MS), 200);
	call(&budget, 500, START + 10 * SECOND);
	/* The first calls have expired and the attempts count: 200 of 200. */
	assert_int_equal(drain(&budget, START + 10 * SECOND), 0);
	assert_int_equal(drain(&budget, START + 19 * SECOND + 999 * MS), 0);
	assert_int_equal(drain(&budget, START + 20 * SECOND), 100);
}

TEST(time_going_back_adds_no_budget)
{
	struct spokei_budget budget = { 0 };

	assert_int_equal(drain(&budget, START), 100);
	assert_int_equal(drain(&budget, START - 20 * SECOND), 0);
	call(&budget, 5, START - 20 * SECOND);
	assert_int_equal(drain(&budget, START), 1);
}

TEST(long_pause_resets_budget)
{
	struct spokei_budget budget = { 0 };

	call(&budget, 500, START);
	assert_int_equal(drain(&budget, START), 200);
	assert_int_equal(drain(&budget, START + UINT64_C(1000000) * SECOND), 100);
	assert_int_equal(budget.calls_sum, 0);
	assert_int_equal(drain(&budget, UINT64_MAX), 100);
}

/* Returns a pause: mostly short, sometimes seconds, rarely longer than all slots. */
static uint64_t pause_of(uint64_t *seed)
{
	switch (dice_roll(seed) % 64) {
	case 0:
		return dice_roll(seed) % (12 * SECOND);
	case 1:
		return SECOND * (dice_roll(seed) % 12); /* exactly at the edge of a slot */
	case 2:
		return dice_roll(seed) % (SECOND / 2);
	case 3:
		return dice_roll(seed) % 400 == 0 ? dice_roll(seed) % (100 * SECOND) : 0;
	default:
		return dice_roll(seed) % (4 * MS);
	}
}

TEST(budget_holds_in_any_ten_seconds)
{
	static struct times calls, retries;
	struct spokei_budget budget = { 0 };
	uint64_t seed = 7;
	uint64_t now = START;
	unsigned given = 0;
	unsigned refused = 0;

	for (unsigned i = 0; i < TIMES_MAX; i++) {
		/* Alternate periods with many calls and periods with many failures. */
		unsigned trouble = (i / 4096) % 4;

		now += pause_of(&seed);
		if (dice_roll(&seed) % 4 >= trouble) {
			spokei_budget_called(&budget, now);
			note(&calls, now);
		} else if (spokei_budget_take(&budget, now)) {
			note(&retries, now);
			given++;
			assert_true(within(&retries, now, 10 * SECOND) * 5 <=
				    within(&calls, now, 10 * SECOND) + 500);
		} else {
			/* The budget may be too strict by a second, but not by more. */
			refused++;
			assert_true((within(&retries, now, 11 * SECOND) + 1) * 5 >
				    within(&calls, now, 9 * SECOND) + 500);
		}
	}
	assert_true(given > 1000 && refused > 1000);
}
