/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timing wheel: any number of timers, each scheduled, moved and cancelled in constant time.
 *
 * The wheel is pure. It has no clock (time is a parameter: nanoseconds of one monotonic clock),
 * no loop, no thread, no lock, and it never allocates: the caller brings the wheel's memory and
 * embeds the timers in objects of his own. One wheel belongs to one thread at a time.
 *
 * Never early: a deadline is rounded up to the next tick. Late by at most one tick plus the time
 * the caller lets pass before spoke_wheel_advance().
 *
 * With levels = 1 it is the wheel of Netty and Dubbo: a timer beyond one lap waits in its slot for
 * the laps that remain, and every lap in which a timer is due looks at every waiting timer. With
 * more levels it is Kafka's: far timers wait on coarse levels and move down as their time comes.
 */
#ifndef SPOKE_WHEEL_H
#define SPOKE_WHEEL_H

#include <spoke/base.h>

#include <stdbool.h>

SPOKE_BEGIN_DECLS

struct spoke_wheel;

/* What the wheel's functions return: 0, or a positive status of this table. Numbers are fixed. */
enum spoke_wheel_status {
	SPOKE_WHEEL_OK = 0,
	SPOKE_WHEEL_MORE = 1,          /* the budget ran out before the work: advance again */
	SPOKE_WHEEL_FULL = 2,          /* pending_max timers are pending already */
	SPOKE_WHEEL_HORIZON = 3,       /* the deadline is further than the wheel can count */
	SPOKE_WHEEL_ARMED = 4,         /* the timer is armed: reschedule or cancel it */
	SPOKE_WHEEL_IDLE = 5,          /* the timer is not armed: schedule it */
	SPOKE_WHEEL_STOPPED = 6,       /* the wheel was stopped */
	SPOKE_WHEEL_BUSY = 7,          /* advance was called from a callback of this wheel */
	SPOKE_WHEEL_NO_CLASS = 8,      /* no such class on this wheel */
	SPOKE_WHEEL_BAD_TICK = 9,      /* option tick_ns out of range */
	SPOKE_WHEEL_BAD_SLOTS = 10,    /* option slots out of range */
	SPOKE_WHEEL_BAD_LEVELS = 11,   /* option levels out of range, or too many for the slots */
	SPOKE_WHEEL_BAD_ORDER = 12,    /* option order is none of enum spoke_wheel_order */
	SPOKE_WHEEL_BAD_PENDING = 13,  /* option pending_max out of range */
	SPOKE_WHEEL_BAD_MEMORY = 14,   /* memory is NULL, or smaller than spoke_wheel_size() says */
	SPOKE_WHEEL_BAD_CLASS = 15,    /* a class needs a name and a callback */
	SPOKE_WHEEL_CLASSES_FULL = 16, /* SPOKE_WHEEL_CLASSES_MAX classes exist already */
	SPOKE_WHEEL_BAD_NOW = 17,      /* the time of tick 0 is beyond SPOKE_WHEEL_NOW_MAX_NS */
};

/* One sentence for a status; never NULL. */
SPOKE_API const char *spoke_wheel_text(int status);

/* In which order timers of the same tick fire. */
enum spoke_wheel_order {
	/* First placed, first fired. A timer that was armed anew where it sits (by a reschedule, or
	 * a schedule after a disarm) keeps its place if that slot is the right one already, and
	 * joins the end when the wheel moves it on. */
	SPOKE_WHEEL_FIFO = 0,
	/* In any order within the tick; never across ticks. A little cheaper when very many timers
	 * expire together. */
	SPOKE_WHEEL_UNORDERED = 1,
};

#define SPOKE_WHEEL_TICK_MAX_NS UINT64_C(3600000000000) /* longest tick: an hour */
#define SPOKE_WHEEL_NOW_MAX_NS (UINT64_C(1) << 63)      /* latest time of tick 0 */
#define SPOKE_WHEEL_SLOTS_MAX 4096u
#define SPOKE_WHEEL_LEVELS_MAX 8u
#define SPOKE_WHEEL_CLASSES_MAX 32u
#define SPOKE_WHEEL_PENDING_MAX (UINT64_C(1) << 40)
#define SPOKE_WHEEL_BUDGET 2048u         /* timers one advance touches when it is told 0 */
#define SPOKE_WHEEL_NO_BUDGET UINT32_MAX /* as many as there are */
#define SPOKE_WHEEL_NEVER UINT64_MAX     /* no timer is pending */

/* All fields may be 0: the default stands at each. */
struct spoke_wheel_options {
	uint64_t tick_ns;     /* length of a tick, 1 ns to 1 h; 0: 1 ms */
	uint32_t slots;       /* per level, 2 to 4,096, rounded up to a power of two; 0: 256 */
	uint32_t levels;      /* 1 to 8, and slots^levels at most 2^48; 0: 4 */
	uint64_t pending_max; /* timers armed at one time; 0: 16,777,216 */
	enum spoke_wheel_order order; /* 0: SPOKE_WHEEL_FIFO */
};

