/* SPDX-License-Identifier: Apache-2.0 */
/* Futures: of one thread and of many, their weak handle, and their ends. */
#include "core/engine/weak.h"
#include "futurerig.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <errno.h>
#include <stdio.h>

/* --- futures used by one thread, with the engine on its own thread */

static struct rig *begin(void **state, enum rig_place place)
{
	static struct rig rig;

	(void)state;
	futurerig_set_up(&rig, place);
	assert_int_equal(spoke_engine_start(rig.client.engine), SPOKE_OK);
	return &rig;
}

/* --- results */

TEST(blocking_call_returns_result)
{
	struct rig *rig = begin(state, RIG_TCP);
	struct spoke_future *future;

	assert_int_equal(spoke_call_wait(rig->client.echo, futurerig_text("one"), &rig_patient,
					 &future),
			 SPOKE_OK);
	assert_true(futurerig_is_text(spoke_future_result(future), "one"));
	assert_true(spoke_future_result(future)->written);
	spoke_future_free(future);
	assert_int_equal(spoke_call_wait(rig->client.echo, futurerig_text("two"), NULL, NULL),
			 SPOKE_OK);
	futurerig_tear_down(rig);
}

TEST(future_keeps_text_and_code_of_error)
{
	struct rig *rig = begin(state, RIG_UNIX);
	struct spoke_future *future;
	const struct spoke_result *result;

	assert_int_equal(spoke_call_wait(rig->client.fail, futurerig_text(""), &rig_patient,
					 &future),
			 SPOKE_EREMOTE);
	result = spoke_future_result(future);
	assert_int_equal(result->error, SPOKE_EREMOTE);
	assert_int_equal(result->error_code, 7);
	assert_int_equal(result->error_text.len, strlen("it failed"));
	assert_memory_equal(result->error_text.data, "it failed", strlen("it failed"));
	spoke_future_free(future);
	futurerig_tear_down(rig);
}

TEST(attachments_are_copied_both_ways)
{
	struct rig *rig = begin(state, RIG_TCP);
	struct spoke_call_options options = rig_patient;
	struct spoke_builder builder;
	unsigned char memory[64];
	unsigned char text[] = { 0xa1, 'a' };
	struct spoke_span args = { text, sizeof(text) };
	struct spoke_future *future;
	struct spoke_value found;
	struct spoke_span span;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_map(&builder, 1);
	spoke_pack_text(&builder, "color");
	spoke_pack_text(&builder, "red");
	assert_int_equal(spoke_builder_finish_value(&builder, &options.attachments), SPOKE_OK);
	assert_int_equal(spoke_future_start(rig->client.echo, args, &options, &future), SPOKE_OK);
	memset(memory, 0xff, sizeof(memory));
	memset(text, 0xff, sizeof(text));
	assert_int_equal(spoke_future_wait(future), SPOKE_OK);
	assert_true(futurerig_is_text(spoke_future_result(future), "a"));
	/* The next frame overwrites the input buffer. */
	assert_int_equal(spoke_call_wait(rig->client.echo,
					 futurerig_text(
						 "something that is longer than the frame before"),
					 &rig_patient, NULL),
			 SPOKE_OK);
	assert_int_equal(spoke_value_get(spoke_future_result(future)->attachments, "color", &found),
			 SPOKE_OK);
	assert_int_equal(spoke_value_str(found, &span), SPOKE_OK);
	assert_memory_equal(span.data, "red", 3);
	spoke_future_free(future);
	futurerig_tear_down(rig);
}

TEST(refusal_of_call_is_the_result_of_future)
{
	struct rig *rig = begin(state, RIG_TCP);
	struct spoke_span broken = { (const unsigned char *)"\x93", 1 };
	struct spoke_call_options too_long = { .timeout_ns = UINT64_MAX };
	struct spoke_future *future;

	assert_int_equal(spoke_call_wait(rig->client.echo, broken, &rig_patient, &future),
			 SPOKE_ETRUNCATED);
	assert_int_equal(spoke_future_result(future)->error, SPOKE_ETRUNCATED);
	assert_false(spoke_future_result(future)->written);
	spoke_future_free(future);
	assert_int_equal(spoke_call_wait(rig->client.echo, futurerig_text(""), &too_long, NULL),
			 SPOKE_ERANGE);
	futurerig_tear_down(rig);
}

