/* SPDX-License-Identifier: Apache-2.0 */
/* Injects faults into the world: chooses at random among those that the plan enables. */
#include "tests/sim/journals.h"

#include <errno.h>

/* Returns the duration of a fault: from a moment to several heartbeats. */
static uint64_t draw_time(struct sim_world *world)
{
	return sim_magnitude(&world->dice, world->plan->interval_ns / 8,
			     8 * world->plan->interval_ns);
}

static struct sim_process *any_process(struct sim_world *world)
{
	for (unsigned i = 0; i < 2 * SIM_PROCESSES; i++) {
		struct sim_process *process =
			sim_process_at(world, (unsigned)(sim_throw(&world->dice) % SIM_PROCESSES));

		if (process->engine && process->virt.held_until_ns <= world->virt.now_ns)
			return process;
	}
	return NULL;
}

static struct sim_provider *any_provider(struct sim_world *world)
{
	struct sim_provider *provider =
		&world->providers[sim_throw(&world->dice) % world->plan->provider_count];

	return provider->process.engine && !provider->process.draining &&
			       provider->process.virt.held_until_ns <= world->virt.now_ns
		       ? provider
		       : NULL;
}

static struct sim_consumer *any_consumer(struct sim_world *world)
{
	struct sim_consumer *consumer =
		&world->consumers[sim_throw(&world->dice) % world->plan->consumer_count];

	return consumer->process.engine && consumer->consumer && !consumer->process.draining &&
			       consumer->process.virt.held_until_ns <= world->virt.now_ns
		       ? consumer
		       : NULL;
}

/* --- faults of a process */

static bool crash(struct sim_world *world)
{
	struct sim_provider *provider = any_provider(world);

	if (provider == NULL)
		return false;
	sim_note(world, "p% crashes", provider->process.number, 0, 0, 0);
	sim_process_end(&provider->process);
	provider->process.back_ns = world->virt.now_ns + draw_time(world);
	return true;
}

static bool drain(struct sim_world *world)
{
	struct sim_provider *provider = any_provider(world);

	if (provider == NULL)
		return false;
	sim_drain_begin(&provider->process, draw_time(world));
	provider->process.back_ns = world->virt.now_ns + draw_time(world);
	return true;
}

/* Freezes that follow one another at once are one. */
void sim_freeze(struct sim_process *process, uint64_t ns)
{
	const uint64_t now_ns = process->world->virt.now_ns;

	if (process->virt.held_until_ns < now_ns)
		process->frozen_ns = now_ns;
	process->held_ns += ns;
	spokei_world_hold(&process->virt, ns);
}

static bool hold(struct sim_world *world)
{
	struct sim_process *process = any_process(world);
	uint64_t ns = sim_magnitude(&world->dice, world->plan->interval_ns / 8,
				    10 * world->plan->interval_ns);

	if (process == NULL)
		return false;
	sim_note(world, "process % is frozen for % us", process->number, ns / 1000, 0, 0);
	sim_freeze(process, ns);
	return true;
}

void sim_fault_stall(struct sim_process *process)
{
	struct sim_world *world = process->world;
	uint64_t ns;

	if (world->healing || !sim_plan_has(world->plan, SIM_STALL) ||
	    !sim_chance(&world->dice, 20))
		return;
	ns = sim_magnitude(&world->dice, MS, 10 * world->plan->interval_ns);
	world->counts.faults++;
	world->counts.of_fault[SIM_STALL]++;
	sim_note(world, "process % stalls in a callback for % us", process->number, ns / 1000, 0,
		 0);
	sim_freeze(process, ns);
}

static bool fail_memory(struct sim_world *world)
{
	struct sim_process *process = any_process(world);

	if (process == NULL)
		return false;
	process->virt.fail_at = process->virt.demands + sim_magnitude(&world->dice, 1, 200);
	sim_note(world, "process %: the next allocation fails", process->number, 0, 0, 0);
	return true;
}

static bool sleep_now(struct sim_world *world)
{
	uint64_t ns = sim_magnitude(&world->dice, MS, 3600 * SECOND);

	world->sleeps++;
	sim_note(world, "the machine slept for % ms", ns / MS, 0, 0, 0);
	for (unsigned i = 0; i < SIM_PROCESSES; i++)
		sim_process_at(world, i)->virt.boot_ahead_ns += ns;
	sim_store_sleep(world, ns);
	return true;
}

static bool cancel_storm(struct sim_world *world)
{
	struct sim_consumer *consumer = any_consumer(world);

	if (consumer == NULL)
		return false;
	for (unsigned i = 0; i < 20 && consumer->consumer; i++)
		sim_call(consumer, false);
	sim_cancel_many(consumer);
	return true;
}

