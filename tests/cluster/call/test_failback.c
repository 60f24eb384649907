/* SPDX-License-Identifier: Apache-2.0 */
/* Failback: calls that continue as tickets after their callers were notified. */
#include "tests/cluster/clusterrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define rig clusterrig

FIXTURE(clusterrig_set_up, clusterrig_tear_down);

TEST(call_answered_at_once_gets_no_ticket)
{
	struct rig_call *call;

	clusterrig_provide(1);
	call = clusterrig_call(clusterrig_failback(""));
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
	assert_int_equal(call->ticket.handle, 0);
	assert_int_equal(rig.run_list[0].attempt, 1);
	assert_int_equal(strlen(rig.run_list[0].id), 16);
}

TEST(returning_provider_settles_ticket)
{
	struct spoke_method *echo;
	struct rig_call *call;

	clusterrig_provide(1);
	echo = clusterrig_failback("retry.period=100ms&retries=5");
	clusterrig_kill(0);
	clusterrig_pass(10 * MS);
	call = clusterrig_deferred(echo);
	assert_int_equal(spoke_consumer_tickets(rig.consumer, NULL), 1);
	clusterrig_pass(150 * MS);
	clusterrig_start(0);
	clusterrig_pass(SECOND);
	assert_int_equal(call->settled, 1);
	assert_int_equal(call->settlement, SPOKE_TICKET_SUCCESS);
	assert_int_equal(call->settled_error, SPOKE_OK);
	assert_int_equal(rig.providers[0].runs, 1);
	assert_int_equal(spoke_consumer_tickets(rig.consumer, NULL), 0);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_TICKETS_SUCCESS), 1);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_CALLS_DEFERRED), 1);
}

TEST(ticket_is_retried_by_count_and_period)
{
	struct rig_call *call;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_SILENT;
	call = clusterrig_deferred(clusterrig_failback("retry.period=2s&retries=3&timeout=500ms"));
	clusterrig_pass(60 * SECOND);
	assert_int_equal(call->settlement, SPOKE_TICKET_EXHAUSTED);
	assert_int_equal(call->settled_error, SPOKE_ETIMEOUT);
	assert_int_equal(call->settled_attempts, 4);
	assert_int_equal(rig.runs, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(rig.run_list[i].attempt, i + 1);
		assert_string_equal(rig.run_list[i].id, rig.run_list[0].id);
		if (i)
			assert_in_range(rig.run_list[i].at_ns - rig.run_list[i - 1].at_ns,
					2500 * MS, 2506 * MS);
	}
}

TEST(growing_pauses_grow_by_a_factor)
{
	clusterrig_provide(1);
	rig.providers[0].manner = RIG_REFUSE;
	(void)clusterrig_deferred(
		clusterrig_failback("retry.period=1s&retries=6&retry.backoff=exponential&"
				    "retry.deadline=100s"));
	clusterrig_pass(10 * SECOND);
	assert_in_range(clusterrig_stat(SPOKE_STAT_RETRIES), 3, 5);
	clusterrig_pass(60 * SECOND);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_TICKETS_EXHAUSTED), 1);
}

TEST(ticket_avoids_provider_that_failed_last)
{
	struct spoke_method *echo;
	struct rig_call *call;

	clusterrig_provide(2);
	rig.providers[0].manner = RIG_SILENT;
	echo = clusterrig_failback("retry.period=100ms&timeout=50ms&eject.failures=0");
	for (unsigned i = 0; i < 20; i++) {
		call = clusterrig_call(echo);
		clusterrig_pass(SECOND);
		assert_int_equal(call->ends, 1);
		if (call->error == SPOKE_EDEFERRED) {
			assert_int_equal(call->settlement, SPOKE_TICKET_SUCCESS);
			assert_int_equal(call->settled_attempts, 2);
		}
	}
	assert_true(clusterrig_stat(SPOKE_STAT_CALLS_DEFERRED) > 0);
}

TEST(error_of_handler_settles_call_without_ticket)
{
	struct rig_call *call;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_ERROR;
	call = clusterrig_call(clusterrig_failback(""));
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_EREMOTE);
}

TEST(deadline_ends_ticket)
{
	struct rig_call *call;
	uint64_t begun_ns;

	rig.provider_count = 1;
	(void)state;
	begun_ns = rig.world.now_ns;
	call = clusterrig_deferred(
		clusterrig_failback("retry.period=1s&retries=100&retry.deadline=4500ms"));
	clusterrig_pass(20 * SECOND);
	assert_int_equal(call->settlement, SPOKE_TICKET_EXPIRED);
	assert_int_equal(call->settled_error, SPOKE_ETIMEOUT);
	assert_in_range(call->lasted_ns, 4500 * MS, 4510 * MS);
	assert_true(rig.world.now_ns > begun_ns);
}

TEST(call_without_provider_is_deferred)
{
	struct spoke_method *echo;

	rig.provider_count = 1;
	echo = clusterrig_failback("retry.period=1s&retries=2");
	clusterrig_pass(300 * MS);
	(void)clusterrig_deferred(echo);
	clusterrig_pass(10 * SECOND);
	assert_int_equal(rig.settled_by[SPOKE_TICKET_EXHAUSTED], 1);
}

