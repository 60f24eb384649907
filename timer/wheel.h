/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a wheel, shared by the files that implement the wheel.
 */
#ifndef SPOKEI_TIMER_WHEEL_H
#define SPOKEI_TIMER_WHEEL_H

#include "timer/late.h"
#include "timer/scale.h"
#include "timer/slots.h"

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
