/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timing wheel: arms, moves and cancels timers, and advances. slots.h decides in which slot a
 * timer sits.
 *
 * An advance goes from edge to edge; an edge is a tick at which the wheel enters an occupied slot.
 * First the timers of the slot sink to lower levels while now is still one tick before the edge.
 * Timers scheduled meanwhile therefore queue up after them in the same slot. Then now moves to the
 * edge and the timers of this tick fire. The budget can interrupt both halves.
 */
#include "timer/wheel.h"

/* Parts of the ABI: the position and layout of the front, the parts of a key. */
_Static_assert(offsetof(struct spoke_wheel, front) == 0, "the inline functions look there");
_Static_assert(offsetof(struct spoke_wheel_front, shared_key) == 8, "part of the ABI");
_Static_assert(offsetof(struct spoke_wheel_front, tally) == 64, "part of the ABI");
_Static_assert(sizeof(struct spoke_wheel_tally) == 32, "part of the ABI");
_Static_assert(sizeof(struct spoke_timer) <= 32, "half a cache line");
_Static_assert(SPOKE_WHEEL_CLASSES_MAX <= SPOKE_TIMER_CLASS_MASK + 1, "a key holds every class");

/* Emits the symbols of the inline functions, whose bodies are in the public header. */
extern inline bool spoke_timer_armed(const struct spoke_timer *timer);
extern inline int spoke_wheel_schedule(struct spoke_wheel *wheel, struct spoke_timer *timer,
				       unsigned timer_class, uint64_t deadline_ns);
extern inline int spoke_wheel_reschedule(struct spoke_wheel *wheel, struct spoke_timer *timer,
					 uint64_t deadline_ns);
extern inline bool spoke_wheel_disarm(struct spoke_wheel *wheel, struct spoke_timer *timer);
extern inline bool spoke_wheel_cancel(struct spoke_wheel *wheel, struct spoke_timer *timer);
extern inline uint64_t spoke_wheel_next(const struct spoke_wheel *wheel);

static const struct spokei_place no_place = { .slot = SPOKEI_NO_SLOT };

#define SLICE_NS (SPOKE_WHEEL_RECENT_NS / SPOKEI_LATE_SLICES)

/* Moves now, while the wheel does not sink. */
static inline void move_now(struct spoke_wheel *wheel, uint64_t tick)
{
	spokei_wheel_set_now(wheel, tick);
	spokei_wheel_forget_shared(wheel);
}

/* Returns the tick of a deadline, rounded up, or NEVER if it is beyond the horizon. */
static inline uint64_t tick_of_deadline(const struct spoke_wheel *wheel, uint64_t deadline_ns)
{
	const struct spokei_scale *scale = &wheel->scale;
	uint64_t ns = deadline_ns - scale->origin_ns;
	uint64_t tick = wheel->now + 1;

	if (SPOKEI_LIKELY(ns <= SPOKEI_SCALE_MAX_NS)) {
		uint64_t asked = spokei_scale_ticks(scale, ns + scale->tick_ns - 1);

		tick = asked > tick ? asked : tick;
	} else if (deadline_ns > scale->origin_ns) {
		return SPOKEI_TICK_NEVER;
	}
	return tick <= wheel->last ? tick : SPOKEI_TICK_NEVER;
}

/* Sets the answer of next(): `now` while an advance is unfinished. */
static inline void show_next(struct spoke_wheel *wheel)
{
	if (wheel->phase != SPOKEI_WHEEL_RESTING)
		wheel->front.next_ns = wheel->now_ns;
	else if (wheel->wake == SPOKEI_TICK_NEVER)
		wheel->front.next_ns = SPOKE_WHEEL_NEVER;
	else
		wheel->front.next_ns = spokei_scale_time(&wheel->scale, wheel->wake);
}

/* A timer gets this tick, so next() answers no later one. */
static inline void wake_by(struct spoke_wheel *wheel, uint64_t tick)
{
	if (SPOKEI_LIKELY(tick >= wheel->wake))
		return;
	wheel->wake = tick;
	show_next(wheel);
}

/* Notes the deadline that was converted last, and its place if that is marked. */
static inline void share(struct spoke_wheel *wheel, uint64_t deadline_ns, uint64_t tick,
			 struct spokei_place place)
{
	wheel->front.shared_ns = deadline_ns;
	wheel->front.shared_key = spokei_timer_key(tick);
	wheel->front.shared_slot = place.slot;
	wheel->front.shared_least = place.least;
}

/*
 * Arms an idle, disarmed or armed timer for any deadline, in any phase, in a slot that may be new.
 * Returns OK or HORIZON.
 */
