/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a lease ends every further attempt of its calls, under each policy. */
#include "tests/cluster/call/leasing.h"
#include "tests/cluster/clusterrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static struct spoke_lease lease;

static int set_up(void **state)
{
	int failed = clusterrig_set_up(state);

	leasing_begin(&clusterrig.world, clusterrig.engine);
	return failed;
}

static int tear_down(void **state)
{
	leasing_leave();
	leasing_end();
	return clusterrig_tear_down(state);
}

FIXTURE(set_up, tear_down);

static struct rig_call *call(struct spoke_method *method, const struct spoke_policy *policy)
{
	const struct spoke_call_options options = { .policy = policy, .lease = lease };

	return clusterrig_call_with(method, &options);
}

static unsigned runs(void)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < RIG_PROVIDERS; i++)
		sum += clusterrig.providers[i].runs;
	return sum;
}

/* Holds up the process, inside of a turn, until the lease is over. */
static struct rig_call *stalled;
static struct spoke_method *stalled_method;
static const struct spoke_policy *stalled_policy;

static void call_and_stall(struct spoke_alarm *alarm)
{
	(void)alarm;
	stalled = call(stalled_method, stalled_policy);
	spokei_world_hold(&clusterrig.process, 2 * SECOND);
}

static struct rig_call *call_stalled(struct spoke_method *method, const struct spoke_policy *policy)
{
	static struct spoke_alarm alarm;

	memset(&alarm, 0, sizeof(alarm));
	stalled_method = method;
	stalled_policy = policy;
	assert_int_equal(spoke_alarm_after(clusterrig.engine, &alarm, MS, call_and_stall), 0);
	clusterrig_pass(3 * SECOND);
	return stalled;
}

/* --- every policy */

TEST(stalled_call_reaches_no_provider_under_any_policy)
{
	static const struct spoke_policy *const policies[] = {
		&spoke_policy_failover,  &spoke_policy_failfast, &spoke_policy_failsafe,
		&spoke_policy_failback,  &spoke_policy_forking,  &spoke_policy_broadcast,
		&spoke_policy_available,
	};
	struct spoke_method *echo;

	clusterrig_provide(3);
	clusterrig_consume("timeout=10s&forks=3", NULL);
	echo = clusterrig_method("echo", NULL);
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		const struct rig_call *made;

		lease = leasing_grant("reports", SECOND);
		made = call_stalled(echo, policies[i]);
		assert_int_equal(made->error, SPOKE_ELEASE);
		assert_false(made->written);
		assert_int_equal(runs(), 0);
	}
	assert_int_equal(spoke_consumer_tickets(clusterrig.consumer, NULL), 0);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_RETRIES), 0);
}

TEST(call_is_answered_under_every_policy)
{
	static const struct spoke_policy *const policies[] = {
		&spoke_policy_failover,  &spoke_policy_failfast, &spoke_policy_failsafe,
		&spoke_policy_failback,  &spoke_policy_forking,  &spoke_policy_broadcast,
		&spoke_policy_available,
	};
	static const unsigned sent[] = { 1, 1, 1, 1, 3, 3, 1 };
	struct spoke_method *echo;

	clusterrig_provide(3);
	clusterrig_consume("timeout=10s&forks=3", NULL);
	echo = clusterrig_method("echo", NULL);
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		unsigned before = runs();
		const struct rig_call *made;

		lease = leasing_grant("reports", SECOND);
		made = call(echo, policies[i]);
		clusterrig_pass(10 * MS);
		assert_int_equal(made->error, SPOKE_OK);
		assert_int_equal(runs() - before, sent[i]);
	}
}

/* --- retries */

TEST(retry_ends_when_the_lease_is_over)
{
	const struct spoke_method_options idempotent = { .idempotent = true };
	const struct rig_call *made;
	struct spoke_method *echo;

	clusterrig_provide(3);
	clusterrig_consume("timeout=10s", NULL);
	echo = clusterrig_method("echo", &idempotent);
	for (unsigned i = 0; i < 3; i++)
		clusterrig.providers[i].manner = RIG_SILENT;
	lease = leasing_grant("reports", 10 * SECOND);
	made = call(echo, NULL);
	clusterrig_pass(10 * MS);
	assert_int_equal(runs(), 1);
	leasing_release(lease);
	clusterrig_pass(10 * MS);
	assert_int_equal(made->ends, 0); /* it was written, and may be answered */
	clusterrig_kill(clusterrig.run_list[0].provider);
	clusterrig_pass(10 * MS);
	assert_int_equal(made->error, SPOKE_ELEASE);
	assert_true(made->written);
	assert_int_equal(runs(), 1);
}

