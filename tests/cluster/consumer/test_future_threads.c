/* SPDX-License-Identifier: Apache-2.0 */
/* Futures used by many threads. */
#include "futurerig.h"
#include "tests/support/test.h"

#include <stdio.h>

#define THREADS 4
#define HERD 150 /* more than one system call wakes */

static void add_count(atomic_int *count, bool yes)
{
	if (yes)
		atomic_fetch_add(count, 1);
}

/* --- many threads */

struct caller {
	struct spoke_method *method;
	int number;
	atomic_int *good;
};

static void call_often(void *arg)
{
	struct caller *caller = arg;

	for (int i = 0; i < 50; i++) {
		struct spoke_future *future;
		char text[32];

		(void)snprintf(text, sizeof(text), "%d of %d", i, caller->number);
		if (spoke_call_wait(caller->method, futurerig_text(text), &rig_patient, &future) ==
		    0)
			add_count(caller->good,
				  futurerig_is_text(spoke_future_result(future), text));
		spoke_future_free(future);
	}
}

static void call_from_threads(enum rig_place place)
{
	struct rig rig;
	struct caller callers[THREADS];
	void *threads[THREADS];
	atomic_int good = 0;

	futurerig_set_up(&rig, place);
	assert_int_equal(spoke_engine_start(rig.client.engine), SPOKE_OK);
	for (int i = 0; i < THREADS; i++) {
		callers[i] = (struct caller){ i % 2 ? rig.client.pool : rig.client.echo, i, &good };
		threads[i] = futurerig_thread(call_often, &callers[i]);
	}
	for (int i = 0; i < THREADS; i++)
		futurerig_join(threads[i]);
	assert_int_equal(atomic_load(&good), THREADS * 50);
	futurerig_tear_down(&rig);
}

TEST(four_threads_call_at_one_time_over_tcp)
{
	call_from_threads(RIG_TCP);
}

TEST(four_threads_call_at_one_time_over_a_unix_socket)
{
	call_from_threads(RIG_UNIX);
}

/* Futures that several threads use at once. */
struct quota {
	struct spoke_future *futures[64];
	atomic_int ready;
	atomic_int ended[2]; /* results of waits: ECLOSED, any other */
	atomic_int told;
};

static void wait_for_all(void *arg)
{
	struct quota *quota = arg;

	for (int i = 0; i < 4; i++) {
		atomic_fetch_add(&quota->ready, 1);
		if (spoke_future_wait(quota->futures[i]) == SPOKE_OK)
			add_count(&quota->ended[0],
				  spoke_future_result(quota->futures[i])->error == SPOKE_ECLOSED);
	}
}

TEST(several_threads_wait_for_one_future)
{
	struct rig rig;
	struct quota quota = { .ready = 0 };
	void *threads[HERD];

	futurerig_set_up(&rig, RIG_TCP);
	assert_int_equal(spoke_engine_start(rig.client.engine), SPOKE_OK);
	for (int i = 0; i < 4; i++)
		quota.futures[i] = futurerig_start(rig.client.hold, "");
	for (int i = 0; i < HERD; i++)
		threads[i] = futurerig_thread(wait_for_all, &quota);
	while (atomic_load(&quota.ready) < HERD)
		;
	futurerig_release(&rig);
	for (int i = 0; i < HERD; i++)
		futurerig_join(threads[i]);
	assert_int_equal(atomic_load(&quota.ready), HERD * 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(spoke_future_result(quota.futures[i])->error, SPOKE_OK);
		spoke_future_free(quota.futures[i]);
	}
	futurerig_tear_down(&rig);
}

/* --- the engine is freed */

TEST(waiters_are_woken_when_engine_ends)
{
	struct rig rig;
	struct quota quota = { .ready = 0 };
	void *threads[THREADS];

	futurerig_set_up(&rig, RIG_TCP);
	assert_int_equal(spoke_engine_start(rig.client.engine), SPOKE_OK);
	for (int i = 0; i < 4; i++)
		quota.futures[i] = futurerig_start(rig.client.hold, "");
	for (int i = 0; i < THREADS; i++)
		threads[i] = futurerig_thread(wait_for_all, &quota);
	while (atomic_load(&quota.ready) < THREADS)
		;
	spoke_engine_free(rig.client.engine);
	rig.client.engine = NULL;
	for (int i = 0; i < THREADS; i++)
		futurerig_join(threads[i]);
	assert_int_equal(atomic_load(&quota.ended[0]), THREADS * 4);
	for (int i = 0; i < 4; i++) {
		spoke_future_cancel(quota.futures[i]);
		assert_int_equal(spoke_future_wait(quota.futures[i]), SPOKE_OK);
		assert_int_equal(spoke_future_then(quota.futures[i], futurerig_told_done, NULL),
				 SPOKE_ECLOSED);
		assert_int_equal(spoke_future_then(quota.futures[i], futurerig_told_done, NULL),
				 SPOKE_ESTATE);
		spoke_future_free(quota.futures[i]);
	}
	futurerig_tear_down(&rig);
}

