/* SPDX-License-Identifier: Apache-2.0 */
/* The slots of the wheel (see slots.h): setup, and the functions that are not on the hot path. */
#include "timer/slots.h"

static size_t words_for(size_t slots)
{
	return (slots + 63) / 64;
}

size_t spokei_slots_size(unsigned bits, unsigned levels)
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

void spokei_slots_init(struct spokei_slots *slots, void *memory, unsigned bits, unsigned levels)
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

/* As spokei_slots_find(), of the slots at and after `from`. */
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

struct spokei_edge spokei_slots_find(const struct spokei_slots *slots, uint64_t now)
{
	return find_from(slots, now, 0);
}

void spokei_slots_clear(struct spokei_slots *slots, uint32_t slot)
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

uint64_t spokei_slots_rest(struct spokei_slots *slots, uint64_t now)
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
			spokei_slots_clear(slots, edge.slot);
			continue;
		}
		if (slots->next == SPOKEI_TICK_NEVER)
			slots->next = edge.tick;
		wake = earliest < wake ? earliest : wake;
	}
}

void spokei_slots_restore(struct spokei_slots *slots, uint32_t slot)
{
	if (spokei_list_empty(&slots->aside))
		return;
	spokei_list_move(&slots->aside, &slots->slot[slot]);
	spokei_slots_mark(slots, slot);
}
