/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash map from byte strings to pointers. The map borrows a key until its entry is removed; the
 * key usually belongs to the value. The hash has a random key, so that peers cannot choose names
 * that collide. Owned by one object, on its thread.
 */
#ifndef SPOKEI_CORE_MEMORY_MAP_H
#define SPOKEI_CORE_MEMORY_MAP_H

#include "timer/base.h"

#include <spoke/env.h>

struct spokei_map_entry {
	const void *key; /* NULL: a free entry */
	void *value;
	uint32_t key_len;
	uint32_t hash;
};

#define SPOKEI_MAP_ROOM_AT_ONCE 1024u /* a table with more entries grows in steps */

struct spokei_map {
	const struct spoke_env *env; /* borrowed for the map's life */
	struct spokei_map_entry *entries;
	size_t room;     /* length of `entries`: 0 or a power of two */
	size_t count;    /* entries in use, also those of `old` */
	size_t limit;    /* an addition to so many entries has to look further */
	uint64_t key[2]; /* of the hash */
	/* A table of twice the room that will replace `entries`, while it is being cleared. */
	struct spokei_map_entry *later;
	size_t cleared; /* its first entries are */
	/* The table before `entries`, of half the room, while its entries move. */
	struct spokei_map_entry *old;
	size_t old_size; /* in bytes */
	size_t left;     /* only its first entries are in use; it is being freed from the end */
};

/* Initialises an empty map, which holds no memory. */
void spokei_map_init(struct spokei_map *map, const struct spoke_env *env);

/* Frees the memory, but not the values. The map is empty afterwards and may be used again. */
void spokei_map_fini(struct spokei_map *map);

/* Adds an entry; `value` is not NULL. Returns 0, SPOKE_EEXIST or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_map_add(struct spokei_map *map, const void *key, size_t len, void *value);

/* Does the same. *ret_present: after EEXIST, the value that the key has. */
SPOKE_MUST_USE int spokei_map_put(struct spokei_map *map, const void *key, size_t len, void *value,
				  void **ret_present);

/* Returns the value of a key, or NULL. */
void *spokei_map_get(const struct spokei_map *map, const void *key, size_t len);

/* Removes an entry; returns its value, or NULL. */
void *spokei_map_remove(struct spokei_map *map, const void *key, size_t len);

/* Iterates over all values in no particular order: start with *place == 0; returns NULL at the end.
 * The map must not change during the iteration. */
void *spokei_map_each(const struct spokei_map *map, size_t *place);

#endif
