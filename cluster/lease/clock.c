/* SPDX-License-Identifier: Apache-2.0 */
/* The clock by which leases are valid: the later of two clocks. */
#include "cluster/lease/clock.h"

void spokei_lease_clock_init(struct spokei_lease_clock *clock, const struct spoke_env *env)
{
	clock->env = env;
	clock->lead_ns = env->boot_now(env->ctx) - env->now(env->ctx);
}

uint64_t spokei_lease_clock_at(const struct spokei_lease_clock *clock, uint64_t now_ns)
{
	uint64_t boot_ns = clock->env->boot_now(clock->env->ctx) - clock->lead_ns;

	return boot_ns > now_ns ? boot_ns : now_ns;
}

uint64_t spokei_lease_clock_now(const struct spokei_lease_clock *clock)
{
	return spokei_lease_clock_at(clock, clock->env->now(clock->env->ctx));
}
