/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one world from its beginning to its end. */
#include "tests/sim/chains.h"
#include "tests/sim/journals.h"
#include "tests/sim/store.h"

#include <spoke/config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_LEAST_NS MS
#define LOOK_MOST_NS (20 * MS)
#define FLOOD_DICE UINT64_C(0x64656c75676500)

static void init_process(struct sim_world *world, unsigned number)
{
	struct sim_process *process = sim_process_at(world, number);

	spokei_world_process_init(&process->virt, &world->virt);
	process->virt.boot_ahead_ns = world->plan->boot_ahead_ns;
	process->virt.turned = sim_turned;
	process->world = world;
	process->number = number;
}

static void init_processes(struct sim_world *world)
{
	const struct sim_plan *plan = world->plan;

	for (unsigned i = 0; i < plan->provider_count; i++) {
		struct sim_provider *provider = &world->providers[i];

		init_process(world, i);
		provider->plan = &plan->providers[i];
		(void)snprintf(provider->address, sizeof(provider->address), "127.0.0.1:%u",
			       SIM_PORT + i);
	}
	for (unsigned i = 0; i < plan->consumer_count; i++) {
		init_process(world, SIM_PROVIDERS + i);
		(void)snprintf(world->consumers[i].from, sizeof(world->consumers[i].from),
			       "10.0.%u.1:0", i);
		if (plan->secure.on)
			world->consumers[i].process.virt.user.from = world->consumers[i].from;
		world->consumers[i].plan = &plan->consumers[i];
	}
}

static void start(struct sim_process *process)
{
	if (sim_is_provider(process))
		sim_provider_start((struct sim_provider *)process);
	else
		sim_consumer_start((struct sim_consumer *)process);
}

/* Returns whether the process exists in this world. */
static bool is_there(const struct sim_process *process)
{
	return process->world != NULL;
}

void sim_process_end(struct sim_process *process)
{
	struct spoke_engine *engine = process->engine;
	struct sim_world *world = process->world;

	if (!sim_is_provider(process) && sim_journal_ends((struct sim_consumer *)process))
		return;
	if (sim_is_provider(process)) {
		struct sim_provider *provider = (struct sim_provider *)process;

		/* A drained provider is freed with its engine. */
		if (!process->draining && sim_chance(&world->dice, 500)) {
			process->closed = true;
			spoke_provider_free(provider->provider);
		}
		provider->provider = NULL;
		if (engine)
			world->counts.late += spoke_stat_get(engine, SPOKE_STAT_REFUSED_LATE);
		sim_provider_drop_held(provider);
	} else {
		sim_books_counts((struct sim_consumer *)process);
		((struct sim_consumer *)process)->consumer = NULL;
		((struct sim_consumer *)process)->leases = NULL;
	}
	process->draining = false;
	process->ending = true;
	process->engine = NULL;
	spoke_engine_free(engine);
	process->ending = false;
	process->closed = true;
	sim_note(world, "process % has ended", process->number, 0, 0, 0);
	if (sim_is_provider(process)) {
		sim_parents_end((struct sim_provider *)process);
		spoke_fence_free(((struct sim_provider *)process)->fence);
		((struct sim_provider *)process)->fence = NULL;
		spoke_config_free(((struct sim_provider *)process)->config);
		((struct sim_provider *)process)->config = NULL;
	} else {
		sim_tickets_end((struct sim_consumer *)process);
		sim_journal_ended((struct sim_consumer *)process);
		sim_leases_end((struct sim_consumer *)process);
	}
	sim_books_end(process);
}

/* --- time */

static void look_at(struct sim_process *process)
{
	struct sim_world *world = process->world;
	uint64_t now_ns = world->virt.now_ns;

	if (process->virt.held_until_ns > now_ns)
		return;
	if (process->engine && process->closed && process->back_ns && now_ns >= process->back_ns) {
		uint64_t back_ns = process->back_ns;

		sim_process_end(process);
		process->back_ns = back_ns;
	}
	if (process->engine == NULL && process->back_ns && now_ns >= process->back_ns)
		start(process);
	if (process->engine && process->draining)
		sim_drain_look(process);
	else if (process->engine && sim_is_provider(process))
		sim_provider_step((struct sim_provider *)process);
}

/* Stops all providers at the begin of the outage and restarts them at its end. */
static void look_at_outage(struct sim_world *world)
{
	const struct sim_plan *plan = world->plan;
	uint64_t gone_ns = world->virt.now_ns - world->begun_ns;
	bool away = gone_ns >= plan->outage_from_ns && gone_ns < plan->outage_until_ns;

	if (away == world->away)
		return;
	world->away = away;
	sim_note(world, away ? "all providers stop" : "all providers start again", 0, 0, 0, 0);
	for (unsigned i = 0; i < plan->provider_count; i++) {
		if (away)
			sim_process_end(&world->providers[i].process);
		else
			world->providers[i].process.back_ns = world->virt.now_ns;
	}
}

