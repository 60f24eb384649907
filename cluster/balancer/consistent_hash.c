/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same key to the same provider, as Dubbo's "consistenthash" does. Every place that is listed
 * has 160 points on a ring of 2^32: the four words of each MD5 of its name and a number from 0 to
 * 39. A key's point is the first word of its MD5; the next point of the ring from there on says who
 * takes it. If that one cannot, the points behind it are asked, so that others' keys stay where
 * they are.
 *
 * The points are even over the ring, so an index by their first bits leads to a few of them. It is
 * made when the memory is fresh: names do not change otherwise.
 */
#include "cluster/balancer/md5.h"
#include "cluster/balancer/weights.h"

#define DIGESTS 40u
#define POINTS 160u

struct point {
	uint32_t hash;
	uint32_t place;
};

/* Behind the weights. */
struct ring {
	uint32_t count; /* of points */
	unsigned shift; /* from a hash to its entry of the index */
	struct point points[];
	/* then the index: for each entry the first point whose hash is not below the entry's */
};

static uint32_t *index_of(struct ring *ring)
{
	return (void *)(ring->points + ring->count);
}

/*
 * Entries of the index, so that each has 2 to 4 points on average. A power of 2, and at least 2,
 * lest a shift is as wide as its word.
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

	/* Points are counted in 32 bits. */
	if (size == SIZE_MAX)
		return size;
	return size + sizeof(struct ring) + entries_for(count) * sizeof(uint32_t);
}

/* The decimal digits of a number below 100 behind a name that has room for them. */
static size_t put_number(char *at, unsigned number)
{
	size_t len = 0;

	if (number >= 10)
		at[len++] = (char)('0' + number / 10);
	at[len++] = (char)('0' + number % 10);
	return len;
}

/* Bytes of a name that count: an address or the path of a socket has less. */
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

/* Of two places at the same point the later one counts, as in Dubbo's map. */
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

/* Which part a point belongs to, by eight bits of its hash. */
static unsigned part_of(struct point point, unsigned shift)
{
	return point.hash >> shift & (PARTS - 1);
}

/*
 * Brings the points of each part together, in their own room, and says where the parts begin: a
 * part begins at its end at first, and that moves forward with each point that is put there. All
 * that is before the point looked at is in its part, so one that is not before the beginning of its
 * part is, too.
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

#define FEW 32u /* points that are put in order as fast one by one */

/* By the first 8 bits, or 16. Parts of parts, for what is moved about is in the cache then. */
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

/* Of points that are nearly in order. */
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

/* Of points in order. */
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

/* The first point that is not below the hash, or the first one of all. */
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
	struct spokei_weights *all = memory;
	const uint32_t *weights = spokei_weights_for(all, choice);
	struct ring *ring = spokei_weights_behind(all);
	uint32_t at;

	(void)candidates;
	if (all->able == 0)
		return SPOKE_NO_ENDPOINT;
	at = find(ring, spokei_md5(choice->key.data, choice->key.len).words[0]);
	while (weights[ring->points[at].place] == 0)
		at = at + 1 < ring->count ? at + 1 : 0;
	return ring->points[at].place;
}

const struct spoke_balancer spoke_balancer_consistent_hash = {
	.name = "consistenthash",
	.keyed = true,
	.room = room,
	.changed = changed,
	.pick = pick,
};
