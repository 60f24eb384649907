/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spoke's wheel as a peer: default geometry and budget, linked statically, its functions called (or
 * inlined) as in any program. Included once by each peer_spoke_*.c, which defines CANCEL, the way
 * to cancel: known at compile time, the choice costs nothing.
 */
#ifndef BENCH_PEER_SPOKE_H
#define BENCH_PEER_SPOKE_H

#include "drive.h"
#include "expiry.h"
#include "fleet.h"
#include "live.h"
#include "query.h"
#include "steady.h"

#include <spoke/wheel.h>

#include <stdlib.h>

static struct spoke_timer *first; /* of the fleet that is open */
static void *wheel_memory;

static struct spoke_timer *timer_at(const struct fleet *fleet, uint64_t i)
{
	return (struct spoke_timer *)fleet->timers + i;
}

static void count_fired(struct spoke_timer *timer, void *arg)
{
	(void)arg;
	fired++;
	if (live_due != NULL)
		live_due((uint64_t)(timer - first));
}

static struct fleet open_fleet(const struct bench_plan *plan)
{
	struct spoke_wheel_options options = { 0 };
	struct fleet fleet = {
		.timers = host_memory(plan->n, sizeof(struct spoke_timer)),
		.n = plan->n,
	};
	struct spoke_wheel *wheel = NULL;
	size_t size = 0;

	fired = 0;
	refused = 0;
	first = fleet.timers;
	if (spoke_wheel_size(&options, &size) != 0)
		host_die("spoke rejects its default options");
	wheel_memory = host_memory(1, size);
	if (spoke_wheel_init(wheel_memory, size, &options, host_now_ns, &wheel) != 0 ||
	    spoke_wheel_add_class(wheel, "bench", count_fired, NULL, &fleet.timer_class) != 0)
		host_die("spoke cannot create a wheel");
	fleet.home = wheel;
	return fleet;
}

/* The wheel's own counters must agree with those of the benchmark. */
static void close_fleet(const struct fleet *fleet)
{
	struct spoke_wheel_counts counts;
	uint64_t armed = 0;

	spoke_wheel_counts(fleet->home, &counts);
	for (uint64_t i = 0; i < fleet->n; i++)
		armed += spoke_timer_armed(timer_at(fleet, i)) ? 1 : 0;
	if (counts.pending != armed || counts.fired != fired || counts.rejected != 0)
		host_die("spoke counts %llu pending and %llu fired, not %llu and %llu",
			 (unsigned long long)counts.pending, (unsigned long long)counts.fired,
			 (unsigned long long)armed, (unsigned long long)fired);
	free(fleet->timers);
	free(wheel_memory);
}

static inline void arm(const struct fleet *fleet, uint64_t i, uint64_t delay_us)
{
	check(spoke_wheel_schedule(fleet->home, timer_at(fleet, i), fleet->timer_class,
				   host_now_ns + delay_us * 1000) == SPOKE_WHEEL_OK);
}

static inline void forget(const struct fleet *fleet, uint64_t i)
{
	check(CANCEL(fleet->home, timer_at(fleet, i)));
}

static inline void move_to(const struct fleet *fleet, uint64_t i, uint64_t delay_us)
{
	check(spoke_wheel_reschedule(fleet->home, timer_at(fleet, i),
				     host_now_ns + delay_us * 1000) == SPOKE_WHEEL_OK);
}

static inline bool is_armed(const struct fleet *fleet, uint64_t i)
{
	return spoke_timer_armed(timer_at(fleet, i));
}

static inline bool turn(const struct fleet *fleet)
{
	return spoke_wheel_advance(fleet->home, host_now_ns, 0) == SPOKE_WHEEL_MORE;
}

static inline uint64_t ask_next(const struct fleet *fleet)
{
	return spoke_wheel_next(fleet->home);
}

static void note_time(const struct fleet *fleet)
{
	(void)fleet;
	host_now_ns = host_real_ns();
}

static void run_until(const struct fleet *fleet, int fd)
{
	drive_until(fleet->home, fd);
	note_end();
}

#define BENCH_SPOKE_KIT                                                                              \
	{                                                                                            \
		.run = {                                                                           \
			[BENCH_RPC_PAIR] = run_rpc_pair,                                           \
			[BENCH_RANDOM_VICTIM] = run_random_victim,                                 \
			[BENCH_RANDOM_MOVE] = run_random_move,                                     \
			[BENCH_FIFO_ADVANCE] = run_fifo_advance,                                   \
			[BENCH_EXPIRE_STEP] = run_expire_step,                                     \
			[BENCH_EXPIRE_STEP_WORST] = run_expire_step_worst,                         \
			[BENCH_EXPIRE_JUMP] = run_expire_jump,                                     \
			[BENCH_EXPIRE_JUMP_WORST] = run_expire_jump_worst,                         \
			[BENCH_UPDATE_DEADLINE] = run_update_deadline,                             \
			[BENCH_NEXT_EXPIRY] = run_next_expiry,                                     \
			[BENCH_NEXT_AFTER_CHANGE] = run_next_after_change,                         \
			[BENCH_BURST] = run_burst,                                                 \
			[BENCH_BURST_WORST] = run_burst_worst,                                     \
		},                                                                                 \
		.live = run_live, .bytes = sizeof(struct spoke_timer), \
	}

#endif
