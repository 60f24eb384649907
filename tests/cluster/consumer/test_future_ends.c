/* SPDX-License-Identifier: Apache-2.0 */
/* Futures whose engine or consumer is freed, and futures during failed allocations. */
#include "futurerig.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <errno.h>
#include <stdio.h>

/* --- the engine is freed */

TEST(future_not_arrived_ends_with_engine)
{
	struct rig rig;
	struct rig_told told;
	struct spoke_future *future;

	futurerig_set_up(&rig, RIG_TCP);
	futurerig_told_init(&told);
	future = futurerig_start(rig.client.echo, "");
	assert_int_equal(spoke_future_then(future, futurerig_told_done, &told), SPOKE_OK);
	spoke_engine_free(rig.client.engine);
	rig.client.engine = NULL;
	futurerig_told_wait(&told);
	assert_int_equal(told.error, SPOKE_ECLOSED);
	assert_int_equal(spoke_future_wait(future), SPOKE_OK);
	spoke_future_free(future);
	futurerig_tear_down(&rig);
}

/* --- the consumer is freed */

TEST(consumer_freed_before_call_begins_ends_future)
{
	struct rig rig;
	struct spoke_future *future;
	struct spoke_future *freed;

	futurerig_set_up(&rig, RIG_TCP);
	future = futurerig_start(rig.client.echo, "");
	freed = futurerig_start(rig.client.echo, "");
	spoke_future_free(freed);
	spoke_consumer_free(rig.client.consumer);
	for (int i = 0; i < 100 && spoke_future_result(future) == NULL; i++)
		assert_int_equal(spoke_engine_turn(rig.client.engine, false), SPOKE_OK);
	assert_non_null(spoke_future_result(future));
	assert_int_equal(spoke_future_result(future)->error, SPOKE_ECLOSED);
	assert_int_equal(spoke_stat_get(rig.client.engine, SPOKE_STAT_CALLS_REFUSED), 2);
	spoke_future_free(future);
	futurerig_tear_down(&rig);
}

/* Without a connection the consumer is freed before the engine handles the new call. */
TEST(future_does_not_touch_freed_consumer)
{
	struct rig rig;
	struct rig_client client;
	struct spoke_future *future;
	char url[128];
	int error;

	futurerig_set_up(&rig, RIG_UNIX);
	(void)snprintf(url, sizeof(url), "unix:%s/none?interface=demo.Future", rig.folder);
	futurerig_client_init(&rig, &client, url);
	do {
		assert_int_equal(spoke_engine_turn(client.engine, false), SPOKE_OK);
		error = spoke_call(client.echo, futurerig_text(""), NULL, NULL, NULL, NULL);
	} while (error == SPOKE_OK);
	assert_int_equal(error, SPOKE_EUNAVAILABLE);
	/* All accepted calls have ended. */
	for (int i = 0; i < 10; i++)
		assert_int_equal(spoke_engine_turn(client.engine, false), SPOKE_OK);
	future = futurerig_start(client.echo, "");
	spoke_consumer_free(client.consumer);
	assert_int_equal(spoke_engine_turn(client.engine, false), SPOKE_OK);
	assert_non_null(spoke_future_result(future));
	assert_int_equal(spoke_future_result(future)->error, SPOKE_ECLOSED);
	spoke_future_free(future);
	spoke_engine_free(client.engine);
	futurerig_tear_down(&rig);
}

TEST(future_cancelled_before_begin_is_never_sent)
{
	struct rig rig;
	struct spoke_future *future;

	futurerig_set_up(&rig, RIG_TCP);
	future = futurerig_start(rig.client.echo, "");
	spoke_future_cancel(future);
	assert_int_equal(spoke_engine_turn(rig.client.engine, false), SPOKE_OK);
	assert_non_null(spoke_future_result(future));
	assert_int_equal(spoke_future_result(future)->error, SPOKE_ECANCELED);
	assert_int_equal(spoke_stat_get(rig.client.engine, SPOKE_STAT_CALLS), 0);
	spoke_future_free(future);
	futurerig_tear_down(&rig);
}

struct drain {
	struct spoke_post post;
	struct spoke_engine *engine;
	int error;
};

static void drain_arrived(struct spoke_post *post)
{
	struct drain *drain = spoke_container_of(post, struct drain, post);

	drain->error = spoke_engine_drain(drain->engine, UINT64_MAX);
}

