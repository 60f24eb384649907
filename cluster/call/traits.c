/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out the properties of a policy from its verdicts about sample histories. */
#include "cluster/call/traits.h"

#include "cluster/call/settings.h"

#define ENDPOINTS 1000u /* able to take the call; more than any setting asks for */

static const enum spoke_policy_fate failures[] = {
	SPOKE_FATE_ANSWERED,
	SPOKE_FATE_SAFE,
	SPOKE_FATE_UNSURE,
};

/* Samples of the random number: a policy may answer differently to each. */
static const uint64_t dices[] = { 0, UINT64_MAX / 3, UINT64_MAX / 3 * 2, UINT64_MAX };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct spoke_policy_history begin_history(const struct spoke_policy *policy,
						 const struct spokei_call_settings *settings)
{
	return (struct spoke_policy_history){
		.able = ENDPOINTS,
		.fresh = ENDPOINTS,
		.repeatable = settings->idempotent,
		.left_ns = UINT64_MAX,
		.retries = spokei_settings_retries(settings, policy),
		.forks = settings->forks,
		.fail_percent = settings->fail_percent,
		.growing = settings->growing,
		.period_ns = settings->period_ns,
		.hedge_ns = settings->idempotent && settings->hedge_ns > 0,
	};
}

/* Does the call end as its last attempt did, whatever the random number? */
static bool finishes(const struct spoke_policy *policy, struct spoke_policy_history history,
		     bool excused)
{
	for (size_t i = 0; i < COUNT(dices); i++) {
		struct spoke_policy_verdict verdict;

		history.dice = dices[i];
		verdict = policy->next(&history);
		if (verdict.step != SPOKE_STEP_FINISH || verdict.excuse != excused ||
		    (history.last == SPOKE_FATE_OK && verdict.last_failure))
			return false;
	}
	return true;
}

static bool finishes_after_failure(const struct spoke_policy *policy,
				   struct spoke_policy_history history, bool excused)
{
	history.begun = 1;
	history.failed = 1;
	for (size_t i = 0; i < COUNT(failures); i++) {
		history.last = failures[i];
		if (!finishes(policy, history, excused))
			return false;
	}
	return true;
}

/* After the first attempt, and after the last that the settings allow. */
static bool finishes_after_answer(const struct spoke_policy *policy,
				  struct spoke_policy_history history)
{
	history.last = SPOKE_FATE_OK;
	history.begun = 1;
	history.ok = 1;
	if (!finishes(policy, history, false))
		return false;
	history.begun = history.retries + 1;
	history.failed = history.retries;
	return finishes(policy, history, false);
}

struct spokei_policy_traits spokei_policy_traits_of(const struct spoke_policy *policy,
						    const struct spokei_call_settings *settings)
{
	struct spoke_policy_history history = begin_history(policy, settings);
	struct spokei_policy_traits traits = { .policy = policy };
	struct spoke_policy_verdict first;

	/* Its attempts are numbered and may last long: none of the short ways is open. */
	if (policy->repeats)
		return traits;
	first = policy->next(&history);
	traits.fans_out = first.step == SPOKE_STEP_SEND && first.count > 1;
	if (first.step != SPOKE_STEP_SEND || traits.fans_out)
		return traits;
	traits.first_answer = finishes_after_answer(policy, history);
	traits.hedges = first.wait_ns > 0;
	if (!traits.first_answer)
		return traits;
	traits.excuses = finishes_after_failure(policy, history, true);
	traits.one_attempt = !traits.hedges &&
			     (traits.excuses || finishes_after_failure(policy, history, false));
	history.able = 1;
	history.fresh = 0;
	traits.one_attempt_if_alone = traits.one_attempt ||
				      finishes_after_failure(policy, history, false);
	return traits;
}
