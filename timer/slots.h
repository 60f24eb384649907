/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Geometry of the wheel: levels of slots. A slot consists of several lists of timers ("lanes"). A
 * bitmap marks the slots in which timers were placed since the wheel last visited them. The unit is
 * the tick, never nanoseconds; there are no callbacks. Owned by one wheel, in the wheel's memory.
 *
 * A timer of tick T that is placed while the wheel stands at R goes to the level of the highest bit
 * in which T and R differ, into the slot that T's digit on this level names. So all occupied slots
 * of a level are ahead of the wheel, within the same slot of the next level. Every level is emptied
 * before the wheel enters the next slot above it. Only the top level has laps: a timer beyond the
 * present lap is "far" and stays in its slot when the wheel passes.
 *
 * Lanes exist for speed. Each timer draws a ticket of its slot, and the tickets assign the lanes in
 * turn, so that emptying a slot has several cache misses in flight instead of one. The timer keeps
 * the ticket, from which the order of placement is restored.
 */
#ifndef SPOKEI_TIMER_SLOTS_H
#define SPOKEI_TIMER_SLOTS_H

#include "timer/base.h"

#include <spoke/wheel.h>

#define SPOKEI_TICK_END ((UINT64_C(1) << 48) - 1) /* the first tick that no key can hold */
#define SPOKEI_TICK_NEVER UINT64_MAX
#define SPOKEI_TICKET (UINT64_C(1) << 16) /* difference of two consecutive seats of a slot */
#define SPOKEI_LANES 4u
#define SPOKEI_SUMMARY_MAX 4u /* words: 4 levels of 4,096 slots are 256 words of marked */

/* One slot; fills a cache line. */
struct spokei_slot {
	struct spoke_list lanes[SPOKEI_LANES];
};

/* Parts of a reach that only the top level has. */
#define SPOKEI_REACH_TOP 1u
#define SPOKEI_REACH_FAR 2u /* beyond the present lap */

/* The level and digit for one highest bit in which a timer's tick and the wheel's now differ. */
struct spokei_reach {
	uint16_t base; /* first slot of the level */
	uint8_t shift; /* the lowest bit of the level's digit */
	uint8_t top;   /* SPOKEI_REACH_... bits; 0: below the top level */
};

struct spokei_slots {
	struct spokei_slot *slot; /* lowest level first; the aside is the last */
	uint64_t *tickets;        /* per slot: tickets drawn so far */
	uint64_t *first;  /* per slot with timers: its first tick; on the top level: NEVER */
	uint64_t *marked; /* a bit per slot: may be occupied */
	uint64_t summary[SPOKEI_SUMMARY_MAX]; /* a bit per word of marked */
	uint64_t next;                        /* a resting wheel has no work before this tick */
	uint64_t far_min;  /* lower bound of the ticks of far timers not visited in this lap */
	uint32_t count;    /* slots of the levels */
	uint32_t top_base; /* first slot of the top level */
	uint32_t mask;     /* slots per level - 1 */
	uint8_t bits;      /* log2 of slots per level */
	uint8_t top;       /* number of the highest level */
	uint8_t span;      /* bits of all levels together: a lap is 2^span ticks */
	struct spokei_reach reach[64];
};

/* A tick at which the wheel enters a marked slot; NEVER if no slot is marked. */
struct spokei_edge {
	uint64_t tick;
	uint32_t slot;
};

/* Returns the key of an armed timer of class 0. */
static inline uint64_t spokei_timer_key(uint64_t tick)
{
	return (SPOKEI_TICK_END - tick) << SPOKE_TIMER_TICK_SHIFT;
}

static inline uint64_t spokei_timer_tick(const struct spoke_timer *timer)
{
	return SPOKEI_TICK_END - (timer->key << 1 >> (SPOKE_TIMER_TICK_SHIFT + 1));
}

static inline unsigned spokei_timer_class(const struct spoke_timer *timer)
{
	return (unsigned)(timer->key & SPOKE_TIMER_CLASS_MASK);
}

static inline bool spokei_timer_linked(const struct spoke_timer *timer)
{
	return timer->key != 0;
}

static inline uint32_t spokei_timer_slot(const struct spoke_timer *timer)
{
	return (uint16_t)timer->seat;
}

static inline uint32_t spokei_seat_lane(uint64_t seat)
{
	return (uint32_t)(seat / SPOKEI_TICKET) % SPOKEI_LANES;
}

static inline struct spoke_timer *spokei_timer_of(struct spoke_list *place)
{
	return spoke_container_of(place, struct spoke_timer, place);
}

static inline uint32_t spokei_slots_level(const struct spokei_slots *slots, uint32_t slot)
{
	return slot >> slots->bits;
}

/* Returns the bytes of memory for `levels` levels of 2^bits slots. */
size_t spokei_slots_size(unsigned bits, unsigned levels);

/* Lays out the slots in `memory`, which is aligned to a cache line. Afterwards all slots are empty
 * and the wheel stands at tick 0. */
void spokei_slots_init(struct spokei_slots *slots, void *memory, unsigned bits, unsigned levels);

