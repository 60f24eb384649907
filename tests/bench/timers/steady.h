/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workloads in which n timers stay pending and none may fire; see fleet.h. Each has an unmeasured
 * warm-up, then runs in chunks until enough CPU time was spent and every timer was used. Random
 * numbers are drawn before a chunk's clock starts, because they cost as much as some operations.
 */
#ifndef BENCH_STEADY_H
#define BENCH_STEADY_H

#include "fleet.h"

/* Operations between two readings of the clock; few where random numbers are drawn, so that the
 * numbers do not push the timers out of the L1 cache. */
#define CHUNK 32768u
#define DICE_CHUNK 2048u
#define CALL_US (3 * SECOND_US)  /* timeout of a call */
#define IDLE_US (60 * SECOND_US) /* a connection is idle after this long */

/* Answers read in one turn of the loop, and the time until n calls are answered. */
#define ANSWERS_PER_TURN 64u
#define ROUND_NS (1500 * HOST_MS)

#define EVENTS_PER_MS 1024u /* on all connections together */

/* Random numbers of one operation. */
struct roll {
	uint32_t timer;
	uint32_t delay_us;
};

/* State of a workload. The loops use copies, which stay in registers. */
struct steady {
	struct fleet fleet;
	uint64_t oldest; /* the call answered next */
	struct dice dice;
	struct roll rolls[DICE_CHUNK];
};

/* Description of a workload. */
struct steady_kind {
	void (*ops)(struct steady *at); /* does `chunk` operations */
	uint64_t chunk;
	uint64_t delay_us; /* of the n timers at first; 0: random */
	uint64_t warm;     /* unmeasured operations, in n */
	uint64_t least;    /* measured operations, at least, in n */
};

static inline void throw_dice(struct steady *at)
{
	for (uint32_t i = 0; i < DICE_CHUNK; i++) {
		uint64_t word = dice_roll(&at->dice);

		at->rolls[i].timer = dice_below((uint32_t)(word >> 32), (uint32_t)at->fleet.n);
		at->rolls[i].delay_us = (1 + dice_below((uint32_t)word, 60000)) * 1000;
	}
}

/* Answers the oldest calls and makes a new one in place of each. Not inlined, so that no other code
 * needs registers. */
static __attribute__((noinline)) void answer_some(struct fleet fleet, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++) {
		forget(&fleet, i);
		arm(&fleet, i, CALL_US);
	}
}

static inline void answer_many(struct steady *at, uint64_t ops)
{
	while (ops > 0) {
		uint64_t from = at->oldest;
		uint64_t some = at->fleet.n - from < ops ? at->fleet.n - from : ops;

		answer_some(at->fleet, from, from + some);
		at->oldest = from + some == at->fleet.n ? 0 : from + some;
		ops -= some;
	}
}

static inline void answer_calls(struct steady *at)
{
	answer_many(at, CHUNK);
}

static inline void turn_after(const struct fleet *fleet, uint64_t step_ns)
{
	host_now_ns += step_ns;
	while (turn(fleet)) {
	}
}

/* Does the same while time passes: n calls are answered within half their timeout. */
static inline void answer_calls_in_time(struct steady *at)
{
	uint64_t step_ns = ANSWERS_PER_TURN * ROUND_NS / at->fleet.n;

	for (uint32_t i = 0; i < CHUNK; i += ANSWERS_PER_TURN) {
		answer_many(at, ANSWERS_PER_TURN);
		turn_after(&at->fleet, step_ns);
	}
}

/* Cancels a random timer and arms it again. */
static inline void replace_victims(struct steady *at)
{
	struct fleet fleet = at->fleet;

	for (uint32_t i = 0; i < DICE_CHUNK; i++) {
		struct roll roll = at->rolls[i];

		forget(&fleet, roll.timer);
		arm(&fleet, roll.timer, roll.delay_us);
	}
}

/* Does the same by the peer's single call for moving a timer. */
static inline void move_victims(struct steady *at)
{
	struct fleet fleet = at->fleet;

	for (uint32_t i = 0; i < DICE_CHUNK; i++)
		move_to(&fleet, at->rolls[i].timer, at->rolls[i].delay_us);
}

/* Moves timers of random connections; each millisecond the loop runs one turn. */
static inline void hear_traffic(struct steady *at)
{
	struct fleet fleet = at->fleet;

	for (uint32_t i = 0; i < DICE_CHUNK; i += EVENTS_PER_MS) {
		for (uint32_t j = 0; j < EVENTS_PER_MS; j++)
			move_to(&fleet, at->rolls[i + j].timer, IDLE_US);
		turn_after(&fleet, HOST_MS);
	}
}

/* Returns whether a workload that has run `done` operations in `spent_ns` may end. */
static inline bool is_enough(const struct bench_plan *plan, const struct steady_kind *kind,
			     uint64_t done, uint64_t spent_ns)
{
	return done >= kind->least * plan->n && spent_ns >= plan->spent_min_ns;
}

/* Returns ns per operation. */
static inline double run_steady(struct steady *at, const struct bench_plan *plan,
				const struct steady_kind *kind)
{
	uint64_t spent_ns = 0;
	uint64_t done;

	for (done = 0; done < kind->warm * plan->n; done += kind->chunk) {
		if (kind->chunk == DICE_CHUNK)
			throw_dice(at);
		kind->ops(at);
	}
	for (done = 0; !is_enough(plan, kind, done, spent_ns); done += kind->chunk) {
		uint64_t begin_ns;

		if (kind->chunk == DICE_CHUNK)
			throw_dice(at);
		begin_ns = host_cpu_ns();
		kind->ops(at);
		spent_ns += host_cpu_ns() - begin_ns;
	}
	expect(&at->fleet, at->fleet.n, 0);
	return (double)spent_ns / (double)done;
}

/* Runs a whole workload with a fleet of its own. */
static inline double measure_steady(const struct bench_plan *plan, const struct steady_kind *kind)
{
	struct steady at = { .dice = { DICE_SEED } };
	double value;

	host_virtual();
	at.fleet = open_fleet(plan);
	for (uint64_t i = 0; i < plan->n; i++) {
		if (i % DICE_CHUNK == 0)
			throw_dice(&at);
		arm(&at.fleet, i,
		    kind->delay_us > 0 ? kind->delay_us : at.rolls[i % DICE_CHUNK].delay_us);
	}
	/* A first turn, for work that a loop postpones until then. */
	turn_after(&at.fleet, 0);
	value = run_steady(&at, plan, kind);
	close_fleet(&at.fleet);
	return value;
}

static inline double run_rpc_pair(const struct bench_plan *plan)
{
	return measure_steady(plan, &(struct steady_kind){ answer_calls, CHUNK, CALL_US, 1, 1 });
}

static inline double run_random_victim(const struct bench_plan *plan)
{
	return measure_steady(plan, &(struct steady_kind){ replace_victims, DICE_CHUNK, 0, 1, 1 });
}

static inline double run_random_move(const struct bench_plan *plan)
{
	return measure_steady(plan, &(struct steady_kind){ move_victims, DICE_CHUNK, 0, 1, 1 });
}

/* Warms up for one timeout and measures at least three of them. */
static inline double run_fifo_advance(const struct bench_plan *plan)
{
	return measure_steady(plan,
			      &(struct steady_kind){ answer_calls_in_time, CHUNK, CALL_US, 2, 6 });
}

static inline double run_update_deadline(const struct bench_plan *plan)
{
	return measure_steady(plan,
			      &(struct steady_kind){ hear_traffic, DICE_CHUNK, IDLE_US, 1, 1 });
}

#endif
