/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets up a wheel: checks options, lays out the caller's memory, adds classes, names statuses.
 */
#include "timer/wheel.h"

#define CACHE_LINE 64u

static const struct spoke_wheel_options defaults = {
	.tick_ns = 1000000,
	.slots = 256,
	.levels = 4,
	.pending_max = 16777216,
};

const char *spoke_wheel_text(int status)
{
	static const char *const texts[] = {
		[SPOKE_WHEEL_OK] = "done",
		[SPOKE_WHEEL_MORE] = "the budget is used up, but work is left; advance again",
		[SPOKE_WHEEL_FULL] = "pending_max timers are pending; raise it or schedule fewer",
		[SPOKE_WHEEL_HORIZON] = "the deadline is beyond tick 2^48 - 2 or 2^62 ns",
		[SPOKE_WHEEL_ARMED] = "the timer is armed; reschedule or cancel it",
		[SPOKE_WHEEL_IDLE] = "the timer is not armed; schedule it",
		[SPOKE_WHEEL_STOPPED] = "the wheel was stopped",
		[SPOKE_WHEEL_BUSY] = "advance was called in a callback of the same wheel",
		[SPOKE_WHEEL_NO_CLASS] = "the wheel has no such class; add it first",
		[SPOKE_WHEEL_BAD_TICK] = "tick_ns must be 1 ns to 1 h",
		[SPOKE_WHEEL_BAD_SLOTS] = "slots must be 2 to 4096",
		[SPOKE_WHEEL_BAD_LEVELS] = "levels must be 1 to 8, and slots^levels at most 2^48",
		[SPOKE_WHEEL_BAD_PENDING] = "pending_max must be at most 2^40",
		[SPOKE_WHEEL_BAD_MEMORY] = "memory is NULL or smaller than spoke_wheel_size()",
		[SPOKE_WHEEL_BAD_CLASS] = "a class needs a name and a callback",
		[SPOKE_WHEEL_CLASSES_FULL] = "a wheel has at most 32 classes",
		[SPOKE_WHEEL_BAD_NOW] = "now_ns must be at most 2^63",
	};

	if (status < 0 || (size_t)status >= sizeof(texts) / sizeof(texts[0]))
		return "unknown status of a wheel";
	return texts[status];
}

/* Replaces zeros with defaults, and checks the ranges. */
static int settle_options(const struct spoke_wheel_options *asked, struct spoke_wheel_options *ret)
{
	struct spoke_wheel_options options = asked ? *asked : defaults;

	if (options.tick_ns == 0)
		options.tick_ns = defaults.tick_ns;
	if (options.slots == 0)
		options.slots = defaults.slots;
	if (options.levels == 0)
		options.levels = defaults.levels;
	if (options.pending_max == 0)
		options.pending_max = defaults.pending_max;
	if (options.tick_ns > SPOKE_WHEEL_TICK_MAX_NS)
		return SPOKE_WHEEL_BAD_TICK;
	if (options.slots < 2 || options.slots > SPOKE_WHEEL_SLOTS_MAX)
		return SPOKE_WHEEL_BAD_SLOTS;
	if (options.levels > SPOKE_WHEEL_LEVELS_MAX ||
	    options.levels * spokei_log2_up(options.slots) > 48)
		return SPOKE_WHEEL_BAD_LEVELS;
	if (options.pending_max > SPOKE_WHEEL_PENDING_MAX)
		return SPOKE_WHEEL_BAD_PENDING;
	*ret = options;
	return SPOKE_WHEEL_OK;
}

/* Rounds up to a multiple of a cache line. */
static size_t align_up(size_t size)
{
	return (size + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
}

static size_t size_for(const struct spoke_wheel_options *options)
{
	return CACHE_LINE - 1 + align_up(sizeof(struct spoke_wheel)) +
	       spokei_slots_size(spokei_log2_up(options->slots), options->levels);
}

int spoke_wheel_size(const struct spoke_wheel_options *options, size_t *ret_size)
{
	struct spoke_wheel_options settled;
	int status = settle_options(options, &settled);

	if (status != SPOKE_WHEEL_OK)
		return status;
	*ret_size = size_for(&settled);
	return SPOKE_WHEEL_OK;
}

int spoke_wheel_init(void *memory, size_t size, const struct spoke_wheel_options *options,
		     uint64_t now_ns, struct spoke_wheel **ret_wheel)
{
	struct spoke_wheel_options settled;
	struct spoke_wheel *wheel;
	uintptr_t address = (uintptr_t)memory;
	int status = settle_options(options, &settled);

	if (status != SPOKE_WHEEL_OK)
		return status;
	if (memory == NULL || size < size_for(&settled))
		return SPOKE_WHEEL_BAD_MEMORY;
	if (now_ns > SPOKE_WHEEL_NOW_MAX_NS)
		return SPOKE_WHEEL_BAD_NOW;
	wheel = (void *)((char *)memory + (align_up(address) - address));
	*wheel = (struct spoke_wheel){
		.pending_max = settled.pending_max,
		.last = SPOKEI_SCALE_MAX_NS / settled.tick_ns < SPOKEI_TICK_END
				? SPOKEI_SCALE_MAX_NS / settled.tick_ns
				: SPOKEI_TICK_END - 1,
		.wake = SPOKEI_TICK_NEVER,
		.scale = spokei_scale_make(now_ns, settled.tick_ns),
		.heard_ns = now_ns,
		.slice_ns = now_ns,
		.phase = SPOKEI_WHEEL_RESTING,
	};
	wheel->front.next_ns = SPOKE_WHEEL_NEVER;
	spokei_wheel_set_now(wheel, 0);
	spokei_wheel_forget_shared(wheel);
	spokei_slots_init(&wheel->slots, (char *)wheel + align_up(sizeof(*wheel)),
			  spokei_log2_up(settled.slots), settled.levels);
	*ret_wheel = wheel;
	return SPOKE_WHEEL_OK;
}

int spoke_wheel_add_class(struct spoke_wheel *wheel, const char *name, spoke_timer_due_fn due,
			  void *arg, unsigned *ret_class)
{
	if (name == NULL || due == NULL)
		return SPOKE_WHEEL_BAD_CLASS;
	if (wheel->front.classes == SPOKE_WHEEL_CLASSES_MAX)
		return SPOKE_WHEEL_CLASSES_FULL;
	wheel->class_of[wheel->front.classes] =
		(struct spokei_wheel_class){ .due = due, .arg = arg, .name = name };
	*ret_class = wheel->front.classes++;
	return SPOKE_WHEEL_OK;
}
