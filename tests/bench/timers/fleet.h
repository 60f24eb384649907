/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations that the workloads require of a peer, and shared helpers. Included once by each
 * peer_*.c, which defines the functions declared here. The timers are a bare array of the peer's
 * own timer struct, for all peers alike.
 */
#ifndef BENCH_FLEET_H
#define BENCH_FLEET_H

#include "dice.h"
#include "host.h"
#include "peer.h"

#define SECOND_US UINT64_C(1000000)

/* n timers and their loop. Small and constant, so that the loops of the workloads keep a copy in
 * registers, and finding a timer is not part of the measurement. */
struct fleet {
	void *home;   /* the peer's loop, wheel or heap */
	void *timers; /* array of the peer's own timer struct */
	uint64_t n;
	unsigned timer_class; /* spoke's only */
};

/* Creates the timers, idle, and their loop. */
static struct fleet open_fleet(const struct bench_plan *plan);
static void close_fleet(const struct fleet *fleet);

/* Arm idle timer i; cancel armed timer i; move armed timer i to another deadline. */
static inline void arm(const struct fleet *fleet, uint64_t i, uint64_t delay_us);
static inline void forget(const struct fleet *fleet, uint64_t i);
static inline void move_to(const struct fleet *fleet, uint64_t i, uint64_t delay_us);

/* Returns whether timer i is armed. */
static inline bool is_armed(const struct fleet *fleet, uint64_t i);

/* Runs one turn of the loop at the host's time, which fires due timers. Returns whether more work
 * is left. */
static inline bool turn(const struct fleet *fleet);

/* Number of timers that fired since the fleet was opened, and of operations that the peer rejected:
 * must stay 0. */
static uint64_t fired;
static uint64_t refused;

/* Called in a branch that is never taken, because counting each time would cost more than some of
 * the operations. */
static inline void check(bool accepted)
{
	if (!accepted)
		refused++;
}

/* Ends the program unless exactly `count` timers are armed and `gone` have fired. */
static inline void expect(const struct fleet *fleet, uint64_t count, uint64_t gone)
{
	uint64_t armed = 0;

	for (uint64_t i = 0; i < fleet->n; i++)
		armed += is_armed(fleet, i) ? 1 : 0;
	if (armed != count || fired != gone || refused != 0) {
		host_die("%s: %llu armed, %llu fired, %llu refused; expected %llu, %llu and none",
			 __BASE_FILE__, (unsigned long long)armed, (unsigned long long)fired,
			 (unsigned long long)refused, (unsigned long long)count,
			 (unsigned long long)gone);
	}
}

/* Moves time to `until_ns` in steps, with a turn at each. */
static inline void walk(const struct fleet *fleet, uint64_t until_ns, uint64_t step_ns)
{
	while (host_now_ns < until_ns) {
		host_now_ns += step_ns;
		while (turn(fleet)) {
		}
	}
}

#endif
