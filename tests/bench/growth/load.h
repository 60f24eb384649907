/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spoke's two sides of the benchmark of growth, which share an engine: a provider at one or many
 * addresses, and a client with many connections or endpoints, waiting calls, or tickets.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <stdint.h>

struct load;
struct spoke_engine;

/* One point of a curve. */
struct load_plan {
	uint32_t payload;     /* bytes */
	uint32_t connections; /* from the one client */
	uint32_t total;       /* calls in flight on all connections */
	uint32_t endpoints;   /* of the one consumer, a connection to each; 0: one for all */
	uint32_t kept;        /* waiting calls whose answers do not come soon */
	uint32_t parked;      /* failback calls that wait for their next attempt */
	const char *balancer; /* of the endpoints; NULL: the default */
};

/* Creates providers according to the plan. Returns their port. */
uint16_t load_serve(struct spoke_engine *engine, const struct load_plan *plan);

/* Creates a client of the providers at `port` and waits until all waiting calls of the plan wait.
 * The client and its engine live until the program ends. */
struct load *load_open(struct spoke_engine *engine, const struct load_plan *plan, uint16_t port);

/* Begins the calls if they have not begun, and repeats them until `count` more have ended. */
void load_repeat(struct load *load, uint64_t count);

/* Ends the program unless all calls that must wait still do. */
void load_check(const struct load *load);

#endif
