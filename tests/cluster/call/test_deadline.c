/* SPDX-License-Identifier: Apache-2.0 */
/* The deadline of a whole call, with its attempts and its waits, and the share of each attempt. */
#include "cluster/call/method.h"
#include "cluster/config/keys.h"
#include "cluster/config/settings.h"
#include "cluster/consumer/parts.h"
#include "tests/cluster/clusterrig.h"
#include "tests/support/test.h"
#include "transport/conn/link.h"

#define rig clusterrig

FIXTURE(clusterrig_set_up, clusterrig_tear_down);

static uint64_t now(void)
{
	return rig.process.env.now(rig.process.env.ctx);
}

static unsigned runs_of_all(void)
{
	unsigned runs = 0;

	for (unsigned i = 0; i < rig.provider_count; i++)
		runs += rig.providers[i].runs;
	return runs;
}

/* Makes a call to providers that never answer. Asserts that it ends in time. */
static const struct rig_call *time_out(const char *query, const struct spoke_method_options *with)
{
	struct rig_call *call;

	clusterrig_provide(3);
	for (unsigned i = 0; i < 3; i++)
		rig.providers[i].manner = RIG_SILENT;
	clusterrig_consume(query, NULL);
	call = clusterrig_call(clusterrig_method("echo", with));
	clusterrig_pass(998 * MS);
	assert_int_equal(call->ends, 0);
	clusterrig_pass(5 * MS);
	assert_int_equal(call->ends, 1);
	assert_int_equal(call->error, SPOKE_ETIMEOUT);
	return call;
}

static const struct spoke_method_options idempotent = { .idempotent = true };

TEST(timeout_bounds_all_attempts)
{
	assert_int_equal(time_out("timeout=1s", &idempotent)->attempts, 3);
	assert_int_equal(runs_of_all(), 3);
}

TEST(timeout_bounds_attempts_and_backups)
{
	assert_int_equal(time_out("timeout=1s&hedge.after=100ms", &idempotent)->attempts, 3);
}

TEST(request_that_must_not_be_repeated_has_all_the_time)
{
	assert_int_equal(time_out("timeout=1s", NULL)->attempts, 1);
	assert_int_equal(runs_of_all(), 1);
}

TEST(last_attempt_has_the_rest_of_the_time)
{
	assert_int_equal(time_out("timeout=1s&attempt.timeout=700ms", &idempotent)->attempts, 2);
}

/* Dubbo means each attempt there, so none is cut short for the next one. */
TEST(timeout_of_a_provider_url_is_that_of_each_attempt)
{
	struct spokei_key_values values;
	struct spokei_call_settings settings;

	spokei_keys_preset(&values);
	spokei_keys_put(&values, SPOKEI_KEY_TIMEOUT, SECOND, SPOKEI_FROM_PROVIDER, 0);
	spokei_call_settings_fill(&values, &settings);
	assert_int_equal(settings.timeout_ns, SECOND);
	assert_true(settings.attempt_ns == SPOKEI_ATTEMPT_WHOLE);
	assert_false(settings.bounded);
	spokei_keys_put(&values, SPOKEI_KEY_TIMEOUT, SECOND, SPOKEI_FROM_URL, 0);
	spokei_call_settings_fill(&values, &settings);
	assert_int_equal(settings.attempt_ns, 0);
}

TEST(call_leaves_a_frozen_provider_in_time)
{
	struct spoke_method *echo;

	clusterrig_provide(3);
	clusterrig_consume("timeout=1s&eject.failures=0&loadbalance=roundrobin", NULL);
	echo = clusterrig_method("echo", &idempotent);
	spokei_world_hold(&rig.providers[0].process, 60 * SECOND);
	for (unsigned i = 0; i < 30; i++) {
		uint64_t begun_ns = now();
		struct rig_call *call = clusterrig_call(echo);

		clusterrig_end(call);
		assert_int_equal(call->error, SPOKE_OK);
		assert_true(now() - begun_ns < 340 * MS);
	}
	assert_true(clusterrig_stat(SPOKE_STAT_RETRIES) >= 9);
}

/* Nothing would be won by an early end. */
TEST(attempt_goes_on_if_no_other_provider_can_take_it)
{
	struct rig_call *call;

	clusterrig_provide(3);
	clusterrig_consume("timeout=1s&eject.failures=0", NULL);
	call = clusterrig_call(clusterrig_method("echo", &idempotent));
	clusterrig_end(call);
	for (unsigned i = 0; i < 3; i++) {
		if (i == rig.run_list[0].provider)
			spokei_world_hold(&rig.providers[i].process, 800 * MS);
		else
			clusterrig_kill(i);
	}
	clusterrig_pass(10 * MS);
	call = clusterrig_call(clusterrig_method("echo", &idempotent));
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	assert_int_equal(call->attempts, 1);
}

