/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the consumers of a process: five combinations of policy, protocol and balancer. */
#include "teams.h"

#include "load.h"
#include "provider.h"

#include <stdio.h>

#define TIMEOUT_NS (500 * NS_PER_MS)
#define HEARTBEAT_NS (500 * NS_PER_MS)
#define RETRY_PERIOD_NS (300 * NS_PER_MS)
#define RETRY_DEADLINE_NS (8 * NS_PER_S)

static const struct form {
	const char *scheme; /* NULL: unix sockets */
	const struct spoke_policy *policy;
	const struct spoke_balancer *balancer;
	uint32_t connections; /* to each provider */
	uint32_t retries;
	size_t len_max;
	bool idempotent;
	bool wait_ready;
} forms[TEAMS] = {
	{ "dubbo", &spoke_policy_failover, &spoke_balancer_random, 12, 2, LOAD_LEN_MAX, false,
	  false },
	{ "dubbo", &spoke_policy_failover, &spoke_balancer_least_active, 12, 2, LOAD_LEN_MAX, true,
	  true },
	{ NULL, &spoke_policy_failfast, &spoke_balancer_round_robin, 12, SPOKE_NONE, LOAD_LEN_MAX,
	  false, false },
	{ "dubbo", &spoke_policy_failback, &spoke_balancer_two_choices, 13, 4, 8192, false, false },
	/* One connection each. Providers close idle connections of this protocol, because it has no
	 * heartbeats. */
	{ "msgpack-rpc", &spoke_policy_failover, &spoke_balancer_shortest_response, 1, 1,
	  LOAD_LEN_MAX, true, false },
};

static void name_place(const struct form *form, unsigned provider, char *url, size_t size)
{
	char path[PATH_BYTES];

	provider_path(provider, path);
	if (form->scheme)
		(void)snprintf(url, size, "%s://%s/soak.Service", form->scheme,
			       board->desks[provider].address);
	else
		(void)snprintf(url, size, "unix:%s?interface=soak.Service", path);
}

static int make_methods(struct team *team, const struct form *form)
{
	static const char *const names[KINDS] = {
		[KIND_ECHO] = "echo", [KIND_TOIL] = "toil",   [KIND_DOZE] = "doze",
		[KIND_FAIL] = "fail", [KIND_NUDGE] = "nudge",
	};
	struct spoke_method_options options = { .idempotent = form->idempotent };
	int error = SPOKE_OK;

	for (unsigned i = 0; i < KINDS && !error; i++)
		error = spoke_consumer_method(team->consumer, names[i], &options,
					      &team->methods[i]);
	return error;
}

static int open_team(struct spoke_engine *engine, const struct team_up *up, const struct form *form,
		     struct team *team)
{
	char urls[PROVIDERS][PATH_BYTES + 64];
	const char *more[PROVIDERS - 1];
	struct spoke_consumer_options options = {
		.url = urls[0],
		.more_urls = more,
		.more_count = PROVIDERS - 1,
		.timeout_ns = TIMEOUT_NS,
		.heartbeat_ns = HEARTBEAT_NS,
		.connections = form->connections,
		.policy = form->policy,
		.balancer = form->balancer,
		.retries = form->retries,
		.retry_period_ns = RETRY_PERIOD_NS,
		.retry_deadline_ns = RETRY_DEADLINE_NS,
		.failback_overflow = SPOKE_OVERFLOW_DROP_OLDEST,
		.wait_ready = form->wait_ready,
		.handle = up->handle,
		.settled = up->settled,
	};
	int error;

	for (unsigned i = 0; i < PROVIDERS; i++) {
		name_place(form, i, urls[i], sizeof(urls[i]));
		if (i > 0)
			more[i - 1] = urls[i];
	}
	*team = (struct team){
		.len_max = form->len_max,
		.attempts = form->retries == SPOKE_NONE ? 1 : 1 + form->retries,
		.deadline_ns = form->policy == &spoke_policy_failback ? RETRY_DEADLINE_NS : 0,
		.one_kind = form->scheme && form->scheme[0] == 'm',
	};
	error = spoke_consumer_new(engine, &options, &team->consumer);
	return error ? error : make_methods(team, form);
}

int teams_open(struct spoke_engine *engine, const struct team_up *up, bool probes,
	       struct team *teams)
{
	int error = SPOKE_OK;

	for (unsigned i = 0; i < TEAMS && !error; i++) {
		struct form form = forms[i];

		if (form.scheme && probes)
			form.scheme = "dubbo";
		error = open_team(engine, up, &form, &teams[i]);
	}
	return error;
}

uint64_t teams_ready(const struct team *teams)
{
	uint64_t ready = 0;

	for (unsigned i = 0; i < TEAMS; i++)
		ready += spoke_consumer_ready(teams[i].consumer);
	return ready;
}
