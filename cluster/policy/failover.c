/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller gets the first answer, or the last error when no provider is left. A failed attempt
 * is followed at once by an attempt at another provider, as long as there is an untried one. A
 * request that may have run is sent again only if it is repeatable: it runs at most once, or up
 * to 1 + retries times.
 */
#include <spoke/policy.h>

static bool may_follow(const struct spoke_policy_history *history)
{
	switch (history->last) {
	case SPOKE_FATE_SAFE:
		break;
	case SPOKE_FATE_UNSURE:
		if (!history->repeatable)
			return false;
		break;
	case SPOKE_FATE_NONE:
	case SPOKE_FATE_OK:
	case SPOKE_FATE_ANSWERED:
	default:
		return false;
	}
	return history->begun <= history->retries && history->fresh > 0 && history->left_ns > 0;
}

static struct spoke_policy_verdict next(const struct spoke_policy_history *history)
{
	if (history->begun == 0 || may_follow(history))
		return (struct spoke_policy_verdict){ .step = SPOKE_STEP_SEND, .count = 1 };
	return (struct spoke_policy_verdict){ .step = SPOKE_STEP_FINISH };
}

const struct spoke_policy spoke_policy_failover = {
	.name = "failover",
	.next = next,
	.retries = 2,
};
