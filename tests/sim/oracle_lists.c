/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the provider lists of consumers against the registry; an empty list must not replace a
 * known one.
 */
#include "tests/sim/oracle.h"

#include <string.h>

#define INFOS (2u * SIM_PROVIDERS + 2u)

void sim_list_told(struct sim_process *process, size_t count)
{
	if (!sim_is_provider(process) && count > 0)
		((struct sim_consumer *)process)->listed = true;
}

static size_t list(const struct sim_consumer *consumer,
		   struct spoke_endpoint_info infos[static INFOS])
{
	size_t count = spoke_consumer_endpoints(consumer->consumer, infos, INFOS);
	size_t listed = 0;

	for (size_t i = 0; i < count && i < INFOS; i++)
		if (infos[i].state != SPOKE_ENDPOINT_REMOVED)
			infos[listed++] = infos[i];
	return listed;
}

/* --- S28 */

void sim_lists_check(struct sim_world *world)
{
	struct spoke_endpoint_info infos[INFOS];

	if (sim_plan_has(world->plan, SIM_MEMORY))
		return;
	for (unsigned i = 0; i < world->plan->consumer_count; i++) {
		const struct sim_consumer *consumer = &world->consumers[i];

		if (consumer->listed && consumer->consumer && !consumer->process.draining &&
		    list(consumer, infos) == 0)
			sim_violation(world, SIM_S28, "consumer %u lost its whole provider list",
				      consumer->process.number);
	}
}

/* --- L7 */

static bool is_listed(const struct spoke_endpoint_info *infos, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(infos[i].name, name) == 0)
			return true;
	return false;
}

static bool is_exact(const struct sim_consumer *consumer, const struct spoke_endpoint_info *infos,
		     size_t count)
{
	const struct sim_world *world = consumer->process.world;

	unsigned living = 0;

	for (unsigned i = 0; i < world->plan->provider_count; i++) {
		if (world->retired & 1u << i)
			continue;
		if (!is_listed(infos, count, world->providers[i].address))
			return false;
		living++;
	}
	return count == living;
}

bool sim_lists_all(const struct sim_consumer *consumer)
{
	struct spoke_endpoint_info infos[INFOS];
	size_t count = list(consumer, infos);

	for (size_t i = 0; i < count; i++)
		if (infos[i].state != SPOKE_ENDPOINT_READY &&
		    !(infos[i].state == SPOKE_ENDPOINT_IDLE && consumer->plan->calls.lazy))
			return false;
	return is_exact(consumer, infos, count);
}

void sim_lists_whole(const struct sim_consumer *consumer)
{
	struct spoke_endpoint_info infos[INFOS];
	size_t count = list(consumer, infos);

	if (!is_exact(consumer, infos, count))
		sim_violation(
			consumer->process.world, SIM_L7,
			"consumer %u lists %zu providers, but not exactly the registered ones",
			consumer->process.number, count);
}

bool sim_lists_living(const struct sim_consumer *consumer)
{
	struct spoke_endpoint_info infos[INFOS];
	size_t count = list(consumer, infos);

	return is_exact(consumer, infos, count);
}
