/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated provider: listens, and its handlers answer as the call requests. */
#include "tests/sim/chains.h"
#include "tests/sim/store.h"

#include "cluster/provider/parts.h"
#include "cluster/serve/dedupe.h"
#include "transport/conn/link.h"

#include <stdio.h>
#include <string.h>

/* --- answers */

static void answer(const struct sim_held *to, size_t len)
{
	static unsigned char body[65536]; /* zeros after the mark */
	static unsigned char bytes[5 + sizeof(body)];
	struct spoke_builder builder;
	struct spoke_span packed;

	sim_mark_write(body, to->number);
	spoke_builder_init_fixed(&builder, bytes, sizeof(bytes), NULL);
	spoke_pack_bin(&builder, body, len < SIM_MARK ? SIM_MARK : len);
	sim_handler_ended(to->by, to->stream);
	sim_parent_answered(to->by->process.world, to->request);
	if (spoke_builder_finish(&builder, &packed))
		spoke_reply_error(to->request, 1, "no room");
	else
		spoke_reply(to->request, (struct spoke_value){ packed.data, packed.len });
}

static void answer_held(struct sim_world *world, unsigned which)
{
	struct sim_held held = world->held[which];

	world->held[which] = world->held[--world->held_count];
	held.by->process.progress++;
	answer(&held, SIM_MARK);
}

void sim_provider_answer_due(struct sim_world *world, bool all)
{
	for (unsigned i = world->held_count; i-- > 0;) {
		const struct sim_held *held = &world->held[i];

		if (i < world->held_count && (all || held->due_ns <= world->virt.now_ns) &&
		    held->by->process.virt.held_until_ns <= world->virt.now_ns)
			answer_held(world, i);
	}
}

void sim_provider_drop_held(struct sim_provider *provider)
{
	struct sim_world *world = provider->process.world;

	for (unsigned i = world->held_count; i-- > 0;) {
		if (i < world->held_count && world->held[i].by == provider)
			answer_held(world, i);
	}
}

void sim_provider_answer(struct sim_world *world, const struct spoke_request *request)
{
	for (unsigned i = 0; i < world->held_count; i++) {
		if (world->held[i].request == request) {
			answer_held(world, i);
			return;
		}
	}
}

void sim_provider_answer_now(const struct sim_held *what)
{
	answer(what, SIM_MARK);
}

void sim_provider_hold(const struct sim_held *what, uint64_t ns)
{
	struct sim_world *world = what->by->process.world;

	if (world->held_count == SIM_HELD) {
		answer(what, SIM_MARK);
		return;
	}
	world->held[world->held_count] = *what;
	world->held[world->held_count++].due_ns = world->virt.now_ns + ns;
}

/* --- handlers */

static struct sim_call *call_of(struct sim_world *world, const struct spoke_request *request)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value;
	struct spoke_span span;
	uint64_t number;

	if (!spoke_cursor_next(&args, &value) || spoke_value_bin(value, &span) ||
	    span.len < SIM_MARK)
		return NULL;
	number = sim_mark_read(span.data);
	return number > 0 && number <= world->call_count ? &world->calls[number - 1] : NULL;
}

/* Frees the provider in a callback, while it serves requests. */
static void maybe_free(struct sim_provider *provider)
{
	struct sim_process *process = &provider->process;
	struct sim_world *world = process->world;
	struct spoke_provider *freed = provider->provider;

	if (world->healing || !provider->plan->frees_inside || freed == NULL || process->draining ||
	    !sim_chance(&world->dice, 2))
		return;
	sim_note(world, "p% frees its provider", process->number, 0, 0, 0);
	provider->provider = NULL;
	spoke_provider_free(freed);
	process->closed = true;
	process->back_ns = world->virt.now_ns + sim_magnitude(&world->dice, MS, 200 * MS);
}

static void handle(struct spoke_request *request, void *arg)
{
	struct sim_provider *provider = arg;
	struct sim_world *world = provider->process.world;
	struct sim_call *call = call_of(world, request);
	struct sim_held what = { .request = request, .by = provider };

	provider->process.progress++;
	if (call == NULL) { /* damaged on its way */
		spoke_reply_error(request, 1, "damaged");
		return;
	}
	what.number = sim_number(world, call);
	what.stream = sim_call_runs(provider, call, request);
	sim_lease_runs(provider, request);
	sim_fault_stall(&provider->process);
	maybe_free(provider);
	if (world->chains && sim_chain_serves(&what, call, what.stream))
		return;
	switch ((enum sim_manner)call->manner) {
	case SIM_LATER:
		sim_provider_hold(&what, sim_between(&world->dice, 0,
						     call->timeout_ns + call->timeout_ns / 4));
		return;
	case SIM_NEVER:
		sim_provider_hold(&what, call->timeout_ns + 3 * SECOND);
		return;
	case SIM_ERROR:
		sim_handler_ended(provider, what.stream);
		spoke_reply_error(request, (int32_t)what.number, "no");
		return;
	case SIM_LARGE:
		answer(&what, world->plan->large);
		return;
	case SIM_AT_ONCE:
	case SIM_MANNERS:
		answer(&what, (size_t)sim_between(&world->dice, SIM_MARK, world->plan->size_max));
	}
}