TEST(drained_engine_ends_futures_and_takes_no_new_ones)
{
	struct rig rig;
	struct spoke_future *begun;
	struct spoke_future *late;
	struct rig_client other;
	struct drain drain = { .post = { .run = drain_arrived } };

	futurerig_set_up(&rig, RIG_TCP);
	futurerig_client_init(&rig, &other, NULL);
	assert_int_equal(spoke_engine_start(rig.client.engine), SPOKE_OK);
	assert_int_equal(spoke_engine_start(other.engine), SPOKE_OK);
	assert_int_equal(spoke_call_wait(other.echo, futurerig_text(""), &rig_patient, NULL),
			 SPOKE_OK);
	begun = futurerig_start(other.hold, "");
	assert_int_equal(spoke_call_wait(other.echo, futurerig_text(""), &rig_patient, NULL),
			 SPOKE_OK);
	drain.engine = other.engine;
	spoke_engine_post(other.engine, &drain.post);
	late = futurerig_start(other.echo, "");
	futurerig_release(&rig);
	assert_int_equal(spoke_future_wait(begun), SPOKE_OK);
	assert_int_equal(spoke_future_result(begun)->error, SPOKE_OK);
	assert_int_equal(spoke_engine_join(other.engine), SPOKE_OK);
	spoke_engine_free(other.engine);
	assert_int_equal(spoke_future_wait(late), SPOKE_OK);
	assert_true(spoke_future_result(late)->error == SPOKE_ECLOSED ||
		    spoke_future_result(late)->error == SPOKE_OK);
	assert_int_equal(drain.error, SPOKE_OK);
	spoke_future_free(begun);
	spoke_future_free(late);
	futurerig_tear_down(&rig);
}

/* --- the engine's own thread, and a child */

struct inside {
	struct rig_told told;
	struct rig *rig;
	struct spoke_future *held;
	int errors[4];
	uint64_t calls;              /* calls begun where waiting is not allowed */
	struct spoke_future *future; /* begun on the engine's thread */
};

static void wait_inside(void *arg, const struct spoke_result *result)
{
	struct inside *inside = arg;
	struct spoke_future *none;

	inside->calls = spoke_stat_get(inside->rig->client.engine, SPOKE_STAT_CALLS);
	inside->errors[0] = spoke_future_wait(inside->held);
	inside->errors[1] = spoke_future_wait_all(&inside->held, 1);
	inside->errors[2] = spoke_call_wait(inside->rig->client.echo, futurerig_text(""), NULL,
					    &none);
	inside->calls = spoke_stat_get(inside->rig->client.engine, SPOKE_STAT_CALLS) -
			inside->calls;
	inside->errors[3] = spoke_future_start(inside->rig->client.echo, futurerig_text("inside"),
					       &rig_patient, &inside->future);
	futurerig_told_done(&inside->told, result);
}

TEST(engine_thread_may_start_but_not_wait)
{
	struct rig rig;
	struct inside inside = { .rig = &rig };
	struct spoke_future *future;

	futurerig_set_up(&rig, RIG_TCP);
	assert_int_equal(spoke_engine_start(rig.client.engine), SPOKE_OK);
	futurerig_told_init(&inside.told);
	inside.held = futurerig_start(rig.client.hold, "");
	future = futurerig_start(rig.client.echo, "");
	assert_int_equal(spoke_future_then(future, wait_inside, &inside), SPOKE_OK);
	futurerig_told_wait(&inside.told);
	assert_int_equal(inside.errors[0], SPOKE_ETHREAD);
	assert_int_equal(inside.errors[1], SPOKE_ETHREAD);
	assert_int_equal(inside.errors[2], SPOKE_ETHREAD);
	assert_int_equal(inside.calls, 0);
	assert_int_equal(inside.errors[3], SPOKE_OK);
	assert_int_equal(spoke_future_wait(inside.future), SPOKE_OK);
	assert_true(futurerig_is_text(spoke_future_result(inside.future), "inside"));
	futurerig_release(&rig);
	assert_int_equal(spoke_future_wait(inside.held), SPOKE_OK);
	spoke_future_free(inside.held);
	spoke_future_free(inside.future);
	spoke_future_free(future);
	futurerig_tear_down(&rig);
}

TEST(futures_are_unusable_in_forked_child)
{
	struct rig rig;
	struct spoke_future *future;
	struct spoke_future *none;

	futurerig_set_up(&rig, RIG_TCP);
	future = futurerig_start(rig.client.echo, "");
	rig.forks++;
	assert_int_equal(spoke_future_wait(future), SPOKE_EFORKED);
	assert_int_equal(spoke_future_then(future, futurerig_told_done, NULL), SPOKE_EFORKED);
	assert_int_equal(spoke_future_start(rig.client.echo, futurerig_text(""), NULL, &none),
			 SPOKE_EFORKED);
	spoke_future_cancel(future);
	assert_null(spoke_future_result(future));
	rig.forks--;
	assert_int_equal(spoke_engine_start(rig.client.engine), SPOKE_OK);
	assert_int_equal(spoke_future_wait(future), SPOKE_OK);
	assert_int_equal(spoke_future_result(future)->error, SPOKE_OK);
	spoke_future_free(future);
	futurerig_tear_down(&rig);
}

