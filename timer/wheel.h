/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a wheel, for the files that implement it: the conversion of times to ticks, the
 * geometry of the slots, and the lateness of classes.
 */
#ifndef SPOKEI_TIMER_WHEEL_H
#define SPOKEI_TIMER_WHEEL_H

#include "timer/base.h"

#include <spoke/base.h>
#include <spoke/wheel.h>

#include <stdint.h>
#include <string.h>

/* --- the scale
 *
 * Converts nanoseconds to ticks and back. A division would cost more than the rest of arming a
 * timer, so the conversion multiplies. A plain value; any thread.
 */

/* Largest time after tick 0 that can be converted, for every length of a tick. */
#define SPOKEI_SCALE_MAX_NS (UINT64_C(1) << 62)

#define SPOKEI_SCALE_FEW_MAX_NS (UINT64_C(1) << 44)

struct spokei_scale {
	uint64_t origin_ns; /* time of tick 0 */
	uint64_t tick_ns;
	uint64_t factor; /* floor(ns / tick_ns) == 2 * ns * factor >> (64 + shift) */
	uint8_t shift;
	/* For ns below few_ns, which is few_ticks ticks: floor(ns / tick_ns) == ns * few >> 64. */
	uint64_t few;
	uint64_t few_ns;
	uint64_t few_ticks;
};

/* Returns the exponent of the smallest power of two that is not below `value`; 0 for 0. */
static inline unsigned spokei_log2_up(uint64_t value)
{
	return value <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(value - 1);
}

struct spokei_scale spokei_scale_make(uint64_t origin_ns, uint64_t tick_ns);

/* Returns the whole ticks in `ns` (below 2^63) after tick 0. */
#if defined(__SIZEOF_INT128__) && !defined(SPOKEI_SCALE_DIVIDES)
__extension__ typedef unsigned __int128 spokei_uint128;

static inline uint64_t spokei_scale_ticks(const struct spokei_scale *scale, uint64_t ns)
{
	return (uint64_t)((spokei_uint128)(ns << 1) * scale->factor >> 64) >> scale->shift;
}

/* Returns the same for `ns` below few_ns, a little faster. */
static inline uint64_t spokei_scale_few(const struct spokei_scale *scale, uint64_t ns)
{
	return (uint64_t)((spokei_uint128)ns * scale->few >> 64);
}
#else
static inline uint64_t spokei_scale_ticks(const struct spokei_scale *scale, uint64_t ns)
{
	return ns / scale->tick_ns;
}

static inline uint64_t spokei_scale_few(const struct spokei_scale *scale, uint64_t ns)
{
	return ns / scale->tick_ns;
}
#endif

/* Returns the time of a tick on the caller's clock. */
static inline uint64_t spokei_scale_time(const struct spokei_scale *scale, uint64_t tick)
{
	return scale->origin_ns + tick * scale->tick_ns;
}

/* --- the slots
 *
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

/* --- lateness
 *
 * The longest lateness of a class of timers: ever, and recently. The recent past is divided into
 * slices of time; the wheel ends a slice when it advances.
 */

#define SPOKEI_LATE_SLICES 8u /* ended ones that count as recent */

struct spokei_late {
	uint64_t slice_ns[SPOKEI_LATE_SLICES + 1]; /* the present slice first */
	uint64_t ever_ns;                          /* without the present slice */
};

static inline void spokei_late_note(struct spokei_late *late, uint64_t late_ns)
{
	if (late_ns > late->slice_ns[0])
		late->slice_ns[0] = late_ns;
}

static inline uint64_t spokei_late_ever(const struct spokei_late *late)
{
	return late->slice_ns[0] > late->ever_ns ? late->slice_ns[0] : late->ever_ns;
}

static inline uint64_t spokei_late_recent(const struct spokei_late *late)
{
	uint64_t most_ns = 0;

	for (unsigned i = 0; i <= SPOKEI_LATE_SLICES; i++)
		most_ns = late->slice_ns[i] > most_ns ? late->slice_ns[i] : most_ns;
	return most_ns;
}

