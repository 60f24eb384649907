/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hierarchical wheel with bitmaps as a peer: 5 levels of 64 slots, each level with a word that
 * marks its occupied slots. A timer knows its slot, and unmarks the slot that it leaves empty. Its
 * functions are not inlined, like those of a library. It has no loop, so it is not measured in real
 * time.
 */
#include "expiry.h"
#include "fleet.h"
#include "query.h"
#include "steady.h"

#include <stdlib.h>

#define LEVELS 5u
#define BITS 6u
#define SLOTS (1u << BITS)
#define LIBRARY static __attribute__((noinline))

struct link {
	struct link *next;
	struct link *prev;
};

struct timer {
	struct link link; /* must be first */
	uint64_t at;      /* ms */
	struct link *in;  /* its slot; NULL: not armed */
	void (*due)(struct timer *timer);
};

struct bitmaps {
	uint64_t last; /* ms; all timers up to it have fired */
	uint64_t marked[LEVELS];
	struct link slots[LEVELS][SLOTS];
};

static void place(struct bitmaps *maps, struct timer *timer)
{
	unsigned level = (63 - (unsigned)__builtin_clzll((timer->at - maps->last) | 1)) / BITS;
	unsigned number = timer->at >> level * BITS & (SLOTS - 1);
	struct link *slot = &maps->slots[level][number];

	timer->in = slot;
	timer->link.next = slot;
	timer->link.prev = slot->prev;
	slot->prev->next = &timer->link;
	slot->prev = &timer->link;
	maps->marked[level] |= UINT64_C(1) << number;
}

LIBRARY void bitmaps_add(struct bitmaps *maps, struct timer *timer, uint64_t at)
{
	timer->at = at > maps->last ? at : maps->last + 1;
	place(maps, timer);
}

LIBRARY void bitmaps_remove(struct bitmaps *maps, struct timer *timer)
{
	struct link *slot = timer->in;

	timer->link.prev->next = timer->link.next;
	timer->link.next->prev = timer->link.prev;
	timer->in = NULL;
	if (slot->next == slot) {
		size_t number = (size_t)(slot - &maps->slots[0][0]);

		maps->marked[number / SLOTS] &= ~(UINT64_C(1) << number % SLOTS);
	}
}

/* Fires the timers of a slot that are due, and moves the others down. */
static void empty(struct bitmaps *maps, struct link *slot)
{
	struct link *link = slot->next;

	slot->next = slot;
	slot->prev = slot;
	while (link != slot) {
		struct timer *timer = (struct timer *)link;

		link = link->next;
		if (timer->at > maps->last) {
			place(maps, timer);
		} else {
			timer->in = NULL;
			timer->due(timer);
		}
	}
}

/* Returns a bit for each slot of a level that time passes on its way from `from` to `to`. */
static uint64_t passed(uint64_t from, uint64_t to)
{
	uint64_t count = to - from;
	uint64_t bits = count < SLOTS ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
	unsigned first = (from + 1) & (SLOTS - 1);

	return bits << first | bits >> (-first & (SLOTS - 1));
}

LIBRARY void bitmaps_run(struct bitmaps *maps, uint64_t now)
{
	uint64_t visits[LEVELS];

	for (unsigned level = 0; level < LEVELS; level++) {
		visits[level] = maps->marked[level] &
				passed(maps->last >> level * BITS, now >> level * BITS);
		maps->marked[level] &= ~visits[level];
	}
	maps->last = now;
	for (unsigned level = 0; level < LEVELS; level++)
		for (; visits[level]; visits[level] &= visits[level] - 1)
			empty(maps, &maps->slots[level][__builtin_ctzll(visits[level])]);
}

/* Returns the first tick at which a marked slot is entered. */
LIBRARY uint64_t bitmaps_next(const struct bitmaps *maps)
{
	uint64_t next = UINT64_MAX;

	for (unsigned level = 0; level < LEVELS; level++) {
		uint64_t at = (maps->last >> level * BITS) + 1;
		uint64_t word = maps->marked[level];

		if (word == 0)
			continue;
		word = word >> (at & (SLOTS - 1)) | word << (-at & (SLOTS - 1));
		at = (at + (unsigned)__builtin_ctzll(word)) << level * BITS;
		next = at < next ? at : next;
	}
	return next;
}

static struct timer *timer_at(const struct fleet *fleet, uint64_t i)
{
	return (struct timer *)fleet->timers + i;
}

static void count_fired(struct timer *timer)
{
	(void)timer;
	fired++;
}

static struct fleet open_fleet(const struct bench_plan *plan)
{
	struct bitmaps *maps = host_memory(1, sizeof(*maps));
	struct fleet fleet = {
		.home = maps,
		.timers = host_memory(plan->n, sizeof(struct timer)),
		.n = plan->n,
	};

	fired = 0;
	refused = 0;
	maps->last = host_now_ns / HOST_MS;
	for (unsigned i = 0; i < LEVELS * SLOTS; i++)
		maps->slots[i / SLOTS][i % SLOTS] = (struct link){
			&maps->slots[i / SLOTS][i % SLOTS], &maps->slots[i / SLOTS][i % SLOTS]
		};
	for (uint64_t i = 0; i < plan->n; i++)
		timer_at(&fleet, i)->due = count_fired;
	return fleet;
}

static void close_fleet(const struct fleet *fleet)
{
	free(fleet->home);
	free(fleet->timers);
}

static inline void arm(const struct fleet *fleet, uint64_t i, uint64_t delay_us)
{
	bitmaps_add(fleet->home, timer_at(fleet, i), (host_now_ns + delay_us * 1000) / HOST_MS);
}

static inline void forget(const struct fleet *fleet, uint64_t i)
{
	bitmaps_remove(fleet->home, timer_at(fleet, i));
}

static inline void move_to(const struct fleet *fleet, uint64_t i, uint64_t delay_us)
{
	forget(fleet, i);
	arm(fleet, i, delay_us);
}

static inline bool is_armed(const struct fleet *fleet, uint64_t i)
{
	return timer_at(fleet, i)->in != NULL;
}

static inline bool turn(const struct fleet *fleet)
{
	bitmaps_run(fleet->home, host_now_ns / HOST_MS);
	return false;
}

static inline uint64_t ask_next(const struct fleet *fleet)
{
	return bitmaps_next(fleet->home);
}

const struct bench_kit bench_bitmaps = {
	.run = { BENCH_RUNS },
	.bytes = sizeof(struct timer),
};
