/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements that need real time: wake-ups of an idle loop, and lateness of timers. */
#ifndef BENCH_REALTIME_H
#define BENCH_REALTIME_H

#include "peer.h"

/* Returns the number of wake-ups of the peer's loop in `span_ms` while its one timer is ten minutes
 * away. */
double realtime_idle(const struct bench_kit *kit, uint64_t span_ms);

struct realtime_lateness {
	double p50_ms;
	double p99_ms;
	double max_ms;
	double early; /* timers that fired before their deadline */
};

/* Fires n timers, at random times within `span_ms`, in the peer's loop. */
struct realtime_lateness realtime_lateness(const struct bench_kit *kit, uint64_t n,
					   uint64_t span_ms);

#endif
