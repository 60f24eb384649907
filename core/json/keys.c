/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds repeated keys. A few keys are compared as they come; more are sorted when the object ends,
 * by a heap, whose time has a bound for any keys: n log n comparisons. A heap jumps from key to
 * key, so very many keys are first parted by their hashes, into heaps that fit a processor's cache.
 */
#include "core/json/keys.h"

#include "core/base/siphash.h"
#include "core/memory/buffer.h"
#include "core/value/shape.h"
#include "timer/base.h"

#define PART_BITS 11u
#define PARTS (1u << PART_BITS)
#define PARTED_MIN 16384u /* keys */

static uint32_t place_of(const char *places, size_t i)
{
	uint32_t place;

	memcpy(&place, places + i * sizeof(place), sizeof(place));
	return place;
}

static void set_place(char *places, size_t i, uint32_t place)
{
	memcpy(places + i * sizeof(place), &place, sizeof(place));
}

bool spokei_json_keys_add(struct spokei_json_keys *keys, const struct spoke_builder *builder,
			  size_t at)
{
	const unsigned char *key = builder->bytes + at;
	size_t len = builder->len - at;
	uint32_t least = keys->count > SPOKEI_JSON_KEYS_FEW ? keys->count - SPOKEI_JSON_KEYS_FEW
							    : 0;

	/* The head of a value contains its length, so equal bytes are equal values. */
	for (uint32_t i = keys->count; i > least; i--) {
		const unsigned char *other = builder->bytes + place_of(keys->places, i - 1);

		if (*other == *key && other[len - 1] == key[len - 1] &&
		    memcmp(other, key, len) == 0)
			return false;
	}
	set_place(keys->places, keys->count++, (uint32_t)at);
	return true;
}

/* Returns the bytes of a key; that of a $map may be an array or a map. */
static inline size_t len_of(const unsigned char *key, const unsigned char *end)
{
	size_t len = spokei_shape_hop(key, end);

	return len > 0 ? len : (size_t)(spokei_shape_skip(key, end) - key);
}

/* Compares two keys, by length first: any order will do. */
static int compare(const struct spoke_builder *builder, uint32_t a, uint32_t b)
{
	const unsigned char *end = builder->bytes + builder->len;
	size_t a_len = len_of(builder->bytes + a, end);
	size_t b_len = len_of(builder->bytes + b, end);

	if (a_len != b_len)
		return a_len < b_len ? -1 : 1;
	return memcmp(builder->bytes + a, builder->bytes + b, a_len);
}

/* Lets the key at `at` sink to its place in a heap of `count` keys. */
static void sink(const struct spoke_builder *builder, char *places, size_t at, size_t count)
{
	uint32_t key = place_of(places, at);

	for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
		child += child + 1 < count &&
			 compare(builder, place_of(places, child), place_of(places, child + 1)) < 0;
		if (compare(builder, key, place_of(places, child)) >= 0)
			break;
		set_place(places, at, place_of(places, child));
		at = child;
	}
	set_place(places, at, key);
}

static void sort(const struct spoke_builder *builder, char *places, size_t count)
{
	for (size_t at = count / 2; at-- > 0;)
		sink(builder, places, at, count);
	while (count-- > 1) {
		uint32_t greatest = place_of(places, 0);

		set_place(places, 0, place_of(places, count));
		set_place(places, count, greatest);
		sink(builder, places, 0, count);
	}
}

/* Returns how many keys, from the first one on, are each greater than the key before. */
static size_t count_ascending(const struct spoke_builder *builder, const char *places, size_t count)
{
	size_t i = 1;

	while (i < count && compare(builder, place_of(places, i - 1), place_of(places, i)) < 0)
		i++;
	return i;
}

/* Sorts keys, and returns whether one is repeated. */
static bool repeat(const struct spoke_builder *builder, char *places, size_t count)
{
	if (count < 2)
		return false;
	sort(builder, places, count);
	return count_ascending(builder, places, count) < count;
}

/* Returns the part to which a key belongs. */
static uint32_t part_of(const struct spoke_builder *builder, const uint64_t hash_key[2],
			uint32_t place)
{
	const unsigned char *key = builder->bytes + place;
	size_t len = len_of(key, builder->bytes + builder->len);

	return (uint32_t)(spokei_siphash(hash_key, key, len) >> (64 - PART_BITS));
}

/* Moves the keys of each part together, and writes the ends of the parts. */
static void part(const struct spoke_builder *builder, const uint64_t hash_key[2], char *places,
		 uint32_t count, uint32_t ends[PARTS])
{
	uint32_t next[PARTS] = { 0 };
	uint32_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		next[part_of(builder, hash_key, place_of(places, i))]++;
	for (uint32_t i = 0; i < PARTS; i++) {
		ends[i] = sum + next[i];
		next[i] = sum;
		sum = ends[i];
	}
	for (uint32_t i = 0; i < PARTS; i++) {
		while (next[i] < ends[i]) {
			uint32_t place = place_of(places, next[i]);
			uint32_t home = part_of(builder, hash_key, place);

			set_place(places, next[i], place_of(places, next[home]));
			set_place(places, next[home]++, place);
		}
	}
}

static SPOKEI_NOINLINE bool repeat_in_parts(const struct spoke_builder *builder,
					    const struct spoke_env *env, char *places,
					    uint32_t count)
{
	uint32_t ends[PARTS];
	uint64_t hash_key[2];
	uint32_t at = 0;

	env->dice(env->ctx, hash_key, sizeof(hash_key));
	part(builder, hash_key, places, count, ends);
	for (uint32_t i = 0; i < PARTS; i++) {
		if (repeat(builder, places + (size_t)at * sizeof(uint32_t), ends[i] - at))
			return true;
		at = ends[i];
	}
	return false;
}

bool spokei_json_keys_repeat(struct spokei_json_keys *keys, const struct spoke_builder *builder)
{
	const struct spoke_env *env = builder->buffer ? builder->buffer->env : builder->env;

	if (keys->count <= SPOKEI_JSON_KEYS_FEW + 1 ||
	    count_ascending(builder, keys->places, keys->count) == keys->count)
		return false;
	/* A builder in memory of its caller has no random numbers for the key of the hash. */
	if (keys->count < PARTED_MIN || env == NULL)
		return repeat(builder, keys->places, keys->count);
	return repeat_in_parts(builder, env, keys->places, keys->count);
}
