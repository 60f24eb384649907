/* SPDX-License-Identifier: Apache-2.0 */
/* What can only be seen in real time: how often an idle loop wakes up, and how late timers fire. */
#ifndef BENCH_REALTIME_H
#define BENCH_REALTIME_H

#include "peer.h"

/* How often the peer's loop wakes up in `span_ms` when its one timer is ten minutes away. */
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
