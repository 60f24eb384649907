/* SPDX-License-Identifier: Apache-2.0 */
/* Calls with several attempts whose callers wait, and attempts that are refused. */
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/consumer/consumer.h"
#include "tests/cluster/clusterrig.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <spoke/policy.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- calls with several attempts whose callers wait: failover, and parallel attempts */

#define rig clusterrig

static unsigned runs_of_all(void)
{
	return rig.runs;
}

FIXTURE(clusterrig_set_up, clusterrig_tear_down);

TEST(refused_call_goes_to_another_provider)
{
	struct spoke_method *echo;

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

TEST(failover_tries_each_provider_once_and_reports_last_error)
{
	struct rig_call *call;

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

TEST(error_of_handler_is_not_retried)
{
	struct rig_call *call;

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

TEST(unsure_request_is_repeated_only_if_idempotent)
{
	struct spoke_call_options options = { .timeout_ns = 50 * MS };
	struct rig_call *call;

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

TEST(killed_provider_loses_no_unwritten_call)
{
	struct spoke_method *echo;
	unsigned lost = 0;

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

TEST(budget_ends_retry_storm)
{
	struct spoke_method *echo;
	uint64_t retries;

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

TEST(call_without_provider_is_refused_at_once)
{
	struct spoke_method *echo;

	rig.provider_count = 2;
	clusterrig_consume("", NULL);
	clusterrig_pass(200 * MS);
	echo = clusterrig_method("echo", NULL);
	assert_int_equal(clusterrig_try(echo, NULL), SPOKE_EUNAVAILABLE);
	assert_int_equal(rig.call_count, 0);
}

TEST(call_waits_for_provider_with_wait_ready)
{
	struct spoke_method *echo;
	struct rig_call *call;

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

/* There is no batch of calls after which the rest sleeps on. */
TEST(all_waiting_calls_go_on_when_a_provider_is_ready)
{
	enum {
		CALLS = 5000
	};
	struct spoke_method *echo;
	size_t ready = 0;

	rig.provider_count = 2;
	clusterrig_consume("wait.ready=true&timeout=600s", NULL);
	clusterrig_pass(200 * MS);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < CALLS; i++)
		(void)clusterrig_call(echo);
	clusterrig_pass(100 * MS);
	assert_int_equal(rig.ended, 0);
	clusterrig_start(1);
	while (ready == 0) {
		clusterrig_pass(MS);
		ready = spoke_consumer_ready(rig.consumer);
	}
	clusterrig_pass(100 * MS);
	assert_int_equal(rig.ended, CALLS);
	for (unsigned i = 0; i < CALLS; i++)
		assert_int_equal(rig.calls[i].error, SPOKE_OK);
}

TEST(waiting_call_ends_at_its_deadline)
{
	struct rig_call *call;
	uint64_t begun_ns;

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

static void print_result(void *arg, const struct spoke_result *result)
{
	(void)spoke_result_print(result, arg, 256);
}

TEST(call_that_waited_in_vain_tells_why_no_provider_was_ready)
{
	char text[256] = "";

	rig.provider_count = 2;
	clusterrig_consume("wait.ready=true&timeout=3s", NULL);
	clusterrig_pass(200 * MS);
	assert_int_equal(spoke_call_with(clusterrig_method("echo", NULL), SPOKE_NO_ARGS,
					 print_result, text),
			 0);
	clusterrig_pass(4 * SECOND);
	assert_non_null(strstr(text, "(ECONNREFUSED)"));
}

/* A callback that takes long, calls, and loses the connection. */
static struct {
	struct spoke_alarm alarm;
	struct spoke_method *method;
	struct rig_call *call;
	uint64_t called_ns;
} loser;

static void stall_call_and_lose(struct spoke_alarm *alarm)
{
	const struct spoke_list *conns = &spokei_consumer_look(rig.consumer).caller->link->conns;

	(void)alarm;
	spokei_world_hold(&rig.process, 40 * MS);
	loser.called_ns = rig.process.env.now(rig.process.env.ctx);
	loser.call = clusterrig_call(loser.method);
	assert_false(spokei_list_empty(conns));
	spokei_conn_close(spoke_container_of(conns->next, struct spokei_conn, node), SPOKE_ELOST);
	clusterrig_kill(0);
}

TEST(time_of_a_call_begins_with_it_and_not_with_its_turn)
{
	const struct spoke_method_options options = { .timeout_ns = 20 * MS };
	uint64_t now_ns;

	clusterrig_provide(1);
	clusterrig_consume("wait.ready=true", NULL);
	loser.method = clusterrig_method("echo", &options);
	clusterrig_end(clusterrig_call(loser.method));
	assert_int_equal(spoke_alarm_after(rig.engine, &loser.alarm, MS, stall_call_and_lose), 0);
	while (loser.call == NULL || loser.call->ends == 0)
		clusterrig_pass(MS);
	now_ns = rig.process.env.now(rig.process.env.ctx);
	assert_int_equal(loser.call->error, SPOKE_ETIMEOUT_UNSENT);
	assert_in_range(now_ns - loser.called_ns, 20 * MS, 23 * MS);
}

TEST(waiting_call_ends_with_its_consumer)
{
	struct rig_call *call;

	rig.provider_count = 2;
	clusterrig_consume("wait.ready=true&timeout=3s", NULL);
	clusterrig_pass(200 * MS);
	call = clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_pass(MS);
	clusterrig_free_consumer();
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ECLOSED);
}

TEST(waiting_call_is_cancelled)
{
	struct rig_call *call;

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

TEST(call_in_flight_is_no_ticket_and_is_cancelled)
{
	struct spoke_ticket_state looks;
	struct spoke_ticket ticket;
	struct rig_call *call;

	clusterrig_provide(2);
	rig.providers[0].manner = RIG_SILENT;
	rig.providers[1].manner = RIG_SILENT;
	clusterrig_consume("", NULL);
	call = clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_pass(10 * MS);
	ticket = (struct spoke_ticket){ call->name.handle };
	assert_false(spoke_ticket_ask(rig.consumer, ticket, &looks));
	assert_false(spoke_ticket_cancel(rig.consumer, ticket));
	assert_true(spoke_call_cancel(rig.consumer, call->name));
	assert_int_equal(call->ends, 0);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ECANCELED);
	assert_int_equal(call->attempts, 1);
	assert_true(call->written);
	assert_int_equal(rig.runs, 1);
}

TEST(actives_limits_concurrent_calls_of_method)
{
	struct spoke_method *echo;

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

TEST(per_second_limits_call_rate_of_method)
{
	struct spoke_method *echo;
	unsigned taken = 0;

	clusterrig_provide(1);
	clusterrig_consume("", NULL);
	echo = clusterrig_method("echo", &(struct spoke_method_options){ .per_second = 100 });
	for (unsigned i = 0; i < 5000; i++) {
		taken += clusterrig_try(echo, NULL) == 0;
		clusterrig_pass(MS);
	}
	assert_in_range(taken, 580, 610);
}

TEST(result_has_written_flag_for_every_end)
{
	struct rig_call *call;

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

TEST(kept_arguments_are_limited_by_bytes)
{
	static unsigned char large[1 << 20];
	struct spoke_method *echo;
	unsigned taken = 0;

	rig.provider_count = 2;
	clusterrig_consume("wait.ready=true&timeout=10s", NULL);
	clusterrig_pass(200 * MS);
	echo = clusterrig_method("echo", NULL);
	large[0] = 0xc6; /* the head of a bin */
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

TEST(consumer_may_be_freed_in_callback_of_call)
{
	struct spoke_method *echo;

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

/* --- attempts that coincide with a wait, the end of a consumer, or a failed allocation */

/* --- cancelled */

TEST(cancelled_call_gets_no_ticket)
{
	struct rig_call *call;

	rig.provider_count = 1;
	clusterrig_consume("cluster=failback&retry.period=2s", NULL);
	clusterrig_pass(300 * MS);
	/* The first attempt has failed already. */
	call = clusterrig_call(clusterrig_method("echo", NULL));
	assert_true(spoke_call_cancel(rig.consumer, call->name));
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ECANCELED);
	assert_int_equal(rig.settled, 0);
	assert_int_equal(spoke_consumer_tickets(rig.consumer, NULL), 0);
}

static struct rig_call *second_call;

static void cancel_other(struct rig_call *call)
{
	rig.in_done = NULL;
	assert_int_equal(call->error, SPOKE_ECLOSED);
	assert_true(spoke_call_cancel(rig.consumer, second_call->name));
}

TEST(cancelled_call_ends_with_ecanceled_in_a_drain)
{
	struct spoke_method *echo;

	rig.provider_count = 2;
	clusterrig_consume("wait.ready=true&timeout=3s", NULL);
	clusterrig_pass(200 * MS);
	echo = clusterrig_method("echo", NULL);
	(void)clusterrig_call(echo);
	second_call = clusterrig_call(echo);
	clusterrig_pass(MS);
	rig.in_done = cancel_other;
	assert_int_equal(spoke_engine_drain(rig.engine, SECOND), 0);
	clusterrig_pass(10 * MS);
	assert_int_equal(rig.ended, 2);
	assert_int_equal(second_call->error, SPOKE_ECANCELED);
}

/* --- waiting for an endpoint */

TEST(call_waits_for_lazy_endpoints)
{
	struct spoke_method *echo;

	clusterrig_provide(3);
	clusterrig_consume("lazy=true&wait.ready=true&timeout=3s&loadbalance=roundrobin", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 3; i++) {
		struct rig_call *call = clusterrig_call(echo);

		clusterrig_pass(100 * MS);
		assert_int_equal(call->ends, 1);
		assert_int_equal(call->error, SPOKE_OK);
	}
}

TEST(lost_attempt_fails_broadcast)
{
	struct rig_call *call;

	clusterrig_provide(2);
	spokei_vnet_route(rig.world.net, rig.providers[2].address, SPOKEI_VNET_SILENT);
	rig.provider_count = 3;
	clusterrig_consume("cluster=broadcast&wait.ready=true&timeout=20s", NULL);
	call = clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_end(call);
	assert_int_equal(call->attempts, 3);
	assert_int_not_equal(call->error, SPOKE_OK);
}

/* --- failed allocations */

TEST(failsafe_excuses_immediate_failure)
{
	struct spokei_faults_rule *rule = &rig.faulty.rules[SPOKEI_FAULTS_MEMORY];
	struct spoke_method *echo;
	bool failed = true;

	clusterrig_provide(1);
	clusterrig_consume("cluster=failsafe&wait.ready=true", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned nth = 0; failed; nth++) {
		uint64_t before = rig.faulty.failed[SPOKEI_FAULTS_MEMORY];
		int error;

		*rule = (struct spokei_faults_rule){ .skip = nth, .error = -1 };
		error = clusterrig_try(echo, NULL);
		*rule = (struct spokei_faults_rule){ 0 };
		failed = rig.faulty.failed[SPOKEI_FAULTS_MEMORY] > before;
		assert_true(error == SPOKE_OK || error == SPOKE_ENOMEM);
		clusterrig_pass(10 * MS);
		assert_int_equal(rig.ended, rig.call_count);
	}
	assert_true(rig.ended > 1);
}

/* --- calls that a provider refuses because it does not let the caller in */

TEST(forbidden_call_is_not_retried_and_ejects_none)
{
	struct spoke_endpoint_info infos[2];
	struct spoke_method *echo;
	struct rig_call *call;

	clusterrig_provide(2);
	rig.providers[0].manner = RIG_FORBID;
	rig.providers[1].manner = RIG_FORBID;
	clusterrig_consume("eject.failures=2", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 8; i++) {
		call = clusterrig_call(echo);
		clusterrig_end(call);
		assert_int_equal(call->error, SPOKE_EFORBIDDEN);
		assert_int_equal(call->attempts, 1);
	}
	assert_int_equal(clusterrig_stat(SPOKE_STAT_RETRIES), 0);
	assert_int_equal(spoke_consumer_endpoints(rig.consumer, infos, 2), 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_false(infos[i].ejected);
		assert_int_equal(infos[i].failures, 0);
	}
	assert_int_equal(rig.runs, 0);
}

/* --- backup attempts of calls whose first attempt is slow: hedge.after */

#define AFTER (10 * MS)

static const struct spoke_method_options hedged = { .idempotent = true, .hedge_after_ns = AFTER };

/* Starts providers that hold each request until it is answered by answer(). */
static struct spoke_method *begin(unsigned count, const char *query,
				  const struct spoke_method_options *options)
{
	clusterrig_provide(count);
	for (unsigned i = 0; i < count; i++)
		rig.providers[i].manner = RIG_SILENT;
	clusterrig_consume(query, NULL);
	return clusterrig_method("echo", options);
}

/* Answers all requests that a provider holds. */
static void answer(unsigned which)
{
	static const unsigned char nil[] = { 0xc0 };
	struct rig_provider *by = &rig.providers[which];

	for (unsigned i = 0; i < by->held_count; i++)
		spoke_reply(by->held[i], (struct spoke_value){ nil, 1 });
	by->held_count = 0;
	clusterrig_pass(MS);
}

/* The provider that got the n-th request of all. */
static unsigned provider_of(unsigned run)
{
	return rig.run_list[run].provider;
}

TEST(slow_attempt_gets_a_backup_at_another_provider)
{
	struct rig_call *call;

	call = clusterrig_call(begin(2, "", &hedged));
	clusterrig_pass(AFTER - MS);
	assert_int_equal(rig.runs, 1);
	clusterrig_pass(3 * MS);
	assert_int_equal(rig.runs, 2);
	assert_int_not_equal(provider_of(0), provider_of(1));
	assert_int_equal(clusterrig_stat(SPOKE_STAT_HEDGES), 1);
	answer(provider_of(1));
	assert_int_equal(call->ends, 1);
	assert_int_equal(call->error, SPOKE_OK);
	assert_int_equal(call->attempts, 2);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_HEDGES_WON), 1);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_RETRIES), 0);
	answer(provider_of(0));
	assert_int_equal(call->ends, 1);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_CALLS_OK), 1);
}

/* Returns the number of timers in the class of this name; UINT64_MAX: there is no such class. */
static uint64_t armed_in(const char *name)
{
	struct spoke_wheel_counts counts;
	const char *each = "";
	unsigned i = 0;

	while (!spoke_wheel_class_counts(spoke_engine_wheel(rig.engine), i++, &counts, &each))
		if (strcmp(each, name) == 0)
			return counts.pending;
	return UINT64_MAX;
}

/* The page shows who uses the wheel. */
TEST(watched_attempt_is_no_retry_on_the_wheel)
{
	struct spoke_method *method = begin(2, "", &hedged);

	(void)clusterrig_call(method);
	clusterrig_pass(AFTER - MS);
	assert_int_equal(armed_in("hedge"), 1);
	assert_int_equal(armed_in("retry"), 0);
	answer(provider_of(0));
}

TEST(answer_of_the_slow_attempt_counts_too)
{
	struct rig_call *call;

	call = clusterrig_call(begin(2, "", &hedged));
	clusterrig_pass(2 * AFTER);
	assert_int_equal(rig.runs, 2);
	answer(provider_of(0));
	assert_int_equal(call->ends, 1);
	assert_int_equal(call->error, SPOKE_OK);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_HEDGES_WON), 0);
}

TEST(fast_attempt_gets_no_backup)
{
	struct rig_call *call;

	call = clusterrig_call(begin(2, "", &hedged));
	clusterrig_pass(AFTER / 2);
	answer(provider_of(0));
	assert_int_equal(call->ends, 1);
	clusterrig_pass(10 * AFTER);
	assert_int_equal(rig.runs, 1);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_HEDGES), 0);
}

