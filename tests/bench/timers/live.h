/* SPDX-License-Identifier: Apache-2.0 */
/* A peer's own loop in real time; see fleet.h. */
#ifndef BENCH_LIVE_H
#define BENCH_LIVE_H

#include "fleet.h"

#include <stddef.h>

/* Makes the loop note the time; runs it, sleeping as it does, until `fd` becomes readable. */
static void note_time(const struct fleet *fleet);
static void run_until(const struct fleet *fleet, int fd);

/* Called by the timers' callbacks if set. */
static void (*live_due)(uint64_t index);

/* Number of wake-ups of the loop until it was asked to end; later ones are caused by the benchmark.
 */
static uint64_t live_wakeups;

/* Called by the peer's callback on `fd`. */
static inline void note_end(void)
{
	live_wakeups = host_wakeups;
}

static inline void run_live(struct bench_live *live)
{
	struct bench_plan plan = { .n = live->n };
	struct fleet fleet;

	host_real();
	fleet = open_fleet(&plan);
	live_due = live->due;
	live->base_ns = host_real_ns();
	note_time(&fleet);
	for (uint64_t i = 0; i < live->n; i++)
		arm(&fleet, i, live->delays_us[i]);
	host_wakeups = 0;
	run_until(&fleet, live->stop_fd);
	live_due = NULL;
	live->wakeups = live_wakeups;
	if (refused != 0)
		host_die("%s: %llu timers refused", __BASE_FILE__, (unsigned long long)refused);
	close_fleet(&fleet);
}

#endif
