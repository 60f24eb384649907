/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of several attempts whose callers wait for them: failover, and those that fan out. */
#include "tests/cluster/clusterrig.h"

#define rig clusterrig

static unsigned runs_of_all(void)
{
	return rig.runs;
}

static void a_call_goes_to_another_provider_when_one_refuses(void **state)
{
	struct spoke_method *echo;

	(void)state;
	clusterrig_provide(3);
	rig.providers[0].manner = RIG_REFUSE;
	rig.providers[1].manner = RIG_REFUSE;
	clusterrig_consume("", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 12; i++) {
		struct rig_call *call = clusterrig_call(echo);

		clusterrig_end(call);
		assert_int_equal(call->error, SPOKE_OK);
	}
	assert_int_equal(rig.providers[2].runs, 12);
	assert_int_equal(runs_of_all(), 12);
	assert_true(clusterrig_stat(SPOKE_STAT_RETRIES) > 0);
}

static void each_provider_is_asked_once_and_the_last_error_is_told(void **state)
{
	struct rig_call *call;

	(void)state;
	clusterrig_provide(5);
	for (unsigned i = 0; i < 5; i++)
		rig.providers[i].manner = RIG_REFUSE;
	clusterrig_consume("retries=4", NULL);
	call = clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_EREFUSED);
	assert_int_equal(call->attempts, 5);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_RETRIES), 4);
	call = clusterrig_call(
		clusterrig_method("echo", &(struct spoke_method_options){ .retries = 1 }));
	clusterrig_end(call);
	assert_int_equal(call->attempts, 2);
	call = clusterrig_call(
		clusterrig_method("echo", &(struct spoke_method_options){ .retries = SPOKE_NONE }));
	clusterrig_end(call);
	assert_int_equal(call->attempts, 1);
}

static void the_error_of_a_handler_is_an_answer(void **state)
{
	struct rig_call *call;

	(void)state;
	clusterrig_provide(2);
	rig.providers[0].manner = RIG_ERROR;
	rig.providers[1].manner = RIG_ERROR;
	clusterrig_consume("", NULL);
	call = clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_EREMOTE);
	assert_int_equal(call->attempts, 1);
	assert_int_equal(runs_of_all(), 1);
}

static void what_may_have_run_is_repeated_only_if_it_may_be(void **state)
{
	struct spoke_call_options options = { .timeout_ns = 50 * MS };
	struct rig_call *call;

	(void)state;
	clusterrig_provide(2);
	rig.providers[0].manner = RIG_SILENT;
	rig.providers[1].manner = RIG_SILENT;
	clusterrig_consume("", NULL);
	call = clusterrig_call_with(clusterrig_method("echo", NULL), &options);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ETIMEOUT);
	assert_int_equal(call->attempts, 1);
	assert_int_equal(runs_of_all(), 1);
	call = clusterrig_call_with(
		clusterrig_method("echo", &(struct spoke_method_options){ .idempotent = true }),
		&options);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ETIMEOUT);
	assert_int_equal(call->attempts, 2);
	assert_int_equal(runs_of_all(), 3);
}

static void a_killed_provider_loses_no_call_that_was_not_written(void **state)
{
	struct spoke_method *echo;
	unsigned lost = 0;

	(void)state;
	clusterrig_provide(3);
	clusterrig_consume("", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 300; i++) {
		(void)clusterrig_call(echo);
		clusterrig_pass(MS);
		if (i == 100)
			clusterrig_kill(1);
	}
	clusterrig_pass(2 * SECOND);
	assert_int_equal(rig.ended, 300);
	for (unsigned i = 0; i < 300; i++) {
		lost += rig.calls[i].error != SPOKE_OK;
		if (rig.calls[i].error)
			assert_true(rig.calls[i].written);
	}
	assert_true(lost <= 1);
}

static void the_budget_ends_a_storm(void **state)
{
	struct spoke_method *echo;
	uint64_t retries;

	(void)state;
	clusterrig_provide(2);
	rig.providers[0].manner = RIG_REFUSE;
	rig.providers[1].manner = RIG_REFUSE;
	clusterrig_consume("eject.failures=0", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 1000; i++) {
		(void)clusterrig_call(echo);
		clusterrig_pass(MS);
	}
	clusterrig_pass(SECOND);
	retries = clusterrig_stat(SPOKE_STAT_RETRIES);
	assert_in_range(retries, 250, 300);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_RETRIES_UNFUNDED), 1000 - retries);
}