TEST(method_that_is_not_idempotent_has_no_backups)
{
	static const struct spoke_method_options once = { .hedge_after_ns = AFTER };
	struct rig_call *call;

	call = clusterrig_call(begin(2, "", &once));
	clusterrig_pass(10 * AFTER);
	assert_int_equal(rig.runs, 1);
	answer(provider_of(0));
	assert_int_equal(call->attempts, 1);
}

TEST(backups_are_as_many_as_retries_and_at_one_provider_each)
{
	struct rig_call *call;
	unsigned seen = 0;

	call = clusterrig_call(begin(5, "retries=3", &hedged));
	clusterrig_pass(20 * AFTER);
	assert_int_equal(rig.runs, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(seen & 1u << provider_of(i), 0);
		seen |= 1u << provider_of(i);
	}
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ETIMEOUT);
	assert_int_equal(call->attempts, 4);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_HEDGES), 3);
}

TEST(single_provider_gets_no_second_request)
{
	struct rig_call *call;

	call = clusterrig_call(begin(1, "", &hedged));
	clusterrig_pass(20 * AFTER);
	assert_int_equal(rig.runs, 1);
	answer(0);
	assert_int_equal(call->error, SPOKE_OK);
}

TEST(failure_of_one_attempt_leaves_the_other)
{
	for (unsigned which = 0; which < 2; which++) {
		struct rig_call *call;

		if (which > 0) {
			clusterrig_tear_down(state);
			clusterrig_set_up(state);
		}
		call = clusterrig_call(begin(2, "retries=1", &hedged));
		clusterrig_pass(2 * AFTER);
		assert_int_equal(rig.runs, 2);
		spoke_provider_free(rig.providers[provider_of(which)].provider);
		clusterrig_kill(provider_of(which));
		clusterrig_pass(2 * AFTER);
		assert_int_equal(call->ends, 0);
		answer(provider_of(!which));
		assert_int_equal(call->ends, 1);
		assert_int_equal(call->error, SPOKE_OK);
	}
}

