/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of leases: their memory, the texts and the timer of each. */
#include "cluster/lease/parts.h"
#include "cluster/lease/settings.h"

#include <inttypes.h>
#include <stdio.h>

#define PAUSE_MIN_NS UINT64_C(50000000)
#define PAUSE_SPAN_NS UINT64_C(200000000)
#define ARM_MAX_NS UINT64_C(86400000000000) /* leases that wait for ever look once a day */

_Static_assert(sizeof(struct spokei_lease) <= 176, "a lease needs 192 bytes with its head");

int spokei_lease_cell_take(struct spoke_leases *leases, struct spoke_span name,
			   struct spokei_lease **ret_lease)
{
	const struct spoke_env *env = leases->engine->env;
	char *block = NULL;
	uint64_t handle;
	void *cell;
	int error;

	if (name.len > SPOKEI_LEASE_NAME_SHORT) {
		block = spokei_alloc(env, 1, name.len);
		if (block == NULL)
			return SPOKE_ENOMEM;
		memcpy(block, name.data, name.len);
	}
	error = spokei_slab_take(&leases->cells, &cell, &handle);
	if (error) {
		spokei_free(env, block, 1, name.len);
		return error;
	}
	*ret_lease = cell;
	**ret_lease = (struct spokei_lease){
		.leases = leases,
		.handle = handle,
		.name_len = (uint16_t)name.len,
		.name.block = block,
	};
	if (block == NULL)
		memcpy((*ret_lease)->name.bytes, name.data, name.len);
	return SPOKE_OK;
}

void spokei_lease_cell_give(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;
	uint64_t handle = lease->handle;

	SPOKE_ASSERT(lease->node.next == NULL);
	(void)spoke_wheel_cancel(leases->engine->wheel, &lease->timer);
	if (lease->name_len > SPOKEI_LEASE_NAME_SHORT)
		spokei_free(leases->engine->env, lease->name.block, 1, lease->name_len);
	lease->life.state = SPOKEI_LEASE_NONE;
	spokei_slab_give(&leases->cells, handle);
	if (leases->cells.count == 0 && leases->draining && !leases->ended)
		spokei_engine_soon(leases->engine, &leases->rest);
}

struct spoke_span spokei_lease_holder(const struct spokei_lease *lease,
				      char to[SPOKEI_LEASE_HOLDER])
{
	int len;

	memcpy(to, lease->leases->uuid, SPOKEI_LEASE_UUID);
	len = snprintf(to + SPOKEI_LEASE_UUID, SPOKEI_LEASE_HOLDER - SPOKEI_LEASE_UUID, ":%" PRIu64,
		       lease->handle);
	return (struct spoke_span){ to, SPOKEI_LEASE_UUID + (size_t)len };
}

bool spokei_lease_arm(struct spokei_lease *lease, uint64_t at_ns)
{
	struct spoke_leases *leases = lease->leases;
	struct spoke_wheel *wheel = leases->engine->wheel;
	uint64_t engine_ns = leases->clock.env->now(leases->clock.env->ctx);
	uint64_t now_ns = spokei_lease_clock_at(&leases->clock, engine_ns);
	uint64_t due_ns;

	if (at_ns > lease->life.end_ns)
		at_ns = lease->life.end_ns;
	if (at_ns > now_ns + ARM_MAX_NS)
		at_ns = now_ns + ARM_MAX_NS;
	/* The wheel follows the engine's clock, which does not count sleep of the machine. */
	due_ns = at_ns > now_ns ? engine_ns + (at_ns - now_ns) : engine_ns;
	if (spoke_timer_armed(&lease->timer))
		return spoke_wheel_reschedule(wheel, &lease->timer, due_ns) == SPOKE_WHEEL_OK;
	return spoke_wheel_schedule(wheel, &lease->timer, leases->timer_class, due_ns) ==
	       SPOKE_WHEEL_OK;
}

uint64_t spokei_lease_guard(const struct spokei_lease *lease)
{
	return lease->leases->settings->guard_ns;
}

uint64_t spokei_leases_pause(const struct spoke_leases *leases)
{
	const struct spoke_env *env = leases->engine->env;
	uint64_t dice;

	env->dice(env->ctx, &dice, sizeof(dice));
	return PAUSE_MIN_NS + dice % PAUSE_SPAN_NS;
}
