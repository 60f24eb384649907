/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts of each policy. */
#include "cluster/policy/policies.h"
#include "tests/support/test.h"

enum {
	FINISH = SPOKE_STEP_FINISH,
	SEND = SPOKE_STEP_SEND,
	LISTEN = SPOKE_STEP_LISTEN,
	WAIT = SPOKE_STEP_WAIT,
	NONE = SPOKE_FATE_NONE,
	OK = SPOKE_FATE_OK,
	ANSWERED = SPOKE_FATE_ANSWERED,
	SAFE = SPOKE_FATE_SAFE,
	UNSURE = SPOKE_FATE_UNSURE,
};

/* The fields of a call's history in which most cases differ. */
struct row {
	uint32_t begun, open, ok, failed;
	int last;
	int step;
	uint32_t count; /* attempts to send */
};

/* Returns a history with three providers, two of them untried, repetition allowed, and time left.
 */
static struct spoke_policy_history history_of(const struct row *row)
{
	return (struct spoke_policy_history){
		.begun = row->begun,
		.open = row->open,
		.ok = row->ok,
		.failed = row->failed,
		.last = (enum spoke_policy_fate)row->last,
		.able = 3,
		.fresh = 2,
		.left_ns = 10 * SECOND,
		.retries = 2,
		.forks = 2,
		.fail_percent = 100,
		.period_ns = 5 * SECOND,
	};
}

static void check(const struct spoke_policy *policy, const struct row *row,
		  const struct spoke_policy_history *history)
{
	struct spoke_policy_verdict verdict = policy->next(history);

	if ((int)verdict.step != row->step || (row->step == SEND && verdict.count != row->count))
		fail_msg("%s, begun %u, open %u, last %d: step %d, count %u", policy->name,
			 (unsigned)row->begun, (unsigned)row->open, row->last, (int)verdict.step,
			 (unsigned)verdict.count);
}

#define CHECK(policy, rows) check_rows(policy, rows, sizeof(rows) / sizeof((rows)[0]))

static void check_rows(const struct spoke_policy *policy, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct spoke_policy_history history = history_of(&rows[i]);

		check(policy, &rows[i], &history);
	}
}

TEST(list_has_every_policy_in_order)
{
	static const struct {
		const char *name;
		const struct spoke_policy *policy;
		uint32_t retries;
		bool repeats, in_order;
	} all[] = {
		{ "failover", &spoke_policy_failover, 2, false, false },
		{ "failfast", &spoke_policy_failfast, 0, false, false },
		{ "failsafe", &spoke_policy_failsafe, 0, false, false },
		{ "failback", &spoke_policy_failback, 3, true, false },
		{ "forking", &spoke_policy_forking, 0, false, false },
		{ "broadcast", &spoke_policy_broadcast, 0, false, true },
		{ "available", &spoke_policy_available, 0, false, true },
	};

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_ptr_equal(spokei_policies[i], all[i].policy);
		assert_string_equal(all[i].policy->name, all[i].name);
		assert_int_equal(all[i].policy->retries, all[i].retries);
		assert_int_equal(all[i].policy->repeats, all[i].repeats);
		assert_int_equal(all[i].policy->in_order, all[i].in_order);
	}
	assert_null(spokei_policies[sizeof(all) / sizeof(all[0])]);
}

/* Does a policy finish after a first attempt, or a last one, that has ended like this? */
static bool finishes(const struct spoke_policy *policy, struct spoke_policy_history history,
		     enum spoke_policy_fate last)
{
	history.begun = 1;
	history.last = last;
	history.ok = last == SPOKE_FATE_OK;
	history.failed = !history.ok;
	for (unsigned i = 0; i < 4; i++) {
		struct spoke_policy_verdict verdict;

		history.dice = UINT64_MAX / 3 * i;
		verdict = policy->next(&history);
		if (verdict.step != SPOKE_STEP_FINISH ||
		    verdict.excuse != (policy->excuses && last != SPOKE_FATE_OK) ||
		    (last == SPOKE_FATE_OK && verdict.last_failure))
			return false;
	}
	return true;
}