SPOKEI_NOINLINE static int arm_slowly(struct spoke_wheel *wheel, struct spoke_timer *timer,
				      unsigned timer_class, uint64_t deadline_ns)
{
	uint64_t tick = tick_of_deadline(wheel, deadline_ns);
	uint64_t key = spokei_timer_key(tick) | timer_class;
	struct spokei_place place;

	if (tick == SPOKEI_TICK_NEVER) {
		wheel->class_of[timer_class].rejected++;
		return SPOKE_WHEEL_HORIZON;
	}
	wake_by(wheel, tick);
	if (spokei_timer_linked(timer)) {
		if (key >= timer->least) {
			share(wheel, deadline_ns, tick, no_place);
			timer->key = key;
			return SPOKE_WHEEL_OK;
		}
		spokei_slots_remove(timer);
	}
	timer->key = key;
	place = spokei_slots_for(&wheel->slots, tick, wheel->now);
	spokei_slots_place(&wheel->slots, timer, place);
	share(wheel, deadline_ns, tick, place);
	return SPOKE_WHEEL_OK;
}

/*
 * Does the same if it can be done fast, and returns true: the deadline is plain (see plain_ns), and
 * its slot is marked and below the top level, or the timer may stay in its slot.
 */
static SPOKEI_INLINE bool arm_fast(struct spoke_wheel *wheel, struct spoke_timer *timer,
				   unsigned timer_class, uint64_t deadline_ns)
{
	uint64_t after_ns = deadline_ns - wheel->now_ns - 1;
	uint64_t tick = wheel->now + 1 + spokei_scale_few(&wheel->scale, after_ns);
	uint64_t key = spokei_timer_key(tick) | timer_class;
	struct spokei_place place;

	if (SPOKEI_UNLIKELY(after_ns >= wheel->plain_ns))
		return false;
	if (spokei_timer_linked(timer) && key >= timer->least) {
		share(wheel, deadline_ns, tick, no_place);
		wake_by(wheel, tick);
		timer->key = key;
		return true;
	}
	if (SPOKEI_UNLIKELY(!spokei_slots_ready(&wheel->slots, tick, wheel->now, &place)))
		return false;
	wake_by(wheel, tick);
	if (spokei_timer_linked(timer))
		spokei_slots_remove(timer);
	share(wheel, deadline_ns, tick, place);
	timer->key = key;
	spokei_slots_join(&wheel->slots, timer, place);
	return true;
}

/* Sets a new quota. Returns whether any timer may be scheduled. */
static bool find_quota(struct spoke_wheel *wheel)
{
	uint64_t pending = spokei_wheel_pending(wheel);
	uint64_t left = pending < wheel->pending_max ? wheel->pending_max - pending : 0;

	wheel->front.quota = wheel->front.scheduled + left;
	return left != 0;
}

static inline void count_scheduled(struct spoke_wheel_front *front, unsigned timer_class)
{
	front->scheduled++;
	front->tally[timer_class].scheduled++;
}

SPOKEI_NOINLINE static int schedule_slowly(struct spoke_wheel *wheel, struct spoke_timer *timer,
					   unsigned timer_class, uint64_t deadline_ns)
{
	int status;

	if (timer_class >= wheel->front.classes)
		return SPOKE_WHEEL_NO_CLASS;
	if (spoke_timer_armed(timer))
		return SPOKE_WHEEL_ARMED;
	if (wheel->stopped)
		return SPOKE_WHEEL_STOPPED;
	if (wheel->front.scheduled == wheel->front.quota && !find_quota(wheel)) {
		wheel->class_of[timer_class].rejected++;
		return SPOKE_WHEEL_FULL;
	}
	status = arm_slowly(wheel, timer, timer_class, deadline_ns);
	if (status == SPOKE_WHEEL_OK)
		count_scheduled(&wheel->front, timer_class);
	return status;
}

int spoke_wheel_schedule_any(struct spoke_wheel *wheel, struct spoke_timer *timer,
			     unsigned timer_class, uint64_t deadline_ns)
{
	struct spoke_wheel_front *front = &wheel->front;

	if (SPOKEI_UNLIKELY(timer_class >= front->classes || front->scheduled == front->quota ||
			    spoke_timer_armed(timer)))
		return schedule_slowly(wheel, timer, timer_class, deadline_ns);
	if (deadline_ns == front->shared_ns && front->shared_slot != SPOKEI_NO_SLOT &&
	    timer->key == 0) {
		struct spokei_place place = { front->shared_least, front->shared_slot };

		timer->key = front->shared_key | timer_class;
		spokei_slots_join(&wheel->slots, timer, place);
	} else if (SPOKEI_UNLIKELY(!arm_fast(wheel, timer, timer_class, deadline_ns))) {
		return schedule_slowly(wheel, timer, timer_class, deadline_ns);
	}
	count_scheduled(front, timer_class);
	return SPOKE_WHEEL_OK;
}