TEST(retry_under_a_held_lease_carries_the_same_number)
{
	const struct spoke_method_options idempotent = { .idempotent = true };
	const struct rig_call *made;
	struct spoke_method *echo;

	clusterrig_provide(2);
	clusterrig_consume("timeout=10s", NULL);
	echo = clusterrig_method("echo", &idempotent);
	for (unsigned i = 0; i < 2; i++)
		clusterrig.providers[i].manner = RIG_SILENT;
	lease = leasing_grant("reports", 10 * SECOND);
	made = call(echo, NULL);
	clusterrig_pass(10 * MS);
	clusterrig.providers[1 - clusterrig.run_list[0].provider].manner = RIG_ECHO;
	clusterrig_kill(clusterrig.run_list[0].provider);
	clusterrig_pass(10 * MS);
	assert_int_equal(made->error, SPOKE_OK);
	assert_int_equal(made->attempts, 2);
}

TEST(call_has_no_more_time_than_the_lease)
{
	const struct spoke_method_options idempotent = { .idempotent = true };
	const struct rig_call *made;
	struct spoke_method *echo;

	clusterrig_provide(3);
	clusterrig_consume("timeout=10s&attempt.timeout=400ms", NULL);
	echo = clusterrig_method("echo", &idempotent);
	for (unsigned i = 0; i < 3; i++)
		clusterrig.providers[i].manner = RIG_SILENT;
	lease = leasing_grant("reports", SECOND);
	made = call(echo, NULL);
	clusterrig_pass(990 * MS);
	assert_int_equal(made->ends, 0);
	assert_int_equal(runs(), 3);
	clusterrig_pass(20 * MS);
	assert_int_equal(made->ends, 1);
	assert_int_equal(made->attempts, 3);
	assert_int_equal(made->error, SPOKE_ETIMEOUT);
}

/* --- tickets */

static struct rig_call *deferred(struct spoke_method *method)
{
	struct rig_call *made = call(method, NULL);

	clusterrig_end(made);
	assert_int_equal(made->error, SPOKE_EDEFERRED);
	return made;
}

TEST(ticket_ends_with_its_lease)
{
	struct spoke_method *echo;
	const struct rig_call *made;

	clusterrig_provide(1);
	echo = clusterrig_failback("timeout=100ms&retry.period=1s");
	clusterrig.providers[0].manner = RIG_REFUSE;
	lease = leasing_grant("reports", 10 * SECOND);
	made = deferred(echo);
	leasing_release(lease);
	clusterrig_pass(10 * MS);
	assert_int_equal(made->settled, 1);
	assert_int_equal(made->settlement, SPOKE_TICKET_EXHAUSTED);
	assert_int_equal(made->settled_error, SPOKE_ELEASE);
	assert_int_equal(made->settled_attempts, 1);
	clusterrig_pass(5 * SECOND);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_RETRIES), 0);
}

TEST(ticket_makes_no_attempt_after_its_lease)
{
	struct spoke_method *echo;
	const struct rig_call *made;

	clusterrig_provide(1);
	echo = clusterrig_failback("timeout=100ms&retry.period=1s");
	clusterrig.providers[0].manner = RIG_REFUSE;
	lease = leasing_grant("reports", 1500 * MS);
	made = deferred(echo);
	clusterrig_pass(5 * SECOND);
	assert_int_equal(made->settled, 1);
	assert_int_equal(made->settled_error, SPOKE_ELEASE);
	assert_int_equal(made->settled_attempts, 2);
}

TEST(ticket_under_a_held_lease_is_retried)
{
	struct spoke_method *echo;
	const struct rig_call *made;

	clusterrig_provide(1);
	echo = clusterrig_failback("timeout=100ms&retry.period=1s");
	clusterrig.providers[0].manner = RIG_REFUSE;
	lease = leasing_grant("reports", 10 * SECOND);
	made = deferred(echo);
	clusterrig.providers[0].manner = RIG_ECHO;
	clusterrig_pass(2 * SECOND);
	assert_int_equal(made->settlement, SPOKE_TICKET_SUCCESS);
	assert_int_equal(clusterrig.run_list[0].attempt, 2);
	assert_int_equal(strlen(clusterrig.run_list[0].id), 32);
}

TEST(tickets_of_a_freed_consumer_leave_the_lease)
{
	struct spoke_method *echo;

	clusterrig_provide(1);
	echo = clusterrig_failback("timeout=100ms&retry.period=1s");
	clusterrig.providers[0].manner = RIG_REFUSE;
	lease = leasing_grant("reports", 10 * SECOND);
	(void)deferred(echo);
	(void)call(echo, NULL);
	clusterrig_free_consumer();
	clusterrig_pass(10 * MS);
	leasing_release(lease);
	clusterrig_pass(10 * MS);
	assert_int_equal(clusterrig.settled, 1);
}

/* --- waiting for an endpoint */

