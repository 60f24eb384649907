/* SPDX-License-Identifier: Apache-2.0 */
/* Failback: calls that continue as tickets; the end of tickets; the retry budget. */
#include "cluster/policy/budget.h"
#include "tests/cluster/clusterrig.h"
#include "tests/cluster/dice.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

/* --- failback: calls that continue as tickets after their callers were notified */

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
	assert_int_equal(strlen(rig.run_list[0].id), 32);
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

/* --- the end of tickets with their consumers, and calls rejected before they become tickets */

TEST(closing_settles_all_tickets)
{
	struct spoke_method *echo;

	clusterrig_provide(2);
	rig.providers[0].manner = RIG_SILENT;
	rig.providers[1].manner = RIG_REFUSE;
	echo = clusterrig_failback("retry.period=100ms&timeout=1s");
	for (unsigned i = 0; i < 30; i++)
		(void)clusterrig_call(echo);
	clusterrig_pass(150 * MS);
	clusterrig_free_consumer();
	clusterrig_pass(MS);
	assert_int_equal(rig.ended, 30);
	assert_true(rig.settled > 0);
	assert_int_equal(rig.settled_by[SPOKE_TICKET_CLOSING], rig.settled);
}

TEST(draining_settles_waiting_tickets)
{
	struct spoke_method *echo;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_REFUSE;
	echo = clusterrig_failback("retry.period=1s");
	for (unsigned i = 0; i < 5; i++)
		(void)clusterrig_deferred(echo);
	assert_int_equal(spoke_engine_drain(rig.engine, 10 * SECOND), 0);
	clusterrig_pass(100 * MS);
	assert_int_equal(rig.settled_by[SPOKE_TICKET_CLOSING], 5);
}

static void free_it(struct rig_call *call)
{
	(void)call;
	if (rig.consumer)
		clusterrig_free_consumer();
}

TEST(consumer_may_be_freed_in_deferred_callback)
{
	struct spoke_method *echo;

	rig.provider_count = 1;
	echo = clusterrig_failback("retry.period=1s");
	clusterrig_pass(300 * MS);
	for (unsigned i = 0; i < 5; i++)
		(void)clusterrig_call(echo);
	rig.in_done = free_it;
	clusterrig_pass(100 * MS);
	assert_int_equal(rig.ended, 5);
}

TEST(consumer_may_be_freed_in_settled_callback)
{
	struct spoke_method *echo;

	rig.provider_count = 1;
	echo = clusterrig_failback("retry.period=1s&retries=1");
	clusterrig_pass(300 * MS);
	for (unsigned i = 0; i < 5; i++)
		(void)clusterrig_deferred(echo);
	rig.in_settled = free_it;
	clusterrig_pass(5 * SECOND);
	assert_int_equal(rig.settled, 5);
	assert_int_equal(rig.settled_by[SPOKE_TICKET_EXHAUSTED], 1);
	assert_int_equal(rig.settled_by[SPOKE_TICKET_CLOSING], 4);
}

/* Row 61 of the table of faults. */
TEST(tickets_survive_ten_minutes_without_provider)
{
	struct spoke_method *echo;
	size_t blocks = 0;

	rig.provider_count = 1;
	echo = clusterrig_failback("retry.period=5s");
	clusterrig_pass(300 * MS);
	for (unsigned second = 0; second < 600; second++) {
		for (unsigned i = 0; i < 10; i++) {
			int error = clusterrig_try(echo, NULL);

			assert_true(error == 0 || error == SPOKE_ELIMIT);
			clusterrig_pass(100 * MS);
		}
		if (second == 60)
			blocks = (size_t)rig.process.blocks;
		if (second > 60)
			assert_true(rig.process.blocks < blocks + 100);
		assert_true(spoke_consumer_tickets(rig.consumer, NULL) <= 100);
	}
	clusterrig_pass(60 * SECOND);
	assert_int_equal(rig.settled, rig.ended);
	assert_int_equal(rig.settled, clusterrig_stat(SPOKE_STAT_CALLS_DEFERRED));
}

TEST(wrong_settings_are_named_in_event)
{
	static const struct {
		const char *query;
		int error;
		const char *says[2];
	} rows[] = {
		{ "cluster=failbak", SPOKE_EINVAL, { "cluster=failbak", "failback" } },
		{ "loadbalance=best", SPOKE_EINVAL, { "loadbalance=best", "random" } },
		{ "retry.period=-5s", SPOKE_ESYNTAX, { "retry.period=-5s", "duration" } },
		{ "retry.period=9ms", SPOKE_ERANGE, { "retry.period=9ms", "10ms" } },
		{ "retries=101", SPOKE_ERANGE, { "retries=101", "100" } },
		{ "echo.retries=101", SPOKE_ERANGE, { "retries=101", "100" } },
		{ "echo.cluster=x", SPOKE_EINVAL, { "cluster=x", "failover" } },
		{ "failback.tasks=0", SPOKE_ERANGE, { "failback.tasks=0", "1" } },
		{ "failback.overflow=drop", SPOKE_EINVAL, { "failback.overflow=drop", "reject" } },
		{ "retry.perod=5s", SPOKE_EINVAL, { "retry.perod", "retry.period" } },
		{ "echo.heartbeat=5s", SPOKE_EINVAL, { "echo.heartbeat", "no such option" } },
	};
	char url[256];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spoke_consumer_options options = { .url = url };
		struct spoke_consumer *consumer;
		const char *why;

		(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:20880/demo.Echo?%s",
			       rows[i].query);
		assert_int_equal(spoke_consumer_new(rig.engine, &options, &consumer),
				 rows[i].error);
		why = spoke_engine_why(rig.engine);
		assert_non_null(strstr(why, rows[i].says[0]));
		assert_non_null(strstr(why, rows[i].says[1]));
	}
}

