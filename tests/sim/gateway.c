/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a world with a gateway from its beginning to its end. */
#include "tests/sim/gateway.h"

#include "core/engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT "127.0.0.1:8080"
#define LOOK_NS (5 * MS)
#define ROUNDS 8u /* in which a page is admitted at the latest, with all that may go wrong once */
#define ROUND_NS (2 * SECOND)

void sim_gateway_hold(struct sim_gateway *gateway, uint64_t ns)
{
	spokei_world_hold(&gateway->virt, ns);
	gateway->calm_ns = gateway->virt.held_until_ns;
	gateway->drained_ns += ns;
}

void sim_gateway_end(struct sim_gateway *gateway)
{
	struct spoke_engine *engine = gateway->engine;

	if (gateway->comet)
		gateway->counts->opened += spoke_comet_figure(gateway->comet,
							      SPOKE_COMET_FIGURE_OPENED);
	sim_gateway_check(gateway);
	/* The engine frees the gateway, or the program does. */
	if (gateway->comet && gateway->drain_ns == 0 && sim_chance(sim_gateway_dice(gateway), 500))
		spoke_comet_free(gateway->comet);
	gateway->engine = NULL;
	gateway->comet = NULL;
	gateway->drain_ns = 0;
	spoke_engine_free(engine);
	sim_note(&gateway->world, "the gateway has ended", 0, 0, 0, 0);
	sim_gateway_check_end(gateway);
}

/* --- time */

static bool is_due(uint64_t ns, const struct sim_gateway *gateway)
{
	return ns && ns <= sim_gateway_now(gateway);
}

