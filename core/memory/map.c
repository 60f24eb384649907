/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map: open addressing with linear probing. A removal moves later entries back. */
#include "core/memory/map.h"
#include "core/base/env.h"

#include <string.h>

#define FIRST_ROOM 16u

/* FNV-1a, started from the seed and mixed at the end, because only the low bits are used. */
static uint64_t hash_bytes(uint64_t seed, const unsigned char *bytes, size_t len)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	hash ^= hash >> 32;
	hash *= UINT64_C(0xd6e8feb86659fd93);
	return hash ^ hash >> 32;
}

void spokei_map_init(struct spokei_map *map, const struct spoke_env *env)
{
	*map = (struct spokei_map){ .env = env };
	env->dice(env->ctx, &map->seed, sizeof(map->seed));
}

void spokei_map_fini(struct spokei_map *map)
{
	spokei_free(map->env, map->entries, map->room, sizeof(*map->entries));
	spokei_map_init(map, map->env);
}

/* Returns the entry of the key, or the free entry where it belongs. A free entry always exists. */
static struct spokei_map_entry *find_place(const struct spokei_map *map, const void *key,
					   size_t len, uint64_t hash)
{
	for (size_t at = (size_t)hash & (map->room - 1);; at = (at + 1) & (map->room - 1)) {
		struct spokei_map_entry *entry = &map->entries[at];

		if (entry->key == NULL)
			return entry;
		if (entry->hash == hash && entry->key_len == len &&
		    memcmp(entry->key, key, len) == 0)
			return entry;
	}
}

static bool grow(struct spokei_map *map)
{
	struct spokei_map grown = *map;

	grown.room = map->room ? 2 * map->room : FIRST_ROOM;
	grown.entries = spokei_alloc(map->env, grown.room, sizeof(*grown.entries));
	if (grown.entries == NULL)
		return false;
	for (size_t i = 0; i < map->room; i++) {
		const struct spokei_map_entry *entry = &map->entries[i];

		if (entry->key)
			*find_place(&grown, entry->key, entry->key_len, entry->hash) = *entry;
	}
	spokei_free(map->env, map->entries, map->room, sizeof(*map->entries));
	*map = grown;
	return true;
}

int spokei_map_add(struct spokei_map *map, const void *key, size_t len, void *value)
{
	uint64_t hash = hash_bytes(map->seed, key, len);
	struct spokei_map_entry *entry;

	SPOKE_ASSERT(key != NULL && value != NULL);
	if (map->room && find_place(map, key, len, hash)->key)
		return SPOKE_EEXIST;
	if (4 * (map->count + 1) > 3 * map->room && !grow(map))
		return SPOKE_ENOMEM;
	entry = find_place(map, key, len, hash);
	*entry = (struct spokei_map_entry){ key, len, value, hash };
	map->count++;
	return SPOKE_OK;
}

void *spokei_map_get(const struct spokei_map *map, const void *key, size_t len)
{
	if (map->count == 0)
		return NULL;
	return find_place(map, key, len, hash_bytes(map->seed, key, len))->value;
}

/* Closes the hole at `hole`: moves in each entry that a search would miss after the hole. */
static void close_hole(struct spokei_map *map, size_t hole)
{
	size_t mask = map->room - 1;

	for (size_t at = (hole + 1) & mask; map->entries[at].key; at = (at + 1) & mask) {
		size_t home = (size_t)map->entries[at].hash & mask;

		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		map->entries[hole] = map->entries[at];
		hole = at;
	}
	map->entries[hole] = (struct spokei_map_entry){ 0 };
}

void *spokei_map_remove(struct spokei_map *map, const void *key, size_t len)
{
	struct spokei_map_entry *entry;
	void *value;

	if (map->count == 0)
		return NULL;
	entry = find_place(map, key, len, hash_bytes(map->seed, key, len));
	if (entry->key == NULL)
		return NULL;
	value = entry->value;
	close_hole(map, (size_t)(entry - map->entries));
	map->count--;
	return value;
}

void *spokei_map_each(const struct spokei_map *map, size_t *place)
{
	while (*place < map->room) {
		const struct spokei_map_entry *entry = &map->entries[(*place)++];

		if (entry->key)
			return entry->value;
	}
	return NULL;
}