/*
 * --- the retry budget, compared with a list of all times, from which the last 10 s are exact
 */

FIXTURE(NULL, NULL);

#define START (1000 * SECOND)
#define TIMES_MAX 200000u

struct times {
	size_t count;
	uint64_t at[TIMES_MAX]; /* ascending */
};

/* Counts the times less than `span_ns` before `now_ns`. */
static size_t within(const struct times *times, uint64_t now_ns, uint64_t span_ns)
{
	size_t count = 0;

	while (count < times->count && now_ns - times->at[times->count - 1 - count] < span_ns)
		count++;
	return count;
}

static void note(struct times *times, uint64_t now_ns)
{
	assert_true(times->count < TIMES_MAX);
	times->at[times->count++] = now_ns;
}

static unsigned drain(struct spokei_budget *budget, uint64_t now_ns)
{
	unsigned count = 0;

	while (spokei_budget_take(budget, now_ns))
		count++;
	return count;
}

static void call(struct spokei_budget *budget, unsigned count, uint64_t now_ns)
{
	for (unsigned i = 0; i < count; i++)
		spokei_budget_called(budget, now_ns);
}

TEST(budget_allows_100_retries_without_calls)
{
	struct spokei_budget budget = { 0 };

	assert_int_equal(drain(&budget, START), 100);
	assert_int_equal(drain(&budget, START + 9 * SECOND), 0);
	assert_int_equal(drain(&budget, START + 10 * SECOND), 0);
	assert_int_equal(drain(&budget, START + 11 * SECOND), 100);
}

TEST(budget_grows_by_one_retry_for_five_calls)
{
	struct spokei_budget budget = { 0 };

	call(&budget, 1004, START);
	assert_int_equal(drain(&budget, START), 300);
	call(&budget, 1, START + 1);
	assert_int_equal(drain(&budget, START + 1), 1);
}

TEST(calls_expire_before_retries)
{
	struct spokei_budget budget = { 0 };

	call(&budget, 500, START);
	assert_int_equal(drain(&budget, START + 9 * SECOND + 999 * MS), 200);
	call(&budget, 500, START + 10 * SECOND);
	/* The first calls have expired and the attempts count: 200 of 200. */
	assert_int_equal(drain(&budget, START + 10 * SECOND), 0);
	assert_int_equal(drain(&budget, START + 19 * SECOND + 999 * MS), 0);
	assert_int_equal(drain(&budget, START + 20 * SECOND), 100);
}

TEST(time_going_back_adds_no_budget)
{
	struct spokei_budget budget = { 0 };

	assert_int_equal(drain(&budget, START), 100);
	assert_int_equal(drain(&budget, START - 20 * SECOND), 0);
	call(&budget, 5, START - 20 * SECOND);
	assert_int_equal(drain(&budget, START), 1);
}

TEST(long_pause_resets_budget)
{
	struct spokei_budget budget = { 0 };

	call(&budget, 500, START);
	assert_int_equal(drain(&budget, START), 200);
	assert_int_equal(drain(&budget, START + UINT64_C(1000000) * SECOND), 100);
	assert_int_equal(budget.calls_sum, 0);
	assert_int_equal(drain(&budget, UINT64_MAX), 100);
}

/* Returns a pause: mostly short, sometimes seconds, rarely longer than all slots. */
static uint64_t pause_of(uint64_t *seed)
{
	switch (dice_roll(seed) % 64) {
	case 0:
		return dice_roll(seed) % (12 * SECOND);
	case 1:
		return SECOND * (dice_roll(seed) % 12); /* exactly at the edge of a slot */
	case 2:
		return dice_roll(seed) % (SECOND / 2);
	case 3:
		return dice_roll(seed) % 400 == 0 ? dice_roll(seed) % (100 * SECOND) : 0;
	default:
		return dice_roll(seed) % (4 * MS);
	}
}

TEST(budget_holds_in_any_ten_seconds)
{
	static struct times calls, retries;
	struct spokei_budget budget = { 0 };
	uint64_t seed = 7;
	uint64_t now = START;
	unsigned given = 0;
	unsigned refused = 0;

	for (unsigned i = 0; i < TIMES_MAX; i++) {
		/* Alternate periods with many calls and periods with many failures. */
		unsigned trouble = (i / 4096) % 4;

		now += pause_of(&seed);
		if (dice_roll(&seed) % 4 >= trouble) {
			spokei_budget_called(&budget, now);
			note(&calls, now);
		} else if (spokei_budget_take(&budget, now)) {
			note(&retries, now);
			given++;
			assert_true(within(&retries, now, 10 * SECOND) * 5 <=
				    within(&calls, now, 10 * SECOND) + 500);
		} else {
			/* The budget may be too strict by a second, but not by more. */
			refused++;
			assert_true((within(&retries, now, 11 * SECOND) + 1) * 5 >
				    within(&calls, now, 9 * SECOND) + 500);
		}
	}
	assert_true(given > 1000 && refused > 1000);
}
