/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a wheel, a sorted list, and the random operations on both: see model.h. */
#include "tests/timer/model.h"

#include <stdlib.h>
#include <string.h>

#define ITEMS 96
#define ORIGIN_NS UINT64_C(1000000007)
#define NEVER UINT64_MAX
#define CLASSES 3
#define SLOTS_MOST (UINT64_C(1) << 32) /* no advance visits as many */

/* A timer and its state in the model. */
struct item {
	struct spoke_timer timer;
	struct item *next; /* in the model's list, sorted by tick, then by placement */
	struct item *prev;
	struct model *model;
	uint64_t tick;   /* deadline */
	uint64_t placed; /* sequence number of its placement */
	unsigned number; /* index of its class in the model */
	bool armed;
	bool stored; /* a store moved its deadline, so the timer keeps its place */
};

struct model {
	struct spoke_wheel *wheel;
	void *memory;
	struct spoke_wheel_options options;
	unsigned classes[CLASSES];
	struct choices *choices;
	const char *broken;
	struct item head;     /* of the sorted list of armed items */
	uint64_t now_ns;      /* latest time passed to the wheel */
	uint64_t deadline_ns; /* the last choice */
	uint64_t placements;
	uint64_t operations;
	unsigned depth;    /* nesting of operations made from callbacks */
	struct item *item; /* the last choice */
	struct spoke_wheel_counts counts[CLASSES];
	struct item items[ITEMS];
};

static void expect(struct model *model, bool holds, const char *broken)
{
	if (!holds && model->broken == NULL)
		model->broken = broken;
}

static uint64_t pick(struct model *model, unsigned bits)
{
	return model->choices->bits(model->choices, bits);
}

/* Picks an item, often the previous one again, so that one item sees several operations in a row.
 */
static struct item *pick_item(struct model *model)
{
	if (pick(model, 1) == 0 || model->item == NULL)
		model->item = &model->items[pick(model, 7) % ITEMS];
	return model->item;
}

static uint64_t pending(const struct model *model)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < CLASSES; i++)
		sum += model->counts[i].pending;
	return sum;
}

/* Computes the tick of a deadline by division, as the header of the wheel specifies. */
static uint64_t tick_of(const struct model *model, uint64_t deadline_ns)
{
	uint64_t tick_ns = model->options.tick_ns;
	uint64_t now = (spoke_wheel_now(model->wheel) - ORIGIN_NS) / tick_ns;
	uint64_t ns = deadline_ns > ORIGIN_NS ? deadline_ns - ORIGIN_NS : 0;
	uint64_t tick = ns / tick_ns + (ns % tick_ns != 0);

	return tick > now ? tick : now + 1;
}

static bool beyond_horizon(const struct model *model, uint64_t deadline_ns)
{
	uint64_t tick = tick_of(model, deadline_ns);

	return tick > (UINT64_C(1) << 48) - 2 ||
	       tick > (UINT64_C(1) << 62) / model->options.tick_ns;
}

/* Picks a deadline of any order of magnitude, sometimes in the past or out of range. Half of the
 * time the previous deadline is returned, because calls of one turn share theirs. */
static uint64_t pick_deadline(struct model *model)
{
	uint64_t magnitude = pick(model, 6);
	uint64_t ns;

	if (pick(model, 1))
		return model->deadline_ns;
	if (magnitude == 63)
		return NEVER - pick(model, 4);
	if (magnitude > 57 && magnitude < 62) /* in the slot being emptied, some laps later */
		return spoke_wheel_now(model->wheel) +
		       (1 + pick(model, 2)) * model->options.slots * model->options.tick_ns;
	if (magnitude == 62)
		return model->now_ns - pick(model, 20) % (model->now_ns - 1);
	if (magnitude > 48)
		magnitude = 4 + magnitude % 12;
	ns = pick(model, (unsigned)magnitude);
	if (ns > (UINT64_C(1) << 61) / model->options.tick_ns)
		ns >>= 20;
	model->deadline_ns = model->now_ns + ns * model->options.tick_ns;
	if (magnitude & 1)
		model->deadline_ns += pick(model, 10);
	return model->deadline_ns;
}

static void list_remove(struct item *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	item->armed = false;
}

/* Inserts the item after all items due at the same time or earlier: placement order within a tick.
 */
static void list_insert(struct model *model, struct item *item)
{
	struct item *before = model->head.prev;

	while (before != &model->head && before->tick > item->tick)
		before = before->prev;
	item->prev = before;
	item->next = before->next;
	before->next->prev = item;
	before->next = item;
	item->armed = true;
}

/* Records a deadline that the wheel accepted. `least` is that of the timer before, which changes if
 * it leaves its slot. */
