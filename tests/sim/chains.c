/* SPDX-License-Identifier: Apache-2.0 */
/* Providers that call one another: makes inner calls, and serves them. */
#include "tests/sim/chains.h"

#include "cluster/balancer/balancers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define METHOD "on"
#define LATER_PERMILLE 60u /* at each look: calls for requests whose handlers have returned */
#define CHAIN_SEED UINT64_C(0x636861696e7300)

void sim_chains_begin(struct sim_world *world)
{
	static struct sim_chains chains;
	static struct sim_inner *inners;

	if (world->plan->chain_permille == 0)
		return;
	if (inners == NULL)
		inners = calloc(SIM_INNERS, sizeof(*inners));
	if (inners == NULL)
		abort();
	chains = (struct sim_chains){ .inners = inners };
	chains.dice = sim_dice_make(world->plan->seed ^ CHAIN_SEED);
	world->chains = &chains;
}

struct sim_inner *sim_inner_at(struct sim_world *world, uint64_t number)
{
	struct sim_chains *chains = world->chains;

	return chains && number > SIM_INNER && number <= SIM_INNER + (uint64_t)chains->count
		       ? &chains->inners[number - SIM_INNER - 1]
		       : NULL;
}

/* --- making inner calls */

static void make_inner(struct sim_provider *by, struct sim_parent *parent, unsigned hops,
		       const struct spoke_call_options *with);

static void done(void *arg, const struct spoke_result *result)
{
	struct sim_inner *inner = arg;
	struct sim_provider *by = inner->by;
	struct sim_world *world = by->process.world;
	struct sim_parent *parent = inner->parent;

	by->process.progress++;
	sim_note(world, "p% inner call % ends: %e", by->process.number,
		 (uint64_t)(inner - world->chains->inners), (uint64_t)(unsigned)result->error, 0);
	sim_inner_ended(inner, result->error);
	sim_fault_stall(&by->process);
	if (world->healing || by->process.engine == NULL || by->process.ending ||
	    by->process.closed)
		return;
	/* A call in this callback is made for the same request. */
	if (sim_chance(&world->chains->dice, 150)) {
		const struct spoke_call_options none = { 0 };

		make_inner(by, parent, inner->hops, &none);
	}
	if (parent && parent->what.request && parent->answers && parent->waits == 0)
		sim_provider_answer(world, parent->what.request);
}

/* Makes an inner call for the request, or for none. */
static void make_inner(struct sim_provider *by, struct sim_parent *parent, unsigned hops,
		       const struct spoke_call_options *with)
{
	struct sim_world *world = by->process.world;
	struct sim_chains *chains = world->chains;
	struct spoke_call_options options = *with;
	struct sim_inner *inner = &chains->inners[chains->count];
	unsigned char body[SIM_MARK];
	unsigned char bytes[5 + SIM_MARK];
	struct spoke_builder builder;
	struct spoke_span args;
	int error;

	if (chains->count == SIM_INNERS || chains->active_count == SIM_INNERS_ACTIVE ||
	    by->relay.consumer == NULL)
		return;
	if (sim_chance(&chains->dice, 500))
		options.timeout_ns = sim_magnitude(&chains->dice, MS, SECOND);
	*inner = (struct sim_inner){
		.by = by,
		.parent = options.detached ? NULL : parent,
		.own_ns = options.timeout_ns ? options.timeout_ns : world->plan->chain.timeout_ns,
		.hops = hops,
	};
	sim_inner_begins(inner);
	sim_mark_write(body, SIM_INNER + ++chains->count);
	spoke_builder_init_fixed(&builder, bytes, sizeof(bytes), NULL);
	spoke_pack_bin(&builder, body, sizeof(body));
	if (spoke_builder_finish(&builder, &args))
		abort();
	error = spoke_call(by->relay.method, args, &options, done, inner, &inner->name);
	sim_inner_begun(inner, error);
	if (error) {
		chains->count--;
		return;
	}
	sim_note(world, "p% inner call % for % us", by->process.number, chains->count - 1,
		 inner->own_ns / 1000, 0);
}

static void make_some(struct sim_provider *by, struct sim_parent *parent,
		      const struct spoke_call_options *options)
{
	unsigned count = (unsigned)sim_between(&by->process.world->chains->dice, 1, 2);

	while (count-- > 0)
		make_inner(by, parent, parent->hops, options);
}

/* Chooses how a request is served that has a parent's record. Returns whether it is answered later.
 */
static bool serve(struct sim_parent *parent, uint64_t timeout_ns)
{
	struct sim_provider *by = parent->what.by;
	struct sim_dice *dice = &by->process.world->chains->dice;
	struct spoke_call_options options = { .detached = sim_chance(dice, 100) };
	bool later = sim_chance(dice, 300); /* calls are made when the handler has returned */

	if (sim_chance(dice, 300))
		options.parent = parent->what.request;
	if (!later)
		make_some(by, parent, &options);
	if (!later && sim_chance(dice, 150))
		return false; /* answered before its inner calls */
	parent->answers = sim_chance(dice, 700);
	sim_provider_hold(&parent->what, sim_between(dice, 0, timeout_ns + timeout_ns / 4));
	return true;
}

bool sim_chain_serves(const struct sim_held *what, const struct sim_call *call,
		      struct sim_stream *stream)
{
	struct sim_world *world = what->by->process.world;
	struct sim_parent *parent;