TEST(call_fails_when_all_its_attempts_have)
{
	struct rig_call *call;

	call = clusterrig_call(begin(2, "retries=1", &hedged));
	clusterrig_pass(2 * AFTER);
	for (unsigned i = 0; i < 2; i++) {
		spoke_provider_free(rig.providers[i].provider);
		clusterrig_kill(i);
	}
	clusterrig_pass(SECOND);
	assert_int_equal(call->ends, 1);
	assert_int_equal(call->error, SPOKE_ELOST);
	assert_true(call->written);
}

TEST(error_of_a_handler_ends_the_call)
{
	struct rig_call *call;

	call = clusterrig_call(begin(2, "", &hedged));
	clusterrig_pass(2 * AFTER);
	spoke_reply_error(rig.providers[provider_of(1)].held[0], 7, "no");
	rig.providers[provider_of(1)].held_count = 0;
	clusterrig_pass(MS);
	assert_int_equal(call->ends, 1);
	assert_int_equal(call->error, SPOKE_EREMOTE);
}

TEST(cancelled_call_cancels_both_attempts)
{
	struct rig_call *call;

	call = clusterrig_call(begin(3, "", &hedged));
	clusterrig_pass(AFTER + AFTER / 2);
	assert_int_equal(rig.runs, 2);
	assert_true(spoke_call_cancel(rig.consumer, call->name));
	clusterrig_pass(10 * AFTER);
	assert_int_equal(call->ends, 1);
	assert_int_equal(call->error, SPOKE_ECANCELED);
	assert_int_equal(rig.runs, 2);
}

