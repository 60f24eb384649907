/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the places with the least of something, e.g. of calls in flight, and draws one of them by
 * weight. Blocks of a few places are looked at as a whole. Above them is a binary tree of their
 * sums, so that a change costs a look at one block, and the way up. A single block needs
 * no notice of changes. The memory is part of a balancer's. All is inline, because a few places are
 * looked at in less time than functions for keys are called. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_BALANCER_LEAST_H
#define SPOKEI_CLUSTER_BALANCER_LEAST_H

#include "cluster/balancer/state.h"
#include "cluster/balancer/weights.h"
#include "timer/base.h"

#define SPOKEI_LEAST_BLOCK SPOKEI_FEW_PLACES

/* The least key in a part of the places, and the sum of the weights of the places that have it. */
struct spokei_least_part {
	uint64_t key; /* UINT64_MAX: none has a weight */
	uint32_t weight;
};

/* Writes the keys of `count` places from `from` on. */
typedef void (*spokei_least_keys_fn)(const struct spoke_balancer_candidates *candidates,
				     size_t from, size_t count, uint64_t *keys);

/* A tree in use. */
struct spokei_least {
	struct spokei_weights *weights;
	const struct spoke_balancer_candidates *candidates;
	size_t leaves; /* a power of two; leaf i is a block of places */
	struct spokei_least_part
		*parts; /* number 1 is the root, those of part i are 2i and 2i + 1 */
	spokei_least_keys_fn keys;
};

/* Returns how many leaves the tree of so many places has. */
static inline size_t spokei_least_leaves(size_t room)
{
	size_t leaves = 1;

	while (leaves * SPOKEI_LEAST_BLOCK < room)
		leaves *= 2;
	return leaves;
}

/* Returns the bytes of some trees and the weights after them; SIZE_MAX: too many places. */
static inline size_t spokei_least_room(size_t trees, size_t count)
{
	size_t size = spokei_weights_room(count, 0);

	if (size == SIZE_MAX)
		return size;
	return size + trees * 2 * spokei_least_leaves(count) * sizeof(struct spokei_least_part);
}

/* Returns tree number `which` of the `trees` in a memory. */
static inline struct spokei_least spokei_least_at(
	void *memory, size_t trees, size_t which,
	const struct spoke_balancer_candidates *candidates, spokei_least_keys_fn keys)
{
	struct spokei_least_part *parts = memory;
	const size_t leaves = spokei_least_leaves(candidates->room);

	return (struct spokei_least){
		.weights = (void *)(parts + trees * 2 * leaves),
		.candidates = candidates,
		.leaves = leaves,
		.parts = parts + which * 2 * leaves,
		.keys = keys,
	};
}

/* Looks at a block, whose keys it writes: UINT64_MAX for places without a weight. */
static SPOKEI_INLINE struct spokei_least_part spokei_least_look(const struct spokei_least *least,
								size_t block, uint64_t *keys)
{
	const size_t from = block * SPOKEI_LEAST_BLOCK;
	const size_t rest = least->candidates->count - from;
	const size_t count = rest < SPOKEI_LEAST_BLOCK ? rest : SPOKEI_LEAST_BLOCK;
	const uint32_t *weights = least->weights->of + from;
	struct spokei_least_part part = { .key = UINT64_MAX };

	least->keys(least->candidates, from, count, keys);
	for (size_t i = 0; i < count; i++) {
		keys[i] |= weights[i] > 0 ? 0 : UINT64_MAX;
		part.key = keys[i] < part.key ? keys[i] : part.key;
	}
	if (part.key == UINT64_MAX)
		return part;
	for (size_t i = 0; i < count; i++)
		part.weight += keys[i] == part.key ? weights[i] : 0;
	return part;
}

static inline struct spokei_least_part spokei_least_join(struct spokei_least_part one,
							 struct spokei_least_part other)
{
	uint64_t key = one.key < other.key ? one.key : other.key;

	return (struct spokei_least_part){
		.key = key,
		.weight = (one.key == key ? one.weight : 0) + (other.key == key ? other.weight : 0),
	};
}

