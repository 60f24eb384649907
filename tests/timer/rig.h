/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture of the wheel's tests: a wheel with its own memory, in one of several geometries, and
 * items that record when their timer fires. Times are ticks, which the test sets.
 */
#ifndef TESTS_TIMER_RIG_H
#define TESTS_TIMER_RIG_H

#include "tests/support/test.h"

#include <spoke/wheel.h>

#define RIG_ITEMS 64
#define RIG_TICK_NS UINT64_C(1000000)
#define RIG_ORIGIN_NS UINT64_C(5000000000)

struct rig;

struct item {
	struct spoke_timer timer;
	struct rig *rig;
	int id;
	unsigned fired;                  /* number of times */
	uint64_t fired_at;               /* the wheel's tick at the last firing */
	void (*then)(struct item *item); /* called at the end of the callback, or NULL */
};

struct rig {
	struct spoke_wheel *wheel;
	void *memory;
	unsigned timer_class;
	uint32_t slots; /* as requested */
	uint32_t levels;
	struct item items[RIG_ITEMS];
	int log[4 * RIG_ITEMS]; /* ids in firing order */
	unsigned logged;
};

/* A geometry. Each test of a group runs with each of them. */
struct geometry {
	uint32_t slots;
	uint32_t levels;
};

extern const struct geometry rig_geometries[];
extern const size_t rig_geometry_count;

/* Makes a rig with these options. */
void rig_init(struct rig *rig, const struct spoke_wheel_options *options);
void rig_fini(struct rig *rig);

/* Returns the time of a tick, in ns. */
static inline uint64_t rig_ns(uint64_t tick)
{
	return RIG_ORIGIN_NS + tick * RIG_TICK_NS;
}

/* Schedules an item and asserts success. */
void rig_schedule(struct rig *rig, int id, uint64_t tick);

/* Advances to a tick without a budget. Asserts that the wheel is done and its invariants hold. */
void rig_advance(struct rig *rig, uint64_t tick);

/* Returns the wheel's counters. */
struct spoke_wheel_counts rig_counts(const struct rig *rig);
struct spoke_wheel_work rig_work(const struct rig *rig);

/* Asserts that the wheel's invariants hold. */
void rig_check(const struct rig *rig);

/* Runs each test with each geometry; test names contain both. Returns the number of failures. */
int rig_run(const char *group, const struct CMUnitTest *tests, size_t count);

#endif