TEST(closed_consumer_begins_no_backup)
{
	(void)clusterrig_call(begin(2, "", &hedged));
	clusterrig_pass(AFTER / 2);
	clusterrig_free_consumer();
	clusterrig_pass(10 * AFTER);
	assert_int_equal(rig.ended, 1);
	assert_int_equal(rig.runs, 1);
}

TEST(budget_limits_backups)
{
	struct spoke_method *echo;

	echo = begin(2, "retries=1&timeout=100&eject.failures=0", &hedged);
	for (unsigned i = 0; i < 1000; i++) {
		(void)clusterrig_call(echo);
		clusterrig_pass(MS);
		for (unsigned at = 0; at < 2; at++)
			if (rig.providers[at].held_count >= RIG_RUNS - 8)
				answer(at);
	}
	assert_in_range(clusterrig_stat(SPOKE_STAT_HEDGES), 100, 300);
	assert_true(clusterrig_stat(SPOKE_STAT_RETRIES_UNFUNDED) > 0);
	clusterrig_pass(SECOND);
}

TEST(without_memory_for_a_backup_the_first_attempt_counts)
{
	struct rig_call *call;

	call = clusterrig_call(begin(2, "retries=1", &hedged));
	clusterrig_pass(AFTER / 2);
	rig.faulty.rules[SPOKEI_FAULTS_MEMORY] = (struct spokei_faults_rule){ .error = -12 };
	clusterrig_pass(3 * AFTER);
	rig.faulty.rules[SPOKEI_FAULTS_MEMORY] = (struct spokei_faults_rule){ 0 };
	assert_int_equal(rig.runs, 1);
	answer(provider_of(0));
	assert_int_equal(call->ends, 1);
	assert_int_equal(call->error, SPOKE_OK);
}

