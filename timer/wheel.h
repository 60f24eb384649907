/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wheel's own state, for wheel.c and for check.c, which derives it anew.
 */
#ifndef SPOKEI_TIMER_WHEEL_H
#define SPOKEI_TIMER_WHEEL_H

#include "timer/scale.h"
#include "timer/slots.h"

/* Where an advance stands; it can stop for want of budget in all but the first. */
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
	uint64_t returned;
	uint64_t rejected;
	uint64_t late_max_ns;
};

struct spoke_wheel {
	struct spoke_wheel_front front; /* first: the inline functions look for it there */
	struct spokei_slots slots;
	uint64_t now;   /* tick: everything up to it has been fired */
	uint64_t last;  /* the last tick of the wheel's life */
	uint64_t ended; /* timers fired or returned, of all classes */
	uint64_t pending_max;
	struct spokei_scale scale;
	uint64_t edge;     /* tick under work while not resting */
	uint64_t heard_ns; /* latest time an advance was told */
	uint32_t slot;     /* slot under work while not resting */
	enum spokei_wheel_phase phase;
	enum spoke_wheel_order order;
	bool advancing; /* a callback may be running */
	bool stopped;
	struct spoke_wheel_work work;
	struct spokei_wheel_class class_of[SPOKE_WHEEL_CLASSES_MAX];
};

#define SPOKEI_NO_SLOT UINT32_MAX

/* The tick from which the slots have to be read: timers that sink are placed as from the edge. */
static inline uint64_t spokei_wheel_view(const struct spoke_wheel *wheel)
{
	return wheel->phase == SPOKEI_WHEEL_SINKING ? wheel->edge : wheel->now;
}

/* The shared deadline holds only while now stands still, and its slot until the wheel clears it. */
static inline void spokei_wheel_forget_shared(struct spoke_wheel *wheel)
{
	wheel->front.shared_ns = SPOKE_WHEEL_NEVER;
	wheel->front.shared_key = SPOKE_WHEEL_NOT_SHARED;
	wheel->front.shared_slot = SPOKEI_NO_SLOT;
}

/* Armed timers, of all classes. */
static inline uint64_t spokei_wheel_pending(const struct spoke_wheel *wheel)
{
	uint64_t pending = 0 - wheel->ended;

	for (uint32_t i = 0; i < wheel->front.classes; i++)
		pending += wheel->front.tally[i].scheduled - wheel->front.tally[i].cancelled;
	return pending;
}

#endif
