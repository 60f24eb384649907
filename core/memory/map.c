/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash map: open addressing with linear probing. A removal moves later entries back.
 *
 * A large table grows in steps, because a million entries at once would take a turn of many
 * milliseconds. When it is three quarters as full as it may become, each addition begins to clear a
 * part of the next table. When it is full, the next table takes its place, and each addition moves
 * a few entries. Meanwhile a search looks in the old table as well.
 */
#include "core/memory/map.h"
#include "core/base/env.h"
#include "core/base/siphash.h"

#include <string.h>

#define FIRST_ROOM 16u

/* Entries per addition. Of a table with R entries, 3/16 R additions clear 2 R entries, and then 3/4
 * R move R, before the next table is full. */
#define CLEAR_AT_A_TIME 16u
#define MOVE_AT_A_TIME 4u
#define FREE_AT_A_TIME 4096u

void spokei_map_init(struct spokei_map *map, const struct spoke_env *env)
{
	*map = (struct spokei_map){ .env = env };
	env->dice(env->ctx, map->key, sizeof(map->key));
}

void spokei_map_fini(struct spokei_map *map)
{
	spokei_free(map->env, map->entries, map->room, sizeof(*map->entries));
	spokei_free(map->env, map->later, 2 * map->room, sizeof(*map->later));
	spokei_free(map->env, map->old, map->old_size, 1);
	spokei_map_init(map, map->env);
}

static uint32_t hash_of(const struct spokei_map *map, const void *key, size_t len)
{
	return (uint32_t)spokei_siphash(map->key, key, len);
}

/* Returns the entry of the key in a table, or the free entry where it belongs. A free entry always
 * exists. */
static struct spokei_map_entry *find_place(struct spokei_map_entry *entries, size_t room,
					   const void *key, size_t len, uint32_t hash)
{
	for (size_t at = (size_t)hash & (room - 1);; at = (at + 1) & (room - 1)) {
		struct spokei_map_entry *entry = &entries[at];

		if (entry->key == NULL)
			return entry;
		if (entry->hash == hash && entry->key_len == len &&
		    memcmp(entry->key, key, len) == 0)
			return entry;
	}
}

/* Closes the hole at `hole` of a table: moves in each entry that a search would miss after the
 * hole.
 */
static void close_hole(struct spokei_map_entry *entries, size_t room, size_t hole)
{
	size_t mask = room - 1;

	for (size_t at = (hole + 1) & mask; entries[at].key; at = (at + 1) & mask) {
		size_t home = (size_t)entries[at].hash & mask;

		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		entries[hole] = entries[at];
		hole = at;
	}
	entries[hole] = (struct spokei_map_entry){ 0 };
}

static void put(struct spokei_map *map, const struct spokei_map_entry *entry)
{
	*find_place(map->entries, map->room, entry->key, entry->key_len, entry->hash) = *entry;
}

/* Moves the last entries of the old table, and frees it from the end. */
static void move_entries(struct spokei_map *map, size_t count)
{
	for (; count > 0 && map->left > 0; count--) {
		const struct spokei_map_entry *entry = &map->old[--map->left];

		if (entry->key)
			put(map, entry);
		if (map->left > 0 && map->left % FREE_AT_A_TIME == 0)
			map->old = spokei_free_end(map->env, map->old, &map->old_size,
						   map->left * sizeof(*map->old));
	}
	if (map->left > 0)
		return;
	spokei_free(map->env, map->old, map->old_size, 1);
	map->old = NULL;
	map->limit = map->room > SPOKEI_MAP_ROOM_AT_ONCE ? map->room / 16 * 9 : map->room / 4 * 3;
}

/* Returns the entry of a key in the old table, or NULL. No entry lies before its home. */
static struct spokei_map_entry *find_old(const struct spokei_map *map, const void *key, size_t len,
					 uint32_t hash)
{
	size_t at = (size_t)hash & (map->room / 2 - 1);

	for (; map->old && at < map->left && map->old[at].key; at++) {
		struct spokei_map_entry *entry = &map->old[at];

		if (entry->hash == hash && entry->key_len == len &&
		    memcmp(entry->key, key, len) == 0)
			return entry;
	}
	return NULL;
}

/* As close_hole(), in the old table. */
static void close_old_hole(struct spokei_map *map, size_t hole)
{
	size_t mask = map->room / 2 - 1;

	for (size_t at = hole + 1; at < map->left && map->old[at].key; at++) {
		if (((size_t)map->old[at].hash & mask) > hole)
			continue;
		map->old[hole] = map->old[at];
		hole = at;
	}
	map->old[hole] = (struct spokei_map_entry){ 0 };
}

static void clear_entries(struct spokei_map *map, size_t count)
{
	size_t left = 2 * map->room - map->cleared;

	count = count < left ? count : left;
	memset(map->later + map->cleared, 0, count * sizeof(*map->later));
	map->cleared += count;
}

