/* SPDX-License-Identifier: Apache-2.0 */
/* The curves: the quantity that grows, its sizes, and the programs measured at each size. */
#ifndef BENCH_CURVE_H
#define BENCH_CURVE_H

#include "tests/bench/rpc/peer.h"

#include <stdbool.h>
#include <stdint.h>

#define CURVES 4
#define CURVE_SIZES_MAX 5
#define CURVE_RUNNERS_MAX 7

/* A program to measure. */
struct runner {
	const char *name;
	bool is_raw;
	bool is_quick;        /* part of a quick run */
	const char *balancer; /* NULL: the default */
};

struct curve {
	const char *name;
	const char *grows;  /* the quantity that grows, with its unit */
	const char *beside; /* the constant load */
	uint32_t size_count;
	uint32_t sizes[CURVE_SIZES_MAX];
	bool is_quick[CURVE_SIZES_MAX]; /* part of a quick run */
	uint32_t runner_count;
	struct runner runners[CURVE_RUNNERS_MAX]; /* the raw echo comes first */
	/* Stores the size in the plan. */
	void (*grow)(struct rpc_plan *plan, uint32_t size);
};

extern const struct curve curves[CURVES];

/* Returns the curve of that name, or NULL. */
const struct curve *curve_find(const char *name);

/* Returns the plan without CPUs and times. */
struct rpc_plan curve_plan(const struct curve *curve, uint32_t size, const struct runner *runner);

#endif