static void note_armed(struct model *model, struct item *item, uint64_t tick, bool linked,
		       uint64_t least)
{
	item->stored = linked && item->timer.least == least;
	item->tick = tick;
	item->placed = model->placements++;
	list_insert(model, item);
	expect(model, spoke_timer_armed(&item->timer), "an accepted timer is not armed");
	expect(model,
	       spoke_wheel_deadline(model->wheel, &item->timer) ==
		       ORIGIN_NS + tick * model->options.tick_ns,
	       "a timer has another deadline than it was given");
}

static void do_schedule(struct model *model)
{
	struct item *item = pick_item(model);
	unsigned number = (unsigned)pick(model, 2) % CLASSES;
	struct spoke_wheel_counts *counts = &model->counts[number];
	uint64_t deadline_ns = pick_deadline(model);
	uint64_t tick = tick_of(model, deadline_ns);
	bool linked = item->timer.key != 0;
	uint64_t least = item->timer.least;
	int status = spoke_wheel_schedule(model->wheel, &item->timer, model->classes[number],
					  deadline_ns);

	if (item->armed) {
		expect(model, status == SPOKE_WHEEL_ARMED, "an armed timer was scheduled");
	} else if (pending(model) >= model->options.pending_max) {
		expect(model, status == SPOKE_WHEEL_FULL, "a full wheel took a timer");
		counts->rejected++;
	} else if (beyond_horizon(model, deadline_ns)) {
		expect(model, status == SPOKE_WHEEL_HORIZON, "a deadline out of reach was taken");
		counts->rejected++;
	} else {
		expect(model, status == SPOKE_WHEEL_OK, "a good timer was refused");
		counts->scheduled++;
		counts->pending++;
		item->number = number;
		note_armed(model, item, tick, linked, least);
	}
}

static void do_reschedule(struct model *model)
{
	struct item *item = pick_item(model);
	uint64_t deadline_ns = pick_deadline(model);
	uint64_t tick = tick_of(model, deadline_ns);
	uint64_t least = item->timer.least;
	int status = spoke_wheel_reschedule(model->wheel, &item->timer, deadline_ns);

	if (!item->armed) {
		expect(model, status == SPOKE_WHEEL_IDLE, "an idle timer was rescheduled");
	} else if (beyond_horizon(model, deadline_ns)) {
		expect(model, status == SPOKE_WHEEL_HORIZON, "a timer was moved out of reach");
		model->counts[item->number].rejected++;
	} else {
		expect(model, status == SPOKE_WHEEL_OK, "a good move was refused");
		model->counts[item->number].rescheduled++;
		list_remove(item);
		note_armed(model, item, tick, true, least);
	}
}

static void note_cancelled(struct model *model, struct item *item, bool was_armed)
{
	expect(model, was_armed == item->armed, "a cancel is wrong about the timer");
	if (!item->armed)
		return;
	list_remove(item);
	model->counts[item->number].cancelled++;
	model->counts[item->number].pending--;
}

/* Cancels a timer. Half of the time its memory is overwritten before it is initialised again. */
static void do_cancel(struct model *model)
{
	struct item *item = pick_item(model);

	note_cancelled(model, item, spoke_wheel_cancel(model->wheel, &item->timer));
	if (pick(model, 1)) {
		memset(&item->timer, 0xa5, sizeof(item->timer));
		item->timer = (struct spoke_timer){ 0 };
	}
}

static void do_disarm(struct model *model)
{
	struct item *item = pick_item(model);

	note_cancelled(model, item, spoke_wheel_disarm(model->wheel, &item->timer));
}

static void do_detach(struct model *model)
{
	struct item *item = pick_item(model);
	int status = spoke_wheel_detach(model->wheel, &item->timer);

	expect(model, status == (item->armed ? SPOKE_WHEEL_ARMED : SPOKE_WHEEL_OK),
	       "a detach is wrong about the timer");
	if (!item->armed)
		item->timer = (struct spoke_timer){ 0 };
}

static void do_query(struct model *model)
{
	uint64_t next = spoke_wheel_next(model->wheel);
	const struct item *first = model->head.next;

	if (first == &model->head)
		expect(model, next == SPOKE_WHEEL_NEVER, "an empty wheel wants to be advanced");
	else
		expect(model, next <= ORIGIN_NS + first->tick * model->options.tick_ns,
		       "the wheel would sleep past a deadline");
}

static void do_something(struct model *model)
{
	switch (pick(model, 3)) {
	case 0:
	case 1:
	case 2:
		do_schedule(model);
		break;
	case 3:
		do_reschedule(model);
		break;
	case 4:
		do_cancel(model);
		break;
	case 5:
		do_disarm(model);
		break;
	case 6:
		do_detach(model);
		break;
	default:
		do_query(model);
		break;
	}
}