TEST(setting_of_the_url_and_off_for_a_method)
{
	static const struct spoke_method_options off = { .idempotent = true,
							 .hedge_after_ns = SPOKE_OFF };
	static const struct spoke_method_options wrong = { .hedge_after_ns = 1 };
	static const struct spoke_method_options usual = { .idempotent = true };
	struct spoke_method *method;
	struct rig_call *calls[2];

	method = begin(2, "hedge.after=10ms", &usual);
	calls[0] = clusterrig_call(method);
	clusterrig_pass(2 * AFTER);
	assert_int_equal(rig.runs, 2);
	calls[1] = clusterrig_call(clusterrig_method("echo", &off));
	clusterrig_pass(2 * AFTER);
	assert_int_equal(rig.runs, 3);
	assert_int_equal(spoke_consumer_method(rig.consumer, "echo", &wrong, &method),
			 SPOKE_ERANGE);
	answer(0);
	answer(1);
	assert_int_equal(calls[0]->ends + calls[1]->ends, 2);
}

/* --- a policy of one's own */

static struct spoke_policy_verdict eager(const struct spoke_policy_history *history)
{
	if (history->begun == 0 || (history->open > 0 && history->waited && history->begun < 3))
		return (struct spoke_policy_verdict){ .step = SPOKE_STEP_SEND, .wait_ns = 5 * MS };
	return (struct spoke_policy_verdict){
		.step = history->open > 0 && history->last == SPOKE_FATE_NONE ? SPOKE_STEP_LISTEN
									      : SPOKE_STEP_FINISH,
	};
}