/* Performs the periodic checks and actions. */
static void look(struct sim_world *world)
{
	uint64_t every_ns = world->plan->interval_ns / 8;

	every_ns = every_ns < LOOK_LEAST_NS ? LOOK_LEAST_NS : every_ns;
	world->next_look_ns = world->virt.now_ns +
			      (every_ns > LOOK_MOST_NS ? LOOK_MOST_NS : every_ns);
	sim_provider_answer_due(world, false);
	sim_chains_look(world);
	sim_fault_streams_look(world);
	sim_floods_look(world);
	look_at_outage(world);
	sim_registry_look(world);
	sim_store_look(world);
	sim_secure_look(world);
	sim_access_look(world);
	for (unsigned i = 0; i < SIM_PROCESSES; i++) {
		struct sim_process *process = sim_process_at(world, i);

		if (is_there(process))
			look_at(process);
	}
	sim_links_check(world);
	sim_calls_check(world, false);
	sim_tickets_check(world);
	sim_books_of_journals(world);
	sim_lists_check(world);
	sim_leases_check(world);
}

void sim_go_on(struct sim_world *world, uint64_t until_ns)
{
	while (world->virt.now_ns < until_ns) {
		uint64_t next_ns = world->next_look_ns;

		if (!world->healing && world->next_fault_ns < next_ns)
			next_ns = world->next_fault_ns;
		if (!world->healing && world->store && world->store->next_fault_ns < next_ns)
			next_ns = world->store->next_fault_ns;
		if (!world->healing && sim_journals_next(world) < next_ns)
			next_ns = sim_journals_next(world);
		if (next_ns > until_ns)
			next_ns = until_ns;
		spokei_world_go(&world->virt, next_ns);
		sim_journals_now(world);
		if (world->virt.now_ns >= world->next_look_ns)
			look(world);
		if (!world->healing && world->virt.now_ns >= world->next_fault_ns)
			sim_fault_now(world);
		if (!world->healing && world->store &&
		    world->virt.now_ns >= world->store->next_fault_ns)
			sim_store_fault(world);
	}
}

/* --- one seed */

static void begin(struct sim_world *world, const struct sim_plan *plan, bool verbose)
{
	static struct sim_call *calls;
	struct spokei_vnet_link link = plan->link;

	if (calls == NULL)
		calls = calloc(SIM_CALLS, sizeof(*calls));
	*world = (struct sim_world){ .plan = plan, .verbose = verbose, .calls = calls };
	sim_world_now = world;
	world->dice = sim_dice_make(~plan->seed);
	world->flood_dice = sim_dice_make(plan->seed ^ FLOOD_DICE);
	if (calls == NULL || !spokei_world_init(&world->virt, plan->seed)) {
		(void)printf("no memory\n");
		exit(2);
	}
	spokei_vnet_observe(world->virt.net, sim_observe, world);
	spokei_vnet_set_all(world->virt.net, &link);
	init_processes(world);
	sim_store_start(world);
	sim_chains_begin(world);
	sim_journals_begin(world);
	world->begun_ns = world->virt.now_ns;
	sim_secure_begin(world);
	sim_access_begin(world);
	world->next_look_ns = world->virt.now_ns;
	world->next_fault_ns = plan->fault_every_ns && plan->faults
				       ? world->virt.now_ns + plan->fault_every_ns
				       : UINT64_MAX;
	for (unsigned i = 0; i < SIM_PROCESSES; i++) {
		struct sim_process *process = sim_process_at(world, i);

		if (is_there(process))
			start(process);
	}
}

static void finish(struct sim_world *world)
{
	sim_journals_end(world);
	for (unsigned i = 0; i < SIM_PROCESSES; i++) {
		struct sim_process *process = sim_process_at(world, i);

		if (is_there(process))
			spokei_world_process_fini(&process->virt);
	}
	sim_store_stop(world);
	sim_streams_free(world);
	spokei_world_fini(&world->virt);
}

static void add_counts(struct sim_counts *to, const struct sim_counts *from)
{
	to->calls += from->calls;
	to->faults += from->faults;
	to->floods += from->floods;
	to->ok += from->ok;
	to->ns += from->ns;
	to->tickets += from->tickets;
	to->retries += from->retries;
	to->lists += from->lists;
	to->leases += from->leases;
	to->held += from->held;
	to->lost += from->lost;
	if (to->bytes_most < from->bytes_most)
		to->bytes_most = from->bytes_most;
	to->closed_silent += from->closed_silent;
	to->suspects += from->suspects;
	to->secure += from->secure;
	to->shares += from->shares;
	to->tls += from->tls;
	to->veiled += from->veiled;
	to->renewed += from->renewed;
	to->shut += from->shut;
	to->forbidden += from->forbidden;
	to->late += from->late;
	to->inner += from->inner;
	to->inner_runs += from->inner_runs;
	to->inner_gone += from->inner_gone;
	to->inner_refused += from->inner_refused;
	to->journals += from->journals;
	to->deaths += from->deaths;
	to->restored += from->restored;
	for (unsigned i = 0; i < SIM_JOURNAL_FAULTS; i++)
		to->of_journal_fault[i] += from->of_journal_fault[i];
	for (unsigned i = 0; i < SIM_FAULTS; i++)
		to->of_fault[i] += from->of_fault[i];
	for (unsigned i = 0; i < SIM_STORE_FAULTS; i++)
		to->of_store_fault[i] += from->of_store_fault[i];
}

uint64_t sim_run(const struct sim_plan *plan, bool verbose, struct sim_counts *counts)
{
	static struct sim_world world;
	uint64_t hash;

	begin(&world, plan, verbose);
	sim_go_on(&world, world.begun_ns + plan->length_ns);
	sim_heal(&world);
	sim_end(&world);
	world.counts.ns = world.virt.now_ns - world.begun_ns;
	add_counts(counts, &world.counts);
	hash = world.hash ^ spokei_vnet_trace(world.virt.net);
	finish(&world);
	return hash;
}
