/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the places with the least of something: see least.h. */
#include "cluster/balancer/least.h"

size_t spokei_least_room(unsigned trees, size_t count)
{
	size_t size = spokei_weights_room(count, 0);
	size_t leaves = 1;

	if (size == SIZE_MAX)
		return size;
	while (leaves * SPOKEI_LEAST_BLOCK < count)
		leaves *= 2;
	return size + trees * 2 * leaves * sizeof(struct spokei_least_part);
}

/* Looks at a block, whose keys it writes: UINT64_MAX for places without a weight. */
static struct spokei_least_part look(const struct spokei_least *least, size_t block, uint64_t *keys)
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
	for (size_t i = 0; i < count; i++)
		part.weight += keys[i] == part.key ? weights[i] : 0;
	return part;
}

static struct spokei_least_part join(struct spokei_least_part one, struct spokei_least_part other)
{
	uint64_t key = one.key < other.key ? one.key : other.key;

	return (struct spokei_least_part){
		.key = key,
		.weight = (one.key == key ? one.weight : 0) + (other.key == key ? other.weight : 0),
	};
}

void spokei_least_update(const struct spokei_least *least, size_t place)
{
	uint64_t keys[SPOKEI_LEAST_BLOCK];
	struct spokei_least_part *parts = least->parts;
	size_t at = least->leaves + place / SPOKEI_LEAST_BLOCK;

	parts[at] = look(least, at - least->leaves, keys);
	while ((at /= 2) > 0)
		parts[at] = join(parts[2 * at], parts[2 * at + 1]);
}

void spokei_least_build(const struct spokei_least *least)
{
	uint64_t keys[SPOKEI_LEAST_BLOCK];
	struct spokei_least_part *parts = least->parts;

	for (size_t i = 0; i < least->leaves; i++)
		parts[least->leaves + i] =
			i * SPOKEI_LEAST_BLOCK < least->candidates->count
				? look(least, i, keys)
				: (struct spokei_least_part){ .key = UINT64_MAX };
	for (size_t at = least->leaves; --at > 0;)
		parts[at] = join(parts[2 * at], parts[2 * at + 1]);
}

static size_t draw(const struct spokei_least *least,
		   bool (*fits)(uint64_t key, const struct spoke_balancer_choice *choice),
		   const struct spoke_balancer_choice *choice)
{
	uint64_t keys[SPOKEI_LEAST_BLOCK];
	const struct spokei_least_part *parts = least->parts;
	const struct spokei_least_part all = least->leaves > 1 ? parts[1] : look(least, 0, keys);
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
		(void)look(least, at / SPOKEI_LEAST_BLOCK, keys);
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
static void update_tried(const struct spokei_least *least,
			 const struct spoke_balancer_choice *choice)
{
	for (size_t i = 0; i < choice->tried_count; i++)
		if (choice->tried[i] < least->candidates->count)
			spokei_least_update(least, choice->tried[i]);
}

size_t spokei_least_pick(const struct spokei_least *least,
			 bool (*fits)(uint64_t key, const struct spoke_balancer_choice *choice),
			 const struct spoke_balancer_choice *choice)
{
	size_t place;

	if (!spokei_weights_hide(least->weights, choice))
		return draw(least, fits, choice);
	update_tried(least, choice);
	place = draw(least, fits, choice);
	spokei_weights_show(least->weights, choice);
	update_tried(least, choice);
	return place;
}