TEST(call_that_waits_for_an_endpoint_ends_with_its_lease)
{
	struct spoke_method *echo;
	const struct rig_call *made;

	clusterrig_provide(1);
	clusterrig_kill(0);
	clusterrig_consume("timeout=10s&wait.ready=true", NULL);
	echo = clusterrig_method("echo", NULL);
	lease = leasing_grant("reports", 10 * SECOND);
	made = call(echo, NULL);
	clusterrig_pass(100 * MS);
	assert_int_equal(made->ends, 0);
	leasing_release(lease);
	clusterrig_pass(MS);
	assert_int_equal(made->error, SPOKE_ELEASE);
	assert_int_equal(made->attempts, 0);
	clusterrig_start(0);
	clusterrig_pass(10 * SECOND);
	assert_int_equal(runs(), 0);
}

/* --- several attempts at a time */

/* Has provider 0 blocked, and attempts at all of them; those that were written may be answered. */
static struct rig_call *fan_out(const struct spoke_policy *policy)
{
	static unsigned char large[2 << 20];
	const size_t len = sizeof(large) - 5;
	const struct spoke_method_options options = { .policy = &spoke_policy_available };
	struct spoke_call name;
	struct spoke_method *method;
	struct spoke_method *filler;
	struct rig_call *made;

	clusterrig_provide(3);
	clusterrig_consume("timeout=10s&forks=3&broadcast.fail.percent=100", NULL);
	filler = clusterrig_method("filler", &options);
	method = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 3; i++)
		clusterrig.providers[i].manner = RIG_SILENT;
	large[0] = 0xc6;
	for (unsigned i = 0; i < 4; i++)
		large[1 + i] = (unsigned char)(len >> (24 - 8 * i));
	spokei_world_hold(&clusterrig.providers[0].process, 5 * SECOND);
	assert_int_equal(spoke_call(filler, (struct spoke_span){ large, sizeof(large) }, NULL, NULL,
				    NULL, &name),
			 0);
	clusterrig_pass(10 * MS);
	lease = leasing_grant("reports", 20 * SECOND);
	made = call(method, policy);
	clusterrig_pass(10 * MS);
	assert_int_equal(runs(), 2);
	return made;
}

TEST(fork_that_was_written_is_answered_after_the_lease)
{
	const struct rig_call *made;

	made = fan_out(&spoke_policy_forking);
	leasing_release(lease);
	clusterrig_pass(10 * MS);
	assert_int_equal(made->ends, 0);
	spoke_reply(clusterrig.providers[1].held[0], (struct spoke_value){ NULL, 0 });
	clusterrig.providers[1].held_count = 0;
	clusterrig_pass(10 * MS);
	assert_int_equal(made->error, SPOKE_OK);
	clusterrig_pass(10 * SECOND);
	assert_int_equal(clusterrig.providers[0].runs, 1); /* the filler */
}

TEST(broadcast_fails_if_an_attempt_was_not_written)
{
	const struct rig_call *made;

	made = fan_out(&spoke_policy_broadcast);
	leasing_release(lease);
	clusterrig_pass(10 * MS);
	for (unsigned i = 1; i < 3; i++) {
		assert_int_equal(made->ends, 0);
		spoke_reply(clusterrig.providers[i].held[0], (struct spoke_value){ NULL, 0 });
		clusterrig.providers[i].held_count = 0;
		clusterrig_pass(10 * MS);
	}
	assert_int_equal(made->error, SPOKE_ELEASE);
	assert_true(made->written);
	clusterrig_pass(10 * SECOND);
	assert_int_equal(clusterrig.providers[0].runs, 1);
}

static void free_all(struct rig_call *made)
{
	(void)made;
	clusterrig.in_done = NULL;
	clusterrig_free_consumer();
}

TEST(callback_may_free_the_consumer_while_attempts_end)
{
	const struct rig_call *made;

	made = fan_out(&spoke_policy_broadcast);
	clusterrig.in_done = free_all;
	for (unsigned i = 1; i < 3; i++) {
		spoke_reply(clusterrig.providers[i].held[0], (struct spoke_value){ NULL, 0 });
		clusterrig.providers[i].held_count = 0;
	}
	leasing_release(lease);
	clusterrig_pass(10 * MS);
	assert_int_equal(made->error, SPOKE_ELEASE);
}

TEST(ends_of_leases_do_not_count_against_endpoints)
{
	struct spoke_endpoint_info info;
	struct spoke_method *echo;

	clusterrig_provide(1);
	clusterrig_consume("timeout=10s&eject.failures=2", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 5; i++) {
		lease = leasing_grant("reports", SECOND);
		assert_int_equal(call_stalled(echo, NULL)->error, SPOKE_ELEASE);
	}
	assert_int_equal(spoke_consumer_endpoints(clusterrig.consumer, &info, 1), 1);
	assert_int_equal(info.failures, 0);
	assert_int_equal(info.mean_ns, 0);
	lease = leasing_grant("reports", SECOND);
	clusterrig_end(call(echo, NULL));
	assert_int_equal(runs(), 1);
}
