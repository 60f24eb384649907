/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wheel that never cascades as a peer, like that of Linux: 9 levels of 64 slots, each level 8
 * times as coarse as the one below. A timer stays in its slot until it fires, up to an eighth of
 * its delay late, so the workloads that check the time of expiry do not apply. The next expiry is
 * cached, and computed again after its slot became empty. Its functions are not inlined, like those
 * of a library, except for the query.
 */
#include "fleet.h"
#include "query.h"
#include "steady.h"

#include <stdlib.h>

#define LEVELS 9u
#define BITS 6u
#define SLOTS (1u << BITS)
#define COARSER 3u /* log2 of the factor between two levels */
#define LIBRARY static __attribute__((noinline))

struct timer {
	struct timer *next;
	struct timer **link; /* the pointer to this timer; NULL: not armed */
	uint64_t at;         /* ms */
	void (*due)(struct timer *timer);
	uint32_t slot;
};

struct coarse {
	uint64_t clock; /* ms; the next tick to look at */
	uint64_t next;  /* ms; UINT64_MAX: none */
	bool stale;     /* `next` may be too early */
	uint64_t marked[LEVELS];
	struct timer *slots[LEVELS * SLOTS];
};

static unsigned level_of(uint64_t delay)
{
	unsigned level = 0;

	while (level < LEVELS - 1 && delay >= (uint64_t)(SLOTS - 1) << level * COARSER)
		level++;
	return level;
}

static void enqueue(struct coarse *coarse, struct timer *timer, uint64_t at, uint32_t slot)
{
	struct timer **head = &coarse->slots[slot];

	timer->at = at;
	timer->slot = slot;
	timer->next = *head;
	timer->link = head;
	if (*head)
		(*head)->link = &timer->next;
	*head = timer;
	coarse->marked[slot / SLOTS] |= UINT64_C(1) << slot % SLOTS;
}

/* Returns the slot for a tick, and the time at which the slot expires. */
static uint32_t find_slot(const struct coarse *coarse, uint64_t at, uint64_t *ret_expiry)
{
	unsigned level = level_of(at > coarse->clock ? at - coarse->clock : 0);
	uint64_t slot = ((at > coarse->clock ? at : coarse->clock) >> level * COARSER) +
			(level > 0);

	*ret_expiry = slot << level * COARSER;
	return level * SLOTS + (uint32_t)(slot & (SLOTS - 1));
}

LIBRARY void coarse_remove(struct coarse *coarse, struct timer *timer)
{
	uint32_t slot = timer->slot;

	if (timer->next == NULL && timer->link == &coarse->slots[slot]) {
		coarse->marked[slot / SLOTS] &= ~(UINT64_C(1) << slot % SLOTS);
		coarse->stale = true;
	}
	*timer->link = timer->next;
	if (timer->next)
		timer->next->link = timer->link;
	timer->link = NULL;
}

/* Arms or moves a timer. */
LIBRARY void coarse_set(struct coarse *coarse, struct timer *timer, uint64_t at)
{
	uint64_t expiry;
	uint32_t slot = find_slot(coarse, at, &expiry);

	if (timer->link) {
		if (timer->slot == slot) {
			timer->at = at;
			return;
		}
		coarse_remove(coarse, timer);
	}
	enqueue(coarse, timer, at, slot);
	if (expiry < coarse->next)
		coarse->next = expiry;
}

static __attribute__((noinline)) void find_next(struct coarse *coarse)
{
	coarse->next = UINT64_MAX;
	coarse->stale = false;
	for (unsigned level = 0; level < LEVELS; level++) {
		uint64_t step = (UINT64_C(1) << level * COARSER) - 1;
		uint64_t at = (coarse->clock + step) >> level * COARSER;
		uint64_t word = coarse->marked[level];

		if (word == 0)
			continue;
		word = word >> (at & (SLOTS - 1)) | word << (-at & (SLOTS - 1));
		at = (at + (unsigned)__builtin_ctzll(word)) << level * COARSER;
		coarse->next = at < coarse->next ? at : coarse->next;
	}
}

static inline uint64_t coarse_next(struct coarse *coarse)
{
	if (coarse->stale)
		find_next(coarse);
	return coarse->next;
}

LIBRARY void coarse_run(struct coarse *coarse, uint64_t now)
{
	while (coarse_next(coarse) <= now) {
		uint64_t tick = coarse->next;

		coarse->clock = tick + 1;
		for (unsigned level = 0; level < LEVELS; level++, tick >>= COARSER) {
			struct timer **head = &coarse->slots[level * SLOTS + (tick & (SLOTS - 1))];

			while (*head) {
				struct timer *timer = *head;

				coarse_remove(coarse, timer);
				timer->due(timer);
			}
			if ((tick & ((1u << COARSER) - 1)) != 0)
				break;
		}
		coarse->stale = true;
	}
	coarse->clock = now + 1 > coarse->clock ? now + 1 : coarse->clock;
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
	struct coarse *coarse = host_memory(1, sizeof(*coarse));
	struct fleet fleet = {
		.home = coarse,
		.timers = host_memory(plan->n, sizeof(struct timer)),
		.n = plan->n,
	};

	fired = 0;
	refused = 0;
	coarse->clock = host_now_ns / HOST_MS + 1;
	coarse->next = UINT64_MAX;
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
	coarse_set(fleet->home, timer_at(fleet, i), (host_now_ns + delay_us * 1000) / HOST_MS);
}

static inline void forget(const struct fleet *fleet, uint64_t i)
{
	coarse_remove(fleet->home, timer_at(fleet, i));
}

static inline void move_to(const struct fleet *fleet, uint64_t i, uint64_t delay_us)
{
	arm(fleet, i, delay_us);
}

static inline bool is_armed(const struct fleet *fleet, uint64_t i)
{
	return timer_at(fleet, i)->link != NULL;
}

static inline bool turn(const struct fleet *fleet)
{
	coarse_run(fleet->home, host_now_ns / HOST_MS);
	return false;
}

static inline uint64_t ask_next(const struct fleet *fleet)
{
	return coarse_next(fleet->home);
}

const struct bench_kit bench_coarse = {
	.run = { BENCH_RUNS_STEADY },
	.bytes = sizeof(struct timer),
};
