/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bodies of the wheel's hot functions, part of <spoke/wheel.h>; include that. Nothing here is
 * meant to be used by name. The library has symbols for these functions too; the layout below is
 * part of its ABI.
 *
 * The calls that one turn of a loop starts mostly share their deadline, so the wheel keeps the last
 * one it converted. A timer that is disarmed, and sits in a slot the wheel reaches no later than at
 * that deadline, is armed by one store; all else is done in the library.
 */
#ifndef SPOKE_WHEEL_INLINE_H
#define SPOKE_WHEEL_INLINE_H

#include <spoke/wheel.h>

SPOKE_BEGIN_DECLS

/* The parts of a timer's key. As it counts ticks down to the horizon, a later deadline is a smaller
 * key, and 0 is smaller than all: one comparison tells idle, armed and earlier timers apart from
 * those that may stay where they sit. */
#define SPOKE_TIMER_DISARMED (UINT64_C(1) << 63)
#define SPOKE_TIMER_TICK_SHIFT 15
#define SPOKE_TIMER_CLASS_MASK ((UINT64_C(1) << SPOKE_TIMER_TICK_SHIFT) - 1)

#define SPOKE_WHEEL_NOT_SHARED UINT64_MAX

/* What the functions below count, per class. When `scheduled` reaches `quota` the library counts
 * what is pending and gives out what pending_max leaves anew; a class that does not exist has none.
 */
struct spoke_wheel_tally {
	uint64_t scheduled;
	uint64_t quota;
	uint64_t cancelled;
	uint64_t rescheduled;
};

/* The first part of every wheel. */
struct spoke_wheel_front {
	uint64_t shared_ns;   /* the deadline converted last */
	uint64_t shared_key;  /* its ticks in place of a key, or NOT_SHARED: now has moved since */
	uint32_t shared_slot; /* where timers with the shared deadline belong */
	uint32_t classes;     /* how many there are */
	struct spoke_wheel_tally tally[SPOKE_WHEEL_CLASSES_MAX];
};

SPOKE_API SPOKE_MUST_USE int spoke_wheel_schedule_any(struct spoke_wheel *wheel,
						      struct spoke_timer *timer,
						      unsigned timer_class, uint64_t deadline_ns);
SPOKE_API SPOKE_MUST_USE int spoke_wheel_reschedule_any(struct spoke_wheel *wheel,
							struct spoke_timer *timer,
							uint64_t deadline_ns);

inline bool spoke_timer_armed(const struct spoke_timer *timer)
{
	return (int64_t)timer->key > 0;
}

inline int spoke_wheel_schedule(struct spoke_wheel *wheel, struct spoke_timer *timer,
				unsigned timer_class, uint64_t deadline_ns)
{
	struct spoke_wheel_front *front = (struct spoke_wheel_front *)wheel;
	uint64_t key = front->shared_key | timer_class;

	if (deadline_ns != front->shared_ns || (key | SPOKE_TIMER_DISARMED) > timer->key ||
	    timer_class >= SPOKE_WHEEL_CLASSES_MAX ||
	    front->tally[timer_class].scheduled == front->tally[timer_class].quota)
		return spoke_wheel_schedule_any(wheel, timer, timer_class, deadline_ns);
	timer->key = key;
	front->tally[timer_class].scheduled++;
	return SPOKE_WHEEL_OK;
}

inline int spoke_wheel_reschedule(struct spoke_wheel *wheel, struct spoke_timer *timer,
				  uint64_t deadline_ns)
{
	struct spoke_wheel_front *front = (struct spoke_wheel_front *)wheel;
	uint64_t timer_class = timer->key & SPOKE_TIMER_CLASS_MASK;
	uint64_t key = front->shared_key | timer_class;

	if (deadline_ns != front->shared_ns || !spoke_timer_armed(timer) || key > timer->key)
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

SPOKE_END_DECLS

#endif
