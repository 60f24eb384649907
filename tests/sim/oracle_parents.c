/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks calls that are made for requests: the time that they inherit, and that they end with their
 * request. A provider knows that a caller has gone when it has read its cancel, or has closed its
 * connection.
 */
#include "tests/sim/chains.h"

#include <inttypes.h>

#define LATE_NS (2 * MS) /* one tick, and rounding */

static unsigned number_of(const struct sim_inner *inner)
{
	return (unsigned)(inner - inner->by->process.world->chains->inners);
}

/* Returns the number of the turn that is under way, or comes next. */
static uint64_t turn_of(const struct sim_process *process)
{
	return process->turns + 1;
}

/* --- requests with inner calls */

struct sim_ask *sim_parent_ask(struct sim_stream *stream, uint64_t number, bool starts)
{
	struct sim_ask *found = NULL;

	for (uint32_t i = stream->asks ? stream->ask_count : 0; i-- > 0;) {
		struct sim_ask *ask = &stream->asks[i];

		if (ask->number != number || !ask->read || ask->ran == starts || ask->answered)
			continue;
		if (found)
			return NULL;
		found = ask;
	}
	if (found && starts)
		found->ran = true;
	return found;
}

struct sim_parent *sim_parent_new(const struct sim_held *what, const struct sim_stream *stream,
				  const struct sim_ask *ask)
{
	struct sim_world *world = what->by->process.world;
	struct sim_chains *chains = world->chains;
	unsigned place = 0;

	/* A connection that pauses reads bytes that it takes in later. */
	if (ask == NULL || !ask->two_way || ask->timeout_ms == 0 || stream->tampered ||
	    what->by->plan->out_high)
		return NULL;
	while (place < chains->parent_count && chains->parents[place].what.request)
		place++;
	if (place == SIM_PARENTS)
		return NULL;
	if (place == chains->parent_count)
		chains->parent_count++;
	chains->parents[place] = (struct sim_parent){
		.what = *what,
		.stream = stream,
		.id = stream->id_base + (uint64_t)(ask - stream->asks),
		.due_ns = ask->clock_ns + ask->timeout_ms * MS,
		.early_ns = ask->due_ns + ask->timeout_ms * MS,
		.held_ns = ask->held_ns,
		.kept = what->by->plan->dedupe_ns > 0 && sim_has_id(what->request),
	};
	/* The cancel was read together with the request. */
	if (ask->dropped && !chains->parents[place].kept)
		chains->parents[place].gone_turn = ask->dropped_turn;
	return &chains->parents[place];
}

static struct sim_inner *active_at(const struct sim_chains *chains, unsigned at)
{
	return &chains->inners[chains->active[at]];
}

/* Returns whether the caller of the request may have gone, as far as its provider knows. */
static bool may_be_gone(const struct sim_parent *parent)
{
	const struct sim_end *end = &parent->stream->ends[1];
	const struct sim_process *process = &parent->what.by->process;
	bool lost = end->fd < 0 || end->ended || end->shut || parent->stream->tampered;

	return parent->gone_turn || (lost && !parent->kept) || process->closed ||
	       process->draining || process->ending;
}

static void doom(struct sim_inner *inner, uint64_t turn)
{
	inner->gone_turn = turn;
	inner->by->relay.doomed++;
	inner->by->relay.fresh++;
}

static void spare(struct sim_inner *inner)
{
	inner->gone_turn = 0;
	inner->by->relay.doomed--;
	inner->by->relay.fresh--;
}

void sim_parent_answered(struct sim_world *world, const struct spoke_request *request)
{
	struct sim_chains *chains = world->chains;
	struct sim_parent *parent = NULL;

	for (unsigned i = 0; chains && i < chains->parent_count && parent == NULL; i++)
		if (chains->parents[i].what.request == request)
			parent = &chains->parents[i];
	if (parent == NULL)
		return;
	for (unsigned i = 0; i < chains->active_count; i++) {
		struct sim_inner *inner = active_at(chains, i);

		if (inner->parent != parent)
			continue;
		inner->may_cancel |= may_be_gone(parent);
		inner->parent = NULL;
		/* The cancel may be taken in after the answer, in the same turn. */
		if (inner->gone_turn == turn_of(&inner->by->process))
			spare(inner);
	}
	parent->what.request = NULL;
}

