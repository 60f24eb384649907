/* SPDX-License-Identifier: Apache-2.0 */
/* Inspection of the wheel: dimensions, position, timers in a slot, counters. Reads only. */
#include "timer/wheel.h"

void spoke_wheel_shape(const struct spoke_wheel *wheel, struct spoke_wheel_shape *ret_shape)
{
	const struct spokei_slots *slots = &wheel->slots;

	*ret_shape = (struct spoke_wheel_shape){
		.tick_ns = wheel->scale.tick_ns,
		.tick = wheel->now,
		.slots = slots->mask + 1,
		.levels = slots->top + 1u,
	};
	for (uint32_t level = 0; level <= slots->top; level++)
		ret_shape->cursor[level] = (uint32_t)(wheel->now >> level * slots->bits) &
					   slots->mask;
}

/* Counts the timers in a list, up to `max`, and adds each to its class unless of_class is NULL. */
static uint32_t count_timers(const struct spoke_list *list, uint32_t max, uint32_t *of_class)
{
	uint32_t count = 0;

	for (struct spoke_list *at = list->next; at != list && count < max; at = at->next) {
		if (of_class)
			of_class[spokei_timer_class(spokei_timer_of(at))]++;
		count++;
	}
	return count;
}

/* Slots with timers are marked, so an unmarked slot counts 0 at once. Timers that an unfinished
 * advance has set aside belong to the slot under work. */
uint32_t spoke_wheel_occupancy(const struct spoke_wheel *wheel, uint32_t level, uint32_t slot,
			       uint32_t max, uint32_t *ret_of_class)
{
	const struct spokei_slots *slots = &wheel->slots;
	uint32_t number;
	uint32_t count;

	if (ret_of_class)
		memset(ret_of_class, 0, sizeof(*ret_of_class) * SPOKE_WHEEL_CLASSES_MAX);
	if (level > slots->top || slot > slots->mask)
		return 0;
	number = level << slots->bits | slot;
	if ((slots->marked[number >> 6] >> (number & 63) & 1) == 0)
		return 0;
	count = count_timers(&slots->slot[number], max, ret_of_class);
	if (wheel->phase != SPOKEI_WHEEL_RESTING && number == wheel->slot)
		count += count_timers(&slots->aside, max - count, ret_of_class);
	return count;
}

static void add_counts(struct spoke_wheel_counts *sum, const struct spoke_wheel *wheel,
		       unsigned timer_class)
{
	const struct spoke_wheel_tally *tally = &wheel->front.tally[timer_class];
	const struct spokei_wheel_class *of = &wheel->class_of[timer_class];

	sum->scheduled += tally->scheduled;
	sum->cancelled += tally->cancelled;
	sum->rescheduled += tally->rescheduled;
	sum->rejected += of->rejected;
	sum->fired += of->fired;
	sum->returned += tally->returned;
	sum->pending += tally->scheduled - tally->cancelled - of->fired - tally->returned;
	if (spokei_late_ever(&of->late) > sum->late_max_ns)
		sum->late_max_ns = spokei_late_ever(&of->late);
	if (spokei_late_recent(&of->late) > sum->late_recent_ns)
		sum->late_recent_ns = spokei_late_recent(&of->late);
}

void spoke_wheel_counts(const struct spoke_wheel *wheel, struct spoke_wheel_counts *ret_counts)
{
	*ret_counts = (struct spoke_wheel_counts){ 0 };
	for (uint32_t i = 0; i < wheel->front.classes; i++)
		add_counts(ret_counts, wheel, i);
}

int spoke_wheel_class_counts(const struct spoke_wheel *wheel, unsigned timer_class,
			     struct spoke_wheel_counts *ret_counts, const char **ret_name)
{
	if (timer_class >= wheel->front.classes)
		return SPOKE_WHEEL_NO_CLASS;
	*ret_counts = (struct spoke_wheel_counts){ 0 };
	add_counts(ret_counts, wheel, timer_class);
	if (ret_name)
		*ret_name = wheel->class_of[timer_class].name;
	return SPOKE_WHEEL_OK;
}

void spoke_wheel_work(const struct spoke_wheel *wheel, struct spoke_wheel_work *ret_work)
{
	*ret_work = wheel->work;
}