TEST(policy_of_ones_own_can_ask_for_backups)
{
	static const struct spoke_policy policy = { .name = "eager", .next = eager };
	const struct spoke_method_options options = { .policy = &policy, .idempotent = true };
	const struct spoke_method_options once = { .policy = &policy };
	struct rig_call *call;

	call = clusterrig_call(begin(3, "", &options));
	clusterrig_pass(8 * MS);
	assert_int_equal(rig.runs, 2);
	clusterrig_pass(8 * MS);
	assert_int_equal(rig.runs, 3);
	answer(provider_of(2));
	assert_int_equal(call->ends, 1);
	assert_int_equal(call->attempts, 3);
	/* What may run only once does not get one, whatever the policy says. */
	(void)clusterrig_call(clusterrig_method("echo", &once));
	clusterrig_pass(50 * MS);
	assert_int_equal(rig.runs, 4);
}

/* --- percentiles */

TEST(estimate_settles_at_the_percentile, .bare = true)
{
	static const unsigned percents[] = { 50, 90, 95, 99 };

	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
		const uint64_t after = SPOKE_PERCENTILE(percents[i]);
		struct spokei_hedge hedge = { 0 };
		uint64_t sum_ns = 0;
		unsigned state_of_dice = 7;

		for (unsigned at = 0; at < 20000; at++) {
			state_of_dice = state_of_dice * 1103515245u + 12345u;
			spokei_hedge_note(&hedge, after, (state_of_dice >> 16) % 1000 * MS / 10);
			if (at >= 10000)
				sum_ns += spokei_hedge_after(&hedge, after) / 10000;
		}
		assert_in_range(sum_ns, percents[i] * MS * 9 / 10, percents[i] * MS * 11 / 10);
	}
}