/* The key of a place has changed. */
static SPOKEI_INLINE void spokei_least_update(const struct spokei_least *least, size_t place)
{
	uint64_t keys[SPOKEI_LEAST_BLOCK];
	struct spokei_least_part *parts = least->parts;
	size_t at = least->leaves + place / SPOKEI_LEAST_BLOCK;

	parts[at] = spokei_least_look(least, at - least->leaves, keys);
	while ((at /= 2) > 0)
		parts[at] = spokei_least_join(parts[2 * at], parts[2 * at + 1]);
}

/* The weights, or all keys, have changed. */
static SPOKEI_INLINE void spokei_least_build(const struct spokei_least *least)
{
	uint64_t keys[SPOKEI_LEAST_BLOCK];
	struct spokei_least_part *parts = least->parts;

	for (size_t i = 0; i < least->leaves; i++) {
		parts[least->leaves + i] = (struct spokei_least_part){ .key = UINT64_MAX };
		if (i * SPOKEI_LEAST_BLOCK < least->candidates->count)
			parts[least->leaves + i] = spokei_least_look(least, i, keys);
	}
	for (size_t at = least->leaves; --at > 0;)
		parts[at] = spokei_least_join(parts[2 * at], parts[2 * at + 1]);
}

static SPOKEI_INLINE size_t
spokei_least_draw(const struct spokei_least *least,
		  bool (*fits)(uint64_t key, const struct spoke_balancer_choice *choice),
		  const struct spoke_balancer_choice *choice)
{
	uint64_t keys[SPOKEI_LEAST_BLOCK];
	const struct spokei_least_part *parts = least->parts;
	const struct spokei_least_part all = least->leaves > 1 ? parts[1]
							       : spokei_least_look(least, 0, keys);
	const uint32_t *weights;
	uint32_t lot;
	size_t at = 1;

	if (all.weight == 0 || (fits && !fits(all.key, choice)))
		return SPOKE_NO_ENDPOINT;
	lot = spokei_dice_below(choice->dice, all.weight);
	while (at < least->leaves) {
		const struct spokei_least_part *left = &parts[2 * at];
		uint32_t weight = left->key == all.key ? left->weight : 0;
		bool right = lot >= weight;

		lot -= right ? weight : 0;
		at = 2 * at + right;
	}
	at = (at - least->leaves) * SPOKEI_LEAST_BLOCK;
	if (least->leaves > 1)
		(void)spokei_least_look(least, at / SPOKEI_LEAST_BLOCK, keys);
	weights = least->weights->of + at;
	for (size_t i = 0; i < SPOKEI_LEAST_BLOCK && at + i < least->candidates->count; i++) {
		uint32_t weight = keys[i] == all.key ? weights[i] : 0;

		if (lot < weight)
			return at + i;
		lot -= weight;
	}
	return SPOKE_NO_ENDPOINT;
}

/* The weights of tried places were taken, or are back. */
static SPOKEI_INLINE void spokei_least_tried(const struct spokei_least *least,
					     const struct spoke_balancer_choice *choice)
{
	for (size_t i = 0; i < choice->tried_count; i++)
		if (choice->tried[i] < least->candidates->count)
			spokei_least_update(least, choice->tried[i]);
}

/* Draws one of the places with the least key, untried ones first. Returns SPOKE_NO_ENDPOINT if no
 * place has a weight, or if the key is refused by `fits`, which may be NULL. */
static SPOKEI_INLINE size_t
spokei_least_pick(const struct spokei_least *least,
		  bool (*fits)(uint64_t key, const struct spoke_balancer_choice *choice),
		  const struct spoke_balancer_choice *choice)
{
	size_t place;

	if (!spokei_weights_hide(least->weights, choice))
		return spokei_least_draw(least, fits, choice);
	spokei_least_tried(least, choice);
	place = spokei_least_draw(least, fits, choice);
	spokei_weights_show(least->weights, choice);
	spokei_least_tried(least, choice);
	return place;
}

#endif