static bool finishes_after_failure(const struct spoke_policy *policy,
				   struct spoke_policy_history history)
{
	return finishes(policy, history, SPOKE_FATE_ANSWERED) &&
	       finishes(policy, history, SPOKE_FATE_SAFE) &&
	       finishes(policy, history, SPOKE_FATE_UNSURE);
}

/* The verdicts of a policy keep what it declares. */
static void check_declared(const struct spoke_policy *policy, bool idempotent)
{
	struct spoke_policy_history history = {
		.able = 1000,
		.fresh = 1000,
		.repeatable = idempotent,
		.left_ns = UINT64_MAX,
		.retries = policy->retries,
		.forks = 2,
		.fail_percent = 100,
		.period_ns = 5 * SECOND,
		.hedge_ns = idempotent,
	};
	struct spoke_policy_verdict first = policy->next(&history);
	bool answered = first.step == SPOKE_STEP_SEND && first.count == 1 &&
			finishes(policy, history, SPOKE_FATE_OK);

	switch (policy->attempts) {
	case SPOKE_ATTEMPTS_ONE:
		assert_true(answered && finishes_after_failure(policy, history));
		assert_int_equal(first.wait_ns, 0);
		break;
	case SPOKE_ATTEMPTS_IN_TURN:
		assert_true(answered && !finishes_after_failure(policy, history));
		assert_int_equal(first.wait_ns, history.hedge_ns);
		history.fresh = 0;
		assert_true(finishes_after_failure(policy, history));
		history.fresh = 1000;
		history.retries = 0;
		assert_true(finishes_after_failure(policy, history));
		assert_int_equal(policy->next(&history).wait_ns, 0);
		break;
	case SPOKE_ATTEMPTS_FORKED:
		assert_int_equal(first.count, 2);
		history.forks = 1;
		assert_int_equal(policy->next(&history).count, 1);
		assert_true(finishes(policy, history, SPOKE_FATE_OK));
		assert_true(finishes_after_failure(policy, history));
		break;
	case SPOKE_ATTEMPTS_TO_ALL:
		assert_int_equal(first.count, 1000);
		break;
	case SPOKE_ATTEMPTS_ANY:
		assert_true(policy->repeats);
		break;
	}
}

TEST(policies_keep_what_they_declare)
{
	for (unsigned i = 0; spokei_policies[i]; i++) {
		const struct spoke_policy *policy = spokei_policies[i];

		check_declared(policy, false);
		check_declared(policy, true);
	}
}

TEST(single_attempt_policies_make_one_attempt)
{
	static const struct spoke_policy *const policies[] = { &spoke_policy_failfast,
							       &spoke_policy_failsafe,
							       &spoke_policy_available };
	static const struct row rows[] = {
		{ 0, 0, 0, 0, NONE, SEND, 1 },       { 1, 0, 1, 0, OK, FINISH, 0 },
		{ 1, 0, 0, 1, ANSWERED, FINISH, 0 }, { 1, 0, 0, 1, SAFE, FINISH, 0 },
		{ 1, 0, 0, 1, UNSURE, FINISH, 0 },
	};

	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++)
		CHECK(policies[i], rows);
}

TEST(only_failsafe_hides_errors)
{
	for (int fate = OK; fate <= UNSURE; fate++) {
		struct row row = {
			.begun = 1, .ok = fate == OK, .failed = fate != OK, .last = fate
		};
		struct spoke_policy_history history = history_of(&row);

		history.retries = 0;
		for (unsigned i = 0; spokei_policies[i]; i++) {
			const struct spoke_policy *policy = spokei_policies[i];
			struct spoke_policy_verdict verdict = policy->next(&history);

			assert_int_equal(verdict.step, FINISH);
			assert_int_equal(verdict.excuse,
					 policy == &spoke_policy_failsafe && fate != OK);
			assert_int_equal(verdict.last_failure,
					 policy == &spoke_policy_broadcast && fate != OK);
		}
	}
}