/* --- the engine turns until the call is over, and perhaps never again */

static struct {
	struct spoke_engine *engine;
	struct spoke_future *future;
	unsigned more; /* turns after the end of the call */
	bool for_ever; /* a thread waited without a deadline */
} turner;

/* Waits without a wake-up while the engine turns. */
static int park_and_turn(void *parker, uint64_t deadline_ns)
{
	const struct spoke_threads *threads = spoke_host_env()->threads;

	if (deadline_ns == UINT64_MAX) {
		turner.for_ever = threads->park(parker, 0) != 0;
		return 0;
	}
	while (spoke_future_result(turner.future) == NULL)
		assert_int_equal(spoke_engine_turn(turner.engine, true), SPOKE_OK);
	for (unsigned i = 0; i < turner.more; i++)
		assert_int_equal(spoke_engine_turn(turner.engine, false), SPOKE_OK);
	return -ETIMEDOUT;
}

static void wait_and_turn(unsigned more)
{
	struct spoke_threads threads = *spoke_host_env()->threads;
	struct rig rig;
	struct rig_client client;

	futurerig_set_up(&rig, RIG_TCP);
	threads.park = park_and_turn;
	rig.client_env.threads = &threads;
	futurerig_client_init(&rig, &client, NULL);
	turner.engine = client.engine;
	turner.future = futurerig_start(client.echo, "x");
	turner.more = more;
	turner.for_ever = false;
	assert_int_equal(spoke_future_wait(turner.future), SPOKE_OK);
	assert_false(turner.for_ever);
	assert_true(futurerig_is_text(spoke_future_result(turner.future), "x"));
	spoke_future_free(turner.future);
	spoke_engine_free(client.engine);
	rig.client_env.threads = spoke_host_env()->threads;
	futurerig_tear_down(&rig);
}

TEST(wait_ends_in_time)
{
	wait_and_turn(0);
}

TEST(waiter_called_at_last_moment_is_woken)
{
	wait_and_turn(2);
}

/* --- failed allocations */

TEST(start_without_memory_fails_without_leak)
{
	struct rig rig;
	struct spoke_future *future = NULL;
	int error = SPOKE_ENOMEM;
	int nth = 0;

	futurerig_set_up(&rig, RIG_TCP);
	while (error == SPOKE_ENOMEM) {
		futurerig_fail_memory(++nth);
		error = spoke_future_start(rig.client.echo, futurerig_text("x"), &rig_patient,
					   &future);
	}
	futurerig_fail_memory(0);
	assert_int_equal(error, SPOKE_OK);
	assert_int_equal(nth, 3); /* the desk and the future */
	futurerig_fail_memory(1);
	assert_int_equal(spoke_future_wait(future), SPOKE_ENOMEM);
	futurerig_fail_memory(0);
	assert_int_equal(spoke_engine_start(rig.client.engine), SPOKE_OK);
	assert_int_equal(spoke_future_wait(future), SPOKE_OK);
	assert_true(futurerig_is_text(spoke_future_result(future), "x"));
	spoke_future_free(future);
	futurerig_tear_down(&rig);
}

/* Makes a call that ends with an error while the n-th allocation fails. Returns false if no call
 * was accepted, because the connection is not re-established yet. */
static bool try_without_memory(struct rig *rig, int nth, bool *ret_failed, bool *ret_no_copy)
{
	struct spoke_future *future = futurerig_start(rig->client.fail, "");
	const struct spoke_result *result;
	bool taken;

	futurerig_fail_memory(nth);
	while (spoke_future_result(future) == NULL)
		assert_int_equal(spoke_engine_turn(rig->client.engine, true), SPOKE_OK);
	*ret_failed = futurerig_fail_memory(0) == 0;
	result = spoke_future_result(future);
	taken = result->error != SPOKE_EUNAVAILABLE;
	if (result->error == SPOKE_ENOMEM && result->written) {
		assert_int_equal(result->error_text.len, 0);
		*ret_no_copy = true;
	}
	spoke_future_free(future);
	if (!taken)
		assert_int_equal(spoke_engine_turn(rig->client.engine, true), SPOKE_OK);
	return taken || *ret_failed;
}

TEST(result_without_memory_becomes_enomem)
{
	struct rig rig;
	bool failed;
	bool no_copy = false;
	int nth = 1;

	futurerig_set_up(&rig, RIG_TCP);
	while (!no_copy) {
		if (try_without_memory(&rig, nth, &failed, &no_copy))
			nth = failed ? nth + 1 : 1;
		assert_true(nth < 100);
	}
	futurerig_tear_down(&rig);
}