static void count_told(void *arg, const struct spoke_result *result)
{
	struct quota *quota = arg;

	(void)result;
	atomic_fetch_add(&quota->told, 1);
}

/* A thread that frees, cancels, waits for or sets callbacks on half of the futures while the engine
 * is freed. */
struct meddler {
	struct quota *quota;
	int number;
	atomic_int taken; /* accepted callbacks, each of which must come */
};

static void meddle(void *arg)
{
	struct meddler *meddler = arg;
	struct quota *quota = meddler->quota;

	atomic_fetch_add(&quota->ready, 1);
	while (atomic_load(&quota->ready) < THREADS + 1)
		;
	for (int i = meddler->number; i < 64; i += THREADS) {
		struct spoke_future *future = quota->futures[i];

		switch (i / THREADS % 4) {
		case 0:
			spoke_future_cancel(future);
			break;
		case 1:
			add_count(&meddler->taken,
				  spoke_future_then(future, count_told, quota) == SPOKE_OK);
			break;
		case 2:
			add_count(&quota->ended[1], spoke_future_wait(future) != SPOKE_OK);
			break;
		default:
			break;
		}
		spoke_future_free(future);
	}
}

TEST(futures_are_safe_while_engine_ends)
{
	for (int round = 0; round < 20; round++) {
		struct rig rig;
		struct quota quota = { .ready = 0 };
		struct meddler meddlers[THREADS];
		void *threads[THREADS];
		int taken = 0;

		futurerig_set_up(&rig, RIG_UNIX);
		assert_int_equal(spoke_engine_start(rig.client.engine), SPOKE_OK);
		for (int i = 0; i < 64; i++)
			quota.futures[i] =
				futurerig_start(i % 3 ? rig.client.hold : rig.client.echo, "");
		for (int i = 0; i < THREADS; i++) {
			meddlers[i] = (struct meddler){ .quota = &quota, .number = i };
			threads[i] = futurerig_thread(meddle, &meddlers[i]);
		}
		while (atomic_load(&quota.ready) < THREADS)
			;
		atomic_fetch_add(&quota.ready, 1);
		spoke_engine_free(rig.client.engine);
		rig.client.engine = NULL;
		for (int i = 0; i < THREADS; i++) {
			futurerig_join(threads[i]);
			taken += atomic_load(&meddlers[i].taken);
		}
		assert_int_equal(atomic_load(&quota.ended[1]), 0);
		assert_int_equal(atomic_load(&quota.told), taken);
		futurerig_tear_down(&rig);
	}
}

/* --- clients come and go */

struct visitor {
	struct rig *rig;
	int number;
	atomic_int *wrong;
};

/* Counts failures instead of asserting, because it is not on the test's thread. */
static void visit(void *arg)
{
	struct visitor *visitor = arg;

	for (int round = 0; round < 5; round++) {
		struct rig_client client;
		struct spoke_future *futures[16];

		futurerig_client_init(visitor->rig, &client, NULL);
		add_count(visitor->wrong, spoke_engine_start(client.engine) != SPOKE_OK);
		for (int i = 0; i < 16; i++)
			futures[i] = futurerig_start(client.pool, "pool");
		if ((round + visitor->number) % 2)
			add_count(visitor->wrong, spoke_future_wait_all(futures, 16) != SPOKE_OK);
		spoke_engine_free(client.engine);
		for (int i = 0; i < 16; i++) {
			const struct spoke_result *result = spoke_future_result(futures[i]);

			add_count(visitor->wrong,
				  result == NULL || (!futurerig_is_text(result, "pool") &&
						     result->error != SPOKE_EREFUSED &&
						     result->error != SPOKE_ECLOSED));
			spoke_future_free(futures[i]);
		}
	}
}

TEST(pool_answers_while_clients_come_and_go)
{
	struct rig rig;
	struct visitor visitors[THREADS];
	void *threads[THREADS];
	atomic_int wrong = 0;

	futurerig_set_up(&rig, RIG_UNIX);
	for (int i = 0; i < THREADS; i++) {
		visitors[i] = (struct visitor){ &rig, i, &wrong };
		threads[i] = futurerig_thread(visit, &visitors[i]);
	}
	for (int i = 0; i < THREADS; i++)
		futurerig_join(threads[i]);
	assert_int_equal(atomic_load(&wrong), 0);
	futurerig_tear_down(&rig);
}
