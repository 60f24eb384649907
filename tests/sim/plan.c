/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/plan.h"

#include <spoke/link.h>

static const char *const fault_names[SIM_FAULTS] = {
	[SIM_RESET] = "reset",     [SIM_HALF_OPEN] = "half-open", [SIM_HOLE] = "hole",
	[SIM_DELAY] = "delay",     [SIM_CLOG] = "clog",           [SIM_ROUTE] = "route",
	[SIM_ACCEPT] = "accept",   [SIM_CRASH] = "crash",         [SIM_DRAIN] = "drain",
	[SIM_HOLD] = "hold",       [SIM_STALL] = "stall",         [SIM_MEMORY] = "memory",
	[SIM_REPLAY] = "replay",   [SIM_FLIP] = "flip",           [SIM_SLEEP] = "sleep",
	[SIM_CANCELS] = "cancels", [SIM_CHURN] = "churn",
};

const char *sim_fault_name(enum sim_fault fault)
{
	return fault_names[fault];
}

/* Most sides of a seed have intervals alike; some have another one, or none. */
static uint64_t draw_heartbeat(struct sim_dice *dice, uint64_t usual_ns)
{
	if (sim_chance(dice, 100))
		return SPOKE_OFF;
	if (sim_chance(dice, 400))
		return sim_magnitude(dice, 20 * MS, 2 * SECOND);
	return usual_ns;
}

static void draw_provider(struct sim_dice *dice, struct sim_provider_plan *plan, uint64_t usual_ns)
{
	*plan = (struct sim_provider_plan){
		.heartbeat_ns = draw_heartbeat(dice, usual_ns),
		.requests_max = (uint32_t)sim_magnitude(dice, 4, 1000),
		.requests_per_connection_max = (uint32_t)sim_magnitude(dice, 2, 200),
	};
	if (sim_chance(dice, 300))
		plan->out_high = (size_t)sim_magnitude(dice, 2048, 65536);
	plan->frees_inside = sim_chance(dice, 100);
}

static void draw_consumer(struct sim_dice *dice, struct sim_consumer_plan *plan, uint64_t usual_ns)
{
	*plan = (struct sim_consumer_plan){
		.heartbeat_ns = draw_heartbeat(dice, usual_ns),
		.every_ns = sim_magnitude(dice, 5 * MS, SECOND),
		.burst = sim_chance(dice, 200) ? (unsigned)sim_between(dice, 2, 12) : 1,
		.timeout_ns = sim_magnitude(dice, 5 * MS, SECOND),
		.pending_max = (uint32_t)sim_magnitude(dice, 4, 4096),
		.mprpc = sim_chance(dice, 120),
		.frees_inside = sim_chance(dice, 150),
	};
}

static void draw_link(struct sim_dice *dice, struct memnet_link *link)
{
	if (sim_chance(dice, 700))
		link->latency_ns = sim_magnitude(dice, 20000, 5 * MS);
	if (sim_chance(dice, 300))
		link->jitter_ns = sim_magnitude(dice, 20000, 5 * MS);
	if (sim_chance(dice, 150))
		link->write_max = (uint32_t)sim_magnitude(dice, 1, 256);
	if (sim_chance(dice, 150))
		link->read_max = (uint32_t)sim_magnitude(dice, 1, 256);
	if (sim_chance(dice, 150))
		link->eagain_permille = (uint32_t)sim_between(dice, 1, 500);
	if (sim_chance(dice, 150))
		link->capacity = (uint32_t)sim_magnitude(dice, 256, 65536);
	if (sim_chance(dice, 100))
		link->bytes_per_s = sim_magnitude(dice, 20000, 2000000);
}

void sim_plan_draw(struct sim_plan *plan, uint64_t seed)
{
	struct sim_dice dice = sim_dice_make(seed);
	uint64_t usual_ns = sim_magnitude(&dice, 20 * MS, 500 * MS);

	*plan = (struct sim_plan){
		.seed = seed,
		.provider_count = (unsigned)sim_between(&dice, 1, SIM_PROVIDERS),
		.consumer_count = (unsigned)sim_between(&dice, 1, SIM_CONSUMERS),
		.interval_ns = usual_ns,
		.fault_every_ns = sim_magnitude(&dice, 10 * MS, SECOND),
		.manners = (uint32_t)sim_throw(&dice) | 1u << SIM_AT_ONCE,
		.one_way_permille = sim_chance(&dice, 500) ? 100 : 0,
		.size_max = (size_t)sim_magnitude(&dice, 16, 4096),
		.large = (size_t)sim_magnitude(&dice, 1000, 40000),
	};
	plan->length_ns = sim_between(&dice, 10, 40) * usual_ns;
	if (plan->length_ns > 5 * SECOND)
		plan->length_ns = 5 * SECOND;
	for (unsigned i = 0; i < SIM_FAULTS; i++)
		plan->faults |= sim_chance(&dice, 375) ? 1u << i : 0;
	if (sim_chance(&dice, 700))
		plan->faults &= ~(1u << SIM_FLIP | 1u << SIM_MEMORY);
	if (sim_chance(&dice, 100))
		plan->faults = 0;
	for (unsigned i = 0; i < plan->provider_count; i++)
		draw_provider(&dice, &plan->providers[i], usual_ns);
	for (unsigned i = 0; i < plan->consumer_count; i++)
		draw_consumer(&dice, &plan->consumers[i], usual_ns);
	draw_link(&dice, &plan->link);
}

void sim_plan_steady(struct sim_plan *plan, unsigned calls_per_s, uint64_t length_ns)
{
	*plan = (struct sim_plan){
		.seed = 1,
		.steady = true,
		.provider_count = 1,
		.consumer_count = 1,
		.providers = { { .heartbeat_ns = SECOND } },
		.consumers = { { .heartbeat_ns = SECOND,
				 .every_ns = SECOND / calls_per_s,
				 .burst = 1,
				 .timeout_ns = SECOND } },
		.length_ns = length_ns,
		.interval_ns = SECOND,
		.manners = 1u << SIM_AT_ONCE,
		.size_max = 32,
		.link = { .latency_ns = 50000 },
	};
}