TEST(estimate_is_used_after_enough_answers, .bare = true)
{
	const uint64_t after = SPOKE_PERCENTILE(95);
	struct spokei_hedge hedge = { 0 };

	for (unsigned i = 0; i < SPOKEI_HEDGE_LEAST; i++) {
		assert_int_equal(spokei_hedge_after(&hedge, after), 0);
		spokei_hedge_note(&hedge, after, 0);
	}
	assert_int_equal(spokei_hedge_after(&hedge, after), SPOKEI_HEDGE_MIN_NS);
	for (unsigned i = 0; i < 100000; i++)
		spokei_hedge_note(&hedge, after, UINT64_MAX);
	assert_true(spokei_hedge_after(&hedge, after) > SECOND);
	assert_int_equal(spokei_hedge_after(&hedge, 0), 0);
	assert_int_equal(spokei_hedge_after(&hedge, 5 * MS), 5 * MS);
}

#define CALLS 4000u

static uint64_t begun_ns[CALLS];

static uint64_t took_ns[CALLS];

static void note_end(struct rig_call *call)
{
	size_t at = (size_t)(call - rig.calls);

	assert_int_equal(call->error, SPOKE_OK);
	took_ns[at] = rig.world.now_ns - begun_ns[at];
}

static int compare(const void *one, const void *other)
{
	const uint64_t *a = one;
	const uint64_t *b = other;

	return (*a > *b) - (*a < *b);
}

/* Returns the p99 of calls to three providers, one of which takes `more_ns` longer. */
static uint64_t p99(void **state, const char *query, uint64_t more_ns)
{
	static const struct spoke_method_options idempotent = { .idempotent = true };
	struct spoke_method *echo;

	clusterrig_tear_down(state);
	clusterrig_set_up(state);
	for (unsigned i = 0; i < 3; i++) {
		rig.providers[i].manner = RIG_SLOW;
		rig.providers[i].least_ns = MS + (i == 2 ? more_ns : 0);
	}
	clusterrig_provide(3);
	clusterrig_consume(query, NULL);
	rig.in_done = note_end;
	echo = clusterrig_method("echo", &idempotent);
	for (unsigned i = 0; i < CALLS; i++) {
		begun_ns[i] = rig.world.now_ns;
		(void)clusterrig_call(echo);
		clusterrig_pass(40 * MS); /* the budget has enough for a third of the calls */
	}
	clusterrig_pass(SECOND);
	assert_int_equal(rig.ended, CALLS);
	/* An estimate has been learned after the first quarter. */
	qsort(took_ns + CALLS / 4, CALLS / 4 * 3, sizeof(took_ns[0]), compare);
	return took_ns[CALLS / 4 + CALLS / 4 * 3 * 99 / 100];
}

/* Against a cluster whose three providers are all well, and that has no backups. */
TEST(slow_provider_does_not_show_in_the_p99)
{
	static const char *const queries[] = {
		"loadbalance=random&hedge.after=5ms",
		"loadbalance=random&hedge.after=p60",
		"loadbalance=shortestresponse&hedge.after=p95",
		"loadbalance=twochoices&hedge.after=p95",
	};
	uint64_t well_ns = p99(state, "loadbalance=random", 0);

	print_message("all well: p99 %.1f ms\n", (double)well_ns / 1e6);
	assert_true(p99(state, "loadbalance=random", 200 * MS) > 200 * MS);
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
		uint64_t slow_ns = p99(state, queries[i], 200 * MS);

		print_message("%s: p99 %.1f ms with a slow provider, %u backups\n", queries[i],
			      (double)slow_ns / 1e6, (unsigned)clusterrig_stat(SPOKE_STAT_HEDGES));
		assert_true(slow_ns * 10 <= well_ns * 12);
	}
}

/*
 * --- the sentence about a call that a limit of this side refuses: the key, its value, what to
 * do. And the time by which a limit fills again
 */

/* Calls until the method refuses; returns the sentence about it. */
static const char *refusal(struct spoke_method *method)
{
	int error = 0;

	for (unsigned i = 0; i < 100 && error == 0; i++)
		error = clusterrig_try(method, NULL);
	assert_int_equal(error, SPOKE_ELIMIT);
	return spoke_engine_why(rig.engine);
}

