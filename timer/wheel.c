/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timing wheel: how it is made, how it arms, moves and cancels timers, and how it advances. The
 * geometry of the slots is in wheel.h.
 *
 * An advance goes from edge to edge; an edge is a tick at which the wheel enters an occupied slot.
 * First the timers of the slot sink to lower levels while now is still one tick before the edge.
 * Timers scheduled meanwhile therefore queue up after them in the same slot. Then now moves to the
 * edge and the timers of this tick fire. The budget can interrupt both halves.
 */
#include "timer/wheel.h"

/* --- the conversion from nanoseconds to ticks */

/*
 * With 2^shift the power of two at or above tick_ns and factor = ceil(2^(63 + shift) / tick_ns),
 * ns * factor >> (63 + shift) is the exact quotient for every ns below 2^63 (Granlund and
 * Montgomery, "Division by invariant integers using multiplication", 1994). The factor comes from a
 * long division, so that no 128-bit type is needed for it.
 */
static uint64_t factor_of(uint64_t tick_ns, unsigned shift)
{
	uint64_t factor = 0;
	uint64_t rest = 1;

	for (unsigned bit = 0; bit < 63 + shift; bit++) {
		rest <<= 1;
		factor <<= 1;
		if (rest >= tick_ns) {
			rest -= tick_ns;
			factor |= 1;
		}
	}
	return factor + (rest != 0);
}

/*
 * With few = ceil(2^64 / tick_ns) the quotient is exact for every ns with ns * excess < 2^64, where
 * excess = few * tick_ns - 2^64. For ticks of 1 ns `few` would not fit.
 */
struct spokei_scale spokei_scale_make(uint64_t origin_ns, uint64_t tick_ns)
{
	unsigned shift = spokei_log2_up(tick_ns);
	uint64_t few = UINT64_MAX / tick_ns + 1;
	uint64_t excess = few * tick_ns;
	uint64_t few_ns = SPOKEI_SCALE_FEW_MAX_NS;

	if (tick_ns == 1)
		return (struct spokei_scale){ origin_ns, tick_ns, UINT64_C(1) << 63, 0, 0, 0, 0 };
	if (excess > 0 && UINT64_MAX / excess < few_ns)
		few_ns = UINT64_MAX / excess;
	return (struct spokei_scale){
		.origin_ns = origin_ns,
		.tick_ns = tick_ns,
		.factor = factor_of(tick_ns, shift),
		.shift = (uint8_t)shift,
		.few = few,
		.few_ns = few_ns / tick_ns * tick_ns,
		.few_ticks = few_ns / tick_ns,
	};
}

/* --- slots: setup, and the functions that are not on the hot path */

static size_t words_for(size_t slots)
{
	return (slots + 63) / 64;
}

/* Returns the bytes of memory for `levels` levels of 2^bits slots. */
static size_t slots_size(unsigned bits, unsigned levels)
{
	size_t count = (size_t)levels << bits;

	return count * sizeof(struct spoke_list) + words_for(count) * sizeof(uint64_t);
}

static void fill_reach(struct spokei_slots *slots)
{
	for (unsigned bit = 0; bit < 64; bit++) {
		unsigned level = bit / slots->bits < slots->top ? bit / slots->bits : slots->top;

		slots->reach[bit] = (struct spokei_reach){
			.base = (uint16_t)(level << slots->bits),
			.shift = (uint8_t)(level * slots->bits),
			.top = (uint8_t)((level == slots->top ? SPOKEI_REACH_TOP : 0) |
					 (bit >= slots->span ? SPOKEI_REACH_FAR : 0)),
		};
	}
}

/* Lays out the slots in `memory`, which is aligned to a cache line. Afterwards all slots are empty
 * and the wheel stands at tick 0. */
static void init_slots(struct spokei_slots *slots, void *memory, unsigned bits, unsigned levels)
{
	size_t count = (size_t)levels << bits;

	SPOKE_ASSERT(bits > 0 && levels > 0 && bits * levels <= 48);
	SPOKE_ASSERT(words_for(count) <= (size_t)64 * SPOKEI_SUMMARY_MAX);
	*slots = (struct spokei_slots){
		.slot = memory,
		.next = SPOKEI_TICK_NEVER,
		.far_min = SPOKEI_TICK_NEVER,
		.count = (uint32_t)count,
		.top_base = (uint32_t)(levels - 1) << bits,
		.mask = (1u << bits) - 1,
		.bits = (uint8_t)bits,
		.top = (uint8_t)(levels - 1),
		.span = (uint8_t)(bits * levels),
	};
	slots->marked = (uint64_t *)(void *)(slots->slot + count);
	spokei_list_init(&slots->aside);
	for (size_t i = 0; i < count; i++)
		spokei_list_init(&slots->slot[i]);
	for (size_t i = 0; i < words_for(count); i++)
		slots->marked[i] = 0;
	fill_reach(slots);
}

/* Timers at which a wheel that comes to rest looks to find its earliest one. */
#define LOOKS 16u

/* Returns the first marked slot at or after `from`, or `count`. */
static uint32_t first_marked(const struct spokei_slots *slots, uint32_t from)
{
	uint32_t word = from >> 6;
	uint32_t part;
	uint64_t bits;

	if (from >= slots->count)
		return slots->count;
	bits = slots->marked[word] & (UINT64_MAX << (from & 63));
	if (bits)
		return word << 6 | (uint32_t)__builtin_ctzll(bits);
	word++;
	part = word >> 6;
	for (bits = UINT64_MAX << (word & 63); part < SPOKEI_SUMMARY_MAX; bits = UINT64_MAX) {
		bits &= slots->summary[part];
		if (bits) {
			word = part << 6 | (uint32_t)__builtin_ctzll(bits);
			return word << 6 | (uint32_t)__builtin_ctzll(slots->marked[word]);
		}
		part++;
	}
	return slots->count;
}

