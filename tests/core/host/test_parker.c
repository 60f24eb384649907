/* SPDX-License-Identifier: Apache-2.0 */
/* The parker, with real threads. */
#define _GNU_SOURCE

#include "core/host/host.h"
#include "core/host/threads.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdlib.h>

enum {
	CROWD = 4
};

TEST(an_unpark_before_the_park_is_kept_once)
{
	struct spokei_parker parker;

	spokei_parker_init(&parker);
	assert_int_equal(spokei_park(&parker, 0), -ETIMEDOUT);
	spokei_unpark(&parker);
	spokei_unpark(&parker);
	assert_int_equal(spokei_park(&parker, 0), 0);
	assert_int_equal(spokei_park(&parker, 0), -ETIMEDOUT);
}

static void *park_at(void *parker)
{
	return spokei_park(parker, UINT64_MAX) == 0 ? parker : NULL;
}

/* Uses more parkers than one ticker has bits, so that several tickers are used. */
TEST(several_are_woken_together)
{
	struct spokei_parker parkers[CROWD * 10];
	struct spokei_unparking several = { 0 };
	pthread_t threads[CROWD * 10];
	void *woken;

	for (int i = 0; i < CROWD * 10; i++) {
		spokei_parker_init(&parkers[i]);
		assert_int_equal(spokei_thread_create(&threads[i], park_at, &parkers[i]), 0);
	}
	/* Some threads may not be waiting yet. */
	for (int i = 0; i < CROWD * 10; i++)
		spokei_unpark_one_of(&several, &parkers[i]);
	spokei_unpark_end(&several);
	for (int i = 0; i < CROWD * 10; i++) {
		assert_int_equal(pthread_join(threads[i], &woken), 0);
		assert_ptr_equal(woken, &parkers[i]);
	}
}

TEST(park_does_not_return_before_its_deadline)
{
	struct spokei_parker parker;
	uint64_t deadline = spokei_clock_now(NULL) + UINT64_C(3000000);

	spokei_parker_init(&parker);
	assert_int_equal(spokei_park(&parker, deadline), -ETIMEDOUT);
	assert_true(spokei_clock_now(NULL) >= deadline);
}

static void *unpark_other(void *arg)
{
	spokei_unpark(arg);
	return NULL;
}

TEST(a_parker_may_be_freed_as_soon_as_park_returns)
{
	for (int i = 0; i < 200; i++) {
		struct spokei_parker *parker = malloc(sizeof(*parker));
		pthread_t thread;

		assert_non_null(parker);
		spokei_parker_init(parker);
		assert_int_equal(pthread_create(&thread, NULL, unpark_other, parker), 0);
		assert_int_equal(spokei_park(parker, UINT64_MAX), 0);
		free(parker);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
}