TEST(refusal_names_the_limit_its_value_and_its_key)
{
	static const struct {
		const char *query;
		const char *text;
	} cases[] = {
		{ "echo.actives=3", "call of echo refused: actives = 3 is reached (calls of the "
				    "method in flight); raise it or call later" },
		{ "echo.tps=4", "call of echo refused: tps = 4 is reached (calls of the method in "
				"a second); raise it or call later" },
		{ "pending.max=5", "call of echo refused: pending.max = 5 is reached (calls in "
				   "flight); raise it or call later" },
		{ "endpoint.actives=2", "call of echo refused: endpoint.actives = 2 is reached "
					"(calls in flight to each provider); raise it or call "
					"later" },
	};

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_SILENT;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		clusterrig_consume(cases[i].query, NULL);
		assert_string_equal(refusal(clusterrig_method("echo", NULL)), cases[i].text);
		clusterrig_free_consumer();
	}
}

/* No provider can be reached, so a call becomes a ticket inside spoke_call(), or is refused. */
TEST(refused_ticket_names_the_limit_of_tickets)
{
	static const struct {
		const char *query;
		const char *text;
	} cases[] = {
		{ "cluster=failback&failback.tasks=2",
		  "call of echo refused: failback.tasks = 2 is reached (tickets); raise it or call "
		  "later" },
		{ "cluster=failback&failback.bytes=1KiB",
		  "call of echo refused: failback.bytes = 1024 is reached (bytes of tickets); "
		  "raise "
		  "it or call later" },
	};

	clusterrig_provide(1);
	clusterrig_kill(0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		clusterrig_consume(cases[i].query, NULL);
		clusterrig_pass(SECOND);
		assert_string_equal(refusal(clusterrig_method("echo", NULL)), cases[i].text);
		clusterrig_free_consumer();
	}
}

TEST(repeated_refusal_is_one_event)
{
	struct spoke_method *echo;
	struct spoke_event event;
	uint64_t number;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_SILENT;
	clusterrig_consume("pending.max=1", NULL);
	echo = clusterrig_method("echo", NULL);
	(void)refusal(echo);
	for (number = 0; spoke_event_get(rig.engine, number + 1, &event) == 0;)
		number = event.number;
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(clusterrig_try(echo, NULL), SPOKE_ELIMIT);
	assert_int_equal(spoke_event_get(rig.engine, number + 1, &event), SPOKE_ENOENT);
}

static char full[128]; /* the text of the result with ELIMIT */

static void note(void *arg, const struct spoke_result *result)
{
	(void)arg;
	if (result->error == SPOKE_ELIMIT)
		(void)snprintf(full, sizeof(full), "%.*s", (int)result->error_text.len,
			       (const char *)result->error_text.data);
}

TEST(result_names_the_limit_of_tickets)
{
	struct spoke_consumer_options options = { 0 };
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	char url[192];

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_SILENT;
	(void)snprintf(
		url, sizeof(url),
		"%s/demo.Echo?cluster=failback&retry.period=2s&failback.tasks=2&timeout=100ms",
		rig.providers[0].url);
	options.url = url;
	assert_int_equal(spoke_consumer_new(rig.engine, &options, &consumer), SPOKE_OK);
	assert_int_equal(spoke_consumer_method(consumer, "echo", NULL, &echo), SPOKE_OK);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(spoke_call(echo, (struct spoke_span){ "\x01", 1 }, NULL, note,
					    NULL, NULL),
				 SPOKE_OK);
	clusterrig_pass(200 * MS);
	assert_string_equal(full, "failback.tasks = 2 is reached (tickets)");
	spoke_consumer_free(consumer);
}

/* Between turns the limit fills again, although nothing wakes the engine. */
TEST(per_second_limit_counts_time_outside_of_turns)
{
	struct spoke_method *echo;
	unsigned taken;

	clusterrig_provide(1);
	clusterrig_consume("", NULL);
	echo = clusterrig_method("echo", &(struct spoke_method_options){ .per_second = 100 });
	while (clusterrig_try(echo, NULL) == 0)
		;
	clusterrig_pass(MS);
	spokei_world_stall(&rig.world, 500 * MS);
	for (taken = 0; clusterrig_try(echo, NULL) == 0; taken++)
		;
	assert_in_range(taken, 50, 51);
}
