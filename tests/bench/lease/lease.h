/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark of leases against a Redis server of its own, at a unix socket. Every figure is one
 * row on stdout.
 */
#ifndef BENCH_LEASE_H
#define BENCH_LEASE_H

#include "tests/bench/memory/memory.h"
#include "tests/integration/redisclient.h"
#include "tests/integration/redisserver.h"

#include <spoke/engine.h>
#include <spoke/lease.h>

#include <stdatomic.h>

#define US UINT64_C(1000)

/* What all measurements share. */
struct bench {
	bool is_quick;
	struct redisserver server;
	struct redisclient client; /* bare */
	char url[128];             /* of the store */
};

/* --- samples, in ns */

#define SAMPLES_MAX 32768u

struct samples {
	uint64_t ns[SAMPLES_MAX];
	uint32_t count; /* more are dropped */
};

void samples_add(struct samples *samples, uint64_t ns);

/* Returns the value that `ppm` millionths of the samples do not exceed. Sorts them. */
uint64_t samples_percentile(struct samples *samples, uint32_t ppm);

/* --- rows */

/* Prints a row: figure, value, unit, first bar, goal; larger values miss them. 0: none. */
void lease_report(const char *figure, double value, const char *unit, double bar, double goal);

/* Returns whether all first bars were reached. */
bool lease_report_is_good(void);

/* --- a client of leases */

struct client {
	struct spoke_engine *engine;
	struct spoke_leases *leases;
};

/* Makes an engine and leases at the store; ttl_ns 0: the default. Ends the program on an error. */
void client_make(struct client *client, const struct bench *bench, const struct spoke_env *env,
		 uint64_t ttl_ns);
void client_unmake(struct client *client);

/* Runs the engine until *flag is true, or until a time. */
void client_run(struct client *client, const bool *flag);
void client_run_until(struct client *client, uint64_t end_ns);

/* --- the measurements */

void measure_acquire(struct bench *bench);

/* Both begin with processes of their own, so they are called before any engine is made. */
void measure_handover(struct bench *bench);
void measure_takeover(struct bench *bench);

void measure_held(struct bench *bench);
void measure_lost(struct bench *bench);

#endif
