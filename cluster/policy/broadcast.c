/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt at every provider that can take one, all at a time. The caller gets OK and the last
 * answer when all have answered so, else the last error: when the last attempt has ended, or before
 * that, as soon as so many have failed, or were answered with an error, that they are
 * `fail_percent` of all. With 100 that is when the last one has failed; with 0, when the first one
 * has. A request runs at most once at each provider.
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
		.blame = history->failed > 0,
	};
}

const struct spoke_policy spoke_policy_broadcast = {
	.name = "broadcast",
	.next = next,
	.in_order = true, /* everybody is asked: who is first does not matter */
	.fans_out = true,
};
