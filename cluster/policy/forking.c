/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes attempts at `forks` providers at the same time, or at all that can take one if they are
 * fewer. The caller gets the first answer, including an error of the handler, which the others
 * would return too; or the last error when all have failed. A request runs at most once at each
 * of them: slower ones are not cancelled.
 */
#include <spoke/policy.h>

static uint32_t width_of(const struct spoke_policy_history *history)
{
	uint32_t width = history->forks < history->able ? history->forks : history->able;

	return width > 0 ? width : 1;
}

static struct spoke_policy_verdict next(const struct spoke_policy_history *history)
{
	if (history->begun == 0) {
		return (struct spoke_policy_verdict){
			.step = SPOKE_STEP_SEND,
			.count = width_of(history),
		};
	}
	if (history->ok == 0 && history->last != SPOKE_FATE_ANSWERED && history->open > 0)
		return (struct spoke_policy_verdict){ .step = SPOKE_STEP_LISTEN };
	return (struct spoke_policy_verdict){ .step = SPOKE_STEP_FINISH };
}

const struct spoke_policy spoke_policy_forking = {
	.name = "forking",
	.next = next,
};
