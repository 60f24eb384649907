/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the history of a call, and shows it to its policy. */
#include "cluster/call/ask.h"

#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/call/retry_state.h"
#include "cluster/endpoints/directory.h"
#include "core/engine/engine.h"

void spokei_call_open(struct spokei_call *call)
{
	struct spokei_retry_state *retry = call->retry;
	const struct spoke_policy *policy = retry->args.policy;

	spokei_retry_state_open(retry, call);
	/* The result under a policy that never begins an attempt. */
	retry->ending.error = SPOKE_EUNAVAILABLE;
	retry->lasts_ns = spokei_settings_deadline(&call->method->settings, policy,
						   retry->args.timeout_ns);
	if (policy->repeats)
		retry->id = call->method->caller->next_id++;
}

bool spokei_call_is_repeatable(const struct spokei_retry_state *retry)
{
	return retry->args.policy->repeats || retry->call->method->settings.idempotent;
}

uint64_t spokei_call_left(const struct spokei_retry_state *retry)
{
	return spokei_retry_state_left(retry, retry->call->method->caller->engine->begin_ns);
}

static uint64_t random_number(const struct spokei_retry_state *retry)
{
	const struct spoke_env *env = retry->call->method->caller->engine->env;
	uint64_t dice;

	env->dice(env->ctx, &dice, sizeof(dice));
	return dice;
}

struct spoke_policy_verdict spokei_call_ask(const struct spokei_retry_state *retry)
{
	const struct spoke_policy *policy = retry->args.policy;
	const struct spokei_call_settings *settings = &retry->call->method->settings;
	struct spoke_policy_history history = {
		.begun = retry->begun,
		.open = retry->open,
		.ok = retry->ok,
		.failed = retry->failed,
		.last = retry->last,
		.repeatable = spokei_call_is_repeatable(retry),
		.deferred = spokei_retry_state_is_deferred(retry),
		.waited = retry->waited,
		.left_ns = spokei_call_left(retry),
		.retries = spokei_settings_retries(settings, policy),
		.forks = settings->forks,
		.fail_percent = settings->fail_percent,
		.growing = settings->growing,
		.period_ns = settings->period_ns,
	};

	if (SPOKEI_UNLIKELY(settings->hedge_ns && history.repeatable))
		history.hedge_ns = spokei_hedge_after(&retry->call->method->hedge,
						      settings->hedge_ns);
	if (settings->growing && policy->repeats)
		history.dice = random_number(retry);
	spokei_directory_count(retry->call->method->caller->directory, retry->tried,
			       retry->tried_count, &history.able, &history.fresh);
	return policy->next(&history);
}