static void without_a_provider_it_is_refused_at_once(void **state)
{
	struct spoke_method *echo;

	(void)state;
	rig.provider_count = 2;
	clusterrig_consume("", NULL);
	clusterrig_pass(200 * MS);
	echo = clusterrig_method("echo", NULL);
	assert_int_equal(clusterrig_try(echo, NULL), SPOKE_EUNAVAILABLE);
	assert_int_equal(rig.call_count, 0);
}

static void it_waits_for_a_provider_if_it_shall(void **state)
{
	struct spoke_method *echo;
	struct rig_call *call;

	(void)state;
	rig.provider_count = 2;
	clusterrig_consume("wait.ready=true&timeout=3s", NULL);
	clusterrig_pass(200 * MS);
	echo = clusterrig_method("echo", NULL);
	call = clusterrig_call(echo);
	clusterrig_pass(100 * MS);
	assert_int_equal(call->ends, 0);
	clusterrig_start(1);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	assert_int_equal(call->attempts, 1);
}

static void it_waits_until_its_deadline_and_not_longer(void **state)
{
	struct rig_call *call;
	uint64_t begun_ns;

	(void)state;
	rig.provider_count = 2;
	clusterrig_consume("wait.ready=true&timeout=3s", NULL);
	clusterrig_pass(200 * MS);
	begun_ns = rig.world.now_ns;
	call = clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ETIMEOUT_UNSENT);
	assert_false(call->written);
	assert_in_range(rig.world.now_ns - begun_ns, 3 * SECOND, 3 * SECOND + 3 * MS);
}

static void a_call_that_waits_ends_with_its_consumer(void **state)
{
	struct rig_call *call;

	(void)state;
	rig.provider_count = 2;
	clusterrig_consume("wait.ready=true&timeout=3s", NULL);
	clusterrig_pass(200 * MS);
	call = clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_pass(MS);
	clusterrig_free_consumer();
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ECLOSED);
}

static void a_call_that_waits_is_cancelled(void **state)
{
	struct rig_call *call;

	(void)state;
	rig.provider_count = 2;
	clusterrig_consume("wait.ready=true&timeout=3s", NULL);
	clusterrig_pass(200 * MS);
	call = clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_pass(MS);
	assert_true(spoke_call_cancel(rig.consumer, call->name));
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ECANCELED);
	assert_false(spoke_call_cancel(rig.consumer, call->name));
}

/* --- others */

static void forking_takes_the_first_answer(void **state)
{
	struct rig_call *call;

	(void)state;
	clusterrig_provide(3);
	rig.providers[0].manner = RIG_SILENT;
	rig.providers[1].manner = RIG_SILENT;
	clusterrig_consume("cluster=forking&forks=3", NULL);
	call = clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_pass(50 * MS);
	assert_int_equal(call->ends, 1);
	assert_int_equal(call->error, SPOKE_OK);
	assert_int_equal(call->attempts, 3);
	assert_int_equal(runs_of_all(), 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rig.providers[i].runs, 1);
}

static void forking_fails_when_all_do(void **state)
{
	struct rig_call *call;

	(void)state;
	clusterrig_provide(3);
	for (unsigned i = 0; i < 3; i++)
		rig.providers[i].manner = RIG_REFUSE;
	clusterrig_consume("cluster=forking&forks=2", NULL);
	call = clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_EREFUSED);
	assert_int_equal(call->attempts, 2);
}

static void broadcast_asks_all_and_tells_of_the_one_that_failed(void **state)
{
	struct spoke_method *echo;
	struct rig_call *call;

	(void)state;
	clusterrig_provide(5);
	clusterrig_consume("cluster=broadcast", NULL);
	echo = clusterrig_method("echo", NULL);
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	assert_int_equal(call->attempts, 5);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(rig.providers[i].runs, 1);
	rig.providers[3].manner = RIG_ERROR;
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_EREMOTE);
	assert_int_equal(runs_of_all(), 10);
}

static void available_takes_the_first_in_the_list_that_can(void **state)
{
	struct spoke_method *echo;

	(void)state;
	clusterrig_provide(3);
	clusterrig_consume("cluster=available", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 10; i++)
		clusterrig_end(clusterrig_call(echo));
	assert_int_equal(rig.providers[0].runs, 10);
	clusterrig_kill(0);
	clusterrig_pass(10 * MS);
	for (unsigned i = 0; i < 10; i++)
		clusterrig_end(clusterrig_call(echo));
	assert_int_equal(rig.providers[1].runs, 10);
	assert_int_equal(rig.providers[2].runs, 0);
}