SPOKEI_NOINLINE static int reschedule_slowly(struct spoke_wheel *wheel, struct spoke_timer *timer,
					     uint64_t deadline_ns)
{
	unsigned timer_class = spokei_timer_class(timer);
	int status;

	if (wheel->stopped)
		return SPOKE_WHEEL_STOPPED;
	if (!spoke_timer_armed(timer))
		return SPOKE_WHEEL_IDLE;
	status = arm_slowly(wheel, timer, timer_class, deadline_ns);
	if (status == SPOKE_WHEEL_OK)
		wheel->front.tally[timer_class].rescheduled++;
	return status;
}

int spoke_wheel_reschedule_any(struct spoke_wheel *wheel, struct spoke_timer *timer,
			       uint64_t deadline_ns)
{
	unsigned timer_class = spokei_timer_class(timer);

	if (SPOKEI_UNLIKELY(!spoke_timer_armed(timer) ||
			    !arm_fast(wheel, timer, timer_class, deadline_ns)))
		return reschedule_slowly(wheel, timer, deadline_ns);
	wheel->front.tally[timer_class].rescheduled++;
	return SPOKE_WHEEL_OK;
}

int spoke_wheel_detach(struct spoke_wheel *wheel, struct spoke_timer *timer)
{
	if (spoke_timer_armed(timer))
		return SPOKE_WHEEL_ARMED;
	(void)spoke_wheel_cancel(wheel, timer);
	return SPOKE_WHEEL_OK;
}

uint64_t spoke_wheel_deadline(const struct spoke_wheel *wheel, const struct spoke_timer *timer)
{
	if (!spoke_timer_armed(timer))
		return SPOKE_WHEEL_NEVER;
	return spokei_scale_time(&wheel->scale, spokei_timer_tick(timer));
}

/* The parameters of one advance, and its remaining budget. */
struct pass {
	uint64_t now_ns; /* on the caller's clock */
	uint64_t target; /* tick */
	uint32_t budget; /* timers it may still touch */
};

static void fire_timer(struct spoke_wheel *wheel, struct spoke_timer *timer, uint64_t late_ns)
{
	struct spokei_wheel_class *of = &wheel->class_of[spokei_timer_class(timer)];

	timer->key = 0;
	wheel->front.ended++;
	of->fired++;
	spokei_late_note(&of->late, late_ns);
	of->due(timer, of->arg);
}

/* Moves a timer that is not due out of the slot under work: down a level or to a later slot. A
 * timer of a later lap of the same slot is set aside until the slot is empty. */
static void pass_timer(struct spoke_wheel *wheel, struct spoke_timer *timer)
{
	struct spokei_slots *slots = &wheel->slots;
	struct spokei_place place = spokei_slots_for(slots, spokei_timer_tick(timer), wheel->edge);

	if (place.slot != wheel->slot) {
		spokei_slots_place(slots, timer, place);
		return;
	}
	timer->least = place.least;
	spokei_list_append(&slots->aside, &timer->place);
}

/* Empties the slot under work. Returns false if the budget is used up before. */
static bool empty_slot(struct spoke_wheel *wheel, struct pass *pass)
{
	bool firing = wheel->phase == SPOKEI_WHEEL_FIRING;
	uint64_t late_ns = pass->now_ns - spokei_scale_time(&wheel->scale, wheel->edge);
	struct spoke_list *slot = &wheel->slots.slot[wheel->slot];

	wheel->work.visited_slots++;
	while (!spokei_list_empty(slot)) {
		struct spoke_timer *timer = spokei_timer_of(slot->next);

		if (pass->budget == 0)
			return false;
		if (pass->budget != SPOKE_WHEEL_NO_BUDGET)
			pass->budget--;
		wheel->work.visited_timers++;
		spokei_slots_remove(timer);
		if (!spoke_timer_armed(timer))
			timer->key = 0;
		else if (firing && spokei_timer_tick(timer) <= wheel->edge)
			fire_timer(wheel, timer, late_ns);
		else
			pass_timer(wheel, timer);
	}
	spokei_wheel_forget_shared(wheel); /* its slot may be this one */
	spokei_slots_clear(&wheel->slots, wheel->slot);
	spokei_slots_restore(&wheel->slots, wheel->slot);
	return true;
}