/* Ends `slices` slices, and begins an empty one. */
static inline void spokei_late_turn(struct spokei_late *late, uint64_t slices)
{
	late->ever_ns = spokei_late_ever(late);
	for (; slices > 0 && spokei_late_recent(late) > 0; slices--) {
		memmove(&late->slice_ns[1], &late->slice_ns[0],
			SPOKEI_LATE_SLICES * sizeof(late->slice_ns[0]));
		late->slice_ns[0] = 0;
	}
}

/* --- the wheel */

/* Phases of an advance; the budget can interrupt it in all but the first. */
enum spokei_wheel_phase {
	SPOKEI_WHEEL_RESTING, /* everything up to now has been fired */
	SPOKEI_WHEEL_SINKING, /* now is edge - 1; the slot's timers move down */
	SPOKEI_WHEEL_FIRING,  /* now is edge; the slot's timers fire */
};

/* A kind of timer; its tally is in the front. */
struct spokei_wheel_class {
	spoke_timer_due_fn due;
	void *arg;
	const char *name;
	uint64_t fired;
	uint64_t rejected;
	struct spokei_late late;
};

struct spoke_wheel {
	struct spoke_wheel_front front; /* must be first, for the inline functions */
	struct spokei_slots slots;
	uint64_t now;      /* tick: everything up to it has been fired */
	uint64_t last;     /* the last tick of the wheel's life */
	uint64_t wake;     /* tick: no armed timer is earlier; 0 while not resting */
	uint64_t now_ns;   /* time of `now` */
	uint64_t plain_ns; /* a deadline is plain up to this time after now_ns; 0: none is */
	uint64_t pending_max;
	struct spokei_scale scale;
	uint64_t edge;     /* tick under work while not resting */
	uint64_t heard_ns; /* latest time passed to an advance */
	uint64_t slice_ns; /* time at which the present slice of lateness began */
	uint32_t slot;     /* slot under work while not resting */
	enum spokei_wheel_phase phase;
	bool advancing; /* a callback may be running */
	bool stopped;
	struct spoke_wheel_work work;
	struct spokei_wheel_class class_of[SPOKE_WHEEL_CLASSES_MAX];
};

#define SPOKEI_NO_SLOT UINT32_MAX

/* Sets `now`. Deadlines are plain if spokei_scale_few() converts them and the wheel lives until
 * then; none is while the wheel sinks, or when it was stopped. */
static inline void spokei_wheel_set_now(struct spoke_wheel *wheel, uint64_t tick)
{
	bool plain = wheel->last - tick >= wheel->scale.few_ticks && !wheel->stopped;

	wheel->now = tick;
	wheel->now_ns = spokei_scale_time(&wheel->scale, tick);
	wheel->plain_ns = plain ? wheel->scale.few_ns : 0;
}

/* Returns the tick relative to which the timers are placed: during sinking the edge, else now. */
static inline uint64_t spokei_wheel_view(const struct spoke_wheel *wheel)
{
	return wheel->phase == SPOKEI_WHEEL_SINKING ? wheel->edge : wheel->now;
}

/* Clears the cached deadline, which is valid only until now moves or the wheel clears its slot. */
static inline void spokei_wheel_forget_shared(struct spoke_wheel *wheel)
{
	wheel->front.shared_ns = SPOKE_WHEEL_NEVER;
	wheel->front.shared_key = SPOKE_WHEEL_NOT_SHARED;
	wheel->front.shared_slot = SPOKEI_NO_SLOT;
	wheel->front.shared_least = 0;
}

/* Returns the number of armed timers of all classes. */
static inline uint64_t spokei_wheel_pending(const struct spoke_wheel *wheel)
{
	return wheel->front.scheduled - wheel->front.ended;
}

#endif
