/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hierarchical timing wheel: schedules, moves and cancels any number of timers in constant time
 * each.
 *
 * The wheel is pure: it has no clock, loop, thread or lock, and never allocates. Time is a
 * parameter, in nanoseconds of one monotonic clock. The caller provides the wheel's memory and
 * embeds the timers in its own objects. A wheel belongs to one thread at a time.
 *
 * Timers never fire early: a deadline is rounded up to the next tick. They fire late by at most one
 * tick plus the time until the caller calls spoke_wheel_advance(). Timers of the same tick fire in
 * the order of placement. A timer that a reschedule, or a schedule after a disarm, arms again keeps
 * its place if its slot stays the same. Otherwise it joins the end of its new slot when the wheel
 * moves it.
 *
 * With levels = 1 the wheel works like those of Netty and Dubbo: a timer beyond one lap waits in
 * its slot for the remaining laps. Each lap in which a timer is due visits all waiting timers of
 * the slot. With more levels it works like Kafka's: distant timers wait on coarse levels and move
 * down as their deadline approaches.
 */
#ifndef SPOKE_WHEEL_H
#define SPOKE_WHEEL_H

#include <spoke/base.h>

#include <stdbool.h>

SPOKE_BEGIN_DECLS

struct spoke_wheel;

/* Results of the wheel's functions: 0, or a positive status. The numbers never change. */
enum spoke_wheel_status {
	SPOKE_WHEEL_OK = 0,
	SPOKE_WHEEL_MORE = 1,          /* the budget is used up, but work is left: advance again */
	SPOKE_WHEEL_FULL = 2,          /* pending_max timers are pending already */
	SPOKE_WHEEL_HORIZON = 3,       /* the deadline is beyond the range of the wheel */
	SPOKE_WHEEL_ARMED = 4,         /* the timer is armed: reschedule or cancel it */
	SPOKE_WHEEL_IDLE = 5,          /* the timer is not armed: schedule it */
	SPOKE_WHEEL_STOPPED = 6,       /* the wheel was stopped */
	SPOKE_WHEEL_BUSY = 7,          /* advance was called in a callback of this wheel */
	SPOKE_WHEEL_NO_CLASS = 8,      /* the wheel has no such class */
	SPOKE_WHEEL_BAD_TICK = 9,      /* option tick_ns out of range */
	SPOKE_WHEEL_BAD_SLOTS = 10,    /* option slots out of range */
	SPOKE_WHEEL_BAD_LEVELS = 11,   /* option levels out of range, or too many for the slots */
	SPOKE_WHEEL_BAD_PENDING = 12,  /* option pending_max out of range */
	SPOKE_WHEEL_BAD_MEMORY = 13,   /* memory is NULL or smaller than spoke_wheel_size() */
	SPOKE_WHEEL_BAD_CLASS = 14,    /* a class needs a name and a callback */
	SPOKE_WHEEL_CLASSES_FULL = 15, /* SPOKE_WHEEL_CLASSES_MAX classes exist already */
	SPOKE_WHEEL_BAD_NOW = 16,      /* the time of tick 0 is beyond SPOKE_WHEEL_NOW_MAX_NS */
};

/* Returns the sentence of a status; never NULL. */
SPOKE_API const char *spoke_wheel_text(int status);

/* Limits of the options, and special values of parameters and results. */
#define SPOKE_WHEEL_TICK_MAX_NS UINT64_C(3600000000000) /* longest tick: an hour */
#define SPOKE_WHEEL_NOW_MAX_NS (UINT64_C(1) << 63)      /* latest time of tick 0 */
#define SPOKE_WHEEL_SLOTS_MAX 4096u
#define SPOKE_WHEEL_LEVELS_MAX 8u
#define SPOKE_WHEEL_CLASSES_MAX 32u
#define SPOKE_WHEEL_PENDING_MAX (UINT64_C(1) << 40)
#define SPOKE_WHEEL_BUDGET 2048u                     /* default budget of an advance, in timers */
#define SPOKE_WHEEL_NO_BUDGET UINT32_MAX             /* budget: no limit */
#define SPOKE_WHEEL_RECENT_NS UINT64_C(120000000000) /* of late_recent_ns: two minutes */
#define SPOKE_WHEEL_NEVER UINT64_MAX                 /* time: no timer is pending */

/* Options of a wheel. 0 in a field selects its default. */
struct spoke_wheel_options {
	uint64_t tick_ns;     /* length of a tick, 1 ns to 1 h; 0: 1 ms */
	uint32_t slots;       /* per level, 2 to 4,096, rounded up to a power of two; 0: 256 */
	uint32_t levels;      /* 1 to 8, with slots^levels at most 2^48; 0: 4 */
	uint64_t pending_max; /* timers armed at one time; 0: 16,777,216 */
};

/*
 * A timer, embedded in the object of its owner, zero-initialised. All fields are the wheel's. A
 * timer is idle, armed (it will fire) or disarmed (it will not fire, but is still linked into a
 * slot). An armed or disarmed timer belongs to one wheel: cancel or detach it before its memory is
 * freed.
 */