TEST(failover_retries_elsewhere_if_request_did_not_run)
{
	static const struct row rows[] = {
		{ 0, 0, 0, 0, NONE, SEND, 1 },       { 1, 0, 1, 0, OK, FINISH, 0 },
		{ 1, 0, 0, 1, ANSWERED, FINISH, 0 }, { 1, 0, 0, 1, SAFE, SEND, 1 },
		{ 2, 0, 0, 2, SAFE, SEND, 1 },       { 3, 0, 0, 3, SAFE, FINISH, 0 },
		{ 1, 0, 0, 1, UNSURE, FINISH, 0 },   { 2, 0, 0, 2, UNSURE, FINISH, 0 },
		{ 2, 0, 1, 1, OK, FINISH, 0 },
	};

	CHECK(&spoke_policy_failover, rows);
}

TEST(failover_repeats_executed_request_if_repeatable)
{
	static const struct row rows[] = {
		{ 1, 0, 0, 1, UNSURE, SEND, 1 },
		{ 2, 0, 0, 2, UNSURE, SEND, 1 },
		{ 3, 0, 0, 3, UNSURE, FINISH, 0 },
		{ 1, 0, 0, 1, ANSWERED, FINISH, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spoke_policy_history history = history_of(&rows[i]);

		history.repeatable = true;
		check(&spoke_policy_failover, &rows[i], &history);
	}
}

TEST(failover_tries_each_once_and_before_deadline)
{
	static const struct row first = { 0, 0, 0, 0, NONE, SEND, 1 };
	static const struct row over = { 1, 0, 0, 1, SAFE, FINISH, 0 };
	static const struct row again = { 1, 0, 0, 1, SAFE, SEND, 1 };
	struct spoke_policy_history history = history_of(&over);

	history.fresh = 0;
	check(&spoke_policy_failover, &over, &history);
	history.given_up = true;
	check(&spoke_policy_failover, &again, &history);
	history = history_of(&over);
	history.left_ns = 0;
	check(&spoke_policy_failover, &over, &history);
	history = history_of(&over);
	history.retries = 0;
	check(&spoke_policy_failover, &over, &history);
	/* Without an able endpoint the policy still sends, and the attempt fails. */
	history = history_of(&first);
	history.able = history.fresh = 0;
	check(&spoke_policy_failover, &first, &history);
}

TEST(failover_asks_for_backups_of_slow_attempts)
{
	static const struct {
		struct row row;
		bool waited;
		bool ends; /* the policy asks for no further backup */
	} rows[] = {
		{ { 0, 0, 0, 0, NONE, SEND, 1 }, false, false },
		{ { 1, 1, 0, 0, NONE, SEND, 1 }, true, false },
		{ { 2, 2, 0, 0, NONE, SEND, 1 }, true, true },
		{ { 3, 3, 0, 0, NONE, LISTEN, 0 }, true, true },
		{ { 2, 1, 0, 1, UNSURE, LISTEN, 0 }, false, false },
		{ { 2, 1, 0, 1, SAFE, SEND, 1 }, true, true },
		{ { 2, 1, 0, 1, ANSWERED, FINISH, 0 }, false, true },
		{ { 2, 1, 1, 0, OK, FINISH, 0 }, false, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spoke_policy_history history = history_of(&rows[i].row);

		history.repeatable = true;
		history.waited = rows[i].waited;
		history.hedge_ns = 20 * MS;
		check(&spoke_policy_failover, &rows[i].row, &history);
		assert_int_equal(spoke_policy_failover.next(&history).wait_ns,
				 rows[i].ends ? 0 : 20 * MS);
		history.hedge_ns = 0;
		assert_int_equal(spoke_policy_failover.next(&history).wait_ns, 0);
	}
}

TEST(failback_pauses_after_failure_then_retries)
{
	static const struct row asked[] = {
		{ 0, 0, 0, 0, NONE, SEND, 1 },       { 1, 0, 1, 0, OK, FINISH, 0 },
		{ 1, 0, 0, 1, ANSWERED, FINISH, 0 }, { 1, 0, 0, 1, SAFE, WAIT, 0 },
		{ 1, 0, 0, 1, UNSURE, WAIT, 0 },     { 2, 0, 0, 2, SAFE, WAIT, 0 },
		{ 3, 0, 0, 3, SAFE, FINISH, 0 },     { 3, 0, 0, 3, UNSURE, FINISH, 0 },
		{ 2, 0, 1, 1, OK, FINISH, 0 },       { 2, 0, 0, 2, ANSWERED, FINISH, 0 },
	};
	static const struct row waited[] = {
		{ 1, 0, 0, 1, SAFE, SEND, 1 },
		{ 2, 0, 0, 2, UNSURE, SEND, 1 },
	};
	struct spoke_policy_history once = history_of(&asked[4]);

	assert_int_equal(spoke_policy_failback.next(&once).step, FINISH);
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		struct spoke_policy_history history = history_of(&asked[i]);

		history.repeatable = true;
		check(&spoke_policy_failback, &asked[i], &history);
	}
	for (size_t i = 0; i < sizeof(waited) / sizeof(waited[0]); i++) {
		struct spoke_policy_history history = history_of(&waited[i]);

		history.waited = history.deferred = history.repeatable = true;
		check(&spoke_policy_failback, &waited[i], &history);
		history.left_ns = 0;
		assert_int_equal(spoke_policy_failback.next(&history).step, FINISH);
	}
}

TEST(failback_without_retries_or_time_equals_failfast)
{
	static const struct row row = { 1, 0, 0, 1, SAFE, FINISH, 0 };
	struct spoke_policy_history history = history_of(&row);

	history.retries = 0;
	check(&spoke_policy_failback, &row, &history);
	history = history_of(&row);
	history.left_ns = 0;
	check(&spoke_policy_failback, &row, &history);
	/* The call's deadline is enforced by its driver, not by the policy. */
	history.left_ns = 1;
	assert_int_equal(spoke_policy_failback.next(&history).step, WAIT);
}

static uint64_t pause_after(uint32_t begun, uint64_t period_ns, bool growing, uint64_t dice)
{
	struct row row = { .begun = begun, .failed = begun, .last = UNSURE };
	struct spoke_policy_history history = history_of(&row);
	struct spoke_policy_verdict verdict;

	history.repeatable = true;
	history.retries = UINT32_MAX;
	history.period_ns = period_ns;
	history.growing = growing;
	history.dice = dice;
	verdict = spoke_policy_failback.next(&history);
	assert_int_equal(verdict.step, WAIT);
	assert_true(verdict.defer);
	return verdict.wait_ns;
}

TEST(fixed_pause_equals_period_exactly)
{
	static const uint64_t periods[] = { 1, 10 * MS, 5 * SECOND, 100 * SECOND, UINT64_MAX };

	for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++)
		for (uint32_t begun = 1; begun < 40; begun += 7)
			assert_int_equal(pause_after(begun, periods[i], false, UINT64_MAX / 3),
					 periods[i]);
}