/* 150 calls leave the budget 130 retries. */
TEST(attempts_go_on_if_the_budget_has_no_retry_for_them)
{
	struct spoke_method *echo;

	clusterrig_provide(3);
	clusterrig_consume("timeout=1s&eject.failures=0", NULL);
	echo = clusterrig_method("echo", &idempotent);
	for (unsigned i = 0; i < 3; i++)
		spokei_world_hold(&rig.providers[i].process, 5 * SECOND);
	for (unsigned i = 0; i < 150; i++)
		(void)clusterrig_call(echo);
	clusterrig_pass(500 * MS);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_RETRIES), 130);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_RETRIES_UNFUNDED), 0);
	clusterrig_pass(498 * MS);
	assert_int_equal(rig.ended, 0);
	clusterrig_pass(5 * MS);
	assert_int_equal(rig.ended, 150);
}

/* The call was given up for another attempt, so its time was not over. */
TEST(limit_is_the_result_if_it_refuses_the_next_attempt)
{
	struct rig_call *call;

	clusterrig_provide(2);
	for (unsigned i = 0; i < 2; i++)
		rig.providers[i].manner = RIG_SILENT;
	clusterrig_consume("timeout=1s", NULL);
	call = clusterrig_call(clusterrig_method("echo", &idempotent));
	clusterrig_pass(10 * MS);
	rig.consumer->link->limits.pending_max = 0;
	clusterrig_pass(600 * MS);
	assert_int_equal(call->ends, 1);
	assert_int_equal(call->error, SPOKE_ELIMIT);
}

TEST(attempt_has_ten_ms_at_least)
{
	struct rig_call *call;

	clusterrig_provide(3);
	for (unsigned i = 0; i < 3; i++)
		rig.providers[i].manner = RIG_SILENT;
	clusterrig_consume("timeout=20ms", NULL);
	call = clusterrig_call(clusterrig_method("echo", &idempotent));
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ETIMEOUT);
	assert_int_equal(call->attempts, 2);
}

TEST(attempt_timeout_ends_the_only_attempt)
{
	uint64_t begun_ns;
	struct rig_call *call;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_SILENT;
	clusterrig_consume("timeout=1s&echo.attempt.timeout=100ms", NULL);
	begun_ns = now();
	call = clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ETIMEOUT);
	assert_in_range(now() - begun_ns, 100 * MS, 103 * MS);
}

TEST(attempt_timeout_is_a_setting_of_code_too)
{
	const struct spoke_method_options with = { .idempotent = true,
						   .attempt_timeout_ns = 100 * MS };
	const struct spoke_method_options wrong = { .attempt_timeout_ns = 1 };
	struct spoke_method *method;
	uint64_t begun_ns;

	clusterrig_provide(2);
	rig.providers[0].manner = RIG_SILENT;
	rig.providers[1].manner = RIG_SILENT;
	clusterrig_consume("", NULL);
	begun_ns = now();
	clusterrig_end(clusterrig_call(clusterrig_method("echo", &with)));
	assert_in_range(now() - begun_ns, 200 * MS, 205 * MS);
	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", &wrong, &method),
			 SPOKE_ERANGE);
}

TEST(ticket_comes_within_the_timeout)
{
	struct spoke_method *echo;
	uint64_t begun_ns;

	clusterrig_provide(1);
	echo = clusterrig_failback("timeout=500ms&retry.period=2s&retries=1&eject.failures=0");
	rig.providers[0].manner = RIG_SILENT;
	begun_ns = now();
	(void)clusterrig_deferred(echo);
	assert_in_range(now() - begun_ns, 500 * MS, 503 * MS);
	clusterrig_pass(2500 * MS);
	assert_int_equal(rig.runs, 2);
	assert_int_equal(rig.settled, 1);
}

/* A wait for a provider, and the request there, have one deadline. */
TEST(wait_for_a_provider_counts_towards_the_timeout)
{
	struct rig_call *call;
	uint64_t begun_ns;

	rig.provider_count = 2;
	clusterrig_consume("wait.ready=true&timeout=3s", NULL);
	begun_ns = now();
	call = clusterrig_call(clusterrig_method("echo", &idempotent));
	clusterrig_pass(1500 * MS);
	clusterrig_start(0);
	rig.providers[0].manner = RIG_SILENT;
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ETIMEOUT);
	assert_in_range(now() - begun_ns, 3 * SECOND, 3 * SECOND + 3 * MS);
}
