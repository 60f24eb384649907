/* SPDX-License-Identifier: Apache-2.0 */
/* The traits of a policy that spoke derives from the policy's verdicts on sample histories. */
#include "cluster/call/settings.h"
#include "cluster/call/traits.h"
#include "tests/support/test.h"

static struct spokei_policy_traits traits_with(const struct spoke_policy *policy, uint32_t retries)
{
	const struct spokei_call_settings settings = {
		.policy = policy,
		.retries = retries,
		.forks = 2,
		.fail_percent = 100,
		.period_ns = UINT64_C(5000000000),
	};

	return spokei_policy_traits_of(policy, &settings);
}

TEST(builtin_policies_have_their_traits)
{
	static const struct {
		const struct spoke_policy *policy;
		bool one, one_if_alone, first, fans_out, excuses;
	} rows[] = {
		{ &spoke_policy_failover, false, true, true, false, false },
		{ &spoke_policy_failfast, true, true, true, false, false },
		{ &spoke_policy_failsafe, true, true, true, false, true },
		{ &spoke_policy_failback, false, false, false, false, false },
		{ &spoke_policy_forking, false, false, false, true, false },
		{ &spoke_policy_broadcast, false, false, false, true, false },
		{ &spoke_policy_available, true, true, true, false, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spokei_policy_traits traits = traits_with(rows[i].policy,
								 SPOKEI_RETRIES_OF_POLICY);

		assert_ptr_equal(traits.policy, rows[i].policy);
		assert_int_equal(traits.one_attempt, rows[i].one);
		assert_int_equal(traits.one_attempt_if_alone, rows[i].one_if_alone);
		assert_int_equal(traits.first_answer, rows[i].first);
		assert_int_equal(traits.fans_out, rows[i].fans_out);
		assert_int_equal(traits.excuses, rows[i].excuses);
	}
}

TEST(failover_without_retries_makes_one_attempt)
{
	assert_true(traits_with(&spoke_policy_failover, 0).one_attempt);
}

static struct spoke_policy_verdict retry_by_chance(const struct spoke_policy_history *history)
{
	bool again = history->failed == history->begun && history->begun <= history->retries &&
		     history->dice > UINT64_MAX / 2;

	return (struct spoke_policy_verdict){
		.step = history->begun == 0 || again ? SPOKE_STEP_SEND : SPOKE_STEP_FINISH,
	};
}

static struct spoke_policy_verdict doubt_answers(const struct spoke_policy_history *history)
{
	return (struct spoke_policy_verdict){
		.step = history->ok < 2 ? SPOKE_STEP_SEND : SPOKE_STEP_FINISH,
	};
}

static struct spoke_policy_verdict excuse_refusals(const struct spoke_policy_history *history)
{
	return (struct spoke_policy_verdict){
		.step = history->begun == 0 ? SPOKE_STEP_SEND : SPOKE_STEP_FINISH,
		.excuse = history->last == SPOKE_FATE_SAFE,
	};
}

TEST(policy_that_retries_at_random_may_retry)
{
	static const struct spoke_policy policy = { .name = "chance",
						    .next = retry_by_chance,
						    .retries = 3 };
	struct spokei_policy_traits traits = traits_with(&policy, SPOKEI_RETRIES_OF_POLICY);

	assert_false(traits.one_attempt || traits.one_attempt_if_alone);
	assert_true(traits.first_answer);
}

TEST(policy_that_wants_two_answers_is_always_asked)
{
	static const struct spoke_policy policy = { .name = "doubts", .next = doubt_answers };
	struct spokei_policy_traits traits = traits_with(&policy, SPOKEI_RETRIES_OF_POLICY);

	assert_false(traits.one_attempt || traits.one_attempt_if_alone || traits.first_answer);
}

TEST(policy_that_excuses_some_failures_is_always_asked)
{
	static const struct spoke_policy policy = { .name = "some", .next = excuse_refusals };
	struct spokei_policy_traits traits = traits_with(&policy, SPOKEI_RETRIES_OF_POLICY);

	assert_false(traits.one_attempt || traits.one_attempt_if_alone || traits.excuses);
}
