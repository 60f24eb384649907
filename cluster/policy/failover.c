/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller gets the first answer, or the last error when no provider is left. A failed attempt
 * is followed at once by an attempt at another provider, as long as there is an untried one. A
 * request that may have run is sent again only if it is repeatable: it runs at most once, or up
 * to 1 + retries times. An attempt that is slow is not given up, but gets a backup elsewhere.
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

/* Sends an attempt, which may get a backup if it is not the last one. */
static struct spoke_policy_verdict attempt(const struct spoke_policy_history *history)
{
	return (struct spoke_policy_verdict){
		.step = SPOKE_STEP_SEND,
		.count = 1,
		.wait_ns = history->begun < history->retries ? history->hedge_ns : 0,
	};
}

/* While attempts are open: the failure of another one was not the last word. */
static struct spoke_policy_verdict next_open(const struct spoke_policy_history *history)
{
	bool more = history->begun <= history->retries && history->fresh > 0;

	if (history->last == SPOKE_FATE_OK || history->last == SPOKE_FATE_ANSWERED)
		return (struct spoke_policy_verdict){ .step = SPOKE_STEP_FINISH };
	if (more && history->waited && history->hedge_ns > 0)
		return attempt(history);
	return (struct spoke_policy_verdict){
		.step = SPOKE_STEP_LISTEN,
		.wait_ns = more ? history->hedge_ns : 0,
	};
}

static struct spoke_policy_verdict next(const struct spoke_policy_history *history)
{
	if (history->open > 0)
		return next_open(history);
	if (history->begun == 0 || may_follow(history))
		return attempt(history);
	return (struct spoke_policy_verdict){ .step = SPOKE_STEP_FINISH };
}

const struct spoke_policy spoke_policy_failover = {
	.name = "failover",
	.next = next,
	.retries = 2,
};
