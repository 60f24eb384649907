/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the plan of a world with a gateway. */
#include "tests/sim/gateway.h"

#define GATEWAY_SEED UINT64_C(0x6761746577617973)
#define GATEWAY_PERMILLE 250u /* of all seeds */

static const char *const names[SIM_GATEWAY_FAULTS] = {
	[SIM_GATEWAY_KILL] = "kill",   [SIM_GATEWAY_DRAIN] = "drain",
	[SIM_GATEWAY_HOLD] = "hold",   [SIM_GATEWAY_MEMORY] = "memory",
	[SIM_GATEWAY_ROUTE] = "route", [SIM_GATEWAY_ACCEPT] = "accept",
	[SIM_GATEWAY_RESET] = "reset", [SIM_GATEWAY_HOLE] = "hole",
	[SIM_GATEWAY_DELAY] = "delay", [SIM_GATEWAY_FREEZE] = "freeze",
	[SIM_GATEWAY_SIP] = "sip",     [SIM_GATEWAY_LEAVE] = "leave",
};

const char *sim_gateway_fault_name(enum sim_gateway_fault fault)
{
	return names[fault];
}

bool sim_gateway_drawn(uint64_t seed)
{
	struct sim_dice dice = sim_dice_make(seed ^ GATEWAY_SEED);

	return sim_chance(&dice, GATEWAY_PERMILLE);
}

void sim_gateway_draw_times(struct sim_dice *dice, struct spoke_comet_options *with)
{
	with->keepalive_ns = sim_magnitude(dice, 20 * MS, SECOND);
	with->poll_ns = sim_magnitude(dice, 50 * MS, SECOND);
	with->life_ns = sim_magnitude(dice, 200 * MS, 5 * SECOND);
}

static void draw_options(struct sim_dice *dice, const struct sim_gateway_plan *plan,
			 struct spoke_comet_options *with)
{
	*with = (struct spoke_comet_options){
		.authorize_ns = sim_magnitude(dice, 10 * MS, 500 * MS),
		.head_ns = sim_magnitude(dice, 100 * MS, SECOND),
		.keep_ns = sim_magnitude(dice, 10 * MS, 3 * SECOND),
		.slow_ns = sim_magnitude(dice, 50 * MS, SECOND),
		.retry_min_ns = sim_magnitude(dice, MS, 100 * MS),
		.drain_ns = sim_magnitude(dice, 20 * MS, SECOND),
		.accept_rate = (uint32_t)sim_magnitude(dice, 500, 5000),
		.connections_per_user_max = (uint32_t)sim_between(dice, 1, 6),
		.frames_per_second = 250,
		.message_max = (uint32_t)plan->data_max,
		.ring_messages = (uint32_t)sim_magnitude(dice, 1, 40),
		.ring_bytes = (uint32_t)sim_magnitude(dice, 64, 16384),
		.ring_ns = sim_magnitude(dice, 20 * MS, 3 * SECOND),
		.all_messages = (uint32_t)sim_magnitude(dice, 1, 80),
		.all_bytes = (uint32_t)sim_magnitude(dice, 64, 65536),
	};
	sim_gateway_draw_times(dice, with);
	with->retry_max_ns = with->retry_min_ns * sim_between(dice, 1, 10);
	if (sim_chance(dice, 300))
		with->bytes_max = sim_magnitude(dice, 8192, 262144);
	if (sim_chance(dice, 300))
		with->users_max = (uint32_t)sim_between(dice, plan->users,
							plan->users + SIM_STRANGERS);
	if (sim_chance(dice, 300))
		with->connections_max = (uint32_t)sim_between(dice, plan->pages, 4 * plan->pages);
}

static void draw_link(struct sim_dice *dice, struct spokei_vnet_link *link)
{
	if (sim_chance(dice, 700))
		link->latency_ns = sim_magnitude(dice, 20000, 5 * MS);
	if (sim_chance(dice, 300))
		link->jitter_ns = sim_magnitude(dice, 20000, 5 * MS);
	if (sim_chance(dice, 200))
		link->write_max = (uint32_t)sim_magnitude(dice, 4, 512);
	if (sim_chance(dice, 200))
		link->read_max = (uint32_t)sim_magnitude(dice, 4, 512);
	if (sim_chance(dice, 150))
		link->eagain_permille = (uint32_t)sim_between(dice, 1, 300);
	if (sim_chance(dice, 500))
		link->capacity = (uint32_t)sim_magnitude(dice, 256, 16384);
	if (sim_chance(dice, 100))
		link->bytes_per_s = sim_magnitude(dice, 50000, 2000000);
}

void sim_gateway_draw(struct sim_gateway_plan *plan, uint64_t seed)
{
	struct sim_dice dice = sim_dice_make(~seed ^ GATEWAY_SEED);

	*plan = (struct sim_gateway_plan){
		.users = (unsigned)sim_between(&dice, 1, SIM_USERS),
		.pages = (unsigned)sim_between(&dice, 1, SIM_PAGES),
		.push_every_ns = sim_magnitude(&dice, MS, 100 * MS),
		.data_max = (size_t)sim_magnitude(&dice, 32, 4096),
		.fault_every_ns = sim_magnitude(&dice, 10 * MS, SECOND),
		.length_ns = sim_magnitude(&dice, 500 * MS, 6 * SECOND),
		.moving = sim_chance(&dice, 500),
	};
	for (unsigned i = 0; i < SIM_GATEWAY_FAULTS; i++)
		plan->faults |= sim_chance(&dice, 400) ? 1u << i : 0;
	if (sim_chance(&dice, 500))
		plan->faults &= ~(1u << SIM_GATEWAY_MEMORY);
	if (sim_chance(&dice, 100))
		plan->faults = 0;
	draw_link(&dice, &plan->link);
	draw_options(&dice, plan, &plan->with);
}