/* Returns the random number that leaves a pause unchanged: the middle of -20 % to +20 %. */
static uint64_t middle(uint64_t pause_ns)
{
	return pause_ns / 5;
}

TEST(growing_pause_is_capped_at_a_minute_with_jitter)
{
	assert_int_equal(pause_after(1, 5 * SECOND, true, middle(5 * SECOND)), 5 * SECOND);
	assert_int_equal(pause_after(2, 5 * SECOND, true, middle(8 * SECOND)), 8 * SECOND);
	assert_int_equal(pause_after(3, 5 * SECOND, true, middle(12800 * MS)), 12800 * MS);
	assert_int_equal(pause_after(50, 5 * SECOND, true, middle(60 * SECOND)), 60 * SECOND);
	assert_int_equal(pause_after(UINT32_MAX, 5 * SECOND, true, 0), 48 * SECOND);
	assert_int_equal(pause_after(1, 5 * SECOND, true, 0), 4 * SECOND);
	assert_int_equal(pause_after(1, 5 * SECOND, true, 2 * SECOND), 6 * SECOND);
	/* A period longer than a minute is not capped. */
	assert_int_equal(pause_after(1, 100 * SECOND, true, middle(100 * SECOND)), 100 * SECOND);
	assert_int_equal(pause_after(9, 100 * SECOND, true, middle(100 * SECOND)), 100 * SECOND);
	assert_in_range(pause_after(1, UINT64_MAX, true, 12345), UINT64_C(1) << 61, UINT64_MAX);
}