/* The provider knows that the caller has gone, and in this turn, or the one after it, its inner
 * calls end. */
static void gone(struct sim_parent *parent, uint64_t turn)
{
	struct sim_chains *chains = parent->what.by->process.world->chains;

	if (parent->gone_turn || parent->kept)
		return;
	parent->gone_turn = turn;
	sim_note(parent->what.by->process.world, "p%: the caller of % is gone",
		 parent->what.by->process.number, parent->what.number, 0, 0);
	for (unsigned i = 0; i < chains->active_count; i++) {
		struct sim_inner *inner = active_at(chains, i);

		if (inner->parent == parent)
			doom(inner, turn);
	}
}

void sim_parent_cancelled(const struct sim_end *end, const struct sim_frame *frame)
{
	struct sim_chains *chains = end->stream->world->chains;

	if (chains == NULL || end->stream->tampered)
		return;
	for (unsigned i = 0; i < chains->parent_count; i++) {
		struct sim_parent *parent = &chains->parents[i];

		if (parent->what.request && parent->stream == end->stream &&
		    parent->id == frame->id)
			gone(parent, turn_of(end->process));
	}
}

/* A connection that is closed ends in the turn after that at the latest. */
void sim_parents_lost(const struct sim_end *end)
{
	struct sim_chains *chains = end->stream->world->chains;

	if (chains == NULL || sim_connected(end))
		return;
	for (unsigned i = 0; i < chains->parent_count; i++) {
		struct sim_parent *parent = &chains->parents[i];

		if (parent->what.request && parent->stream == end->stream)
			gone(parent, turn_of(end->process) + 1);
	}
}

/* --- S59: time */

static uint64_t held_since(const struct sim_inner *inner, uint64_t held_ns)
{
	return inner->by->process.held_ns - held_ns;
}

/* Returns the latest end of an inner call. */
static uint64_t end_of(const struct sim_inner *inner)
{
	uint64_t own_ns = inner->begun_ns + inner->own_ns + held_since(inner, inner->held_ns);
	uint64_t due_ns = inner->due_ns;

	if (due_ns == UINT64_MAX)
		return own_ns + LATE_NS;
	due_ns += held_since(inner, inner->due_held_ns);
	return (due_ns < own_ns ? due_ns : own_ns) + LATE_NS;
}

/* Returns the longest time that an inner call has when it begins. */
static uint64_t most_ns(const struct sim_inner *inner)
{
	uint64_t left_ns = inner->own_ns;

	if (inner->due_ns != UINT64_MAX && inner->due_ns < inner->begun_ns + left_ns)
		left_ns = inner->due_ns > inner->begun_ns ? inner->due_ns - inner->begun_ns : 0;
	return left_ns;
}

static void check_time(struct sim_world *world, const struct sim_inner *inner, int error)
{
	uint64_t now_ns = sim_now(&inner->by->process);
	uint64_t least_ns = inner->begun_ns + inner->own_ns;

	if (inner->early_ns < least_ns)
		least_ns = inner->early_ns;
	if (now_ns > end_of(inner))
		sim_violation(world, SIM_S59, "inner call %u ends %.3f ms too late",
			      number_of(inner), (double)(now_ns - end_of(inner)) / 1e6);
	if ((error == SPOKE_ETIMEOUT || error == SPOKE_ETIMEOUT_UNSENT) && now_ns < least_ns)
		sim_violation(world, SIM_S59, "inner call %u times out %.3f ms too early",
			      number_of(inner), (double)(least_ns - now_ns) / 1e6);
}

/* --- S59, S60, S61: inner calls */

void sim_inner_begins(struct sim_inner *inner)
{
	const struct sim_process *process = &inner->by->process;
	const struct sim_parent *parent = inner->parent;

	inner->begun_ns = sim_now(process);
	inner->held_ns = process->held_ns;
	inner->due_ns = UINT64_MAX;
	inner->early_ns = UINT64_MAX;
	if (parent == NULL)
		return;
	inner->due_ns = parent->due_ns;
	inner->early_ns = parent->early_ns;
	inner->due_held_ns = parent->held_ns;
}