TEST(wait_all_waits_for_all_futures)
{
	struct rig *rig = begin(state, RIG_UNIX);
	struct spoke_future *futures[100];

	for (int i = 0; i < 100; i++) {
		char text[16];

		(void)snprintf(text, sizeof(text), "%d", i);
		futures[i] = futurerig_start(i % 2 ? rig->client.pool : rig->client.echo, text);
	}
	assert_int_equal(spoke_future_wait_all(futures, 100), SPOKE_OK);
	for (int i = 0; i < 100; i++) {
		char text[16];

		(void)snprintf(text, sizeof(text), "%d", i);
		assert_true(futurerig_is_text(spoke_future_result(futures[i]), text));
		spoke_future_free(futures[i]);
	}
	futurerig_tear_down(rig);
}

TEST(future_has_no_result_before_the_end)
{
	struct rig *rig = begin(state, RIG_TCP);
	struct spoke_future *future = futurerig_start(rig->client.hold, "");

	assert_null(spoke_future_result(future));
	futurerig_release(rig);
	assert_int_equal(spoke_future_wait(future), SPOKE_OK);
	assert_non_null(spoke_future_result(future));
	assert_int_equal(spoke_value_type(spoke_future_result(future)->value), SPOKE_VALUE_NIL);
	spoke_future_free(future);
	spoke_future_free(NULL);
	futurerig_tear_down(rig);
}

TEST(one_way_call_ends_when_written)
{
	struct rig *rig = begin(state, RIG_TCP);
	struct spoke_call_options options = { .timeout_ns = RIG_TIMEOUT_NS, .one_way = true };

	assert_int_equal(spoke_call_wait(rig->client.echo, futurerig_text(""), &options, NULL),
			 SPOKE_OK);
	futurerig_tear_down(rig);
}

/* --- then */

TEST(then_may_be_set_before_and_after_the_end)
{
	struct rig *rig = begin(state, RIG_TCP);
	struct spoke_future *future = futurerig_start(rig->client.hold, "");
	struct rig_told before;
	struct rig_told after;

	futurerig_told_init(&before);
	futurerig_told_init(&after);
	assert_int_equal(spoke_future_then(future, futurerig_told_done, &before), SPOKE_OK);
	assert_int_equal(spoke_future_then(future, futurerig_told_done, &after), SPOKE_ESTATE);
	futurerig_release(rig);
	futurerig_told_wait(&before);
	assert_int_equal(before.error, SPOKE_OK);
	assert_true(before.thread != futurerig_self());
	assert_int_equal(spoke_future_wait(future), SPOKE_OK);
	spoke_future_free(future);

	future = futurerig_start(rig->client.echo, "");
	assert_int_equal(spoke_future_wait(future), SPOKE_OK);
	assert_int_equal(spoke_future_then(future, futurerig_told_done, &after), SPOKE_OK);
	assert_int_equal(spoke_future_then(future, futurerig_told_done, &before), SPOKE_ESTATE);
	spoke_future_free(future);
	futurerig_told_wait(&after);
	assert_true(after.thread == before.thread);
	futurerig_tear_down(rig);
	assert_int_equal(before.count, 1);
	assert_int_equal(after.count, 1);
}

struct self_freeing {
	struct rig_told told;
	struct spoke_future *future;
};

static void free_in_callback(void *arg, const struct spoke_result *result)
{
	struct self_freeing *one = arg;

	spoke_future_free(one->future);
	futurerig_told_done(&one->told, result);
}

TEST(callback_may_free_its_future)
{
	struct rig *rig = begin(state, RIG_TCP);
	struct self_freeing one;

	futurerig_told_init(&one.told);
	one.future = futurerig_start(rig->client.hold, "");
	assert_int_equal(spoke_future_then(one.future, free_in_callback, &one), SPOKE_OK);
	futurerig_release(rig);
	futurerig_told_wait(&one.told);
	assert_int_equal(one.told.error, SPOKE_OK);
	futurerig_tear_down(rig);
}

/* --- cancel and free */

TEST(cancelled_future_ends_with_ecanceled)
{
	struct rig *rig = begin(state, RIG_TCP);
	struct spoke_future *future = futurerig_start(rig->client.hold, "");

	spoke_future_cancel(future);
	spoke_future_cancel(future);
	assert_int_equal(spoke_future_wait(future), SPOKE_OK);
	assert_int_equal(spoke_future_result(future)->error, SPOKE_ECANCELED);
	spoke_future_cancel(future);
	spoke_future_free(future);
	futurerig_tear_down(rig);
}

