/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the invariants of the wheel by visiting all slots, without relying on bitmaps, counters or
 * cached values. Reads only.
 */
#include "timer/wheel.h"

/* Numbers of the timers visited so far. */
struct census {
	const struct spoke_wheel *wheel;
	uint64_t armed;
	uint64_t earliest; /* tick of an armed timer; NEVER: there is none */
	uint64_t armed_of[SPOKE_WHEEL_CLASSES_MAX];
};

/* Returns the tick at which the wheel visits a slot next, by the rules in slots.h. */
static uint64_t next_visit(const struct spoke_wheel *wheel, uint32_t slot)
{
	const struct spokei_slots *slots = &wheel->slots;
	uint32_t level = spokei_slots_level(slots, slot);
	uint32_t shift = level * slots->bits;
	uint32_t index = slot & slots->mask;
	uint64_t view = spokei_wheel_view(wheel);
	uint64_t lap = view >> (shift + slots->bits);

	if (wheel->phase != SPOKEI_WHEEL_RESTING &&
	    (slot == wheel->slot || slot == (wheel->edge & slots->mask)))
		return wheel->edge;
	if (index <= ((uint32_t)(view >> shift) & slots->mask)) {
		uint64_t far = slots->far_min >> slots->span;

		if (level != slots->top)
			return SPOKEI_TICK_NEVER;
		lap = far > lap ? far : lap + 1;
	}
	return lap << (shift + slots->bits) | (uint64_t)index << shift;
}

/* Returns the first tick of a far timer's lap if far_min includes the timer; else 0. */
static uint64_t far_edge(const struct spoke_wheel *wheel, uint64_t tick)
{
	const struct spokei_slots *slots = &wheel->slots;

	if (tick >> slots->span == wheel->now >> slots->span ||
	    slots->far_min >> slots->span > tick >> slots->span)
		return 0;
	return tick >> slots->span << slots->span;
}

/* Checks that the timer's least key is of the first tick of its slot, in its own lap. */
static const char *check_least(const struct spoke_wheel *wheel, const struct spoke_timer *timer,
			       uint32_t slot)
{
	const struct spokei_slots *slots = &wheel->slots;
	uint32_t shift = spokei_slots_level(slots, slot) * slots->bits;
	uint64_t first = timer->least >> SPOKE_TIMER_TICK_SHIFT;

	if (timer->least != spokei_timer_key(first >> shift << shift) ||
	    (first >> shift & slots->mask) != (slot & slots->mask) ||
	    (slot < slots->top_base && first != next_visit(wheel, slot)))
		return "a timer's least key is not that of its slot";
	if (timer->least > (timer->key & ~SPOKE_TIMER_DISARMED))
		return "a timer's least key is above its own";
	return NULL;
}

/* Counts an armed timer, and checks that the wheel will visit its slot in time. */
static const char *check_armed(struct census *census, const struct spoke_timer *timer,
			       uint32_t slot)
{
	const struct spoke_wheel *wheel = census->wheel;
	uint64_t tick = spokei_timer_tick(timer);

	census->armed++;
	census->armed_of[spokei_timer_class(timer)]++;
	census->earliest = tick < census->earliest ? tick : census->earliest;
	if (tick < wheel->now || (tick == wheel->now && wheel->phase != SPOKEI_WHEEL_FIRING))
		return "an armed timer is in the past";
	if (next_visit(wheel, slot) > tick)
		return "the wheel would visit an armed timer too late";
	if (wheel->phase == SPOKEI_WHEEL_RESTING && wheel->slots.next > next_visit(wheel, slot) &&
	    wheel->slots.next > far_edge(wheel, tick))
		return "the wheel would sleep past an armed timer";
	return NULL;
}

static const char *check_timer(struct census *census, const struct spoke_timer *timer,
			       uint32_t slot)
{
	const char *broken = NULL;

	if (!spokei_timer_linked(timer))
		return "an idle timer is linked into a slot";
	if (spokei_timer_class(timer) >= census->wheel->front.classes)
		return "a timer has a class that does not exist";
	if (spoke_timer_armed(timer))
		broken = check_armed(census, timer, slot);
	return broken ? broken : check_least(census->wheel, timer, slot);
}

/* Checks a list of timers and counts them under `slot`. */
static const char *check_list(struct census *census, const struct spoke_list *head, uint32_t slot)
{
	const struct spoke_list *prev = head;

	for (struct spoke_list *node = head->next; node != head; node = node->next) {
		const char *broken;

		if (node == NULL || node->prev != prev)
			return "a slot's links do not match";
		broken = check_timer(census, spokei_timer_of(node), slot);
		if (broken)
			return broken;
		prev = node;
	}
	return head->prev == prev ? NULL : "a slot's links do not match";
}

