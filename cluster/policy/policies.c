/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in policies. Each is a pure function from the history of a call to the next step, and
 * declares which attempts it makes; <spoke/policy.h> says for each how often a request may run.
 */
#include "cluster/policy/policies.h"

#include "core/base/pace.h"

static struct spoke_policy_verdict send_attempts(uint32_t count)
{
	return (struct spoke_policy_verdict){ .step = SPOKE_STEP_SEND, .count = count };
}

static struct spoke_policy_verdict finish(void)
{
	return (struct spoke_policy_verdict){ .step = SPOKE_STEP_FINISH };
}

/* --- one attempt */

static struct spoke_policy_verdict next_once(const struct spoke_policy_history *history)
{
	return history->begun == 0 ? send_attempts(1) : finish();
}

const struct spoke_policy spoke_policy_failfast = {
	.name = "failfast",
	.next = next_once,
	.attempts = SPOKE_ATTEMPTS_ONE,
};

/* The others of the list stand by. */
const struct spoke_policy spoke_policy_available = {
	.name = "available",
	.next = next_once,
	.attempts = SPOKE_ATTEMPTS_ONE,
	.in_order = true,
};

/* For calls that must never fail, e.g. log records: hides also an error of the handler. */
static struct spoke_policy_verdict next_excused(const struct spoke_policy_history *history)
{
	if (history->begun == 0)
		return send_attempts(1);
	return (struct spoke_policy_verdict){
		.step = SPOKE_STEP_FINISH,
		.excuse = history->last != SPOKE_FATE_OK,
	};
}

const struct spoke_policy spoke_policy_failsafe = {
	.name = "failsafe",
	.next = next_excused,
	.attempts = SPOKE_ATTEMPTS_ONE,
	.excuses = true,
};

/* --- failover: a failed attempt is followed at once by an attempt at another provider, as long as
 * there is an untried one. An attempt that has used up its part of the time was given up for such a
 * provider. If that one is gone meanwhile, a tried one gets the next attempt: a call does not time
 * out before its deadline. An attempt that is slow is not given up, but gets a backup elsewhere. */

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
	return history->begun <= history->retries && (history->fresh > 0 || history->given_up) &&
	       history->left_ns > 0;
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
		return finish();
	if (more && history->waited && history->hedge_ns > 0)
		return attempt(history);
	return (struct spoke_policy_verdict){
		.step = SPOKE_STEP_LISTEN,
		.wait_ns = more ? history->hedge_ns : 0,
	};
}

static struct spoke_policy_verdict next_failover(const struct spoke_policy_history *history)
{
	if (history->open > 0)
		return next_open(history);
	return history->begun == 0 || may_follow(history) ? attempt(history) : finish();
}

const struct spoke_policy spoke_policy_failover = {
	.name = "failover",
	.next = next_failover,
	.retries = 2,
	.attempts = SPOKE_ATTEMPTS_IN_TURN,
};

/*
 * --- failback: the ticket gets the answer of a later attempt, or the last error. There are up to
 * `retries` of them, after pauses: exactly period_ns each, or growing from period_ns by 1.6 up to
 * 60 s (or period_ns, if larger) with 20 % jitter.
 *
 * A pause may end after the deadline: the wheel ends the call at its deadline, as expired, which
 * tells more than the error of an early attempt. Only a call whose deadline has passed is
 * finished here.
 */

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
	       (history->last == SPOKE_FATE_UNSURE && !history->repeatable) ||
	       history->begun > history->retries || history->left_ns == 0;
}

static struct spoke_policy_verdict next_failback(const struct spoke_policy_history *history)
{
	if (history->begun == 0)
		return send_attempts(1);
	if (is_over(history))
		return finish();
	if (history->waited)
		return send_attempts(1);
	return (struct spoke_policy_verdict){
		.step = SPOKE_STEP_WAIT,
		.wait_ns = pause_of(history),
		.defer = true,
	};
}

const struct spoke_policy spoke_policy_failback = {
	.name = "failback",
	.next = next_failback,
	.retries = 3,
	.repeats = true,
};

/* --- forking: attempts at all that can take one if they are fewer than `forks`. An error of the
 * handler counts as an answer, because the others would return it too; slower attempts are not
 * cancelled. */

static struct spoke_policy_verdict next_forking(const struct spoke_policy_history *history)
{
	uint32_t width = history->forks < history->able ? history->forks : history->able;

	if (history->begun == 0)
		return send_attempts(width > 0 ? width : 1);
	if (history->ok == 0 && history->last != SPOKE_FATE_ANSWERED && history->open > 0)
		return (struct spoke_policy_verdict){ .step = SPOKE_STEP_LISTEN };
	return finish();
}

const struct spoke_policy spoke_policy_forking = {
	.name = "forking",
	.next = next_forking,
	.attempts = SPOKE_ATTEMPTS_FORKED,
};

/* --- broadcast: the caller gets OK and the last answer if all succeed, else the last error: after
 * the last attempt, or as soon as `fail_percent` of all have failed or returned an error. 100 means
 * after the last failure, 0 after the first. */

static bool too_many_failed(const struct spoke_policy_history *history)
{
	return history->failed > 0 &&
	       (uint64_t)history->failed * 100 >= (uint64_t)history->fail_percent * history->begun;
}

static struct spoke_policy_verdict next_broadcast(const struct spoke_policy_history *history)
{
	if (history->begun == 0)
		return send_attempts(history->able > 0 ? history->able : 1);
	if (history->open > 0 && !too_many_failed(history))
		return (struct spoke_policy_verdict){ .step = SPOKE_STEP_LISTEN };
	return (struct spoke_policy_verdict){
		.step = SPOKE_STEP_FINISH,
		.last_failure = history->failed > 0,
	};
}

const struct spoke_policy spoke_policy_broadcast = {
	.name = "broadcast",
	.next = next_broadcast,
	.attempts = SPOKE_ATTEMPTS_TO_ALL,
	.in_order = true, /* all are asked, so no balancer is needed */
};

/* --- all */

const struct spoke_policy *const spokei_policies[] = {
	&spoke_policy_failover,  &spoke_policy_failfast,
	&spoke_policy_failsafe,  &spoke_policy_failback,
	&spoke_policy_forking,   &spoke_policy_broadcast,
	&spoke_policy_available, NULL,
};