struct spoke_timer {
	struct spoke_list place; /* neighbours in the slot, unless idle */
	uint64_t key;            /* disarmed (1 bit), tick (48), class (15); 0: idle */
	uint64_t least;          /* the least key with which it may stay in its slot */
};

/*
 * Called when a timer is due; the timer is already idle. The callback may schedule it again or free
 * it, and schedule, cancel, reschedule or free any other timer. It may stop the wheel, but must not
 * free the wheel's memory. It must return (no longjmp, no exception). `arg` is that of the class.
 */
typedef void (*spoke_timer_due_fn)(struct spoke_timer *timer, void *arg);

/* Called by spoke_wheel_stop() for a timer that was armed and is now idle. May cancel and free any
 * timer. */
typedef void (*spoke_timer_back_fn)(struct spoke_timer *timer, void *arg);

/*
 * Writes the number of bytes that a wheel with these options needs. `options` is borrowed for the
 * call; NULL: all defaults. Returns OK or one of the BAD_ statuses.
 */
SPOKE_API SPOKE_MUST_USE int spoke_wheel_size(const struct spoke_wheel_options *options,
					      size_t *ret_size);

/*
 * Makes a wheel whose tick 0 is at `now_ns`, in `memory` of any alignment. The memory is borrowed
 * until the wheel is stopped; a wheel on which no timer was scheduled need not be stopped. The
 * wheel may begin later than `memory`, so keep that pointer to free it. Returns OK or one of the
 * BAD_ statuses; after a failure nothing is written.
 */
SPOKE_API SPOKE_MUST_USE int spoke_wheel_init(void *memory, size_t size,
					      const struct spoke_wheel_options *options,
					      uint64_t now_ns, struct spoke_wheel **ret_wheel);

/*
 * Adds a class: a kind of timer with a common callback and its own counters. `name` is borrowed
 * while the wheel is used. Returns OK, BAD_CLASS or CLASSES_FULL.
 */
SPOKE_API SPOKE_MUST_USE int spoke_wheel_add_class(struct spoke_wheel *wheel, const char *name,
						   spoke_timer_due_fn due, void *arg,
						   unsigned *ret_class);

/*
 * Arms an idle or disarmed timer for `deadline_ns`. A deadline in the past becomes the tick after
 * spoke_wheel_now(); an advance that is catching up still fires this tick. Returns OK, FULL,
 * HORIZON (the tick is beyond 2^48 - 2, or 2^62 ns after tick 0), ARMED, NO_CLASS or STOPPED. After
 * a failure only the count of rejected timers has changed.
 */
SPOKE_API SPOKE_MUST_USE inline int spoke_wheel_schedule(struct spoke_wheel *wheel,
							 struct spoke_timer *timer,
							 unsigned timer_class,
							 uint64_t deadline_ns);

/*
 * Moves an armed timer to another deadline. This is a single store if the new deadline is not
 * before the slot in which the timer sits. Returns OK, HORIZON, IDLE (also for a disarmed timer) or
 * STOPPED; after a failure the timer keeps its deadline.
 */
SPOKE_API SPOKE_MUST_USE inline int spoke_wheel_reschedule(struct spoke_wheel *wheel,
							   struct spoke_timer *timer,
							   uint64_t deadline_ns);

/*
 * Removes a timer in any state from the wheel; its memory may be freed at once. Returns whether the
 * timer was armed.
 */
SPOKE_API inline bool spoke_wheel_cancel(struct spoke_wheel *wheel, struct spoke_timer *timer);

/*
 * Cancels a timer lazily: it will not fire, but stays linked until its slot is visited or until it
 * is scheduled again, which is then cheaper. For owners whose memory outlives the call; they call
 * spoke_wheel_detach() before they free it. Returns whether the timer was armed.
 */
SPOKE_API inline bool spoke_wheel_disarm(struct spoke_wheel *wheel, struct spoke_timer *timer);

/*
 * Removes a disarmed or idle timer from its slot, so that its memory may be freed. Returns OK, or
 * ARMED and does nothing if the timer is armed.
 */
SPOKE_API SPOKE_MUST_USE int spoke_wheel_detach(struct spoke_wheel *wheel,
						struct spoke_timer *timer);

/* Returns whether the timer is armed. */
SPOKE_API inline bool spoke_timer_armed(const struct spoke_timer *timer);

/* Returns the deadline in ns, rounded up to a tick; SPOKE_WHEEL_NEVER if the timer is not armed. */
SPOKE_API uint64_t spoke_wheel_deadline(const struct spoke_wheel *wheel,
					const struct spoke_timer *timer);