static const char *check_bitmap(const struct spokei_slots *slots, uint32_t slot, bool empty)
{
	uint64_t word = slots->marked[slot >> 6];
	bool summed = slots->summary[slot >> 12] >> (slot >> 6 & 63) & 1;

	if (!empty && !(word >> (slot & 63) & 1))
		return "a slot with timers is not marked";
	if (summed != (word != 0))
		return "the summary does not match a word of the bitmap";
	return NULL;
}

static const char *check_counts(const struct census *census)
{
	const struct spoke_wheel *wheel = census->wheel;
	uint64_t quota = wheel->front.quota - wheel->front.scheduled;
	uint64_t scheduled = 0;
	uint64_t ended = 0;

	for (uint32_t i = 0; i < wheel->front.classes; i++) {
		const struct spoke_wheel_tally *tally = &wheel->front.tally[i];
		const struct spokei_wheel_class *of = &wheel->class_of[i];

		scheduled += tally->scheduled;
		ended += tally->cancelled + of->fired + tally->returned;
		if (tally->scheduled !=
		    tally->cancelled + of->fired + tally->returned + census->armed_of[i])
			return "a class's counts do not add up";
	}
	if (scheduled != wheel->front.scheduled || ended != wheel->front.ended ||
	    census->armed != spokei_wheel_pending(wheel))
		return "the wheel's counts are not the sum of its classes";
	if (wheel->stopped && census->armed > 0)
		return "a stopped wheel has armed timers";
	if (census->armed > wheel->pending_max)
		return "more timers are pending than pending_max";
	if (quota > (wheel->stopped ? 0 : wheel->pending_max - census->armed))
		return "the wheel may schedule more than pending_max leaves";
	return NULL;
}

/* Checks that the shared deadline still converts to its tick, and that its slot is marked. */
static const char *check_shared(const struct spoke_wheel *wheel)
{
	const struct spoke_wheel_front *front = &wheel->front;
	const struct spokei_scale *scale = &wheel->scale;
	uint64_t tick = front->shared_key >> SPOKE_TIMER_TICK_SHIFT;

	if (front->shared_key == SPOKE_WHEEL_NOT_SHARED)
		return front->shared_slot == SPOKEI_NO_SLOT ? NULL
							    : "a slot is shared without a deadline";
	if (tick <= wheel->now || tick > wheel->last)
		return "the shared deadline is in the past or beyond the horizon";
	if (tick != wheel->now + 1 &&
	    tick != (front->shared_ns - scale->origin_ns + scale->tick_ns - 1) / scale->tick_ns)
		return "the shared deadline has another tick";
	if (front->shared_slot == SPOKEI_NO_SLOT)
		return NULL;
	if (!(wheel->slots.marked[front->shared_slot >> 6] >> (front->shared_slot & 63) & 1))
		return "the slot of the shared deadline is not marked";
	return NULL;
}

/* Returns the time of the next advance if a timer is armed. */
static uint64_t next_ns(const struct spoke_wheel *wheel)
{
	if (wheel->phase != SPOKEI_WHEEL_RESTING)
		return spokei_scale_time(&wheel->scale, wheel->now);
	if (wheel->wake == SPOKEI_TICK_NEVER)
		return SPOKE_WHEEL_NEVER;
	return spokei_scale_time(&wheel->scale, wheel->wake);
}

const char *spoke_wheel_check(const struct spoke_wheel *wheel)
{
	const struct spokei_slots *slots = &wheel->slots;
	struct census census = { .wheel = wheel, .earliest = SPOKEI_TICK_NEVER };
	const char *broken;

	for (uint32_t slot = 0; slot < slots->count; slot++) {
		broken = check_list(&census, &slots->slot[slot], slot);
		if (broken == NULL)
			broken = check_bitmap(slots, slot, spokei_list_empty(&slots->slot[slot]));
		if (broken)
			return broken;
	}
	broken = check_list(&census, &slots->aside, wheel->slot);
	if (broken)
		return broken;
	if (!spokei_list_empty(&slots->aside) && wheel->phase == SPOKEI_WHEEL_RESTING)
		return "timers are set aside while the wheel rests";
	if (wheel->phase == SPOKEI_WHEEL_RESTING && slots->next <= wheel->now)
		return "the wheel is behind its next tick";
	if (wheel->phase == SPOKEI_WHEEL_RESTING &&
	    (wheel->wake < slots->next || wheel->wake > census.earliest))
		return "the wheel would wake too early, or too late";
	if (wheel->front.next_ns != next_ns(wheel))
		return "the cached answer of next() is not that of the wheel";
	broken = check_shared(wheel);
	return broken ? broken : check_counts(&census);
}
