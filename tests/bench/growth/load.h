/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the benchmark of growth does with spoke: a provider at one or many places, and a client with
 * many connections or endpoints, calls that wait, or tickets. Provider and client may be on one
 * engine.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "tests/bench/rpc/peer.h"

#define SERVICE "demo.EchoService"
#define ENDPOINT_HOST "127.0.0.%u" /* of the endpoint of this number, from 1 on */

struct load;
struct meter;
struct spoke_engine;

/* Ends the program with the sentence of an error, if it is one. */
void must(const char *what, int error);

/* Makes providers as the plan says. Returns their port. */
uint16_t load_serve(struct spoke_engine *engine, const struct rpc_plan *plan);

/* Makes a client and waits until all that shall wait does. It stays until the program ends, as its
 * engine. `timeout_ns` is that of the calls that are measured. */
struct load *load_open(struct spoke_engine *engine, const struct rpc_plan *plan,
		       uint64_t timeout_ns);

/* Begins the calls of the plan, and goes on with them until the meter is over. */
void load_measure(struct load *load, struct meter *meter);

/* Begins them if they have not begun, and goes on until so many more have ended. */
void load_repeat(struct load *load, uint64_t calls);

/* Ends the program if what shall wait does not any more. */
void load_check(const struct load *load);

#endif
