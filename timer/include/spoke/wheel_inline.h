/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bodies of the wheel's hot functions; a part of <spoke/wheel.h>, which programs include
 * instead. The types and macros below are internal, but their layout is part of the ABI. The
 * library also exports these functions as symbols.
 *
 * The calls begun in one turn of a loop mostly share their deadline, so the wheel caches the last
 * deadline that it converted to ticks. If a disarmed timer sits in a slot that the wheel reaches no
 * later than at this deadline, it is armed with one store. All other cases are left to the library.
 */
#ifndef SPOKE_WHEEL_INLINE_H
#define SPOKE_WHEEL_INLINE_H

#include <spoke/wheel.h>

SPOKE_BEGIN_DECLS

/* The parts of a timer's key: the tick of its deadline lies between them. An armed timer's key is
 * positive as a signed number; that of an idle one is 0. */
#define SPOKE_TIMER_DISARMED (UINT64_C(1) << 63)
#define SPOKE_TIMER_TICK_SHIFT 15
#define SPOKE_TIMER_CLASS_MASK ((UINT64_C(1) << SPOKE_TIMER_TICK_SHIFT) - 1)

/* Value of shared_key when there is no valid cached deadline. */
#define SPOKE_WHEEL_NOT_SHARED UINT64_C(0)

/* The counters of the functions below, per class. */
struct spoke_wheel_tally {
	uint64_t scheduled;
	uint64_t cancelled;
	uint64_t rescheduled;
	uint64_t returned;
};

/* The first part of every wheel. When `scheduled` reaches `quota`, the library sets a new quota
 * from the rest of pending_max. */
struct spoke_wheel_front {
	uint64_t shared_ns;    /* the cached deadline */
	uint64_t shared_key;   /* its ticks as a key, or NOT_SHARED: the wheel has moved since */
	uint32_t shared_slot;  /* the slot of timers with this deadline */
	uint32_t classes;      /* number of classes */
	uint64_t next_ns;      /* the answer of next(), while a timer is armed */
	uint64_t scheduled;    /* of all classes */
	uint64_t ended;        /* cancelled, fired or returned, of all classes */
	uint64_t quota;        /* upper bound of `scheduled` */
	uint64_t shared_least; /* the least key of timers in shared_slot */
	struct spoke_wheel_tally tally[SPOKE_WHEEL_CLASSES_MAX];
};

/* The general cases of spoke_wheel_schedule() and spoke_wheel_reschedule(). */
SPOKE_API SPOKE_MUST_USE int spoke_wheel_schedule_any(struct spoke_wheel *wheel,
						      struct spoke_timer *timer,
						      unsigned timer_class, uint64_t deadline_ns);
SPOKE_API SPOKE_MUST_USE int spoke_wheel_reschedule_any(struct spoke_wheel *wheel,
							struct spoke_timer *timer,
							uint64_t deadline_ns);

/* The definitions of the functions that <spoke/wheel.h> documents. */
inline bool spoke_timer_armed(const struct spoke_timer *timer)
{
	return (int64_t)timer->key > 0;
}

inline int spoke_wheel_schedule(struct spoke_wheel *wheel, struct spoke_timer *timer,
				unsigned timer_class, uint64_t deadline_ns)
{
	struct spoke_wheel_front *front = (struct spoke_wheel_front *)wheel;
	uint64_t key = front->shared_key | timer_class;

	if (deadline_ns != front->shared_ns || key < timer->least ||
	    timer->key < SPOKE_TIMER_DISARMED || timer_class >= front->classes ||
	    front->scheduled == front->quota)
		return spoke_wheel_schedule_any(wheel, timer, timer_class, deadline_ns);
	timer->key = key;
	front->scheduled++;
	front->tally[timer_class].scheduled++;
	return SPOKE_WHEEL_OK;
}

inline int spoke_wheel_reschedule(struct spoke_wheel *wheel, struct spoke_timer *timer,
				  uint64_t deadline_ns)
{
	struct spoke_wheel_front *front = (struct spoke_wheel_front *)wheel;
	uint64_t timer_class = timer->key & SPOKE_TIMER_CLASS_MASK;
	uint64_t key = front->shared_key | timer_class;

	if (deadline_ns != front->shared_ns || !spoke_timer_armed(timer) || key < timer->least)
		return spoke_wheel_reschedule_any(wheel, timer, deadline_ns);
	timer->key = key;
	front->tally[timer_class].rescheduled++;
	return SPOKE_WHEEL_OK;
}

inline bool spoke_wheel_disarm(struct spoke_wheel *wheel, struct spoke_timer *timer)
{
	struct spoke_wheel_front *front = (struct spoke_wheel_front *)wheel;

	if (!spoke_timer_armed(timer))
		return false;
	timer->key |= SPOKE_TIMER_DISARMED;
	front->ended++;
	front->tally[timer->key & SPOKE_TIMER_CLASS_MASK].cancelled++;
	return true;
}

inline bool spoke_wheel_cancel(struct spoke_wheel *wheel, struct spoke_timer *timer)
{
	bool armed = spoke_wheel_disarm(wheel, timer);

	if (timer->key == 0)
		return false;
	timer->key = 0;
	timer->place.prev->next = timer->place.next;
	timer->place.next->prev = timer->place.prev;
	return armed;
}

inline uint64_t spoke_wheel_next(const struct spoke_wheel *wheel)
{
	const struct spoke_wheel_front *front = (const struct spoke_wheel_front *)wheel;

	return front->scheduled == front->ended ? SPOKE_WHEEL_NEVER : front->next_ns;
}

SPOKE_END_DECLS

#endif
