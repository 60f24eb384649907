/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the same key to the same provider, like Dubbo's "consistenthash". Every listed place has
 * 160 points on a ring of 2^32: the four words of each MD5 of its name and a number from 0 to 39.
 * The first word of a key's MD5 is its point. The next point of the ring selects the provider; if
 * that provider is not able, the points after it are tried, so that other keys stay where they
 * are.
 *
 * The points are spread evenly, so an index by their first bits leads to a few of them. The ring
 * is built when the memory is new: names do not change otherwise.
 */
#include "cluster/balancer/md5.h"
#include "cluster/balancer/weights.h"

#define DIGESTS 40u
#define POINTS 160u

struct point {
	uint32_t hash;
	uint32_t place;
};

/* The balancer's memory after the weights. */
struct ring {
	uint32_t count; /* number of points */
	unsigned shift; /* shift from a hash to its index entry */
	struct point points[];
	/* followed by the index: for each entry the first point whose hash is not below the
	 * entry's */
};

static uint32_t *index_of(struct ring *ring)
{
	return (void *)(ring->points + ring->count);
}

/*
 * Returns how many entries the index has, so that each covers 2 to 4 points on average. A power
 * of 2, at least 2, because a shift by the full width of a word is undefined.
 */
static uint32_t entries_for(size_t count)
{
	uint32_t entries = 2;

	while (entries <= count * POINTS / 4)
		entries *= 2;
	return entries;
}

static size_t room(size_t count)
{
	size_t size = spokei_weights_room(count, POINTS * sizeof(struct point));

	/* The number of points must fit 32 bits. */
	if (size == SIZE_MAX)
		return size;
	return size + sizeof(struct ring) + entries_for(count) * sizeof(uint32_t);
}

/* Writes a number below 100 in decimal after a name, which has room for it. */
static size_t put_number(char *at, unsigned number)
{
	size_t len = 0;

	if (number >= 10)
		at[len++] = (char)('0' + number / 10);
	at[len++] = (char)('0' + number % 10);
	return len;
}

/* Bytes of a name that are hashed: addresses and socket paths are shorter. */
#define TEXT_MAX 256u

static void add_points(struct point *points, const char *name, uint32_t place)
{
	char text[TEXT_MAX + 2];
	size_t len = 0;

	for (; len < TEXT_MAX && name[len] != '\0'; len++)
		text[len] = name[len];
	for (unsigned i = 0; i < DIGESTS; i++) {
		struct spokei_md5 md5 = spokei_md5(text, len + put_number(text + len, i));

		for (unsigned word = 0; word < 4; word++)
			*points++ = (struct point){ md5.words[word], place };
	}
}

/* If two places have the same point the later one wins, as in Dubbo's map. */
static bool is_before(struct point one, struct point other)
{
	return one.hash != other.hash ? one.hash < other.hash : one.place > other.place;
}

static void swap(struct point *one, struct point *other)
{
	struct point kept = *one;

	*one = *other;
	*other = kept;
}

#define PARTS 256u

/* Returns which part a point belongs to, by eight bits of its hash. */
static unsigned part_of(struct point point, unsigned shift)
{
	return point.hash >> shift & (PARTS - 1);
}

/*
 * Groups the points by part, in place, and stores where the parts begin. At first a part begins
 * at its end; the beginning moves down with each point that is put there. All points before the
 * current one are in their parts, so a point that is not before the beginning of its part is too.
 */
static void divide(struct point *points, uint32_t count, unsigned shift, uint32_t *ret_begins)
{
	uint32_t end = 0;

	for (unsigned i = 0; i < PARTS; i++)
		ret_begins[i] = 0;
	for (uint32_t i = 0; i < count; i++)
		ret_begins[part_of(points[i], shift)]++;
	for (unsigned i = 0; i < PARTS; i++)
		ret_begins[i] = end += ret_begins[i];
	for (uint32_t i = 0; i < count; i++) {
		uint32_t *begin;

		while (i < *(begin = &ret_begins[part_of(points[i], shift)]))
			swap(&points[i], &points[--*begin]);
	}
}

#define FEW 32u /* up to here insertion sort is as fast */

/* Sorts by the first 8 or 16 bits. Parts are divided again, because the points being moved
 * then fit the cache. */
static void sort_roughly(struct ring *ring)
{
	uint32_t begins[PARTS + 1];
	uint32_t ignored[PARTS];

	divide(ring->points, ring->count, 24, begins);
	begins[PARTS] = ring->count;
	for (unsigned i = 0; i < PARTS; i++) {
		uint32_t count = begins[i + 1] - begins[i];

		if (count > FEW)
			divide(ring->points + begins[i], count, 16, ignored);
	}
}

/* Sorts points that are nearly in order. */
static void sort_neighbours(struct ring *ring)
{
	for (uint32_t i = 1; i < ring->count; i++) {
		struct point moved = ring->points[i];
		uint32_t to = i;

		for (; to > 0 && is_before(moved, ring->points[to - 1]); to--)
			ring->points[to] = ring->points[to - 1];
		ring->points[to] = moved;
	}
}

/* Builds the index of sorted points. */
static void make_index(struct ring *ring)
{
	uint32_t *index = index_of(ring);
	uint32_t at = 0;

	for (uint32_t i = 0; i <= UINT32_MAX >> ring->shift; i++) {
		while (at < ring->count && ring->points[at].hash >> ring->shift < i)
			at++;
		index[i] = at;
	}
}

static void build(struct ring *ring, const struct spoke_balancer_candidates *candidates)
{
	ring->count = (uint32_t)candidates->count * POINTS;
	ring->shift = 32;
	for (uint32_t entries = entries_for(candidates->count); entries > 1; entries /= 2)
		ring->shift--;
	for (uint32_t i = 0; i < candidates->count; i++)
		add_points(ring->points + (size_t)i * POINTS, candidates->names[i], i);
	sort_roughly(ring);
	sort_neighbours(ring);
	make_index(ring);
}

static void changed(void *memory, const struct spoke_balancer_candidates *candidates, bool fresh)
{
	struct spokei_weights *weights = memory;

	spokei_weights_set(weights, candidates);
	if (fresh)
		build(spokei_weights_behind(weights), candidates);
}

/* Returns the first point that is not below the hash, else the first of all. */
static uint32_t find(struct ring *ring, uint32_t hash)
{
	uint32_t at = index_of(ring)[hash >> ring->shift];

	while (at < ring->count && ring->points[at].hash < hash)
		at++;
	return at < ring->count ? at : 0;
}

static size_t pick(void *memory, const struct spoke_balancer_candidates *candidates,
		   const struct spoke_balancer_choice *choice)
{
	struct spokei_weights *weights = memory;
	struct ring *ring = spokei_weights_behind(weights);
	uint32_t at;

	(void)candidates;
	if (weights->able == 0)
		return SPOKE_NO_ENDPOINT;
	at = find(ring, spokei_md5(choice->key.data, choice->key.len).words[0]);
	(void)spokei_weights_hide(weights, choice);
	while (weights->of[ring->points[at].place] == 0)
		at = at + 1 < ring->count ? at + 1 : 0;
	spokei_weights_show(weights, choice);
	return ring->points[at].place;
}

const struct spoke_balancer spoke_balancer_consistent_hash = {
	.name = "consistenthash",
	.keyed = true,
	.room = room,
	.changed = changed,
	.pick = pick,
};