TEST(future_freed_in_flight_is_cancelled)
{
	struct rig *rig = begin(state, RIG_TCP);
	struct spoke_future *future = futurerig_start(rig->client.hold, "");
	struct rig_told told;

	futurerig_told_init(&told);
	assert_int_equal(spoke_future_then(future, futurerig_told_done, &told), SPOKE_OK);
	spoke_future_free(future);
	futurerig_told_wait(&told);
	assert_int_equal(told.error, SPOKE_ECANCELED);
	spoke_future_free(futurerig_start(rig->client.hold, ""));
	futurerig_tear_down(rig);
}

/* --- deadlines */

TEST(deadline_ends_future)
{
	struct rig *rig = begin(state, RIG_TCP);
	struct spoke_call_options options = { .timeout_ns = 20 * MS };
	struct spoke_future *future;

	/* Make sure that the connection is open. */
	assert_int_equal(spoke_call_wait(rig->client.echo, futurerig_text(""), &rig_patient, NULL),
			 SPOKE_OK);
	assert_int_equal(spoke_call_wait(rig->client.hold, futurerig_text(""), &options, &future),
			 SPOKE_ETIMEOUT);
	assert_true(spoke_future_result(future)->queued_ns +
			    spoke_future_result(future)->waited_ns >=
		    20 * MS);
	spoke_future_free(future);
	futurerig_tear_down(rig);
}

/* Spins until the time has passed. */
static void spin(uint64_t ns)
{
	const struct spoke_env *env = spoke_host_env();
	uint64_t end_ns = env->now(env->ctx) + ns;

	while (env->now(env->ctx) < end_ns)
		;
}

TEST(queued_time_includes_way_to_engine)
{
	struct rig rig;
	struct spoke_call_options options = { .timeout_ns = 2 * MS };
	struct spoke_future *future;

	futurerig_set_up(&rig, RIG_TCP);
	assert_int_equal(spoke_future_start(rig.client.echo, futurerig_text(""), &options, &future),
			 SPOKE_OK);
	spin(2 * MS);
	assert_int_equal(spoke_engine_start(rig.client.engine), SPOKE_OK);
	assert_int_equal(spoke_future_wait(future), SPOKE_OK);
	assert_int_equal(spoke_future_result(future)->error, SPOKE_ETIMEOUT_UNSENT);
	assert_false(spoke_future_result(future)->written);
	assert_true(spoke_future_result(future)->queued_ns >= 2 * MS);
	spoke_future_free(future);

	assert_int_equal(spoke_call_wait(rig.client.echo, futurerig_text(""), &rig_patient,
					 &future),
			 SPOKE_OK);
	spoke_future_free(future);
	futurerig_tear_down(&rig);
}

/* The client's clock: the real one plus an offset. */
static uint64_t added_ns;

static uint64_t shifted_now(void *ctx)
{
	return spoke_host_env()->now(ctx) + added_ns;
}

static void turn_until(struct rig *rig, const struct spoke_future *future, int turns)
{
	while (turns-- > 0 && spoke_future_result(future) == NULL)
		assert_int_equal(spoke_engine_turn(rig->client.engine, false), SPOKE_OK);
}

TEST(call_gets_time_left_on_arrival)
{
	struct rig rig;
	struct spoke_call_options options = { .timeout_ns = 10000 * MS };
	struct spoke_future *future;

	added_ns = 0;
	futurerig_set_up(&rig, RIG_UNIX);
	rig.client_env.now = shifted_now;
	while (spoke_consumer_ready(rig.client.consumer) == 0)
		assert_int_equal(spoke_engine_turn(rig.client.engine, false), SPOKE_OK);
	assert_int_equal(spoke_future_start(rig.client.hold, futurerig_text(""), &options, &future),
			 SPOKE_OK);
	added_ns += 6000 * MS;
	turn_until(&rig, future, 10);
	assert_null(spoke_future_result(future));
	added_ns += 5000 * MS;
	turn_until(&rig, future, 100);
	assert_non_null(spoke_future_result(future));
	assert_int_equal(spoke_future_result(future)->error, SPOKE_ETIMEOUT);
	assert_true(spoke_future_result(future)->queued_ns >= 6000 * MS);
	spoke_future_free(future);
	futurerig_tear_down(&rig);
}