static bool churn(struct sim_world *world)
{
	struct sim_consumer *consumer = any_consumer(world);

	if (consumer == NULL)
		return false;
	switch (sim_throw(&world->dice) % 3) {
	case 0:
		sim_consumer_free(consumer);
		break;
	case 1:
		sim_drain_begin(&consumer->process, draw_time(world));
		consumer->process.back_ns = world->virt.now_ns + draw_time(world);
		break;
	default:
		if (world->store && sim_chance(&world->dice, 500))
			sim_store_sever(&consumer->process);
		sim_process_end(&consumer->process);
		consumer->process.back_ns = world->virt.now_ns + draw_time(world);
	}
	return true;
}

/* --- faults of a provider's address */

static bool change_route(struct sim_world *world)
{
	static const enum spokei_vnet_route routes[] = {
		SPOKEI_VNET_NORMAL, SPOKEI_VNET_NORMAL, SPOKEI_VNET_AT_ONCE,
		SPOKEI_VNET_REFUSE, SPOKEI_VNET_SILENT, SPOKEI_VNET_UNREACHABLE,
		SPOKEI_VNET_SELF
	};
	unsigned which = (unsigned)(sim_throw(&world->dice) % (sizeof(routes) / sizeof(routes[0])));
	unsigned place = (unsigned)(sim_throw(&world->dice) % world->plan->provider_count);

	sim_note(world, "the route to p% is now: %r", place, routes[which], 0, 0);
	spokei_vnet_route(world->virt.net, world->providers[place].address, routes[which]);
	return true;
}

static bool fail_accept(struct sim_world *world)
{
	static const int errors[] = { -ECONNABORTED, -EMFILE, -ENOBUFS, -EINTR, -EAGAIN };
	const struct sim_provider *provider = any_provider(world);
	int error = errors[sim_throw(&world->dice) % (sizeof(errors) / sizeof(errors[0]))];

	if (provider == NULL)
		return false;
	sim_note(world, "p% cannot accept: %s", provider->process.number, (uint64_t)-error, 0, 0);
	return spokei_vnet_fail_accepts_at(world->virt.net, provider->address, error,
					   (unsigned)sim_between(&world->dice, 1, 5));
}

/* --- all kinds */

/* Faults that are missing here concern one connection: faults_wire.c. */
static bool (*const begin[SIM_FAULTS])(struct sim_world *world) = {
	[SIM_ROUTE] = change_route, [SIM_ACCEPT] = fail_accept,
	[SIM_CRASH] = crash,        [SIM_DRAIN] = drain,
	[SIM_HOLD] = hold,          [SIM_MEMORY] = fail_memory,
	[SIM_SLEEP] = sleep_now,    [SIM_CANCELS] = cancel_storm,
	[SIM_CHURN] = churn,        [SIM_REGISTRY] = sim_registry_fault,
};

/* Returns a random fault of those that the plan enables. */
static enum sim_fault draw_fault(struct sim_world *world)
{
	enum sim_fault fault;

	do
		fault = (enum sim_fault)(sim_throw(&world->dice) % SIM_FAULTS);
	while (!sim_plan_has(world->plan, fault));
	return fault;
}

void sim_fault_now(struct sim_world *world)
{
	enum sim_fault fault = draw_fault(world);

	world->next_fault_ns = world->virt.now_ns +
			       sim_between(&world->dice, 1, 2 * world->plan->fault_every_ns);
	if (begin[fault] ? !begin[fault](world) : !sim_fault_stream(world, fault))
		return;
	world->counts.faults++;
	world->counts.of_fault[fault]++;
}

void sim_faults_end(struct sim_world *world)
{
	struct spokei_vnet_link link = { .latency_ns = world->plan->link.latency_ns };

	world->healing = true;
	for (unsigned i = 0; i < world->plan->provider_count; i++) {
		spokei_vnet_route(world->virt.net, world->providers[i].address, SPOKEI_VNET_NORMAL);
		(void)spokei_vnet_fail_accepts_at(world->virt.net, world->providers[i].address,
						  -EAGAIN, 0);
	}
	for (unsigned i = 0; i < SIM_PROCESSES; i++)
		sim_process_at(world, i)->virt.fail_at = 0;
	sim_registry_heal(world);
	sim_access_heal(world);
	sim_store_heal(world);
	sim_journals_heal(world);
	sim_fault_streams_end(world);
	sim_floods_end(world);
	spokei_vnet_set_all(world->virt.net, &link);
}
