/* SPDX-License-Identifier: Apache-2.0 */
/* Futures used by one thread, with the engine on its own thread. */
#include "futurerig.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <stdio.h>

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
