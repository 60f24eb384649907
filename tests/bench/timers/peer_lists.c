/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hierarchical wheel with plain lists as a peer: 7 levels of 32 slots. The level comes from the
 * delay, and every tick is walked. Cancelling unlinks at once. Its functions are not inlined, like
 * those of a library. It has no loop, so it is not measured in real time.
 */
#include "expiry.h"
#include "fleet.h"
#include "query.h"
#include "steady.h"

#include <stdlib.h>

#define LEVELS 7u
#define BITS 5u
#define SLOTS (1u << BITS)
#define LIBRARY static __attribute__((noinline))

struct link {
	struct link *next; /* NULL: not armed */
	struct link *prev;
};

struct timer {
	struct link link; /* must be first */
	uint64_t at;      /* ms */
	void (*due)(struct timer *timer);
};

struct lists {
	uint64_t last; /* ms; all timers up to it have fired */
	struct link slots[LEVELS][SLOTS];
};

static void place(struct lists *lists, struct timer *timer)
{
	unsigned level = (63 - (unsigned)__builtin_clzll((timer->at - lists->last) | 1)) / BITS;
	struct link *slot = &lists->slots[level][timer->at >> level * BITS & (SLOTS - 1)];

	timer->link.next = slot;
	timer->link.prev = slot->prev;
	slot->prev->next = &timer->link;
	slot->prev = &timer->link;
}

LIBRARY void lists_add(struct lists *lists, struct timer *timer, uint64_t at)
{
	timer->at = at > lists->last ? at : lists->last + 1;
	place(lists, timer);
}

LIBRARY void lists_remove(struct timer *timer)
{
	timer->link.prev->next = timer->link.next;
	timer->link.next->prev = timer->link.prev;
	timer->link.next = NULL;
}

/* Moves the timers of a slot down, to levels that their rest of time selects. */
static void cascade(struct lists *lists, struct link *slot)
{
	struct link *link = slot->next;

	slot->next = slot;
	slot->prev = slot;
	while (link != slot) {
		struct link *next = link->next;

		place(lists, (struct timer *)link);
		link = next;
	}
}

static void fire(struct link *slot)
{
	while (slot->next != slot) {
		struct timer *timer = (struct timer *)slot->next;

		lists_remove(timer);
		timer->due(timer);
	}
}

LIBRARY void lists_run(struct lists *lists, uint64_t now)
{
	while (lists->last < now) {
		uint64_t tick = ++lists->last;

		for (unsigned level = 1;
		     level < LEVELS && (tick & ((UINT64_C(1) << level * BITS) - 1)) == 0; level++)
			cascade(lists, &lists->slots[level][tick >> level * BITS & (SLOTS - 1)]);
		fire(&lists->slots[0][tick & (SLOTS - 1)]);
	}
}

/* Returns the first tick at which a slot with timers is entered. */
LIBRARY uint64_t lists_next(const struct lists *lists)
{
	uint64_t next = UINT64_MAX;

	for (unsigned level = 0; level < LEVELS; level++) {
		uint64_t here = lists->last >> level * BITS;

		for (uint64_t at = here + 1; at <= here + SLOTS; at++) {
			const struct link *slot = &lists->slots[level][at & (SLOTS - 1)];

			if (slot->next == slot)
				continue;
			next = at << level * BITS < next ? at << level * BITS : next;
			break;
		}
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
	struct lists *lists = host_memory(1, sizeof(*lists));
	struct fleet fleet = {
		.home = lists,
		.timers = host_memory(plan->n, sizeof(struct timer)),
		.n = plan->n,
	};

	fired = 0;
	refused = 0;
	lists->last = host_now_ns / HOST_MS;
	for (unsigned i = 0; i < LEVELS * SLOTS; i++)
		lists->slots[i / SLOTS][i % SLOTS] = (struct link){
			&lists->slots[i / SLOTS][i % SLOTS], &lists->slots[i / SLOTS][i % SLOTS]
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
	lists_add(fleet->home, timer_at(fleet, i), (host_now_ns + delay_us * 1000) / HOST_MS);
}

static inline void forget(const struct fleet *fleet, uint64_t i)
{
	(void)fleet;
	lists_remove(timer_at(fleet, i));
}

static inline void move_to(const struct fleet *fleet, uint64_t i, uint64_t delay_us)
{
	forget(fleet, i);
	arm(fleet, i, delay_us);
}

static inline bool is_armed(const struct fleet *fleet, uint64_t i)
{
	return timer_at(fleet, i)->link.next != NULL;
}

static inline bool turn(const struct fleet *fleet)
{
	lists_run(fleet->home, host_now_ns / HOST_MS);
	return false;
}

static inline uint64_t ask_next(const struct fleet *fleet)
{
	return lists_next(fleet->home);
}

const struct bench_kit bench_lists = {
	.run = { BENCH_RUNS },
	.bytes = sizeof(struct timer),
};