static void look(struct sim_gateway *gateway)
{
	gateway->next_look_ns = sim_gateway_now(gateway) + LOOK_NS;
	if (is_due(gateway->route_ns, gateway)) {
		gateway->route_ns = 0;
		spokei_vnet_route(gateway->world.virt.net, AT, SPOKEI_VNET_NORMAL);
	}
	sim_gateway_check(gateway);
	if (gateway->virt.held_until_ns > sim_gateway_now(gateway))
		return;
	if (gateway->engine && gateway->drain_ns && gateway->engine->drained) {
		sim_gateway_end(gateway);
		gateway->back_ns = sim_gateway_now(gateway) +
				   sim_magnitude(sim_gateway_dice(gateway), MS, SECOND);
	}
	/* A program without its alarm ends. */
	if (gateway->engine && is_due(gateway->back_ns, gateway))
		sim_gateway_end(gateway);
	if (gateway->engine == NULL && is_due(gateway->back_ns, gateway))
		sim_gateway_start(gateway);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void go_on(struct sim_gateway *gateway, uint64_t until_ns)
{
	struct spokei_world *virt = &gateway->world.virt;

	while (virt->now_ns < until_ns) {
		uint64_t next_ns = earlier(until_ns, gateway->next_look_ns);

		next_ns = earlier(next_ns, gateway->next_fault_ns);
		next_ns = earlier(next_ns, sim_pages_next(gateway));
		next_ns = earlier(next_ns, spokei_vnet_next(virt->net));
		(void)spokei_world_step(virt, next_ns);
		sim_pages_turn(gateway);
		if (virt->now_ns >= gateway->next_look_ns)
			look(gateway);
		if (virt->now_ns >= gateway->next_fault_ns)
			sim_gateway_fault(gateway);
	}
}

/* --- after the faults */

static unsigned whole(const struct sim_gateway *gateway)
{
	unsigned count = 0;

	for (unsigned i = 0; i < gateway->plan.pages; i++)
		count += sim_page_whole(&gateway->pages[i]);
	return count;
}

static bool is_up(const struct sim_gateway *gateway)
{
	return gateway->engine && gateway->drain_ns == 0 && gateway->back_ns == 0 &&
	       gateway->virt.held_until_ns <= sim_gateway_now(gateway);
}

/* Returns the longest time in which each page is connected, if all goes well. */
static uint64_t connect_ns(const struct sim_gateway *gateway)
{
	const struct spoke_comet_options *with = &gateway->plan.with;

	return ROUNDS * (2 * with->retry_max_ns + ROUND_NS) + with->keep_ns + with->slow_ns +
	       with->head_ns + with->authorize_ns;
}

static void wait_for_all(struct sim_gateway *gateway)
{
	uint64_t until_ns = sim_gateway_now(gateway) + connect_ns(gateway);

	while (whole(gateway) < gateway->plan.pages) {
		if (sim_gateway_now(gateway) >= until_ns)
			sim_violation(&gateway->world, SIM_L9,
				      "only %u of %u pages are connected, and have all messages",
				      whole(gateway), gateway->plan.pages);
		go_on(gateway, sim_gateway_now(gateway) + LOOK_NS);
	}
}

static void heal(struct sim_gateway *gateway)
{
	uint64_t until_ns;

	sim_note(&gateway->world, "all faults end", 0, 0, 0, 0);
	sim_gateway_heal(gateway);
	go_on(gateway, sim_gateway_now(gateway) + 100 * MS);
	until_ns = sim_gateway_now(gateway) + 60 * SECOND; /* longer than any drain */
	while (!is_up(gateway) && sim_gateway_now(gateway) < until_ns)
		go_on(gateway, sim_gateway_now(gateway) + LOOK_NS);
	if (!is_up(gateway))
		sim_violation(&gateway->world, SIM_L10, "the gateway does not come back");
	gateway->quiet_ns = sim_gateway_now(gateway);
	gateway->heal_ns = gateway->quiet_ns;
	wait_for_all(gateway);
	if (gateway->push_count < SIM_PUSHES)
		sim_gateway_push_all(gateway);
	gateway->heal_ns = sim_gateway_now(gateway);
	wait_for_all(gateway);
	/* Rings are looked at once in their time. */
	go_on(gateway, sim_gateway_now(gateway) + 2 * gateway->with.ring_ns + SECOND);
	sim_gateway_check_quiet(gateway);
}

/* --- one seed */

static void begin(struct sim_gateway *gateway, const struct sim_plan *plan, bool verbose)
{
	struct sim_world *world = &gateway->world;

	world->plan = plan;
	world->verbose = verbose;
	world->dice = sim_dice_make(~plan->seed);
	sim_world_now = world;
	if (!spokei_world_init(&world->virt, plan->seed)) {
		(void)printf("no memory\n");
		exit(2);
	}
	spokei_vnet_observe(world->virt.net, sim_gateway_observe, gateway);
	spokei_vnet_set_all(world->virt.net, &gateway->plan.link);
	spokei_world_process_init(&gateway->virt, &world->virt);
	spokei_world_process_init(&gateway->browser, &world->virt);
	gateway->virt.turned = sim_gateway_turned;
	gateway->next_look_ns = world->virt.now_ns;
	gateway->next_fault_ns = gateway->plan.faults
					 ? world->virt.now_ns + gateway->plan.fault_every_ns
					 : UINT64_MAX;
	sim_note(world, "% pages of % users", gateway->plan.pages, gateway->plan.users, 0, 0);
	sim_gateway_start(gateway);
	sim_pages_start(gateway);
}

static void finish(struct sim_gateway *gateway)
{
	for (unsigned i = 0; i < gateway->plan.pages; i++)
		sim_page_close(&gateway->pages[i]);
	spokei_world_process_fini(&gateway->browser);
	spokei_world_process_fini(&gateway->virt);
	spokei_world_fini(&gateway->world.virt);
}

uint64_t sim_gateway_run(uint64_t seed, bool all, bool verbose, struct sim_gateway_counts *counts)
{
	static struct sim_gateway gateway;
	static struct sim_plan plan;
	uint64_t begun_ns;
	uint64_t hash;

	memset(&gateway, 0, sizeof(gateway));
	plan = (struct sim_plan){ .seed = seed, .gateways = all };
	sim_gateway_draw(&gateway.plan, seed);
	gateway.counts = counts;
	begin(&gateway, &plan, verbose);
	begun_ns = sim_gateway_now(&gateway);
	go_on(&gateway, begun_ns + gateway.plan.length_ns);
	heal(&gateway);
	if (sim_chance(sim_gateway_dice(&gateway), 300)) {
		sim_gateway_drain(&gateway);
		while (gateway.drain_ns)
			go_on(&gateway, sim_gateway_now(&gateway) + LOOK_NS);
	}
	if (gateway.engine)
		sim_gateway_end(&gateway);
	counts->worlds++;
	counts->ns += sim_gateway_now(&gateway) - begun_ns;
	hash = gateway.world.hash ^ spokei_vnet_trace(gateway.world.virt.net);
	finish(&gateway);
	return hash;
}