static void failsafe_excuses_every_failure(void **state)
{
	struct spoke_method *echo;
	struct rig_call *call;

	(void)state;
	clusterrig_provide(1);
	rig.providers[0].manner = RIG_ERROR;
	clusterrig_consume("cluster=failsafe", NULL);
	echo = clusterrig_method("echo", NULL);
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	clusterrig_kill(0);
	clusterrig_pass(200 * MS);
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
}

static void a_fallback_stands_in_for_failures_but_not_for_answers(void **state)
{
	static const unsigned char seven[] = { 0x07 };
	struct spoke_method *echo;
	struct rig_call *call;

	(void)state;
	clusterrig_provide(2);
	rig.providers[0].manner = RIG_REFUSE;
	rig.providers[1].manner = RIG_REFUSE;
	clusterrig_consume("", NULL);
	echo = clusterrig_method("echo",
				 &(struct spoke_method_options){ .fallback = { seven, 1 } });
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	assert_true(call->fallback);
	clusterrig_kill(0);
	clusterrig_kill(1);
	clusterrig_pass(300 * MS);
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_true(call->fallback);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_CALLS_FALLBACK), 2);
	clusterrig_start(0);
	rig.providers[0].manner = RIG_ERROR;
	clusterrig_pass(2 * SECOND);
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_EREMOTE);
	assert_false(call->fallback);
}

static void a_method_has_so_many_calls_at_a_time(void **state)
{
	struct spoke_method *echo;

	(void)state;
	clusterrig_provide(1);
	rig.providers[0].manner = RIG_SILENT;
	clusterrig_consume("echo.actives=3&echo.timeout=100ms", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 3; i++)
		(void)clusterrig_call(echo);
	assert_int_equal(clusterrig_try(echo, NULL), SPOKE_ELIMIT);
	assert_int_equal(clusterrig_try(clusterrig_method("other", NULL), NULL), 0);
	clusterrig_pass(200 * MS);
	for (unsigned i = 0; i < 3; i++)
		(void)clusterrig_call(echo);
	assert_int_equal(clusterrig_try(echo, NULL), SPOKE_ELIMIT);
}

static void a_method_has_so_many_calls_a_second(void **state)
{
	struct spoke_method *echo;
	unsigned taken = 0;

	(void)state;
	clusterrig_provide(1);
	clusterrig_consume("", NULL);
	echo = clusterrig_method("echo", &(struct spoke_method_options){ .per_second = 100 });
	for (unsigned i = 0; i < 5000; i++) {
		taken += clusterrig_try(echo, NULL) == 0;
		clusterrig_pass(MS);
	}
	assert_in_range(taken, 580, 610);
}

static void what_was_written_is_said_whoever_ends_it(void **state)
{
	struct rig_call *call;

	(void)state;
	clusterrig_provide(2);
	rig.providers[0].manner = RIG_SILENT;
	rig.providers[1].manner = RIG_SILENT;
	clusterrig_consume("", NULL);
	call = clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_pass(10 * MS);
	assert_int_equal(runs_of_all(), 1);
	assert_true(spoke_call_cancel(rig.consumer, call->name));
	clusterrig_pass(MS);
	assert_int_equal(call->error, SPOKE_ECANCELED);
	assert_true(call->written);
}

static struct spoke_verdict finish_first(const struct spoke_history *history)
{
	(void)history;
	return (struct spoke_verdict){ .step = SPOKE_STEP_FINISH };
}

static struct spoke_verdict wait_first(const struct spoke_history *history)
{
	return (struct spoke_verdict){
		.step = history->waited ? SPOKE_STEP_FINISH : SPOKE_STEP_WAIT,
		.wait_ns = 10 * MS,
	};
}

static void a_policy_that_never_sends_brings_no_success(void **state)
{
	static const struct spoke_policy finishes = { .name = "finishes", .next = finish_first };
	static const struct spoke_policy waits = { .name = "waits", .next = wait_first };
	struct spoke_call_options options = { .policy = &finishes };
	struct spoke_method *echo;
	struct rig_call *call;

	(void)state;
	clusterrig_provide(2);
	clusterrig_consume("", NULL);
	echo = clusterrig_method("echo", NULL);
	assert_int_equal(clusterrig_try(echo, &options), SPOKE_EUNAVAILABLE);
	options.policy = &waits;
	call = clusterrig_call_with(echo, &options);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_EUNAVAILABLE);
}

static unsigned before_count;
static unsigned after_count;
static struct spoke_method *inner_method;

static struct spoke_filter_verdict call_inside(void *arg, const struct spoke_filter_call *call)
{
	static const unsigned char two[] = { 0x92, 0x01, 0x02 };

