/* SPDX-License-Identifier: Apache-2.0 */
/* Calls with several attempts whose callers wait: failover, and parallel attempts. */
#include "cluster/call/caller.h"
#include "cluster/consumer/consumer.h"
#include "tests/cluster/clusterrig.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

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
