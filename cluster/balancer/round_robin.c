/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses each place in turn, in proportion to its weight, evenly mixed: at each choice every
 * account gains its weight, and the first place with the largest account is chosen and pays the sum
 * of all weights. With equal weights that is plain round robin.
 *
 * Places of one weight gain the same, so the order of their accounts changes only by payments: they
 * form a heap, and what they have gained is the number of choices times the weight. A choice looks
 * at the top of each heap.
 *
 * A place that returns starts with an empty account. The remaining places keep theirs, minus the
 * common part, so that a new place is neither preferred nor delayed.
 */
#include "cluster/balancer/weights.h"
#include "core/base/mix.h"
#include "timer/base.h"

#define ABSENT INT64_MIN                /* the account of a place without a weight */
#define CHOICES_MAX (UINT32_C(1) << 31) /* before accounts are settled, so that none overflows */

struct account {
	int64_t funds; /* without the gains */
	uint32_t place;
};

/* The places of one weight: a heap in the accounts. */
struct group {
	uint32_t weight;
	uint32_t begin; /* index of its top */
	uint32_t count;
};

/* The memory: the turns, the settled funds, accounts and groups of all places, the weights. */
struct turns {
	uint32_t choices; /* since the accounts were settled */
	uint32_t after;   /* the place chosen last, plus 1; 0: none yet */
	uint32_t group_count;
	uint32_t index_room; /* a power of two: entries of the index of groups by weight */
	int64_t *funds;
	struct account *accounts;
	struct group *groups;
	uint32_t *index; /* group plus 1; 0: free */
	struct spokei_weights *weights;
};

static uint32_t index_room_for(size_t count)
{
	uint32_t room = 2;

	while (room < 2 * count)
		room *= 2;
	return room;
}

#define EACH (sizeof(int64_t) + sizeof(struct account) + sizeof(struct group))

static size_t round_robin_room(size_t count)
{
	size_t size = spokei_weights_room(count, EACH);

	if (size == SIZE_MAX)
		return size;
	return size + sizeof(struct turns) + index_room_for(count) * sizeof(uint32_t);
}

static void lay_out(struct turns *turns, size_t count)
{
	turns->funds = (void *)(turns + 1);
	turns->accounts = (void *)(turns->funds + count);
	turns->groups = (void *)(turns->accounts + count);
	turns->index = (void *)(turns->groups + count);
	turns->index_room = index_room_for(count);
	turns->weights = (void *)(turns->index + turns->index_room);
	for (size_t i = 0; i < count; i++)
		turns->funds[i] = ABSENT;
}

/* --- heaps */

static bool is_before(const struct account *one, const struct account *other)
{
	return one->funds > other->funds ||
	       (one->funds == other->funds && one->place < other->place);
}

/* Puts an account whose funds have become less where it belongs, from `at` on downwards. */
static void sink(struct account *heap, size_t count, size_t at)
{
	const struct account sinking = heap[at];
	size_t child;

	for (; (child = 2 * at + 1) < count; at = child) {
		child += child + 1 < count && is_before(&heap[child + 1], &heap[child]);
		if (!is_before(&heap[child], &sinking))
			break;
		heap[at] = heap[child];
	}
	heap[at] = sinking;
}

/* Returns the first account whose place has a weight now; `count` if there is none. */
static size_t find_untried(const struct turns *turns, const struct account *heap, size_t count)
{
	size_t best = count;

	if (turns->weights->of[heap[0].place] > 0)
		return 0;
	for (size_t at = 1; at < count; at++)
		if (turns->weights->of[heap[at].place] > 0 &&
		    (best == count || is_before(&heap[at], &heap[best])))
			best = at;
	return best;
}

/* --- groups */

static struct group *group_of(struct turns *turns, uint32_t weight)
{
	uint32_t at = (uint32_t)spokei_mix(weight) & (turns->index_room - 1);

	for (; turns->index[at]; at = (at + 1) & (turns->index_room - 1))
		if (turns->groups[turns->index[at] - 1].weight == weight)
			return &turns->groups[turns->index[at] - 1];
	turns->index[at] = ++turns->group_count;
	turns->groups[turns->group_count - 1] = (struct group){ .weight = weight };
	return &turns->groups[turns->group_count - 1];
}