	(void)arg;
	(void)call;
	before_count++;
	if (inner_method) {
		struct spoke_method *method = inner_method;

		inner_method = NULL;
		assert_int_equal(spoke_call(method, (struct spoke_span){ two, 3 }, NULL, NULL, NULL,
					    NULL),
				 0);
	}
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
}

static struct spoke_filter_verdict note_after(void *arg, const struct spoke_filter_call *call)
{
	(void)arg;
	(void)call;
	after_count++;
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
}

static void filters_are_asked_after_every_call_that_they_let_go_on(void **state)
{
	static const struct spoke_filter filter = {
		.name = "inside",
		.before_call = call_inside,
		.after_call = note_after,
	};
	static const struct spoke_filter *const filters[] = { &filter };
	struct spoke_consumer_options options = { .filters = filters, .filter_count = 1 };
	struct rig_call *call;

	(void)state;
	before_count = 0;
	after_count = 0;
	clusterrig_provide(2);
	clusterrig_consume("", &options);
	inner_method = clusterrig_method("echo", NULL);
	call = clusterrig_call(inner_method);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	clusterrig_pass(10 * MS);
	assert_int_equal(before_count, 2);
	assert_int_equal(after_count, 2);
	clusterrig_kill(0);
	clusterrig_kill(1);
	clusterrig_pass(300 * MS);
	assert_int_equal(clusterrig_try(clusterrig_method("echo", NULL), NULL), SPOKE_EUNAVAILABLE);
	assert_int_equal(before_count, 3);
	assert_int_equal(after_count, 3);
}

static void what_waits_is_bounded_by_bytes(void **state)
{
	static unsigned char large[1 << 20];
	struct spoke_method *echo;
	unsigned taken = 0;

	(void)state;
	rig.provider_count = 2;
	clusterrig_consume("wait.ready=true&timeout=10s", NULL);
	clusterrig_pass(200 * MS);
	echo = clusterrig_method("echo", NULL);
	large[0] = 0xc6; /* a bin of so many bytes */
	large[2] = 0x0f;
	large[3] = 0xff;
	large[4] = 0xfb;
	while (taken < 1000 && spoke_call(echo, (struct spoke_span){ large, sizeof(large) }, NULL,
					  NULL, NULL, NULL) == 0)
		taken++;
	assert_in_range(taken, 200, 260);
}

static void free_it(struct rig_call *call)
{
	(void)call;
	if (rig.consumer)
		clusterrig_free_consumer();
}

static void the_consumer_is_freed_as_a_call_ends(void **state)
{
	struct spoke_method *echo;

	(void)state;
	clusterrig_provide(3);
	rig.providers[0].manner = RIG_REFUSE;
	rig.providers[1].manner = RIG_SILENT;
	clusterrig_consume("retries=1", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 20; i++)
		(void)clusterrig_call(echo);
	rig.in_done = free_it;
	clusterrig_pass(SECOND);
	assert_int_equal(rig.ended, 20);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, clusterrig_set_up, clusterrig_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_call_goes_to_another_provider_when_one_refuses),
		TEST(each_provider_is_asked_once_and_the_last_error_is_told),
		TEST(the_error_of_a_handler_is_an_answer),
		TEST(what_may_have_run_is_repeated_only_if_it_may_be),
		TEST(a_killed_provider_loses_no_call_that_was_not_written),
		TEST(the_budget_ends_a_storm),
		TEST(without_a_provider_it_is_refused_at_once),
		TEST(it_waits_for_a_provider_if_it_shall),
		TEST(it_waits_until_its_deadline_and_not_longer),
		TEST(a_call_that_waits_ends_with_its_consumer),
		TEST(a_call_that_waits_is_cancelled),
		TEST(forking_takes_the_first_answer),
		TEST(forking_fails_when_all_do),
		TEST(broadcast_asks_all_and_tells_of_the_one_that_failed),
		TEST(available_takes_the_first_in_the_list_that_can),
		TEST(failsafe_excuses_every_failure),
		TEST(a_fallback_stands_in_for_failures_but_not_for_answers),
		TEST(a_method_has_so_many_calls_at_a_time),
		TEST(a_method_has_so_many_calls_a_second),
		TEST(what_was_written_is_said_whoever_ends_it),
		TEST(a_policy_that_never_sends_brings_no_success),
		TEST(filters_are_asked_after_every_call_that_they_let_go_on),
		TEST(what_waits_is_bounded_by_bytes),
		TEST(the_consumer_is_freed_as_a_call_ends),
	};

	return cmocka_run_group_tests_name("failover", tests, NULL, NULL);
}
