/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spoke's side of the benchmark of growth: a provider at one or many addresses, and a client with
 * many connections or endpoints, waiting calls, or tickets. Provider and client may share an
 * engine.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "tests/bench/rpc/peer.h"

#define SERVICE "demo.EchoService"
#define ENDPOINT_HOST "127.0.0.%u" /* address of endpoint N, from 1 on */

struct load;
struct meter;
struct spoke_engine;

/* Ends the program with the message of an error, if there is one. */
void must(const char *what, int error);

/* Creates providers according to the plan. Returns their port. */
uint16_t load_serve(struct spoke_engine *engine, const struct rpc_plan *plan);

/* Creates a client and waits until all waiting calls of the plan wait. The client and its engine
 * live until the program ends. `timeout_ns` applies to the measured calls. */
struct load *load_open(struct spoke_engine *engine, const struct rpc_plan *plan,
		       uint64_t timeout_ns);

/* Begins the calls of the plan and repeats them until the meter is over. */
void load_measure(struct load *load, struct meter *meter);

/* Begins the calls if they have not begun, and repeats them until `count` more have ended. */
void load_repeat(struct load *load, uint64_t calls);

/* Ends the program unless all calls that must wait still do. */
void load_check(const struct load *load);

#endif
