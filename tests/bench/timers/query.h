/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of asking for the next expiry, for peers that can be asked: repeatedly, and after each
 * move of a random timer (that row includes the move).
 */
#ifndef BENCH_QUERY_H
#define BENCH_QUERY_H

#include "steady.h"

/* Sum of the peer's answers, in its own unit, so that the compiler cannot remove the queries. */
static inline uint64_t ask_next(const struct fleet *fleet);

static uint64_t answers;

static inline void ask(struct steady *at)
{
	struct fleet fleet = at->fleet;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < CHUNK; i++) {
		sum += ask_next(&fleet);
		__asm__ volatile("" ::: "memory"); /* each query reads the peer's memory */
	}
	answers += sum;
}

static inline void move_and_ask(struct steady *at)
{
	struct fleet fleet = at->fleet;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < DICE_CHUNK; i++) {
		move_to(&fleet, at->rolls[i].timer, at->rolls[i].delay_us);
		sum += ask_next(&fleet);
	}
	answers += sum;
}

static inline double run_next_expiry(const struct bench_plan *plan)
{
	double value = measure_steady(plan, &(struct steady_kind){ ask, CHUNK, 0, 1, 1 });

	if (answers == 0)
		host_die("%s: the next expiry was always 0", __BASE_FILE__);
	return value;
}

static inline double run_next_after_change(const struct bench_plan *plan)
{
	return measure_steady(plan, &(struct steady_kind){ move_and_ask, DICE_CHUNK, 0, 1, 1 });
}

#endif
