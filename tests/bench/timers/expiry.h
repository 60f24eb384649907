/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workloads in which n timers are armed, time passes and all of them fire; see fleet.h. A step is a
 * whole turn of the peer's loop, without its system call. If there are more steps than timers, the
 * row shows the cost of an empty turn: expire-step with 1,000 timers takes 60 steps per timer, of
 * about 50 ns in libev, 30 in libuv, 25 in libevent and 7 in spoke.
 */
#ifndef BENCH_EXPIRY_H
#define BENCH_EXPIRY_H

#include "fleet.h"

#define SPREAD_MS 60000u           /* deadlines are uniform over a minute */
#define HALF_MS (SPREAD_MS / 2)    /* where the count of fired timers is checked */
#define SLACK_MS 2u                /* a peer may fire this late by its own rounding */
#define BURST_US (100 * SECOND_US) /* beyond the range of a wheel's fine level */

/* Arms n timers at random, and counts those due before the check and those due by it. */
static inline void arm_spread(const struct fleet *fleet, uint64_t n, uint64_t *ret_before,
			      uint64_t *ret_by)
{
	struct dice dice = { DICE_SEED };
	uint64_t before = 0;
	uint64_t by = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t ms = 1 + dice_below((uint32_t)dice_roll(&dice), SPREAD_MS);

		before += ms <= HALF_MS - SLACK_MS ? 1 : 0;
		by += ms <= HALF_MS ? 1 : 0;
		arm(fleet, i, ms * 1000);
	}
	*ret_before = before;
	*ret_by = by;
}

/* As walk(), and returns the CPU time of the longest turn in ns. */
static inline uint64_t walk_worst(const struct fleet *fleet, uint64_t until_ns, uint64_t step_ns)
{
	uint64_t worst = 0;

	while (host_now_ns < until_ns) {
		bool more = true;

		host_now_ns += step_ns;
		while (more) {
			uint64_t begin = host_cpu_ns();
			uint64_t spent;

			more = turn(fleet);
			spent = host_cpu_ns() - begin;
			worst = spent > worst ? spent : worst;
		}
	}
	return worst;
}

static inline double run_expire_step(const struct bench_plan *plan)
{
	struct fleet fleet;
	uint64_t before;
	uint64_t by;
	uint64_t begin;
	uint64_t spent;

	host_virtual();
	fleet = open_fleet(plan);
	arm_spread(&fleet, plan->n, &before, &by);
	begin = host_real_ns();
	walk(&fleet, HOST_START_NS + HALF_MS * HOST_MS, HOST_MS);
	if (fired < before || fired > by) {
		host_die("%s: %llu timers fired by half time, %llu to %llu were due", __BASE_FILE__,
			 (unsigned long long)fired, (unsigned long long)before,
			 (unsigned long long)by);
	}
	walk(&fleet, HOST_START_NS + (SPREAD_MS + SLACK_MS) * HOST_MS, HOST_MS);
	spent = host_real_ns() - begin;
	expect(&fleet, 0, plan->n);
	close_fleet(&fleet);
	return (double)spent / (double)plan->n;
}

static inline double run_expire_jump(const struct bench_plan *plan)
{
	struct fleet fleet;
	uint64_t before;
	uint64_t by;
	uint64_t begin;
	uint64_t spent;

	host_virtual();
	fleet = open_fleet(plan);
	arm_spread(&fleet, plan->n, &before, &by);
	begin = host_real_ns();
	walk(&fleet, HOST_START_NS + 1, (SPREAD_MS + SLACK_MS) * HOST_MS);
	spent = host_real_ns() - begin;
	expect(&fleet, 0, plan->n);
	close_fleet(&fleet);
	return (double)spent / (double)plan->n;
}

static inline double expire_worst(const struct bench_plan *plan, uint64_t step_ns)
{
	struct fleet fleet;
	uint64_t before;
	uint64_t by;
	uint64_t worst;

	host_virtual();
	fleet = open_fleet(plan);
	arm_spread(&fleet, plan->n, &before, &by);
	worst = walk_worst(&fleet, HOST_START_NS + (SPREAD_MS + SLACK_MS) * HOST_MS, step_ns);
	expect(&fleet, 0, plan->n);
	close_fleet(&fleet);
	return (double)worst / (double)HOST_MS;
}

static inline double run_expire_step_worst(const struct bench_plan *plan)
{
	return expire_worst(plan, HOST_MS);
}

static inline double run_expire_jump_worst(const struct bench_plan *plan)
{
	return expire_worst(plan, (SPREAD_MS + SLACK_MS) * HOST_MS);
}

static inline struct fleet open_burst(const struct bench_plan *plan)
{
	struct fleet fleet;

	host_virtual();
	fleet = open_fleet(plan);
	for (uint64_t i = 0; i < plan->n; i++)
		arm(&fleet, i, BURST_US);
	return fleet;
}

/* Moves time in seconds until shortly before the deadlines, then in milliseconds: all levels are
 * passed. */
static inline double run_burst(const struct bench_plan *plan)
{
	struct fleet fleet;
	uint64_t end = HOST_START_NS + BURST_US * 1000;
	uint64_t begin;
	uint64_t spent;

	fleet = open_burst(plan);
	begin = host_real_ns();
	walk(&fleet, end - 1000 * HOST_MS, 1000 * HOST_MS);
	walk(&fleet, end - HOST_MS, HOST_MS);
	spent = host_real_ns() - begin;
	if (fired != 0) {
		host_die("%s: %llu timers of a burst fired early", __BASE_FILE__,
			 (unsigned long long)fired);
	}
	begin = host_real_ns();
	walk(&fleet, end + SLACK_MS * HOST_MS, HOST_MS);
	spent += host_real_ns() - begin;
	expect(&fleet, 0, plan->n);
	close_fleet(&fleet);
	return (double)spent / (double)plan->n;
}

static inline double run_burst_worst(const struct bench_plan *plan)
{
	struct fleet fleet;
	uint64_t end = HOST_START_NS + BURST_US * 1000;
	uint64_t coarse;
	uint64_t fine;

	fleet = open_burst(plan);
	coarse = walk_worst(&fleet, end - 1000 * HOST_MS, 1000 * HOST_MS);
	fine = walk_worst(&fleet, end + SLACK_MS * HOST_MS, HOST_MS);
	expect(&fleet, 0, plan->n);
	close_fleet(&fleet);
	return (double)(fine > coarse ? fine : coarse) / (double)HOST_MS;
}

#endif