/*
 * A timer, embedded in the object it belongs to. Zero-initialise it; all fields are the wheel's. It
 * is idle, armed (it will fire) or disarmed (it will not, but is still linked into its slot).
 * Unless it is idle it belongs to one wheel, and its memory must stay: cancel or detach it before
 * freeing.
 */
struct spoke_timer {
	struct spoke_list place; /* neighbours in its slot, unless idle */
	uint64_t key;            /* disarmed (1 bit), ticks left to the horizon (48), class (15);
				  * 0: idle */
	uint64_t seat;           /* turn within its slot (48 bits), slot (16) */
};

/*
 * A timer is due. It is idle already: the callback may schedule it again, free it, and schedule,
 * cancel, reschedule or free any other timer. It may stop the wheel, must not free the wheel's
 * memory, and must return (no longjmp, no exception). `arg` is the one given with the class.
 */
typedef void (*spoke_timer_due_fn)(struct spoke_timer *timer, void *arg);

/* Receives a timer, idle by now, that a stop takes out unfired. May cancel and free any timer. */
typedef void (*spoke_timer_back_fn)(struct spoke_timer *timer, void *arg);

/*
 * Writes to *ret_size how many bytes a wheel with these options needs. `options` is borrowed for
 * the call; NULL means all defaults. Returns OK or one of the BAD_ statuses.
 */
SPOKE_API SPOKE_MUST_USE int spoke_wheel_size(const struct spoke_wheel_options *options,
					      size_t *ret_size);

/*
 * Makes a wheel whose tick 0 is at `now_ns`, somewhere inside `memory`, which is borrowed until the
 * wheel is stopped or no timer was ever scheduled on it: keep your own pointer to free it by. Any
 * alignment will do. Returns OK or one of the BAD_ statuses; on failure nothing is written.
 */
SPOKE_API SPOKE_MUST_USE int spoke_wheel_init(void *memory, size_t size,
					      const struct spoke_wheel_options *options,
					      uint64_t now_ns, struct spoke_wheel **ret_wheel);

/*
 * Adds a class: a kind of timer, with the callback its timers share and counters of its own. `name`
 * is borrowed while the wheel is used. Returns OK, BAD_CLASS or CLASSES_FULL.
 */
SPOKE_API SPOKE_MUST_USE int spoke_wheel_add_class(struct spoke_wheel *wheel, const char *name,
						   spoke_timer_due_fn due, void *arg,
						   unsigned *ret_class);

/*
 * Arms an idle or disarmed timer for `deadline_ns`. A deadline that has passed is the tick after
 * spoke_wheel_now(), which, while an advance catches up, is one of those it still has to fire.
 * Returns OK, FULL, HORIZON (its tick is beyond 2^48 - 2, or 2^62 ns after tick 0), ARMED,
 * NO_CLASS or STOPPED; when it is not OK nothing changed but the count of rejected timers.
 */
SPOKE_API SPOKE_MUST_USE inline int spoke_wheel_schedule(struct spoke_wheel *wheel,
							 struct spoke_timer *timer,
							 unsigned timer_class,
							 uint64_t deadline_ns);

/*
 * Moves an armed timer to another deadline. When the new one is not before the slot in which the
 * timer sits, this is one store. Returns OK, HORIZON, IDLE (also when disarmed) or STOPPED; when it
 * is not OK the timer keeps its deadline.
 */
SPOKE_API SPOKE_MUST_USE inline int spoke_wheel_reschedule(struct spoke_wheel *wheel,
							   struct spoke_timer *timer,
							   uint64_t deadline_ns);

/*
 * Takes a timer out of the wheel in any state; its memory may be freed at once. Returns whether it
 * was armed.
 */
SPOKE_API inline bool spoke_wheel_cancel(struct spoke_wheel *wheel, struct spoke_timer *timer);

/*
 * Cancels lazily: the timer will not fire, but stays linked in its slot until that comes round or
 * until it is scheduled again, which is then cheaper. For owners whose memory outlives this: they
 * call spoke_wheel_detach() before they free. Returns whether it was armed.
 */
SPOKE_API inline bool spoke_wheel_disarm(struct spoke_wheel *wheel, struct spoke_timer *timer);

/*
 * Takes a disarmed or idle timer out of its slot, so that its memory may be freed: a cancel that
 * refuses, with ARMED, to end a timer that is still going to fire. Else returns OK.
 */
SPOKE_API SPOKE_MUST_USE int spoke_wheel_detach(struct spoke_wheel *wheel,
						struct spoke_timer *timer);