static void changed(void *arg, const struct spoke_link_event *event)
{
	struct sim_provider *provider = arg;

	sim_link_changed(&provider->process, event);
}

/* --- start and end */

/* In worlds with leases each provider has a fence, as long as it runs. */
static bool make_fence(struct sim_provider *provider)
{
	memset(provider->fences, 0, sizeof(provider->fences));
	memset(provider->seen, 0, sizeof(provider->seen));
	return provider->process.world->store == NULL ||
	       spoke_fence_new(&provider->process.virt.env, NULL, &provider->fence) == 0;
}

static bool make(struct sim_provider *provider)
{
	static const struct spoke_service_options service = { .name = "sim.Echo" };
	const struct spoke_handler handlers[] = {
		{
			.handle = handle,
			.arg = provider,
			.executes = provider->plan->executes,
		},
		sim_chains_handler(provider),
	};
	size_t count = provider->process.world->chains ? 2 : 1;
	const struct spoke_filter *filters[1];
	struct spoke_provider_options options = {
		.heartbeat_ns = provider->plan->heartbeat_ns,
		.requests_max = provider->plan->requests_max,
		.requests_per_connection_max = provider->plan->requests_per_connection_max,
		.default_service = "sim.Echo",
		.changed = changed,
		.changed_arg = provider,
		.registry = "sim://world",
		.registry_kind = &sim_registry_kind,
		.registry_retry_ns = provider->process.world->plan->registry_retry_ns,
		.weight = provider->plan->weight,
		.warmup_ns = provider->plan->warmup_ns,
		.register_delay_ns = provider->plan->delay_ns,
		.dedupe_ns = provider->plan->dedupe_ns,
		.tls = sim_secure_options(&provider->process),
	};
	struct spoke_engine_options with = { .env = &provider->process.virt.env,
					     .timers_max = 100000 };
	char url[64];

	if (!make_fence(provider) || !sim_access_load(provider))
		return false;
	options.config = provider->config;
	if (provider->fence) {
		filters[0] = spoke_fence_filter(provider->fence);
		options.filters = filters;
		options.filter_count = 1;
	}
	if (spoke_engine_new(&with, &provider->process.engine))
		return false;
	if (spoke_provider_new(provider->process.engine, &options, &provider->provider))
		return false;
	sim_secure_tap(provider->provider->tls);
	sim_share(provider->process.world, provider->provider->link);
	if (provider->plan->out_high) {
		provider->provider->link->limits.out_high = provider->plan->out_high;
		provider->provider->link->limits.out_low = provider->plan->out_high / 4;
	}
	(void)snprintf(url, sizeof(url), "dubbo://%s", provider->address);
	if (spoke_provider_add(provider->provider, &service, handlers, count))
		return false;
	if (!sim_chains_make(provider))
		return false;
	if (provider->plan->dedupe_max)
		provider->provider->dedupe->table.count_max = provider->plan->dedupe_max;
	return spoke_provider_listen(provider->provider, url) == 0;
}

/* --- stepping aside */

bool sim_provider_is_online(const struct sim_provider *provider)
{
	return !provider->aside && sim_now(&provider->process) >= provider->delay_until_ns;
}

void sim_provider_step(struct sim_provider *provider)
{
	struct sim_process *process = &provider->process;
	struct sim_world *world = process->world;
	bool aside = !provider->aside;

	if (provider->provider == NULL || process->closed || process->draining ||
	    provider->next_step_ns == 0 ||
	    (world->healing ? aside : world->virt.now_ns < provider->next_step_ns))
		return;
	provider->next_step_ns = world->virt.now_ns +
				 sim_between(&world->dice, 1, 2 * world->plan->step_every_ns);
	if (aside ? spoke_provider_offline(provider->provider)
		  : spoke_provider_online(provider->provider))
		return;
	sim_note(world, aside ? "p% is told to step aside" : "p% is told to come back",
		 process->number, 0, 0, 0);
	provider->aside = aside;
	provider->steps++;
	provider->delay_until_ns = 0;
}

/* Starts the provider; if there is no memory, tries again a little later. */
void sim_provider_start(struct sim_provider *provider)
{
	struct sim_process *process = &provider->process;
	struct sim_world *world = process->world;

	process->engine = NULL;
	provider->provider = NULL;
	provider->fence = NULL;
	provider->config = NULL;
	process->draining = false;
	process->closed = false;
	process->back_ns = 0;
	provider->starts++;
	provider->aside = false;
	provider->steps = 0;
	provider->delay_until_ns = sim_now(process) + provider->plan->delay_ns;
	if (world->plan->step_every_ns)
		provider->next_step_ns = world->virt.now_ns +
					 sim_between(&world->dice, 1, world->plan->step_every_ns);
	if (make(provider)) {
		sim_note(world, "p% starts", process->number, 0, 0, 0);
		return;
	}
	sim_note(world, "p% cannot start", process->number, 0, 0, 0);
	sim_process_end(process);
	process->back_ns = world->virt.now_ns + 10 * MS;
}
