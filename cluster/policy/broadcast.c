/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one attempt at every provider that can take one, all at the same time. The caller gets OK
 * and the last answer if all succeed, else the last error: after the last attempt, or as soon as
 * `fail_percent` of all have failed or returned an error. 100 means after the last failure, 0
 * after the first. A request runs at most once at each provider.
 */
#include <spoke/policy.h>

static bool too_many_failed(const struct spoke_policy_history *history)
{
	return history->failed > 0 &&
	       (uint64_t)history->failed * 100 >= (uint64_t)history->fail_percent * history->begun;
}

static struct spoke_policy_verdict next(const struct spoke_policy_history *history)
{
	if (history->begun == 0) {
		return (struct spoke_policy_verdict){
			.step = SPOKE_STEP_SEND,
			.count = history->able > 0 ? history->able : 1,
		};
	}
	if (history->open > 0 && !too_many_failed(history))
		return (struct spoke_policy_verdict){ .step = SPOKE_STEP_LISTEN };
	return (struct spoke_policy_verdict){
		.step = SPOKE_STEP_FINISH,
		.last_failure = history->failed > 0,
	};
}

const struct spoke_policy spoke_policy_broadcast = {
	.name = "broadcast",
	.next = next,
	.in_order = true, /* all are asked, so no balancer is needed */
};