/* Begins an edge: with sinking, unless the timers are already on the lowest level. */
static void begin_edge(struct spoke_wheel *wheel, struct spokei_edge edge)
{
	struct spokei_slots *slots = &wheel->slots;

	SPOKE_ASSERT(edge.tick > wheel->now);
	wheel->edge = edge.tick;
	wheel->slot = edge.slot;
	wheel->wake = 0;
	if ((edge.tick & ((UINT64_C(1) << slots->span) - 1)) == 0)
		slots->far_min = SPOKEI_TICK_NEVER;
	if (spokei_slots_level(slots, edge.slot) == 0) {
		wheel->phase = SPOKEI_WHEEL_FIRING;
		move_now(wheel, edge.tick);
	} else {
		wheel->phase = SPOKEI_WHEEL_SINKING;
		move_now(wheel, edge.tick - 1);
		wheel->plain_ns = 0;
	}
	show_next(wheel);
}

/* Goes on to the next half of the edge, or to rest, when the slot under work is empty. */
static void finish_phase(struct spoke_wheel *wheel)
{
	if (wheel->phase == SPOKEI_WHEEL_SINKING) {
		wheel->phase = SPOKEI_WHEEL_FIRING;
		wheel->slot = (uint32_t)wheel->edge & wheel->slots.mask;
		move_now(wheel, wheel->edge);
	} else {
		wheel->phase = SPOKEI_WHEEL_RESTING;
		wheel->wake = spokei_slots_rest(&wheel->slots, wheel->now);
	}
	show_next(wheel);
}

static int turn_wheel(struct spoke_wheel *wheel, struct pass *pass)
{
	struct spokei_slots *slots = &wheel->slots;

	while (wheel->phase != SPOKEI_WHEEL_RESTING || slots->next <= pass->target) {
		if (wheel->phase == SPOKEI_WHEEL_RESTING)
			begin_edge(wheel, spokei_slots_find(slots, wheel->now));
		if (!empty_slot(wheel, pass))
			return SPOKE_WHEEL_MORE;
		finish_phase(wheel);
	}
	if (pass->target != wheel->now)
		move_now(wheel, pass->target);
	return SPOKE_WHEEL_OK;
}

/* Ends the slices of lateness that are over. */
static void turn_late(struct spoke_wheel *wheel)
{
	uint64_t slices = (wheel->heard_ns - wheel->slice_ns) / SLICE_NS;

	wheel->slice_ns += slices * SLICE_NS;
	for (uint32_t i = 0; i < wheel->front.classes; i++)
		spokei_late_turn(&wheel->class_of[i].late, slices);
}

int spoke_wheel_advance(struct spoke_wheel *wheel, uint64_t now_ns, uint32_t budget)
{
	struct pass pass = { .budget = budget ? budget : SPOKE_WHEEL_BUDGET };
	uint64_t ns;
	int status;

	if (wheel->stopped)
		return SPOKE_WHEEL_STOPPED;
	if (wheel->advancing)
		return SPOKE_WHEEL_BUSY;
	if (now_ns < wheel->heard_ns)
		wheel->work.backwards++;
	else
		wheel->heard_ns = now_ns;
	if (SPOKEI_UNLIKELY(wheel->heard_ns - wheel->slice_ns >= SLICE_NS))
		turn_late(wheel);
	pass.now_ns = wheel->heard_ns;
	ns = wheel->heard_ns - wheel->scale.origin_ns;
	pass.target = spokei_scale_ticks(&wheel->scale,
					 ns < SPOKEI_SCALE_MAX_NS ? ns : SPOKEI_SCALE_MAX_NS);
	if (pass.target > wheel->last)
		pass.target = wheel->last;
	wheel->advancing = true;
	status = turn_wheel(wheel, &pass);
	wheel->advancing = false;
	return status;
}

uint64_t spoke_wheel_now(const struct spoke_wheel *wheel)
{
	return wheel->now_ns;
}

static uint64_t return_timers(struct spoke_wheel *wheel, struct spoke_list *slot,
			      spoke_timer_back_fn back, void *arg)
{
	uint64_t returned = 0;

	while (!spokei_list_empty(slot)) {
		struct spoke_timer *timer = spokei_timer_of(slot->next);

		bool armed = spoke_timer_armed(timer);

		spokei_slots_remove(timer);
		if (armed) {
			wheel->front.ended++;
			wheel->front.tally[spokei_timer_class(timer)].returned++;
			returned++;
		}
		timer->key = 0;
		if (armed && back)
			back(timer, arg);
	}
	return returned;
}

uint64_t spoke_wheel_stop(struct spoke_wheel *wheel, spoke_timer_back_fn back, void *arg)
{
	uint64_t returned = 0;

	wheel->stopped = true;
	wheel->plain_ns = 0;
	spokei_wheel_forget_shared(wheel); /* with it timers could be armed inline, unchecked */
	wheel->front.quota = wheel->front.scheduled;
	for (uint32_t slot = 0; slot < wheel->slots.count; slot++)
		returned += return_timers(wheel, &wheel->slots.slot[slot], back, arg);
	return returned + return_timers(wheel, &wheel->slots.aside, back, arg);
}