/* Checks FIFO order: no timer of the same tick with an earlier placement is still pending, unless a
 * store moved one of the two. */
static bool first_of_its_tick(const struct model *model, const struct item *item)
{
	if (item->stored)
		return true;
	for (const struct item *other = item->prev; other != &model->head; other = other->prev)
		if (other->tick == item->tick && !other->stored)
			return false;
	return true;
}

static void item_due(struct spoke_timer *timer, void *arg)
{
	struct item *item = spoke_container_of(timer, struct item, timer);
	struct model *model = arg;
	uint64_t at_ns = ORIGIN_NS + item->tick * model->options.tick_ns;

	expect(model, item->armed, "a timer fired that was not armed");
	if (!item->armed)
		return;
	expect(model, !spoke_timer_armed(timer), "a timer is armed while it fires");
	expect(model, at_ns <= model->now_ns, "a timer fired early");
	expect(model, spoke_wheel_now(model->wheel) == at_ns, "a timer fired at another tick");
	expect(model, model->head.next->tick == item->tick, "a timer fired before an earlier one");
	expect(model, first_of_its_tick(model, item), "a timer overtook another of its tick");
	list_remove(item);
	model->counts[item->number].fired++;
	model->counts[item->number].pending--;
	if (pick(model, 2) == 0) /* the memory of a fired timer may be reused at once */
		item->timer = (struct spoke_timer){ 0 };
	if (model->depth > 0)
		return;
	model->depth++;
	for (uint64_t some = pick(model, 2); some > 0; some--)
		do_something(model);
	model->depth--;
}

/* Returns the last time that the wheel can reach. */
static uint64_t limit_ns(const struct model *model)
{
	uint64_t ticks = (UINT64_C(1) << 48) - 2;
	uint64_t span = UINT64_C(1) << 62;

	return ORIGIN_NS +
	       (model->options.tick_ns > span / ticks ? span : ticks * model->options.tick_ns);
}

/* Advances the model's time by a step of any size, often by a tick or to the next expiry. Far steps
 * use up the wheel's range, so they stop when the range is nearly used up. */
static void pick_time(struct model *model)
{
	uint64_t tick_ns = model->options.tick_ns;
	uint64_t next = spoke_wheel_next(model->wheel);
	uint64_t step = 0;

	switch (pick(model, 3)) {
	case 0:
		step = tick_ns;
		break;
	case 1:
		step = pick(model, 4) * tick_ns + pick(model, 8);
		break;
	case 2:
		step = pick(model, 12) * tick_ns;
		break;
	case 3:
		if (pick(model, 4) == 0)
			step = pick(model, 40) * (tick_ns < 1000 ? tick_ns : 1000);
		break;
	default:
		if (next != SPOKE_WHEEL_NEVER && next > model->now_ns)
			step = next - model->now_ns;
		break;
	}
	if (step < (limit_ns(model) - model->now_ns) / 4)
		model->now_ns += step;
}

/* Checks the counters of an advance: each grows, and by no less than was seen. */
static void check_work(struct model *model, const struct spoke_wheel_work *before, uint64_t fired)
{
	struct spoke_wheel_work after;
	uint64_t timers;
	uint64_t slots;

	spoke_wheel_work(model->wheel, &after);
	timers = after.visited_timers - before->visited_timers;
	slots = after.visited_slots - before->visited_slots;
	expect(model, timers >= fired, "an advance fired more timers than it visited");
	expect(model, slots > 0 || timers == 0, "an advance visited timers, but no slot");
	expect(model, slots <= SLOTS_MOST, "the count of visited slots went down, or leapt");
	expect(model, after.backwards - before->backwards <= 1, "the count of steps back leapt");
}

static void do_advance(struct model *model)
{
	uint64_t budget = pick(model, 3) == 0 ? 1 + pick(model, 4) : SPOKE_WHEEL_NO_BUDGET;
	struct spoke_wheel_work before;
	struct spoke_wheel_work after;
	uint64_t fired = model_fired(model);
	uint64_t told_ns;
	int status;

	pick_time(model);
	told_ns = model->now_ns;
	if (pick(model, 6) == 0)
		told_ns -= pick(model, 16) % told_ns; /* the clock goes back */
	spoke_wheel_work(model->wheel, &before);
	status = spoke_wheel_advance(model->wheel, told_ns, (uint32_t)budget);
	spoke_wheel_work(model->wheel, &after);
	expect(model, status == SPOKE_WHEEL_OK || status == SPOKE_WHEEL_MORE, "an advance failed");
	expect(model, after.visited_timers - before.visited_timers <= budget,
	       "an advance touched more than its budget");
	check_work(model, &before, model_fired(model) - fired);
	if (status != SPOKE_WHEEL_OK || told_ns != model->now_ns)
		return;
	expect(model,
	       model->head.next == &model->head ||
		       ORIGIN_NS + model->head.next->tick * model->options.tick_ns > told_ns,
	       "an advance left a timer that was due");
}