TEST(wait_ends_if_engine_does_not_run)
{
	struct rig rig;
	struct spoke_call_options options = { .timeout_ns = MS };
	struct spoke_future *futures[2];
	struct spoke_future *none;

	futurerig_set_up(&rig, RIG_TCP);
	for (int i = 0; i < 2; i++)
		assert_int_equal(spoke_future_start(rig.client.echo, futurerig_text(""), &options,
						    &futures[i]),
				 SPOKE_OK);
	assert_int_equal(spoke_future_wait_all(futures, 2), SPOKE_ESTATE);
	assert_int_equal(spoke_future_wait(futures[0]), SPOKE_ESTATE);
	assert_null(spoke_future_result(futures[0]));
	assert_int_equal(spoke_call_wait(rig.client.echo, futurerig_text(""), &options, &none),
			 SPOKE_ESTATE);
	assert_null(none);
	spoke_future_free(futures[0]);

	/* The engine turns after all. */
	assert_int_equal(spoke_engine_turn(rig.client.engine, false), SPOKE_OK);
	assert_int_equal(spoke_future_wait(futures[1]), SPOKE_OK);
	assert_int_equal(spoke_future_result(futures[1])->error, SPOKE_ETIMEOUT_UNSENT);
	spoke_future_free(futures[1]);
	futurerig_tear_down(&rig);
}

/* --- without a provider */

TEST(absent_provider_is_unavailable)
{
	struct rig *rig = begin(state, RIG_UNIX);
	struct rig_client client;
	char url[512];
	int error;

	(void)snprintf(url, sizeof(url), "unix:%s/none?interface=demo.Future", rig->folder);
	futurerig_client_init(rig, &client, url);
	assert_int_equal(spoke_engine_start(client.engine), SPOKE_OK);
	/* A call accepted during a connect attempt fails with that attempt. */
	do {
		struct spoke_future *future;

		error = spoke_call_wait(client.echo, futurerig_text(""), &rig_patient, &future);
		assert_int_not_equal(error, SPOKE_OK);
		assert_false(spoke_future_result(future)->written);
		spoke_future_free(future);
	} while (error == SPOKE_ECONNECT);
	assert_int_equal(error, SPOKE_EUNAVAILABLE);
	spoke_engine_free(client.engine);
	futurerig_tear_down(rig);
}

/* --- the weak handle: the queue through which futures of other threads reach their consumer */

struct stand {
	struct spoke_env env;
	unsigned forks;
	struct spoke_engine *engine;
	_Atomic(struct spokei_weak *) place;
	struct spokei_weak *weak;
};

static void set_up(struct stand *stand)
{
	struct spoke_engine_options options = { .env = &stand->env };

	*stand = (struct stand){ .env = *spoke_host_env() };
	stand->env.forks = &stand->forks;
	assert_int_equal(spoke_engine_new(&options, &stand->engine), SPOKE_OK);
	stand->weak = spokei_weak_get(&stand->place, stand->engine);
	assert_non_null(stand->weak);
}

static void tear_down(struct stand *stand)
{
	spokei_weak_drop(stand->weak);
	spokei_weak_drop(atomic_load(&stand->place));
	spoke_engine_free(stand->engine);
}

TEST(all_futures_share_one_desk)
{
	struct stand stand;
	struct spokei_weak *again;

	set_up(&stand);
	again = spokei_weak_get(&stand.place, stand.engine);
	assert_ptr_equal(again, stand.weak);
	spokei_weak_drop(again);
	spokei_weak_drop(NULL);
	tear_down(&stand);
}

TEST(desk_closes_after_last_thread_has_left)
{
	struct stand stand;

	set_up(&stand);
	assert_true(spokei_weak_enter(stand.weak));
	assert_true(spokei_weak_enter(stand.weak));
	assert_false(spokei_weak_close(stand.weak));
	assert_true(spokei_weak_closed(stand.weak));
	assert_false(spokei_weak_enter(stand.weak));
	spokei_weak_leave(stand.weak);
	assert_false(spokei_weak_close(stand.weak));
	spokei_weak_leave(stand.weak);
	assert_true(spokei_weak_close(stand.weak));
	assert_false(spokei_weak_enter(stand.weak));
	assert_true(spokei_weak_close(NULL));
	tear_down(&stand);
}

TEST(closing_thread_counts_as_engine_thread)
{
	struct stand stand;

	set_up(&stand);
	assert_false(spokei_weak_here(stand.weak));
	assert_true(spokei_weak_close(stand.weak));
	assert_true(spokei_weak_here(stand.weak));
	tear_down(&stand);
}

TEST(desk_of_forked_child_waits_for_no_thread)
{
	struct stand stand;

	set_up(&stand);
	assert_true(spokei_weak_enter(stand.weak));
	assert_false(spokei_weak_forked(stand.weak));
	stand.forks++;
	assert_true(spokei_weak_forked(stand.weak));
	assert_true(spokei_weak_close(stand.weak));
	tear_down(&stand);
}

/* --- futures used by many threads */

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

/* --- futures whose engine or consumer is freed, and futures during failed allocations */

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
	assert_int_equal(nth, 3); /* the weak handle and the future */
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
