/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt. The caller gets its answer, or nil as if it had been answered so, whatever error the
 * attempt ended with, one of the handler too: for what must never hurt who calls, as notes for a
 * log. A request runs at most once.
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
	.once = true,
};