TEST(forking_sends_several_and_takes_first_answer)
{
	static const struct row rows[] = {
		{ 0, 0, 0, 0, NONE, SEND, 2 },       { 2, 1, 1, 0, OK, FINISH, 0 },
		{ 2, 1, 0, 1, ANSWERED, FINISH, 0 }, { 2, 1, 0, 1, SAFE, LISTEN, 0 },
		{ 2, 1, 0, 1, UNSURE, LISTEN, 0 },   { 2, 0, 1, 1, OK, FINISH, 0 },
		{ 2, 0, 0, 2, UNSURE, FINISH, 0 },
	};
	static const struct {
		uint32_t forks, able, count;
	} widths[] = { { 2, 1, 1 }, { 3, 9, 3 }, { 0, 3, 1 }, { 2, 0, 1 }, { UINT32_MAX, 7, 7 } };

	CHECK(&spoke_policy_forking, rows);
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		struct row row = { .step = SEND, .count = widths[i].count };
		struct spoke_policy_history history = history_of(&row);

		history.forks = widths[i].forks;
		history.able = history.fresh = widths[i].able;
		check(&spoke_policy_forking, &row, &history);
	}
}

TEST(broadcast_sends_to_all_and_awaits_all)
{
	static const struct row rows[] = {
		{ 0, 0, 0, 0, NONE, SEND, 3 },     { 3, 2, 1, 0, OK, LISTEN, 0 },
		{ 3, 2, 0, 1, UNSURE, LISTEN, 0 }, { 3, 1, 0, 2, ANSWERED, LISTEN, 0 },
		{ 3, 1, 1, 1, SAFE, LISTEN, 0 },   { 3, 0, 3, 0, OK, FINISH, 0 },
		{ 3, 0, 2, 1, OK, FINISH, 0 },     { 3, 0, 0, 3, UNSURE, FINISH, 0 },
	};
	static const struct row nobody = { 0, 0, 0, 0, NONE, SEND, 1 };
	struct spoke_policy_history history = history_of(&nobody);

	CHECK(&spoke_policy_broadcast, rows);
	history.able = history.fresh = 0;
	check(&spoke_policy_broadcast, &nobody, &history);
}

TEST(broadcast_ends_when_fail_percent_is_reached)
{
	static const struct {
		uint32_t percent, failed, ok;
		bool over, last_failure;
	} cases[] = {
		{ 0, 0, 1, false, false },          { 0, 1, 0, true, true },
		{ 50, 4, 0, false, false },         { 50, 5, 0, true, true },
		{ 50, 5, 4, true, true },           { 1, 1, 0, true, true },
		{ 100, 9, 0, false, false },        { 100, 10, 0, true, true },
		{ 50, 1, 9, true, true },           { 50, 0, 10, true, false },
		{ UINT32_MAX, 9, 0, false, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct row row = { .begun = 10,
				   .ok = cases[i].ok,
				   .failed = cases[i].failed,
				   .last = cases[i].failed > 0 ? SAFE : OK };
		struct spoke_policy_history history = history_of(&row);
		struct spoke_policy_verdict verdict;

		history.open = 10 - cases[i].ok - cases[i].failed;
		history.fail_percent = cases[i].percent;
		verdict = spoke_policy_broadcast.next(&history);
		assert_int_equal(verdict.step, cases[i].over ? FINISH : LISTEN);
		assert_int_equal(verdict.last_failure, cases[i].last_failure);
	}
}