TEST(ticket_state_can_be_read)
{
	struct spoke_ticket_state ticket;
	struct spoke_method *echo;
	struct rig_call *call;

	rig.provider_count = 1;
	echo = clusterrig_failback("retry.period=2s&retries=2");
	clusterrig_pass(300 * MS);
	call = clusterrig_deferred(echo);
	assert_true(spoke_ticket_ask(rig.consumer, call->ticket, &ticket));
	assert_int_equal(ticket.attempts, 1);
	assert_false(ticket.sending);
	assert_int_equal(ticket.last_error, SPOKE_EUNAVAILABLE);
	assert_in_range(ticket.next_ns, 1990 * MS, 2 * SECOND);
	assert_in_range(ticket.left_ns, 8 * SECOND, 9 * SECOND);
	clusterrig_pass(2500 * MS);
	assert_true(spoke_ticket_ask(rig.consumer, call->ticket, &ticket));
	assert_int_equal(ticket.attempts, 2);
	clusterrig_pass(10 * SECOND);
	assert_false(spoke_ticket_ask(rig.consumer, call->ticket, &ticket));
	assert_int_equal(spoke_ticket_then(rig.consumer, call->ticket, NULL, NULL), SPOKE_ENOENT);
	assert_false(spoke_ticket_cancel(rig.consumer, call->ticket));
}

static unsigned told_then;

static void then(void *arg, const struct spoke_ticket_result *settled)
{
	assert_ptr_equal(arg, &told_then);
	assert_int_equal(settled->settlement, SPOKE_TICKET_CANCELLED);
	assert_int_equal(settled->result->error, SPOKE_ECANCELED);
	told_then++;
}

TEST(waiting_ticket_is_cancelled)
{
	struct spoke_method *echo;
	struct rig_call *call;

	rig.provider_count = 1;
	told_then = 0;
	echo = clusterrig_failback("retry.period=2s");
	clusterrig_pass(300 * MS);
	call = clusterrig_deferred(echo);
	assert_int_equal(spoke_ticket_then(rig.consumer, call->ticket, then, &told_then), 0);
	assert_int_equal(spoke_ticket_then(rig.consumer, call->ticket, then, &told_then),
			 SPOKE_EEXIST);
	assert_true(spoke_ticket_cancel(rig.consumer, call->ticket));
	assert_int_equal(told_then, 0);
	clusterrig_pass(MS);
	assert_int_equal(told_then, 1);
	assert_int_equal(call->settlement, SPOKE_TICKET_CANCELLED);
	assert_int_equal(spoke_consumer_tickets(rig.consumer, NULL), 0);
}

TEST(ticket_is_cancelled_while_attempt_is_in_flight)
{
	struct rig_call *call;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_SILENT;
	call = clusterrig_deferred(clusterrig_failback("retry.period=100ms&timeout=1s"));
	clusterrig_pass(500 * MS);
	assert_int_equal(rig.runs, 2);
	assert_true(spoke_ticket_cancel(rig.consumer, call->ticket));
	clusterrig_pass(MS);
	assert_int_equal(call->settlement, SPOKE_TICKET_CANCELLED);
	clusterrig_pass(5 * SECOND);
	assert_int_equal(rig.runs, 2);
}

TEST(new_tickets_beyond_capacity_are_rejected)
{
	struct spoke_method *echo;
	unsigned limit = 0;

	rig.provider_count = 1;
	echo = clusterrig_failback("retry.period=2s&failback.tasks=10");
	clusterrig_pass(300 * MS);
	for (unsigned i = 0; i < 25; i++) {
		int error = clusterrig_try(echo, NULL);

		limit += error == SPOKE_ELIMIT;
		assert_true(error == 0 || error == SPOKE_ELIMIT);
	}
	clusterrig_pass(MS);
	assert_int_equal(limit, 15);
	assert_int_equal(spoke_consumer_tickets(rig.consumer, NULL), 10);
	clusterrig_pass(60 * SECOND);
	assert_int_equal(rig.settled, 10);
}

TEST(rejected_call_calls_back_if_attempt_had_begun)
{
	struct spoke_method *echo;
	unsigned limit = 0;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_SILENT;
	echo = clusterrig_failback("retry.period=2s&failback.tasks=2&timeout=100ms");
	for (unsigned i = 0; i < 5; i++)
		(void)clusterrig_call(echo);
	clusterrig_pass(200 * MS);
	for (unsigned i = 0; i < 5; i++)
		limit += rig.calls[i].error == SPOKE_ELIMIT;
	assert_int_equal(limit, 3);
}

TEST(oldest_ticket_is_dropped_if_configured)
{
	struct spoke_method *echo;

	rig.provider_count = 1;
	echo = clusterrig_failback(
		"retry.period=2s&failback.tasks=10&failback.overflow=drop-oldest");
	clusterrig_pass(300 * MS);
	for (unsigned i = 0; i < 25; i++) {
		(void)clusterrig_deferred(echo);
		assert_true(spoke_consumer_tickets(rig.consumer, NULL) <= 10);
	}
	assert_int_equal(rig.settled_by[SPOKE_TICKET_REFUSED], 15);
	for (unsigned i = 0; i < 25; i++)
		assert_int_equal(rig.calls[i].settled, i < 15);
	clusterrig_pass(60 * SECOND);
	assert_int_equal(rig.settled, 25);
}

TEST(ticket_bytes_are_limited)
{
	struct spoke_method *echo;
	size_t bytes;
	unsigned taken = 0;

	rig.provider_count = 1;
	echo = clusterrig_failback("retry.period=2s&failback.tasks=1000&failback.bytes=64KiB");
	clusterrig_pass(300 * MS);
	while (clusterrig_try(echo, NULL) == 0)
		taken++;
	clusterrig_pass(MS);
	assert_in_range(taken, 20, 200);
	(void)spoke_consumer_tickets(rig.consumer, &bytes);
	assert_in_range(bytes, 60000, 65536);
}
