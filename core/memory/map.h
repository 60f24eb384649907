/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From bytes to a pointer. The bytes of a key are borrowed until the entry is removed: they belong
 * to what the pointer points to. The hash is seeded by dice, so that a peer who chooses names
 * cannot make them collide. Owned by one object, on its thread.
 */
#ifndef SPOKEI_CORE_MEMORY_MAP_H
#define SPOKEI_CORE_MEMORY_MAP_H

#include "core/base/env.h"

struct spokei_map_entry {
	const void *key; /* NULL: free */
	size_t key_len;
	void *value;
	uint64_t hash;
};

struct spokei_map {
	const struct spoke_env *env; /* borrowed for the map's life */
	struct spokei_map_entry *entries;
	size_t room;  /* length of entries: 0 or a power of two */
	size_t count; /* entries in use */
	uint64_t seed;
};

/* An empty map that holds no memory yet. */
void spokei_map_init(struct spokei_map *map, const struct spoke_env *env);

/* Gives the memory back; values are not touched. The map is empty then and may be used again. */
void spokei_map_fini(struct spokei_map *map);

/* Adds an entry; `value` is not NULL. Returns 0, SPOKE_EEXIST or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_map_add(struct spokei_map *map, const void *key, size_t len, void *value);

/* The value of a key, or NULL. */
void *spokei_map_get(const struct spokei_map *map, const void *key, size_t len);

/* Removes an entry; returns its value, or NULL. */
void *spokei_map_remove(struct spokei_map *map, const void *key, size_t len);

/* Goes through all values in no particular order: start with *place == 0; NULL at the end. The map
 * must not change meanwhile. */
void *spokei_map_each(const struct spokei_map *map, size_t *place);

#endif
