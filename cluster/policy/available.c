/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one attempt, at the first provider in the list that can take it; the others stand by. The
 * caller gets its result. A request runs at most once.
 */
#include <spoke/policy.h>

static struct spoke_policy_verdict next(const struct spoke_policy_history *history)
{
	if (history->begun == 0)
		return (struct spoke_policy_verdict){ .step = SPOKE_STEP_SEND, .count = 1 };
	return (struct spoke_policy_verdict){ .step = SPOKE_STEP_FINISH };
}

const struct spoke_policy spoke_policy_available = {
	.name = "available",
	.next = next,
	.in_order = true,
};
