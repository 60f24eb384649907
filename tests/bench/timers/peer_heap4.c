/* SPDX-License-Identifier: Apache-2.0 */
/* The 4-ary heap of heap4.h as a peer. It has no loop, so it is not measured in real time. */
#include "expiry.h"
#include "fleet.h"
#include "heap4.h"
#include "query.h"
#include "steady.h"

#include <stdlib.h>

static struct heap4_timer *timer_at(const struct fleet *fleet, uint64_t i)
{
	return (struct heap4_timer *)fleet->timers + i;
}

static void count_fired(struct heap4_timer *timer)
{
	(void)timer;
	fired++;
}

static struct fleet open_fleet(const struct bench_plan *plan)
{
	struct heap4 *heap = host_memory(1, sizeof(*heap));
	struct fleet fleet = {
		.home = heap,
		.timers = host_memory(plan->n, sizeof(struct heap4_timer)),
		.n = plan->n,
	};

	fired = 0;
	refused = 0;
	heap4_init(heap, host_memory(1, heap4_size(plan->n)));
	for (uint64_t i = 0; i < plan->n; i++)
		timer_at(&fleet, i)->due = count_fired;
	return fleet;
}

static void close_fleet(const struct fleet *fleet)
{
	struct heap4 *heap = fleet->home;

	free(heap->cells);
	free(heap);
	free(fleet->timers);
}

static inline void arm(const struct fleet *fleet, uint64_t i, uint64_t delay_us)
{
	heap4_add(fleet->home, timer_at(fleet, i), host_now_ns + delay_us * 1000);
}

static inline void forget(const struct fleet *fleet, uint64_t i)
{
	heap4_remove(fleet->home, timer_at(fleet, i));
}

static inline void move_to(const struct fleet *fleet, uint64_t i, uint64_t delay_us)
{
	heap4_move(fleet->home, timer_at(fleet, i), host_now_ns + delay_us * 1000);
}

static inline bool is_armed(const struct fleet *fleet, uint64_t i)
{
	return timer_at(fleet, i)->at != 0;
}

static inline bool turn(const struct fleet *fleet)
{
	heap4_expire(fleet->home, host_now_ns);
	return false;
}

static inline uint64_t ask_next(const struct fleet *fleet)
{
	return heap4_next(fleet->home);
}

const struct bench_kit bench_heap4 = {
	.run = { BENCH_RUNS },
	.bytes = sizeof(struct heap4_timer) + sizeof(struct heap4_cell),
};
