/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller gets the answer of the first attempt, or EDEFERRED and a ticket as soon as it has
 * failed. The ticket gets the answer of a later attempt, or the last error. There are up to
 * `retries` of them, after pauses: exactly period_ns each, or growing from period_ns by 1.6 up to
 * 60 s (or period_ns, if larger) with 20 % jitter. Choosing failback permits a request to run 1 +
 * retries times.
 *
 * A pause may end after the deadline: the wheel ends the call at its deadline, as expired, which
 * tells more than the error of an early attempt. Only a call whose deadline has passed is
 * finished here.
 */
#include "core/base/pace.h"

#include <spoke/policy.h>

#define CAP_NS UINT64_C(60000000000)
#define PAUSE_MAX_NS (UINT64_C(1) << 62) /* 146 years, the limit of a growing pause */

/* Returns the pause before the next attempt, after `begun` attempts have failed. */
static uint64_t pause_of(const struct spoke_policy_history *history)
{
	struct spokei_backoff backoff = { .first_ns = history->period_ns, .cap_ns = CAP_NS };

	if (!history->growing)
		return history->period_ns;
	if (backoff.first_ns > PAUSE_MAX_NS)
		backoff.first_ns = PAUSE_MAX_NS;
	if (backoff.cap_ns < backoff.first_ns)
		backoff.cap_ns = backoff.first_ns;
	return spokei_backoff_pause(&backoff, history->begun - 1, history->dice);
}

static bool is_over(const struct spoke_policy_history *history)
{
	return history->last == SPOKE_FATE_OK || history->last == SPOKE_FATE_ANSWERED ||
	       history->begun > history->retries || history->left_ns == 0;
}

static struct spoke_policy_verdict next(const struct spoke_policy_history *history)
{
	if (history->begun == 0)
		return (struct spoke_policy_verdict){ .step = SPOKE_STEP_SEND, .count = 1 };
	if (is_over(history))
		return (struct spoke_policy_verdict){ .step = SPOKE_STEP_FINISH };
	if (history->waited)
		return (struct spoke_policy_verdict){ .step = SPOKE_STEP_SEND, .count = 1 };
	return (struct spoke_policy_verdict){
		.step = SPOKE_STEP_WAIT,
		.wait_ns = pause_of(history),
		.defer = true,
	};
}

const struct spoke_policy spoke_policy_failback = {
	.name = "failback",
	.next = next,
	.retries = 3,
	.repeats = true,
};