/* Makes the heaps of the settled accounts. */
static void regroup(struct turns *turns)
{
	const struct spokei_weights *weights = turns->weights;
	const uint32_t *places = spokei_weights_places(weights);
	uint32_t begin = 0;

	turns->group_count = 0;
	for (uint32_t i = 0; i < turns->index_room; i++)
		turns->index[i] = 0;
	for (uint32_t i = 0; i < weights->able; i++)
		group_of(turns, weights->of[places[i]])->count++;
	for (uint32_t i = 0; i < turns->group_count; i++) {
		turns->groups[i].begin = begin;
		begin += turns->groups[i].count;
		turns->groups[i].count = 0;
	}
	for (uint32_t i = 0; i < weights->able; i++) {
		struct group *group = group_of(turns, weights->of[places[i]]);

		turns->accounts[group->begin + group->count++] =
			(struct account){ turns->funds[places[i]], places[i] };
	}
	for (uint32_t i = 0; i < turns->group_count; i++)
		for (size_t at = turns->groups[i].count / 2; at-- > 0;)
			sink(turns->accounts + turns->groups[i].begin, turns->groups[i].count, at);
}

/* --- accounts */

/* Writes the accounts with their gains to the funds. */
static void gather(struct turns *turns)
{
	for (uint32_t i = 0; i < turns->group_count; i++) {
		const struct group *group = &turns->groups[i];
		int64_t gain = (int64_t)group->weight * turns->choices;

		for (uint32_t k = 0; k < group->count; k++) {
			const struct account *account = &turns->accounts[group->begin + k];

			turns->funds[account->place] = account->funds + gain;
		}
	}
	turns->choices = 0;
}

/* Returns the average account of the places that were there before. */
static int64_t average(const struct turns *turns)
{
	int64_t sum = 0;
	int64_t count = 0;

	for (uint32_t i = 0; i < turns->weights->places; i++) {
		if (turns->weights->of[i] == 0 || turns->funds[i] == ABSENT)
			continue;
		sum += turns->funds[i];
		count++;
	}
	return count > 0 ? sum / count : 0;
}

static int64_t settled(const struct turns *turns, int64_t funds, int64_t common)
{
	int64_t rest = funds == ABSENT ? 0 : funds - common;
	int64_t most = turns->weights->total;

	return rest > most ? most : rest < -most ? -most : rest;
}

/* With equal weights the places before the one chosen last have had their turn. */
static void settle(struct turns *turns)
{
	const struct spokei_weights *weights = turns->weights;
	int64_t common = average(turns);

	for (uint32_t i = 0; i < weights->places; i++) {
		if (weights->of[i] == 0)
			turns->funds[i] = ABSENT;
		else if (weights->even)
			turns->funds[i] = i < turns->after ? -(int64_t)weights->total : 0;
		else
			turns->funds[i] = settled(turns, turns->funds[i], common);
	}
	regroup(turns);
}

static void round_robin_changed(void *memory, const struct spoke_balancer_candidates *candidates,
				bool fresh)
{
	struct turns *turns = memory;

	if (fresh)
		lay_out(turns, candidates->room);
	gather(turns);
	spokei_weights_set(turns->weights, candidates);
	settle(turns);
}

/* --- the choice */

/* Returns the group and the index in its heap of the largest account of an untried place. */
static struct group *find_largest(const struct turns *turns, size_t *ret_at)
{
	struct group *best = NULL;
	struct account most = { .funds = 0 };

	for (uint32_t i = 0; i < turns->group_count; i++) {
		struct group *group = &turns->groups[i];
		const struct account *heap = turns->accounts + group->begin;
		size_t at = find_untried(turns, heap, group->count);
		struct account account;

		if (at == group->count)
			continue;
		account = heap[at];
		account.funds += (int64_t)group->weight * turns->choices;
		if (best && !is_before(&account, &most))
			continue;
		best = group;
		most = account;
		*ret_at = at;
	}
	return best;
}

static size_t round_robin_pick(void *memory, const struct spoke_balancer_candidates *candidates,
			       const struct spoke_balancer_choice *choice)
{
	struct turns *turns = memory;
	struct spokei_weights *weights = turns->weights;
	struct account *heap;
	struct group *group;
	size_t at = 0;

	(void)candidates;
	if (weights->able == 0)
		return SPOKE_NO_ENDPOINT;
	if (turns->choices == CHOICES_MAX) {
		gather(turns);
		settle(turns);
	}
	turns->choices++;
	(void)spokei_weights_hide(weights, choice);
	group = find_largest(turns, &at);
	spokei_weights_show(weights, choice);
	SPOKE_ASSERT(group != NULL);
	heap = turns->accounts + group->begin;
	turns->after = heap[at].place + 1;
	heap[at].funds -= weights->total;
	sink(heap, group->count, at);
	return turns->after - 1;
}

const struct spoke_balancer spoke_balancer_round_robin = {
	.name = "roundrobin",
	.room = round_robin_room,
	.changed = round_robin_changed,
	.pick = round_robin_pick,
};
