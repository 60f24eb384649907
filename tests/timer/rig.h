/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wheel to test: on memory of its own, in one of the geometries, with items that note when they
 * fired. Time is in ticks and given by the test.
 */
#ifndef TESTS_TIMER_RIG_H
#define TESTS_TIMER_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <spoke/wheel.h>

#include <stdbool.h>

#define RIG_ITEMS 64
#define RIG_TICK_NS UINT64_C(1000000)
#define RIG_ORIGIN_NS UINT64_C(5000000000)

struct rig;

struct item {
	struct spoke_timer timer;
	struct rig *rig;
	int id;
	unsigned fired;                  /* how often */
	uint64_t fired_at;               /* tick the wheel stood at */
	void (*then)(struct item *item); /* what its callback does besides, or NULL */
};

struct rig {
	struct spoke_wheel *wheel;
	void *memory;
	unsigned timer_class;
	enum spoke_wheel_order order;
	uint32_t slots; /* as asked for */
	uint32_t levels;
	struct item items[RIG_ITEMS];
	int log[4 * RIG_ITEMS]; /* ids in the order of firing */
	unsigned logged;
};

/* A geometry and an order; the tests of a group run on each. */
struct geometry {
	uint32_t slots;
	uint32_t levels;
	enum spoke_wheel_order order;
};

extern const struct geometry rig_geometries[];
extern const size_t rig_geometry_count;

/* Makes a rig with these options. */
void rig_init(struct rig *rig, const struct spoke_wheel_options *options);
void rig_fini(struct rig *rig);

/* The time of a tick, in ns. */
static inline uint64_t rig_ns(uint64_t tick)
{
	return RIG_ORIGIN_NS + tick * RIG_TICK_NS;
}

/* Schedules an item, and expects that to work. */
void rig_schedule(struct rig *rig, int id, uint64_t tick);

/* Advances to a tick without a bound, and expects the wheel to be whole and done. */
void rig_advance(struct rig *rig, uint64_t tick);

/* The wheel's counts. */
struct spoke_wheel_counts rig_counts(const struct rig *rig);
struct spoke_wheel_work rig_work(const struct rig *rig);

/* Asserts that the wheel's invariants hold. */
void rig_check(const struct rig *rig);

/* Runs every test on every geometry; names are made of both. Returns the number of failures. */
int rig_run(const char *group, const struct CMUnitTest *tests, size_t count);

#endif