void sim_inner_begun(struct sim_inner *inner, int error)
{
	struct sim_world *world = inner->by->process.world;
	struct sim_chains *chains = world->chains;
	struct sim_parent *parent = inner->parent;
	bool is_gone = parent && parent->gone_turn &&
		       parent->gone_turn < turn_of(&inner->by->process);

	if (error) {
		world->counts.inner_refused += is_gone;
		return;
	}
	if (is_gone)
		sim_violation(world, SIM_S60,
			      "inner call %u is made for a request whose caller is gone",
			      number_of(inner));
	if (most_ns(inner) == 0)
		sim_violation(world, SIM_S59,
			      "inner call %u is made for a request without time left",
			      number_of(inner));
	world->counts.inner++;
	chains->active[chains->active_count++] = (uint32_t)(inner - chains->inners);
	inner->by->relay.waits++;
	if (parent == NULL)
		return;
	parent->waits++;
	if (parent->gone_turn)
		doom(inner, parent->gone_turn);
}

static void leave(struct sim_chains *chains, const struct sim_inner *inner)
{
	unsigned at = 0;

	while (active_at(chains, at) != inner)
		at++;
	chains->active[at] = chains->active[--chains->active_count];
}

void sim_inner_ended(struct sim_inner *inner, int error)
{
	struct sim_world *world = inner->by->process.world;
	struct sim_parent *parent = inner->parent;

	if (inner->over)
		sim_violation(world, SIM_S1, "inner call %u ends twice", number_of(inner));
	check_time(world, inner, error);
	if (error == SPOKE_ECANCELED && inner->gone_turn == 0 && !inner->may_cancel &&
	    (parent == NULL || !may_be_gone(parent)))
		sim_violation(world, SIM_S61, "inner call %u is cancelled, but its caller is there",
			      number_of(inner));
	inner->over = true;
	leave(world->chains, inner);
	inner->by->relay.waits--;
	if (parent)
		parent->waits--;
	if (inner->gone_turn == 0)
		return;
	inner->by->relay.doomed--;
	world->counts.inner_gone++;
}

void sim_inner_written(const struct sim_end *end, const struct sim_frame *frame)
{
	struct sim_world *world = end->stream->world;
	const struct sim_inner *inner = sim_inner_at(world, frame->number);

	if (inner == NULL || world->tampered)
		return;
	if (frame->timeout_ms * MS > most_ns(inner) + MS)
		sim_violation(world, SIM_S59,
			      "inner call %u carries %.3f ms more than its request has left",
			      number_of(inner),
			      (double)(frame->timeout_ms * MS - most_ns(inner)) / 1e6);
	/* A request that was in the output of an open connection cannot be taken back. */
	if (inner->gone_order && end->first_order > inner->gone_order &&
	    end->first_wrote_ns > inner->gone_ns && end->again_ns < inner->gone_ns)
		sim_violation(world, SIM_S60,
			      "inner call %u is written on connection %u although its caller is "
			      "gone",
			      number_of(inner), end->stream->number);
}

void sim_parents_turned(struct sim_provider *provider)
{
	struct sim_world *world = provider->process.world;
	struct sim_chains *chains = world->chains;
	uint64_t turn = provider->process.turns;

	if (chains == NULL)
		return;
	for (unsigned i = 0; i < chains->active_count && provider->relay.doomed; i++) {
		const struct sim_inner *inner = active_at(chains, i);

		/* A call that has ended by itself calls back in the next turn. */
		if (inner->by == provider && inner->gone_turn && inner->gone_turn < turn)
			sim_violation(world, SIM_S60,
				      "inner call %u goes on although its caller is gone",
				      number_of(inner));
	}
	world->order++;
	for (uint32_t i = chains->count; provider->relay.fresh && i-- > 0;) {
		struct sim_inner *inner = &chains->inners[i];

		if (inner->by != provider || inner->gone_turn == 0 || inner->gone_order ||
		    inner->gone_turn > turn)
			continue;
		inner->gone_order = world->order;
		inner->gone_ns = world->virt.now_ns;
		provider->relay.fresh--;
	}
}

void sim_parents_end(struct sim_provider *provider)
{
	struct sim_world *world = provider->process.world;

	if (provider->relay.waits)
		sim_violation(world, SIM_S1, "%u inner calls of p%u never ended",
			      provider->relay.waits, provider->process.number);
	provider->relay = (struct sim_relay){ 0 };
}
