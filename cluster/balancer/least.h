/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the places with the least of something, e.g. of calls in flight, and draws one of them by
 * weight. Blocks of a few places are looked at as a whole. Above them is a binary tree of their
 * sums, so that a change costs a look at one block, and the way up. A single block needs
 * no notice of changes. The memory is part of a balancer's. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_BALANCER_LEAST_H
#define SPOKEI_CLUSTER_BALANCER_LEAST_H

#include "cluster/balancer/weights.h"

#define SPOKEI_LEAST_BLOCK 16u /* places */

/* The least key in a part of the places, and the sum of the weights of the places that have it. */
struct spokei_least_part {
	uint64_t key; /* UINT64_MAX: none has a weight */
	uint32_t weight;
};

/* A tree in use. */
struct spokei_least {
	struct spokei_weights *weights;
	const struct spoke_balancer_candidates *candidates;
	size_t leaves; /* a power of two; leaf i is a block of places */
	struct spokei_least_part
		*parts; /* number 1 is the root, those of part i are 2i and 2i + 1 */
	/* Writes the keys of the places from `from` on. */
	void (*keys)(const struct spoke_balancer_candidates *candidates, size_t from, size_t count,
		     uint64_t *keys);
};

/* Returns the bytes of some trees and the weights after them; SIZE_MAX: too many places. */
size_t spokei_least_room(unsigned trees, size_t count);

/* Returns tree number `which` of the `trees` in a memory. */
static inline struct spokei_least spokei_least_at(
	void *memory, unsigned trees, unsigned which,
	const struct spoke_balancer_candidates *candidates,
	void (*keys)(const struct spoke_balancer_candidates *candidates, size_t from, size_t count,
		     uint64_t *keys))
{
	struct spokei_least_part *parts = memory;
	size_t leaves = 1;

	while (leaves * SPOKEI_LEAST_BLOCK < candidates->count)
		leaves *= 2;
	return (struct spokei_least){
		.weights = (void *)(parts + trees * 2 * leaves),
		.candidates = candidates,
		.leaves = leaves,
		.parts = parts + which * 2 * leaves,
		.keys = keys,
	};
}

/* The weights, or all keys, have changed. */
void spokei_least_build(const struct spokei_least *least);

/* The key of a place has changed. */
void spokei_least_update(const struct spokei_least *least, size_t place);

/* Draws one of the places with the least key, untried ones first. Returns SPOKE_NO_ENDPOINT if no
 * place has a weight, or if the key is refused by `fits`, which may be NULL. */
size_t spokei_least_pick(const struct spokei_least *least,
			 bool (*fits)(uint64_t key, const struct spoke_balancer_choice *choice),
			 const struct spoke_balancer_choice *choice);

#endif
