/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one attempt. The caller gets its answer, or nil if the attempt fails with any error,
 * including one of the handler: for calls that must never fail, e.g. log records. A request runs
 * at most once.
 */
#include <spoke/policy.h>

static struct spoke_policy_verdict next(const struct spoke_policy_history *history)
{
	if (history->begun == 0)
		return (struct spoke_policy_verdict){ .step = SPOKE_STEP_SEND, .count = 1 };
	return (struct spoke_policy_verdict){
		.step = SPOKE_STEP_FINISH,
		.excuse = history->last != SPOKE_FATE_OK,
	};
}

const struct spoke_policy spoke_policy_failsafe = {
	.name = "failsafe",
	.next = next,
};
