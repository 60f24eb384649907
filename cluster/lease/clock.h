/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of leases: the later of the monotonic clock and the clock that includes sleep of the
 * machine. It never goes back, and is ahead of the engine's time if the machine has slept. On the
 * engine's thread; spokei_lease_clock_now() on any.
 */
#ifndef SPOKEI_CLUSTER_LEASE_CLOCK_H
#define SPOKEI_CLUSTER_LEASE_CLOCK_H

#include <spoke/env.h>

struct spokei_lease_clock {
	const struct spoke_env *env; /* borrowed for the clock's life */
	uint64_t lead_ns; /* of the clock with sleep when this clock was made; may wrap */
};

/* Makes a clock that agrees with env->now() until the machine sleeps. */
void spokei_lease_clock_init(struct spokei_lease_clock *clock, const struct spoke_env *env);

/* Returns the time, given that of env->now(), in ns. */
uint64_t spokei_lease_clock_at(const struct spokei_lease_clock *clock, uint64_t now_ns);

/* Reads both clocks and returns the time in ns. */
uint64_t spokei_lease_clock_now(const struct spokei_lease_clock *clock);

#endif