/*
 * Moves the wheel to `now_ns` and fires the timers that are due, earlier ticks first. Touches at
 * most `budget` timers (0: SPOKE_WHEEL_BUDGET); empty slots are free. If the budget is used up, the
 * wheel's now stays at the present tick and the next advance continues there. A `now_ns` before the
 * last one is counted and otherwise ignored. Returns OK (also if a callback stopped the wheel),
 * MORE (the budget is used up), STOPPED, or BUSY (called in a callback).
 */
SPOKE_API int spoke_wheel_advance(struct spoke_wheel *wheel, uint64_t now_ns, uint32_t budget);

/*
 * Returns the time in ns at which spoke_wheel_advance() must be called next: the earliest deadline
 * or earlier. It is earlier if the earliest timer was cancelled or moved since the last advance, if
 * its slot has many timers of different deadlines, or if it is on the highest level. After MORE:
 * the wheel's now. SPOKE_WHEEL_NEVER if no timer is armed.
 */
SPOKE_API inline uint64_t spoke_wheel_next(const struct spoke_wheel *wheel);

/* Looks for the earliest deadline, as an advance does, so that spoke_wheel_next() forgets timers
 * that were cancelled or moved. Does nothing during an advance. */
SPOKE_API void spoke_wheel_rest(struct spoke_wheel *wheel);

/* Returns the time in ns of the last tick whose timers have all fired. */
SPOKE_API uint64_t spoke_wheel_now(const struct spoke_wheel *wheel);

/*
 * Stops the wheel: removes every timer, and calls `back` for each armed one, in no particular order
 * (NULL: no callback). From the beginning of the stop, schedule and reschedule return STOPPED.
 * Returns the number of armed timers; a second stop returns 0. Afterwards the wheel's memory may be
 * freed.
 */
SPOKE_API uint64_t spoke_wheel_stop(struct spoke_wheel *wheel, spoke_timer_back_fn back, void *arg);

/*
 * Counters since init, of the wheel or of one class. At any time
 * scheduled == fired + cancelled + returned + pending.
 */
struct spoke_wheel_counts {
	uint64_t pending;     /* armed now */
	uint64_t scheduled;   /* accepted schedules */
	uint64_t fired;       /* callbacks called */
	uint64_t cancelled;   /* cancels and disarms that found the timer armed */
	uint64_t returned;    /* passed to `back` by stop */
	uint64_t rescheduled; /* accepted reschedules */
	uint64_t rejected;    /* schedules and reschedules refused with FULL or HORIZON */
	uint64_t late_max_ns; /* longest time between a tick and the firing of its timers */
	/* The same during the last SPOKE_WHEEL_RECENT_NS before the last advance, or up to an
	 * eighth longer. */
	uint64_t late_recent_ns;
};

/* Counters of the wheel's internal work. */
struct spoke_wheel_work {
	uint64_t backwards;      /* advances to a time before the last one */
	uint64_t visited_slots;  /* slots visited by advance */
	uint64_t visited_timers; /* timers touched by advance: fired, moved or removed */
};

/* Copies the counters of all classes together. */
SPOKE_API void spoke_wheel_counts(const struct spoke_wheel *wheel,
				  struct spoke_wheel_counts *ret_counts);

/* Copies the counters of one class, and writes its name, which is borrowed from the class (ret_name
 * may be NULL). Returns OK or NO_CLASS. */
SPOKE_API SPOKE_MUST_USE int spoke_wheel_class_counts(const struct spoke_wheel *wheel,
						      unsigned timer_class,
						      struct spoke_wheel_counts *ret_counts,
						      const char **ret_name);

/* Copies the counters of the wheel's internal work. */
SPOKE_API void spoke_wheel_work(const struct spoke_wheel *wheel, struct spoke_wheel_work *ret_work);

/* The dimensions of the wheel, and its present position. */
struct spoke_wheel_shape {
	uint64_t tick_ns;
	uint64_t tick;  /* number of the last tick whose timers have all fired */
	uint32_t slots; /* per level */
	uint32_t levels;
	uint32_t cursor[SPOKE_WHEEL_LEVELS_MAX]; /* per level: its present slot */
};

/* Copies the dimensions and the position. */
SPOKE_API void spoke_wheel_shape(const struct spoke_wheel *wheel,
				 struct spoke_wheel_shape *ret_shape);

/*
 * Counts the timers in a slot of a level, armed and disarmed, up to `max`. The cost is proportional
 * to the result. Returns 0 if there is no such slot. Writes how many of them are of each class to
 * ret_of_class[SPOKE_WHEEL_CLASSES_MAX], which may be NULL.
 */
SPOKE_API uint32_t spoke_wheel_occupancy(const struct spoke_wheel *wheel, uint32_t level,
					 uint32_t slot, uint32_t max, uint32_t *ret_of_class);

/*
 * Checks every invariant of the wheel by visiting all its slots. Slow; for tests and debugging.
 * Returns NULL, or a sentence that names the first violated invariant.
 */
SPOKE_API const char *spoke_wheel_check(const struct spoke_wheel *wheel);

SPOKE_END_DECLS

#include <spoke/wheel_inline.h>

#endif
