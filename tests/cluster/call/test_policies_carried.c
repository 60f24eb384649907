/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls with each policy, driven at random without limits. Providers come and go, attempts end in
 * every way. No call may send attempts for ever.
 */
#include "cluster/catalog.h"
#include "tests/cluster/dice.h"
#include "tests/support/test.h"

#define SECOND UINT64_C(1000000000)

static void end_one(struct spoke_policy_history *history, uint64_t dice)
{
	static const enum spoke_policy_fate fates[] = { SPOKE_FATE_OK,   SPOKE_FATE_ANSWERED,
							SPOKE_FATE_SAFE, SPOKE_FATE_UNSURE,
							SPOKE_FATE_SAFE, SPOKE_FATE_UNSURE };

	history->open--;
	history->last = fates[dice % (sizeof(fates) / sizeof(fates[0]))];
	if (history->last == SPOKE_FATE_OK)
		history->ok++;
	else
		history->failed++;
}

static void begin(struct spoke_policy_history *history, uint32_t count)
{
	history->begun += count;
	history->open += count;
	history->waited = false;
	history->fresh -= count < history->fresh ? count : history->fresh;
}

static bool fans_out(const struct spoke_policy *policy)
{
	return policy == &spoke_policy_forking || policy == &spoke_policy_broadcast;
}

static uint32_t attempts_allowed(const struct spoke_policy *policy,
				 const struct spoke_policy_history *start)
{
	uint32_t width = policy == &spoke_policy_broadcast ? start->able
			 : start->forks < start->able      ? start->forks
							   : start->able;

	return fans_out(policy) ? (width > 0 ? width : 1)
				: 1 + (policy->retries > 0 ? start->retries : 0);
}

/* Drives a call with a policy at random. The steps are bounded, because no call may last for ever.
 */
static void carry(const struct spoke_policy *policy, uint64_t *seed)
{
	struct spoke_policy_history history = {
		.able = (uint32_t)(dice_roll(seed) % 6),
		.repeatable = dice_roll(seed) % 2,
		.left_ns = dice_roll(seed) % (30 * SECOND),
		.retries = (uint32_t)(dice_roll(seed) % 6),
		.forks = (uint32_t)(dice_roll(seed) % 6),
		.fail_percent = (uint32_t)(dice_roll(seed) % 120),
		.growing = dice_roll(seed) % 2,
		.period_ns = dice_roll(seed) % (5 * SECOND),
	};
	uint32_t allowed = attempts_allowed(policy, &history);
	unsigned steps = 0;

	history.fresh = history.able;
	for (;;) {
		struct spoke_policy_verdict verdict;

		history.dice = dice_roll(seed);
		verdict = policy->next(&history);
		assert_true(steps++ < 40);
		if (verdict.step == SPOKE_STEP_FINISH)
			break;
		if (verdict.step == SPOKE_STEP_SEND) {
			assert_true(verdict.count > 0 && verdict.count <= allowed - history.begun);
			begin(&history, verdict.count);
		} else if (verdict.step == SPOKE_STEP_WAIT) {
			assert_true(history.open == 0 && verdict.defer && !history.waited);
			history.waited = history.deferred = true;
			history.left_ns -= verdict.wait_ns < history.left_ns ? verdict.wait_ns
									     : history.left_ns;
			history.able = history.fresh = (uint32_t)(dice_roll(seed) % 6);
			continue;
		}
		assert_true(history.open > 0); /* LISTEN too waits for the end of an attempt */
		end_one(&history, dice_roll(seed));
	}
	assert_true(history.begun >= 1);
	assert_true(history.open == 0 || fans_out(policy));
}

TEST(policies_end_every_call)
{
	uint64_t seed = 1;

	for (unsigned i = 0; spokei_catalog_policy_name(i); i++)
		for (unsigned call = 0; call < 20000; call++)
			carry(spokei_catalog_policy(spokei_catalog_policy_name(i)), &seed);
}
