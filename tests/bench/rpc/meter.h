/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measurements of a client. All replies of one read have the same time: the clock is read once
 * after each system call that read. Peers whose library reads on other threads call meter_tick()
 * themselves, for each reply or every few. One thread at a time.
 */
#ifndef BENCH_METER_H
#define BENCH_METER_H

#include "host.h"
#include "peer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Latencies in ns: exact below 64, then 64 steps to each power of two. */
#define METER_STEP_BITS 6
#define METER_STEPS (1u << METER_STEP_BITS)
#define METER_BUCKETS (METER_STEPS * 36)

/* Calls of a batch where no system call reads. */
#define METER_SHM_BATCH(plan) ((plan)->outstanding < 16 ? 1 : (plan)->outstanding / 8)

enum meter_phase {
	METER_WARM,
	METER_SPAN,
	METER_OVER,
};

struct meter {
	const struct rpc_plan *plan;
	const struct host_calls *server_calls;
	struct rpc_report *report;
	enum meter_phase phase;
	uint64_t phase_end_ns;
	uint64_t batch;  /* host_reads() when now_ns was read */
	uint64_t now_ns; /* monotonic */
	uint64_t calls;
	uint64_t failed;
	uint32_t latency[METER_BUCKETS];
};

/* Begins the warm-up. The report is written when the meter is over. */
void meter_open(struct meter *meter, const struct rpc_plan *plan,
		const struct host_calls *server_calls, struct rpc_report *report);

/* Restarts the warm-up after the client's set-up. */
void meter_restart(struct meter *meter);

/* Reads the clock, and enters the next phase when it is time. */
void meter_tick(struct meter *meter);

static inline bool meter_is_over(const struct meter *meter)
{
	return meter->phase == METER_OVER;
}

/* Returns whether the last read was already noticed, and marks it as noticed. */
static inline bool meter_is_new_batch(struct meter *meter)
{
	uint64_t batch = meter->plan->is_shm ? meter->calls / METER_SHM_BATCH(meter->plan)
					     : host_reads();

	if (meter->batch == batch)
		return false;
	meter_tick(meter);
	meter->batch = batch;
	return true;
}

static inline uint32_t meter_bucket(uint64_t ns)
{
	uint32_t shift;
	uint32_t bucket;

	if (ns < METER_STEPS)
		return (uint32_t)ns;
	shift = 63 - METER_STEP_BITS - (uint32_t)__builtin_clzll(ns);
	bucket = (shift + 1) * METER_STEPS + (uint32_t)(ns >> shift) - METER_STEPS;
	return bucket < METER_BUCKETS ? bucket : METER_BUCKETS - 1;
}

/* Records the end of a call that began at `begin_ns`, with the time of the current batch. */
static inline void meter_call(struct meter *meter, uint64_t begin_ns)
{
	meter->calls++;
	meter->latency[meter_bucket(meter->now_ns - begin_ns)]++;
}

static inline void meter_failure(struct meter *meter)
{
	meter->failed++;
}

#ifdef __cplusplus
}
#endif

#endif