/* Is the timer going to fire? */
SPOKE_API inline bool spoke_timer_armed(const struct spoke_timer *timer);

/* The deadline in ns, rounded up to its tick; SPOKE_WHEEL_NEVER when the timer is not armed. */
SPOKE_API uint64_t spoke_wheel_deadline(const struct spoke_wheel *wheel,
					const struct spoke_timer *timer);

/*
 * Moves the wheel to `now_ns` and fires what is due, earlier ticks first. Touches at most `budget`
 * timers (0: SPOKE_WHEEL_BUDGET; empty slots cost none); when that was not enough it returns MORE,
 * the wheel's now stays at the tick it is working on, and the next advance goes on there. A
 * `now_ns` before the last one is counted and otherwise ignored. Returns OK (also when a callback
 * stopped the wheel), MORE, STOPPED, or BUSY when called from a callback.
 */
SPOKE_API int spoke_wheel_advance(struct spoke_wheel *wheel, uint64_t now_ns, uint32_t budget);

/*
 * When to call spoke_wheel_advance() next, in ns: never later than the earliest deadline, but
 * earlier when timers have to move down a level first, or when the wheel still has to find out that
 * those of a slot were cancelled. After MORE: the wheel's now. SPOKE_WHEEL_NEVER when no timer is
 * armed.
 */
SPOKE_API uint64_t spoke_wheel_next(const struct spoke_wheel *wheel);

/* The tick up to which everything has been fired, in ns. */
SPOKE_API uint64_t spoke_wheel_now(const struct spoke_wheel *wheel);

/*
 * Ends the wheel: takes out every timer, disarmed ones too, and hands each armed one, in no
 * particular order, to `back` (NULL: to nobody). From its start on every schedule and reschedule
 * returns STOPPED. Returns how many were armed; a second stop finds nothing. Afterwards the wheel's
 * memory may be freed.
 */
SPOKE_API uint64_t spoke_wheel_stop(struct spoke_wheel *wheel, spoke_timer_back_fn back, void *arg);

/*
 * Counted since init, for the wheel or for one class. At any time
 * scheduled == fired + cancelled + returned + pending.
 */
struct spoke_wheel_counts {
	uint64_t pending;     /* armed now */
	uint64_t scheduled;   /* schedules that were accepted */
	uint64_t fired;       /* callbacks called */
	uint64_t cancelled;   /* cancels and disarms that found the timer armed */
	uint64_t returned;    /* handed back by stop */
	uint64_t rescheduled; /* reschedules that were accepted */
	uint64_t rejected;    /* schedules and reschedules refused with FULL or HORIZON */
	uint64_t late_max_ns; /* longest time between a tick and the firing of its timers */
};

/* What the wheel as a whole has done besides. */
struct spoke_wheel_work {
	uint64_t backwards;      /* advances to a time before the last one */
	uint64_t visited_slots;  /* slots looked into by advance */
	uint64_t visited_timers; /* timers touched by advance, whatever became of them */
};

/* All classes together. */
SPOKE_API void spoke_wheel_counts(const struct spoke_wheel *wheel,
				  struct spoke_wheel_counts *ret_counts);

/* One class, and its name (borrowed from the class; NULL: not wanted). Returns OK or NO_CLASS. */
SPOKE_API SPOKE_MUST_USE int spoke_wheel_class_counts(const struct spoke_wheel *wheel,
						      unsigned timer_class,
						      struct spoke_wheel_counts *ret_counts,
						      const char **ret_name);

SPOKE_API void spoke_wheel_work(const struct spoke_wheel *wheel, struct spoke_wheel_work *ret_work);

/* How the wheel is built, and where it stands. */
struct spoke_wheel_shape {
	uint64_t tick_ns;
	uint64_t tick;  /* up to which everything has been fired */
	uint32_t slots; /* per level */
	uint32_t levels;
	uint32_t cursor[SPOKE_WHEEL_LEVELS_MAX]; /* per level: the slot that it stands in */
};

SPOKE_API void spoke_wheel_shape(const struct spoke_wheel *wheel,
				 struct spoke_wheel_shape *ret_shape);

/*
 * How many timers lie in a slot of a level, counted up to `max`: disarmed ones, which have not left
 * yet, too. Takes time for each of them, so `max` bounds it. 0 for a slot there is not.
 */
SPOKE_API uint32_t spoke_wheel_occupancy(const struct spoke_wheel *wheel, uint32_t level,
					 uint32_t slot, uint32_t max);

/*
 * Derives every invariant of the wheel anew from its slots: slow, for tests and for users in doubt.
 * Returns NULL, or a sentence that names the first one broken.
 */
SPOKE_API const char *spoke_wheel_check(const struct spoke_wheel *wheel);

SPOKE_END_DECLS

#include <spoke/wheel_inline.h>

#endif
