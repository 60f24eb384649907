/* SPDX-License-Identifier: Apache-2.0 */
/* Backup attempts of calls whose first attempt is slow: hedge.after. */
#include "tests/cluster/clusterrig.h"
#include "tests/support/test.h"

#include "cluster/call/method.h"

#include <spoke/policy.h>

#include <stdlib.h>
#include <string.h>

#define rig clusterrig
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

FIXTURE(clusterrig_set_up, clusterrig_tear_down);

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