/* Lets the cleared next table take the place of `entries`. Empties the last entry of the old table,
 * so that none of the others lies before its home. */
static void begin_to_move(struct spokei_map *map)
{
	size_t last = map->room - 1;

	map->old = map->entries;
	map->old_size = map->room * sizeof(*map->old);
	map->left = last;
	map->entries = map->later;
	map->later = NULL;
	map->room *= 2;
	while (map->old[last].key) {
		put(map, &map->old[last]);
		close_hole(map->old, last + 1, last);
	}
}

static bool make_first(struct spokei_map *map)
{
	map->entries = spokei_alloc(map->env, FIRST_ROOM, sizeof(*map->entries));
	if (map->entries == NULL)
		return false;
	map->room = FIRST_ROOM;
	map->limit = map->room / 4 * 3;
	return true;
}

/* Prepares the addition of an entry to a map at its limit: the next step of growing. Returns
 * whether there is a free entry for it. */
static bool grow(struct spokei_map *map)
{
	bool is_full = map->count >= map->room / 4 * 3;

	if (map->room == 0)
		return make_first(map);
	if (map->old == NULL && map->later == NULL) {
		map->later = spokei_alloc_unset(map->env, 2 * map->room * sizeof(*map->later));
		if (map->later == NULL)
			return !is_full;
		map->cleared = 0;
		map->limit = 0;
	}
	if (map->later) {
		clear_entries(map, is_full ? 2 * map->room : CLEAR_AT_A_TIME);
		if (!is_full)
			return true;
		begin_to_move(map);
	}
	move_entries(map, map->room / 2 > SPOKEI_MAP_ROOM_AT_ONCE ? MOVE_AT_A_TIME : SIZE_MAX);
	return true;
}

int spokei_map_put(struct spokei_map *map, const void *key, size_t len, void *value,
		   void **ret_present)
{
	uint32_t hash = hash_of(map, key, len);
	struct spokei_map_entry *entry = NULL;

	SPOKE_ASSERT(key != NULL && len <= UINT32_MAX && value != NULL);
	if (map->room)
		entry = find_place(map->entries, map->room, key, len, hash);
	if (entry == NULL || (entry->key == NULL && map->count >= map->limit)) {
		struct spokei_map_entry *old = find_old(map, key, len, hash);

		if (old == NULL && !grow(map))
			return SPOKE_ENOMEM;
		entry = old ? old : find_place(map->entries, map->room, key, len, hash);
	}
	if (entry->key) {
		*ret_present = entry->value;
		return SPOKE_EEXIST;
	}
	*entry = (struct spokei_map_entry){ key, value, (uint32_t)len, hash };
	map->count++;
	return SPOKE_OK;
}

int spokei_map_add(struct spokei_map *map, const void *key, size_t len, void *value)
{
	void *present;

	return spokei_map_put(map, key, len, value, &present);
}

static SPOKEI_NOINLINE void *get_old(const struct spokei_map *map, const void *key, size_t len,
				     uint32_t hash)
{
	const struct spokei_map_entry *entry = find_old(map, key, len, hash);

	return entry ? entry->value : NULL;
}

void *spokei_map_get(const struct spokei_map *map, const void *key, size_t len)
{
	uint32_t hash;
	void *value;

	if (map->count == 0)
		return NULL;
	hash = hash_of(map, key, len);
	value = find_place(map->entries, map->room, key, len, hash)->value;
	return SPOKEI_LIKELY(value || !map->old) ? value : get_old(map, key, len, hash);
}

static SPOKEI_NOINLINE void *remove_old(struct spokei_map *map, const void *key, size_t len,
					uint32_t hash)
{
	struct spokei_map_entry *entry = find_old(map, key, len, hash);
	void *value = entry ? entry->value : NULL;

	if (entry) {
		close_old_hole(map, (size_t)(entry - map->old));
		map->count--;
	}
	return value;
}

void *spokei_map_remove(struct spokei_map *map, const void *key, size_t len)
{
	struct spokei_map_entry *entry;
	uint32_t hash;
	void *value;

	if (map->count == 0)
		return NULL;
	hash = hash_of(map, key, len);
	entry = find_place(map->entries, map->room, key, len, hash);
	if (SPOKEI_UNLIKELY(entry->key == NULL))
		return remove_old(map, key, len, hash);
	value = entry->value;
	close_hole(map->entries, map->room, (size_t)(entry - map->entries));
	map->count--;
	return value;
}

void *spokei_map_each(const struct spokei_map *map, size_t *place)
{
	size_t old = map->old ? map->left : 0;

	while (*place < map->room + old) {
		size_t at = (*place)++;
		const struct spokei_map_entry *entry = at < map->room ? &map->entries[at]
								      : &map->old[at - map->room];

		if (entry->key)
			return entry->value;
	}
	return NULL;
}
