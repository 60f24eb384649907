/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of a timer implementation. Each peer_*.c defines a `struct fleet` of timers and a
 * few small operations on it, then includes the workloads as source. That way all peers run the
 * same code, and an operation of a nanosecond or two needs no indirect call.
 */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <stdbool.h>
#include <stdint.h>

enum bench_workload {
	BENCH_RPC_PAIR,
	BENCH_RANDOM_VICTIM,
	BENCH_RANDOM_MOVE,
	BENCH_FIFO_ADVANCE,
	BENCH_EXPIRE_STEP,
	BENCH_EXPIRE_STEP_WORST,
	BENCH_EXPIRE_JUMP,
	BENCH_EXPIRE_JUMP_WORST,
	BENCH_UPDATE_DEADLINE,
	BENCH_NEXT_EXPIRY,
	BENCH_NEXT_AFTER_CHANGE,
	BENCH_BURST,
	BENCH_BURST_WORST,
	BENCH_WORKLOADS,
};

/* One measurement. */
struct bench_plan {
	uint64_t n;            /* timers */
	uint64_t spent_min_ns; /* a steady workload runs at least this long */
};

/* A measurement in real time. */
struct bench_live {
	uint64_t n;
	const uint64_t *delays_us;   /* of the n timers, counted from base_ns */
	int stop_fd;                 /* readable: the loop must end */
	void (*due)(uint64_t index); /* called by each timer as it fires */
	uint64_t wakeups; /* written: number of wake-ups of the loop, except the last one */
	uint64_t base_ns; /* written: real time just before the loop noted its own */
};

/* Returns ns per operation, or ms for the worst step. */
typedef double (*bench_run_fn)(const struct bench_plan *plan);

struct bench_kit {
	bench_run_fn run[BENCH_WORKLOADS];     /* NULL: not supported */
	void (*live)(struct bench_live *live); /* NULL: the peer has no loop */
	uint64_t bytes;                        /* one timer, and its cell in the peer's heap */
};

/* The rows of `run` for a peer that supports the workloads of expiry.h, query.h and steady.h. */
#define BENCH_RUNS                                                                                 \
	[BENCH_RPC_PAIR] = run_rpc_pair, [BENCH_RANDOM_VICTIM] = run_random_victim,                \
	[BENCH_RANDOM_MOVE] = run_random_move, [BENCH_FIFO_ADVANCE] = run_fifo_advance,            \
	[BENCH_UPDATE_DEADLINE] = run_update_deadline, [BENCH_NEXT_EXPIRY] = run_next_expiry,      \
	[BENCH_NEXT_AFTER_CHANGE] = run_next_after_change, [BENCH_EXPIRE_STEP] = run_expire_step,  \
	[BENCH_EXPIRE_STEP_WORST] = run_expire_step_worst, [BENCH_EXPIRE_JUMP] = run_expire_jump,  \
	[BENCH_EXPIRE_JUMP_WORST] = run_expire_jump_worst, [BENCH_BURST] = run_burst,              \
	[BENCH_BURST_WORST] = run_burst_worst

extern const struct bench_kit bench_spoke_disarm; /* cancels with disarm, like the engine */
extern const struct bench_kit bench_spoke_cancel; /* cancels with cancel */
extern const struct bench_kit bench_libev;
extern const struct bench_kit bench_libuv;
extern const struct bench_kit bench_libevent;
extern const struct bench_kit bench_lists; /* a wheel with plain lists */

#endif