	if (world->healing || call->wanted || call->manner == SIM_ERROR ||
	    call->manner == SIM_LARGE || stream == NULL || what->by->process.closed ||
	    !sim_chance(&world->chains->dice, world->plan->chain_permille))
		return false;
	parent = sim_parent_new(what, stream, sim_parent_ask(stream, what->number, false));
	if (parent == NULL)
		return false;
	parent->hops = SIM_HOPS - 1;
	return serve(parent, call->timeout_ns);
}

/* --- serving inner calls */

static uint64_t number_of(const struct spoke_request *request)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value;
	struct spoke_span span;

	if (!spoke_cursor_next(&args, &value) || spoke_value_bin(value, &span) ||
	    span.len < SIM_MARK)
		return 0;
	return sim_mark_read(span.data);
}

static struct sim_stream *stream_of(struct sim_provider *provider,
				    const struct spoke_request *request)
{
	const struct sim_end *end;
	char peer[64];

	(void)spoke_request_peer(request, peer, sizeof(peer));
	end = sim_accepted_end(&provider->process, peer);
	return end ? end->stream : NULL;
}

static void handle(struct spoke_request *request, void *arg)
{
	struct sim_provider *provider = arg;
	struct sim_world *world = provider->process.world;
	struct sim_held what = { .request = request, .by = provider };
	struct sim_dice *dice = &world->chains->dice;
	const struct sim_inner *inner;
	struct sim_stream *stream;
	const struct sim_ask *ask;
	struct sim_parent *parent;

	provider->process.progress++;
	what.number = number_of(request);
	inner = sim_inner_at(world, what.number);
	if (inner == NULL) { /* damaged on its way */
		spoke_reply_error(request, 1, "damaged");
		return;
	}
	sim_note(world, "p% runs inner call %", provider->process.number,
		 what.number - SIM_INNER - 1, 0, 0);
	world->counts.inner_runs++;
	stream = stream_of(provider, request);
	ask = stream ? sim_parent_ask(stream, what.number, true) : NULL;
	sim_fault_stall(&provider->process);
	parent = inner->hops > 0 && sim_chance(dice, 500) ? sim_parent_new(&what, stream, ask)
							  : NULL;
	if (parent) {
		parent->hops = inner->hops - 1;
		if (serve(parent, inner->own_ns))
			return;
	}
	switch (sim_throw(dice) % 8) {
	case 0:
	case 1:
	case 2:
		sim_provider_hold(&what, sim_between(dice, 0, inner->own_ns + inner->own_ns / 4));
		return;
	case 3:
		sim_parent_answered(world, request);
		spoke_reply_error(request, 1, "no");
		return;
	default:
		sim_provider_answer_now(&what);
	}
}

/* --- after the handlers */

void sim_chains_look(struct sim_world *world)
{
	struct sim_chains *chains = world->chains;

	if (chains == NULL || world->healing)
		return;
	for (unsigned i = 0; i < chains->parent_count; i++) {
		struct sim_parent *parent = &chains->parents[i];
		struct spoke_call_options options = { .parent = parent->what.request };
		struct sim_provider *by = parent->what.by;

		if (options.parent == NULL || by->process.virt.held_until_ns > world->virt.now_ns ||
		    by->process.closed || !sim_chance(&chains->dice, LATER_PERMILLE))
			continue;
		make_inner(by, parent, parent->hops, &options);
	}
}

/* --- the consumer of a provider */

static void changed(void *arg, const struct spoke_link_event *event)
{
	struct sim_provider *provider = arg;

	(void)event;
	provider->process.progress++;
}

static bool make_method(struct sim_provider *provider)
{
	const struct sim_chain_plan *plan = &provider->process.world->plan->chain;
	const struct spoke_method_options options = { .idempotent = plan->idempotent,
						      .hedge_after_ns = plan->hedge_ns };

	return spoke_consumer_method(provider->relay.consumer, METHOD, &options,
				     &provider->relay.method) == 0;
}

struct spoke_handler sim_chains_handler(struct sim_provider *provider)
{
	return (struct spoke_handler){
		.method = METHOD,
		.handle = handle,
		.arg = provider,
		.executes = provider->plan->executes,
	};
}

bool sim_chains_make(struct sim_provider *provider)
{
	static const struct spoke_policy *const policies[] = {
		&spoke_policy_failover,
		&spoke_policy_failfast,
		&spoke_policy_forking,
	};
	const struct sim_world *world = provider->process.world;
	const struct sim_chain_plan *plan = &world->plan->chain;
	char urls[SIM_NEXT][80];
	const char *more[SIM_NEXT];
	unsigned count = world->plan->provider_count - 1;
	struct spoke_consumer_options options = {
		.url = urls[0],
		.more_urls = more,
		.timeout_ns = plan->timeout_ns,
		.heartbeat_ns = provider->plan->heartbeat_ns,
		.changed = changed,
		.changed_arg = provider,
		.policy = policies[plan->policy],
		.retries = 2,
		.forks = 2,
		.wait_ready = plan->wait_ready,
		.lazy = plan->lazy,
	};

	if (world->chains == NULL)
		return true;
	if (count > SIM_NEXT)
		count = SIM_NEXT;
	options.more_count = count - 1;
	for (unsigned i = 0; i < count; i++) {
		unsigned next = (provider->process.number + 1 + i) % world->plan->provider_count;

		(void)snprintf(urls[i], sizeof(urls[i]), "dubbo://%s/sim.Echo",
			       world->providers[next].address);
		if (i > 0)
			more[i - 1] = urls[i];
	}
	return spoke_consumer_new(provider->process.engine, &options, &provider->relay.consumer) ==
		       0 &&
	       make_method(provider);
}