static void compare_counts(struct model *model)
{
	for (unsigned i = 0; i < CLASSES; i++) {
		struct spoke_wheel_counts counts;
		int status = spoke_wheel_class_counts(model->wheel, model->classes[i], &counts,
						      NULL);

		expect(model, status == SPOKE_WHEEL_OK, "a class is not known");
		model->counts[i].late_max_ns = counts.late_max_ns;
		model->counts[i].late_recent_ns = counts.late_recent_ns;
		expect(model, memcmp(&counts, &model->counts[i], sizeof(counts)) == 0,
		       "the wheel's counts differ from the model's");
	}
}

struct model *model_new(const struct spoke_wheel_options *options)
{
	struct model *model = calloc(1, sizeof(*model));
	size_t size = 0;

	if (model == NULL)
		return NULL;
	model->options = *options;
	model->head.next = model->head.prev = &model->head;
	model->now_ns = ORIGIN_NS;
	for (size_t i = 0; i < ITEMS; i++)
		model->items[i].model = model;
	if (spoke_wheel_size(options, &size) != SPOKE_WHEEL_OK)
		abort();
	model->memory = malloc(size);
	if (model->memory == NULL) {
		free(model);
		return NULL;
	}
	if (spoke_wheel_init(model->memory, size, options, ORIGIN_NS, &model->wheel))
		abort();
	for (unsigned i = 0; i < CLASSES; i++)
		if (spoke_wheel_add_class(model->wheel, "item", item_due, model,
					  &model->classes[i]))
			abort();
	return model;
}

void model_free(struct model *model)
{
	free(model->memory);
	free(model);
}

const char *model_run(struct model *model, struct choices *choices, uint64_t operations,
		      uint64_t check_every)
{
	model->choices = choices;
	for (uint64_t i = 1; i <= operations && choices->more(choices); i++) {
		if (pick(model, 2) == 0)
			do_advance(model);
		else
			do_something(model);
		model->operations++;
		if (check_every && i % check_every == 0) {
			expect(model, spoke_wheel_check(model->wheel) == NULL,
			       spoke_wheel_check(model->wheel));
			compare_counts(model);
		}
		if (model->broken)
			return model->broken;
	}
	return NULL;
}

static void item_back(struct spoke_timer *timer, void *arg)
{
	struct item *item = spoke_container_of(timer, struct item, timer);
	struct model *model = arg;

	expect(model, item->armed, "stop handed back a timer that was not armed");
	list_remove(item);
	model->counts[item->number].returned++;
	model->counts[item->number].pending--;
	/* Nothing can be armed during a stop, neither this timer nor one that is still armed. */
	expect(model,
	       spoke_wheel_reschedule(model->wheel, &pick_item(model)->timer, 0) ==
		       SPOKE_WHEEL_STOPPED,
	       "a stopping wheel moved a timer");
}

const char *model_finish(struct model *model)
{
	uint64_t left = pending(model);

	expect(model, spoke_wheel_check(model->wheel) == NULL, spoke_wheel_check(model->wheel));
	expect(model, spoke_wheel_stop(model->wheel, item_back, model) == left,
	       "stop handed back another number of timers");
	expect(model, model->head.next == &model->head, "stop forgot a timer");
	expect(model,
	       spoke_wheel_schedule(model->wheel, &pick_item(model)->timer, 0, 0) ==
		       SPOKE_WHEEL_STOPPED,
	       "a stopped wheel took a timer");
	expect(model,
	       spoke_wheel_advance(model->wheel, UINT64_MAX / 2, 0) == SPOKE_WHEEL_STOPPED &&
		       spoke_wheel_next(model->wheel) == SPOKE_WHEEL_NEVER,
	       "a stopped wheel went on");
	expect(model, pending(model) == 0, "the counters do not balance to zero");
	expect(model, spoke_wheel_check(model->wheel) == NULL, spoke_wheel_check(model->wheel));
	compare_counts(model);
	return model->broken;
}

uint64_t model_operations(const struct model *model)
{
	return model->operations;
}

uint64_t model_fired(const struct model *model)
{
	uint64_t fired = 0;

	for (unsigned i = 0; i < CLASSES; i++)
		fired += model->counts[i].fired;
	return fired;
}
