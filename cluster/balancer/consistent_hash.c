/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the same key to the same provider, like Dubbo's "consistenthash". Every listed place has
 * 160 points on a ring of 2^32: the four words of each MD5 of its name and a number from 0 to 39.
 * The first word of a key's MD5 is its point. The next point of the ring selects the provider; if
 * that provider is not able, the points after it are tried, so that other keys stay where they
 * are.
 *
 * The ring is a table with linear probing, whose cells are in the order of the points: a point
 * belongs to the cell that its hash is a share of, and lies there or in a cell after it, because
 * others come first. So a place that changes costs its own points only.
 */
#include "cluster/balancer/weights.h"
#include "core/text/md5.h"

#include <string.h>

#define DIGESTS 40u
#define POINTS 160u

/* Bytes of a name that are hashed: addresses and socket paths are shorter. */
#define TEXT_MAX 256u

struct cell {
	uint32_t hash;
	uint32_t place; /* plus 1; 0: free */
};

struct name {
	uint32_t len; /* 0: the place has no points */
	char text[TEXT_MAX];
};

/* The memory: this, the names of all places, and the weights. */
struct ring {
	struct spokei_weights *weights;
	struct name *names;
	uint32_t cell_count;
	struct cell cells[];
};

/* A quarter of the cells stays free. */
static size_t cells_for(size_t count)
{
	return count * POINTS / 3 * 4 + 4;
}

static size_t room(size_t count)
{
	size_t size = spokei_weights_room(count, sizeof(struct name));

	/* The number of cells must fit 32 bits. */
	if (size == SIZE_MAX)
		return size;
	return size + sizeof(struct ring) + cells_for(count) * sizeof(struct cell);
}

/* --- cells */

static uint32_t home_of(const struct ring *ring, uint32_t hash)
{
	return (uint32_t)((uint64_t)hash * ring->cell_count >> 32);
}

static uint32_t after(const struct ring *ring, uint32_t at)
{
	return at + 1 < ring->cell_count ? at + 1 : 0;
}

/* Returns how far a cell's point lies from where it belongs. */
static uint32_t distance(const struct ring *ring, uint32_t at)
{
	uint32_t home = home_of(ring, ring->cells[at].hash);

	return at >= home ? at - home : at + ring->cell_count - home;
}

/* Returns whether the point in a cell comes before one that would lie `far` from where it belongs.
 * Of two places with the same point the later one comes first, as in Dubbo's map. */
static bool comes_before(const struct ring *ring, uint32_t at, struct cell other, uint32_t far)
{
	struct cell one = ring->cells[at];
	uint32_t one_far = distance(ring, at);

	if (one_far != far)
		return one_far > far;
	return one.hash != other.hash ? one.hash < other.hash : one.place > other.place;
}

/* Returns the cell of the first point that is not before this one, or where it would lie. */
static uint32_t find(const struct ring *ring, struct cell point)
{
	uint32_t at = home_of(ring, point.hash);
	uint32_t far = 0;

	for (; ring->cells[at].place && comes_before(ring, at, point, far); far++)
		at = after(ring, at);
	return at;
}

static void insert(struct ring *ring, struct cell point)
{
	uint32_t at = find(ring, point);

	while (point.place) {
		struct cell next = ring->cells[at];

		ring->cells[at] = point;
		point = next;
		at = after(ring, at);
	}
}

static void take_out(struct ring *ring, struct cell point)
{
	uint32_t at = find(ring, point);
	uint32_t next = after(ring, at);

	while (ring->cells[next].place && distance(ring, next) > 0) {
		ring->cells[at] = ring->cells[next];
		at = next;
		next = after(ring, next);
	}
	ring->cells[at].place = 0;
}

/* --- places */

/* Writes a number below 100 in decimal after a name, which has room for it. */
static size_t put_number(char *at, unsigned number)
{
	size_t len = 0;

	if (number >= 10)
		at[len++] = (char)('0' + number / 10);
	at[len++] = (char)('0' + number % 10);
	return len;
}

static void hash_points(const struct name *name, uint32_t hashes[POINTS])
{
	char text[TEXT_MAX + 2];

	memcpy(text, name->text, name->len);
	for (unsigned i = 0; i < DIGESTS; i++) {
		struct spokei_md5 md5 = spokei_md5(text,
						   name->len + put_number(text + name->len, i));

		memcpy(hashes + (size_t)4 * i, md5.words, sizeof(md5.words));
	}
}

/* Adds or removes the points of a place. */
static void for_points(struct ring *ring, size_t place, void (*change)(struct ring *, struct cell))
{
	uint32_t hashes[POINTS];

	if (ring->names[place].len == 0)
		return;
	hash_points(&ring->names[place], hashes);
	for (unsigned i = 0; i < POINTS; i++)
		__builtin_prefetch(&ring->cells[home_of(ring, hashes[i])], 1);
	for (unsigned i = 0; i < POINTS; i++)
		change(ring, (struct cell){ hashes[i], (uint32_t)place + 1 });
}

static void placed(void *memory, const struct spoke_balancer_candidates *candidates, size_t place)
{
	struct ring *ring = memory;
	struct name *name = &ring->names[place];
	const char *text = place < candidates->count ? candidates->names[place] : "";
	size_t len = strlen(text);

	len = len < TEXT_MAX ? len : TEXT_MAX;
	if (name->len == len && memcmp(name->text, text, len) == 0)
		return;
	for_points(ring, place, take_out);
	name->len = (uint32_t)len;
	memcpy(name->text, text, len);
	for_points(ring, place, insert);
}

static void changed(void *memory, const struct spoke_balancer_candidates *candidates, bool fresh)
{
	struct ring *ring = memory;

	if (fresh) {
		ring->cell_count = (uint32_t)cells_for(candidates->room);
		ring->names = (void *)(ring->cells + ring->cell_count);
		ring->weights = (void *)(ring->names + candidates->room);
		for (size_t i = 0; i < candidates->count; i++)
			placed(memory, candidates, i);
	}
	spokei_weights_set(ring->weights, candidates);
}

static size_t pick(void *memory, const struct spoke_balancer_candidates *candidates,
		   const struct spoke_balancer_choice *choice)
{
	struct ring *ring = memory;
	struct spokei_weights *weights = ring->weights;
	struct cell key = { spokei_md5(choice->key.data, choice->key.len).words[0], UINT32_MAX };
	uint32_t at;

	(void)candidates;
	if (weights->able == 0)
		return SPOKE_NO_ENDPOINT;
	(void)spokei_weights_hide(weights, choice);
	at = find(ring, key);
	while (ring->cells[at].place == 0 || weights->of[ring->cells[at].place - 1] == 0)
		at = after(ring, at);
	spokei_weights_show(weights, choice);
	return ring->cells[at].place - 1;
}

const struct spoke_balancer spoke_balancer_consistent_hash = {
	.name = "consistenthash",
	.keyed = true,
	.room = room,
	.placed = placed,
	.changed = changed,
	.pick = pick,
};
