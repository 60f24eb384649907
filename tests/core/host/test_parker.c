/* SPDX-License-Identifier: Apache-2.0 */
/* The parker, with real threads. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/host/clock.h"
#include "core/host/parker.h"
#include "core/host/thread.h"

#include <errno.h>
#include <stdlib.h>

enum {
	CROWD = 4
};

static void an_unpark_before_the_park_is_kept_once(void **state)
{
	struct spokei_parker parker;

	(void)state;
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
static void several_are_woken_together(void **state)
{
	struct spokei_parker parkers[CROWD * 10];
	struct spokei_unparking several = { 0 };
	pthread_t threads[CROWD * 10];
	void *woken;

	(void)state;
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

static void park_does_not_return_before_its_deadline(void **state)
{
	struct spokei_parker parker;
	uint64_t deadline = spokei_clock_now(NULL) + UINT64_C(3000000);

	(void)state;
	spokei_parker_init(&parker);
	assert_int_equal(spokei_park(&parker, deadline), -ETIMEDOUT);
	assert_true(spokei_clock_now(NULL) >= deadline);
}

static void *unpark_other(void *arg)
{
	spokei_unpark(arg);
	return NULL;
}

static void a_parker_may_be_freed_as_soon_as_park_returns(void **state)
{
	(void)state;
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unpark_before_the_park_is_kept_once),
		cmocka_unit_test(several_are_woken_together),
		cmocka_unit_test(park_does_not_return_before_its_deadline),
		cmocka_unit_test(a_parker_may_be_freed_as_soon_as_park_returns),
	};

	return cmocka_run_group_tests_name("parker", tests, NULL, NULL);
}