/* Returns the first edge after `now`, from the bitmap. The first tick of a lap with timers is an
 * edge too, even if its slot is empty, because far_min must then be recomputed. */
struct spokei_edge spokei_slots_find(const struct spokei_slots *slots, uint64_t now);

/* The slow path of spokei_slots_first(): searches all lanes. */
struct spoke_timer *spokei_slots_search(const struct spokei_slots *slots, uint32_t slot,
					enum spoke_wheel_order order, uint64_t *next_seat);

/* Unmarks an empty slot, which the wheel then does not visit. */
void spokei_slots_clear(struct spokei_slots *slots, uint32_t slot);

/* Sets an unlinked timer of the slot under work aside, because it belongs to a later lap. When the
 * slot is empty, restore() puts all such timers back, in order. */
void spokei_slots_set_aside(struct spokei_slots *slots, struct spoke_timer *timer);
void spokei_slots_restore(struct spokei_slots *slots, uint32_t slot);

static inline struct spokei_reach spokei_slots_reach(const struct spokei_slots *slots,
						     uint64_t tick, uint64_t from)
{
	return slots->reach[63 - __builtin_clzll((tick ^ from) | 1)];
}

/* Writes the slot for a tick if a resting wheel needs no other change for a timer there: the slot
 * is marked, so `next` is not after it, and has no laps. Else returns false. */
static inline bool spokei_slots_ready(const struct spokei_slots *slots, uint64_t tick,
				      uint64_t from, uint32_t *ret_slot)
{
	struct spokei_reach reach = spokei_slots_reach(slots, tick, from);
	uint32_t slot = reach.base | ((uint32_t)(tick >> reach.shift) & slots->mask);

	*ret_slot = slot;
	return !reach.top && (slots->marked[slot >> 6] >> (slot & 63) & 1);
}

/* Returns the slot for a tick, seen from tick `from`, which is not after it. Lowers `next` to the
 * tick of the visit: the slot's first tick, or the first tick of the lap for a far timer. */
static inline uint32_t spokei_slots_for(struct spokei_slots *slots, uint64_t tick, uint64_t from)
{
	struct spokei_reach reach = spokei_slots_reach(slots, tick, from);
	uint64_t start = tick >> reach.shift << reach.shift;
	uint32_t slot;

	if (SPOKEI_UNLIKELY(reach.top & SPOKEI_REACH_FAR)) {
		start = tick >> slots->span << slots->span;
		slots->far_min = tick < slots->far_min ? tick : slots->far_min;
	}
	slots->next = start < slots->next ? start : slots->next;
	slot = reach.base | ((uint32_t)(tick >> reach.shift) & slots->mask);
	slots->first[slot] = reach.top ? SPOKEI_TICK_NEVER : start;
	return slot;
}

/* Appends an unlinked timer to a slot that is known to be marked. */
static inline void spokei_slots_join(struct spokei_slots *slots, struct spoke_timer *timer,
				     uint32_t slot)
{
	uint64_t ticket = slots->tickets[slot]++;

	timer->seat = ticket * SPOKEI_TICKET | slot;
	spokei_list_append(&slots->slot[slot].lanes[ticket % SPOKEI_LANES], &timer->place);
}

static inline void spokei_slots_mark(struct spokei_slots *slots, uint32_t slot)
{
	uint64_t *word = &slots->marked[slot >> 6];

	if (SPOKEI_UNLIKELY(*word == 0))
		slots->summary[slot >> 12] |= UINT64_C(1) << (slot >> 6 & 63);
	*word |= UINT64_C(1) << (slot & 63);
}

/* Appends an unlinked timer to any slot. */
static inline void spokei_slots_place(struct spokei_slots *slots, struct spoke_timer *timer,
				      uint32_t slot)
{
	spokei_slots_mark(slots, slot);
	spokei_slots_join(slots, timer, slot);
}

/*
 * Returns the first timer of the slot in the given order, or NULL. `next_seat` is the position of
 * the reader: initially 0, then only changed here. As long as the tickets are consecutive, only one
 * lane is read, so that the processor does not wait for the heads of the other lanes.
 */
static inline struct spoke_timer *spokei_slots_first(const struct spokei_slots *slots,
						     uint32_t slot, enum spoke_wheel_order order,
						     uint64_t *next_seat)
{
	struct spoke_list *lane = &slots->slot[slot].lanes[spokei_seat_lane(*next_seat)];
	struct spoke_timer *timer = spokei_timer_of(lane->next);

	if (SPOKEI_UNLIKELY(lane->next == lane))
		return spokei_slots_search(slots, slot, order, next_seat);
	if (order == SPOKE_WHEEL_FIFO && timer->seat != *next_seat)
		return spokei_slots_search(slots, slot, order, next_seat);
	*next_seat += SPOKEI_TICKET;
	return timer;
}

/* Unlinks a timer; the caller updates its key. The slot stays marked, because testing whether it is
 * empty would cost more than a visit of the wheel to an empty slot. */
static inline void spokei_slots_remove(struct spoke_timer *timer)
{
	spokei_list_unlink(&timer->place);
}

#endif
