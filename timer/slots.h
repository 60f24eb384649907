/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Geometry of the wheel: levels of slots. A slot is a list of timers in the order of placement. A
 * bitmap marks the slots in which timers were placed since the wheel last visited them. The unit is
 * the tick, never nanoseconds; there are no callbacks. Owned by one wheel, in the wheel's memory.
 *
 * A timer of tick T that is placed while the wheel stands at R goes to the level of the highest bit
 * in which T and R differ, into the slot that T's digit on this level names. So all occupied slots
 * of a level are ahead of the wheel, within the same slot of the next level. Every level is emptied
 * before the wheel enters the next slot above it. Only the top level has laps: a timer beyond the
 * present lap is "far" and stays in its slot when the wheel passes.
 *
 * A timer keeps the least key with which it may stay where it is: that of the tick at which the
 * wheel enters its slot, in the timer's lap.
 */
#ifndef SPOKEI_TIMER_SLOTS_H
#define SPOKEI_TIMER_SLOTS_H

#include "timer/base.h"

#include <spoke/wheel.h>

#define SPOKEI_TICK_END ((UINT64_C(1) << 48) - 1) /* the first tick that no key can hold */
#define SPOKEI_TICK_NEVER UINT64_MAX
#define SPOKEI_SUMMARY_MAX 4u /* words: 4 levels of 4,096 slots are 256 words of marked */

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
	struct spoke_list *slot; /* lowest level first */
	uint64_t *marked;        /* a bit per slot: may be occupied */
	struct spoke_list aside; /* timers of later laps, while their slot is emptied */
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
	return tick << SPOKE_TIMER_TICK_SHIFT;
}

static inline uint64_t spokei_timer_tick(const struct spoke_timer *timer)
{
	return (timer->key & ~SPOKE_TIMER_DISARMED) >> SPOKE_TIMER_TICK_SHIFT;
}

static inline unsigned spokei_timer_class(const struct spoke_timer *timer)
{
	return (unsigned)(timer->key & SPOKE_TIMER_CLASS_MASK);
}

static inline bool spokei_timer_linked(const struct spoke_timer *timer)
{
	return timer->key != 0;
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

/* Sets `next` for a wheel that rests at `now`. Unmarks slots without an armed timer that come
 * before the earliest one. Returns the tick of that timer, or an earlier one if there are many
 * timers or it sits on the top level; NEVER: there is none. */
uint64_t spokei_slots_rest(struct spokei_slots *slots, uint64_t now);

/* Unmarks an empty slot, which the wheel then does not visit. */
void spokei_slots_clear(struct spokei_slots *slots, uint32_t slot);

/* Puts the timers that were set aside back into their slot, which is empty. */
void spokei_slots_restore(struct spokei_slots *slots, uint32_t slot);

static inline struct spokei_reach spokei_slots_reach(const struct spokei_slots *slots,
						     uint64_t tick, uint64_t from)
{
	return slots->reach[63 - __builtin_clzll((tick ^ from) | 1)];
}

/* Where a timer goes: its slot, and the least key with which it may stay there. */
struct spokei_place {
	uint64_t least;
	uint32_t slot;
};

/* Finds the place for a tick if a resting wheel needs no other change for a timer there: the slot
 * is marked, so `next` is not after it, and has no laps. Else returns false. */
static inline bool spokei_slots_ready(const struct spokei_slots *slots, uint64_t tick,
				      uint64_t from, struct spokei_place *ret)
{
	struct spokei_reach reach = spokei_slots_reach(slots, tick, from);
	uint64_t digits = tick >> reach.shift;

	ret->slot = reach.base | ((uint32_t)digits & slots->mask);
	ret->least = spokei_timer_key(digits << reach.shift);
	return !reach.top && (slots->marked[ret->slot >> 6] >> (ret->slot & 63) & 1);
}

/* Returns the place for a tick, seen from tick `from`, which is not after it. Lowers `next` to the
 * tick of the visit: the slot's first tick, or the first tick of the lap for a far timer. */
static inline struct spokei_place spokei_slots_for(struct spokei_slots *slots, uint64_t tick,
						   uint64_t from)
{
	struct spokei_reach reach = spokei_slots_reach(slots, tick, from);
	uint64_t start = tick >> reach.shift << reach.shift;
	struct spokei_place place = { .least = spokei_timer_key(start) };

	if (SPOKEI_UNLIKELY(reach.top & SPOKEI_REACH_FAR)) {
		start = tick >> slots->span << slots->span;
		slots->far_min = tick < slots->far_min ? tick : slots->far_min;
	}
	slots->next = start < slots->next ? start : slots->next;
	place.slot = reach.base | ((uint32_t)(tick >> reach.shift) & slots->mask);
	return place;
}

/* Appends an unlinked timer to a slot that is known to be marked. */
static inline void spokei_slots_join(struct spokei_slots *slots, struct spoke_timer *timer,
				     struct spokei_place place)
{
	timer->least = place.least;
	spokei_list_append(&slots->slot[place.slot], &timer->place);
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
				      struct spokei_place place)
{
	spokei_slots_mark(slots, place.slot);
	spokei_slots_join(slots, timer, place);
}

/* Unlinks a timer; the caller updates its key. The slot stays marked, because testing whether it is
 * empty would cost more than a visit of the wheel to an empty slot. */
static inline void spokei_slots_remove(struct spoke_timer *timer)
{
	spokei_list_unlink(&timer->place);
}

#endif
