/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Geometry of the wheel: levels of slots, each slot a few lists of timers ("lanes"), with a bitmap
 * that says which have had timers placed in them since the wheel was there. Knows ticks, never
 * nanoseconds, and calls nobody. Owned by one wheel; its memory is the wheel's.
 *
 * A timer of tick T, placed while the wheel stands at R, goes to the level of the highest bit in
 * which T and R differ, into the slot that T's digit on this level names. So all slots of a level
 * lie ahead of the wheel, in the same slot of the next level, and every level is emptied before the
 * wheel enters the slot above it. Only the top level has laps: a timer that lies beyond its present
 * lap is "far" and stays in its slot when the wheel passes by.
 *
 * Lanes are there for speed: each timer draws a ticket of its slot, and the lanes are taken in the
 * order of tickets, so that whoever empties a slot has several cache misses under way instead of
 * one. The ticket is kept in the timer, which gives the order of placement back.
 */
#ifndef SPOKEI_TIMER_SLOTS_H
#define SPOKEI_TIMER_SLOTS_H

#include "timer/base.h"

#include <spoke/wheel.h>

#define SPOKEI_TICK_END ((UINT64_C(1) << 48) - 1) /* the first tick that no key can hold */
#define SPOKEI_TICK_NEVER UINT64_MAX
#define SPOKEI_TICKET                                                                              \
	(UINT64_C(1) << 16) /* the difference of two seats placed one after another                \
			     */
#define SPOKEI_LANES 4u
#define SPOKEI_SUMMARY_MAX 4u /* words: 4 levels of 4,096 slots are 256 words of marked */

/* One slot: as large as a cache line. */
struct spokei_slot {
	struct spoke_list lanes[SPOKEI_LANES];
};

/* Where a timer goes whose tick and the wheel's now have this highest differing bit. */
struct spokei_reach {
	uint16_t base; /* first slot of the level */
	uint8_t shift; /* the lowest bit of the level's digit */
	uint8_t far;   /* beyond the present lap of the top level */
};

struct spokei_slots {
	struct spokei_slot *slot;             /* the lowest level first; last the aside */
	uint64_t *tickets;                    /* per slot: drawn so far */
	uint64_t *marked;                     /* a bit per slot: may be occupied */
	uint64_t summary[SPOKEI_SUMMARY_MAX]; /* a bit per word of marked */
	uint64_t next;                        /* the wheel, if it rests, may rest until this tick */
	uint64_t far_min; /* no far timer the present lap leaves unseen is earlier */
	uint32_t count;   /* slots, without the aside */
	uint32_t mask;    /* slots per level - 1 */
	uint8_t bits;     /* log2 of slots per level */
	uint8_t top;      /* number of the highest level */
	uint8_t span;     /* bits of all levels together: a lap is 2^span ticks */
	struct spokei_reach reach[64];
};

/* A tick at which the wheel enters a marked slot; NEVER when none is. */
struct spokei_edge {
	uint64_t tick;
	uint32_t slot;
};

/* The key of an armed timer of class 0. */
static inline uint64_t spokei_timer_key(uint64_t tick)
{
	return (SPOKEI_TICK_END - tick) << SPOKE_TIMER_TICK_SHIFT;
}

static inline uint64_t spokei_timer_tick(const struct spoke_timer *timer)
{
	return SPOKEI_TICK_END - (timer->key << 1 >> (SPOKE_TIMER_TICK_SHIFT + 1));
}

static inline bool spokei_timer_linked(const struct spoke_timer *timer)
{
	return timer->key != 0;
}

static inline uint32_t spokei_timer_slot(const struct spoke_timer *timer)
{
	return (uint16_t)timer->seat;
}

static inline uint32_t spokei_candidate_lane(uint64_t seat)
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

/* Memory for so many levels of 2^bits slots, in bytes, and the layout of it from `memory` (aligned
 * to a cache line). All slots are empty then and the wheel stands at tick 0. */
size_t spokei_slots_size(unsigned bits, unsigned levels);
void spokei_slots_init(struct spokei_slots *slots, void *memory, unsigned bits, unsigned levels);

/* The first edge after `now`, from the bitmap. The first tick of a lap that has timers of its own
 * is an edge too, though its slot may be empty: the far timers are counted anew from there. */
struct spokei_edge spokei_slots_find(const struct spokei_slots *slots, uint64_t now);

/* The tick at which the wheel comes to a slot below the top level, seen from `now`. */
static inline uint64_t spokei_slots_start(const struct spokei_slots *slots, uint32_t slot,
					  uint64_t now)
{
	uint32_t shift = spokei_slots_level(slots, slot) * slots->bits;
	uint64_t lap = now >> (shift + slots->bits);

	return lap << (shift + slots->bits) | (uint64_t)(slot & slots->mask) << shift;
}

/* Finds what spokei_slots_first() does not find at the first look. */
struct spoke_timer *spokei_slots_search(const struct spokei_slots *slots, uint32_t slot,
					enum spoke_wheel_order order, uint64_t *next_seat);

/* The slot is empty: the wheel need not come to it. */
void spokei_slots_clear(struct spokei_slots *slots, uint32_t slot);

/* Keeps an unlinked timer of the slot under work, to which the wheel has come too early, out of the
 * way until the slot is empty; restore() then puts all of them back, in order. */
void spokei_slots_set_aside(struct spokei_slots *slots, struct spoke_timer *timer);
void spokei_slots_restore(struct spokei_slots *slots, uint32_t slot);

/* The slot for a tick, seen from tick `from` (not after it). Notes when the wheel has to come for
 * it: at the slot's first tick, or, when it is far, at the first tick of its lap. */
static inline uint32_t spokei_slots_for(struct spokei_slots *slots, uint64_t tick, uint64_t from)
{
	struct spokei_reach reach = slots->reach[63 - __builtin_clzll((tick ^ from) | 1)];
	uint64_t start = tick >> reach.shift << reach.shift;

	if (SPOKEI_UNLIKELY(reach.far)) {
		start = tick >> slots->span << slots->span;
		slots->far_min = tick < slots->far_min ? tick : slots->far_min;
	}
	slots->next = start < slots->next ? start : slots->next;
	return reach.base | ((uint32_t)(tick >> reach.shift) & slots->mask);
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
 * The timer of the slot that comes first in the given order, or NULL. `next_seat` is the reader's
 * place in the slot: 0 at first, then left alone. It looks at one lane only as long as the tickets
 * follow each other, so that the processor need not wait for the heads of the other lanes.
 */
static inline struct spoke_timer *spokei_slots_first(const struct spokei_slots *slots,
						     uint32_t slot, enum spoke_wheel_order order,
						     uint64_t *next_seat)
{
	struct spoke_list *lane = &slots->slot[slot].lanes[spokei_candidate_lane(*next_seat)];
	struct spoke_timer *timer = spokei_timer_of(lane->next);

	if (SPOKEI_UNLIKELY(lane->next == lane))
		return spokei_slots_search(slots, slot, order, next_seat);
	if (order == SPOKE_WHEEL_FIFO && timer->seat != *next_seat)
		return spokei_slots_search(slots, slot, order, next_seat);
	*next_seat += SPOKEI_TICKET;
	return timer;
}

/* Takes a linked timer out; the caller sees to its key. The slot stays marked: were it looked at
 * here whether it is empty, that would cost more than the wheel's coming to it for nothing. */
static inline void spokei_slots_remove(struct spoke_timer *timer)
{
	spokei_list_unlink(&timer->place);
}

#endif