/* As find_edge(), of the slots at and after `from`. */
static struct spokei_edge find_from(const struct spokei_slots *slots, uint64_t now, uint32_t from)
{
	struct spokei_edge edge = { SPOKEI_TICK_NEVER, first_marked(slots, from) };
	uint32_t shift;
	uint64_t lap;

	if (edge.slot == slots->count)
		return edge;
	shift = spokei_slots_level(slots, edge.slot) * slots->bits;
	lap = now >> (shift + slots->bits);
	if (edge.slot >= slots->top_base) {
		uint32_t here = (uint32_t)(now >> shift) & slots->mask;

		edge.slot = first_marked(slots, slots->top_base + here + 1);
		if (edge.slot == slots->count) {
			uint64_t far = slots->far_min >> slots->span;

			lap = far > lap ? far : lap + 1;
			edge.slot = slots->top_base;
		}
	}
	edge.tick = lap << (shift + slots->bits) | (uint64_t)(edge.slot & slots->mask) << shift;
	return edge;
}

/* Returns the first edge after `now`, from the bitmap. The first tick of a lap with timers is an
 * edge too, even if its slot is empty, because far_min must then be recomputed. */
static struct spokei_edge find_edge(const struct spokei_slots *slots, uint64_t now)
{
	return find_from(slots, now, 0);
}

/* Unmarks an empty slot, which the wheel then does not visit. */
static void clear_mark(struct spokei_slots *slots, uint32_t slot)
{
	uint64_t *word = &slots->marked[slot >> 6];

	SPOKE_ASSERT(spokei_list_empty(&slots->slot[slot]));
	*word &= ~(UINT64_C(1) << (slot & 63));
	if (*word == 0)
		slots->summary[slot >> 12] &= ~(UINT64_C(1) << (slot >> 6 & 63));
}

/* Removes the disarmed timers of a slot below the top level. Returns the earliest tick of the
 * others, NEVER if there are none; the edge if that takes too many looks. */
static uint64_t earliest_of(struct spokei_slots *slots, struct spokei_edge edge, unsigned *looks)
{
	const struct spoke_list *head = &slots->slot[edge.slot];
	uint64_t earliest = SPOKEI_TICK_NEVER;

	for (struct spoke_list *place = head->next; place != head && earliest > edge.tick;) {
		struct spoke_timer *timer = spokei_timer_of(place);

		place = place->next;
		if ((*looks)++ >= LOOKS)
			return edge.tick;
		if (!spoke_timer_armed(timer)) {
			spokei_slots_remove(timer);
			timer->key = 0;
		} else if (spokei_timer_tick(timer) < earliest) {
			earliest = spokei_timer_tick(timer);
		}
	}
	return earliest;
}

/* Sets `next` for a wheel that rests at `now`. Unmarks slots without an armed timer that come
 * before the earliest one. Returns the tick of that timer, or an earlier one if there are many
 * timers or it sits on the top level; NEVER: there is none. */
static uint64_t rest_slots(struct spokei_slots *slots, uint64_t now)
{
	uint64_t wake = SPOKEI_TICK_NEVER;
	unsigned looks = 0;
	struct spokei_edge edge;

	slots->next = SPOKEI_TICK_NEVER;
	for (uint32_t from = 0;; from = edge.slot + 1) {
		uint64_t earliest;

		edge = find_from(slots, now, from);
		if (wake <= edge.tick)
			return wake;
		/* The top level has laps: a timer in one of its slots may be much later. */
		earliest = edge.slot < slots->top_base ? earliest_of(slots, edge, &looks)
						       : edge.tick;
		if (earliest == SPOKEI_TICK_NEVER) {
			clear_mark(slots, edge.slot);
			continue;
		}
		if (slots->next == SPOKEI_TICK_NEVER)
			slots->next = edge.tick;
		wake = earliest < wake ? earliest : wake;
	}
}

/* Puts the timers that were set aside back into their slot, which is empty. */
static void restore_slot(struct spokei_slots *slots, uint32_t slot)
{
	if (spokei_list_empty(&slots->aside))
		return;
	spokei_list_move(&slots->aside, &slots->slot[slot]);
	spokei_slots_mark(slots, slot);
}

/* --- setting a wheel up */

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
	       slots_size(spokei_log2_up(options->slots), options->levels);
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
	init_slots(&wheel->slots, (char *)wheel + align_up(sizeof(*wheel)),
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

/* --- a wheel at work */

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
	clear_mark(&wheel->slots, wheel->slot);
	restore_slot(&wheel->slots, wheel->slot);
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

void spoke_wheel_rest(struct spoke_wheel *wheel)
{
	if (wheel->phase != SPOKEI_WHEEL_RESTING)
		return;
	/* It may unmark the cached slot. */
	spokei_wheel_forget_shared(wheel);
	wheel->wake = rest_slots(&wheel->slots, wheel->now);
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
		wheel->wake = rest_slots(&wheel->slots, wheel->now);
	}
	show_next(wheel);
}

static int turn_wheel(struct spoke_wheel *wheel, struct pass *pass)
{
	struct spokei_slots *slots = &wheel->slots;

	while (wheel->phase != SPOKEI_WHEEL_RESTING || slots->next <= pass->target) {
		if (wheel->phase == SPOKEI_WHEEL_RESTING)
			begin_edge(wheel, find_edge(slots, wheel->now));
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
