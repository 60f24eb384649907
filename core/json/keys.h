/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of an object or a $map, to find one that is repeated. The packed keys are the only copy;
 * their places are noted in the text of the object itself, from its bracket on. That text has been
 * read, and each member of it has more bytes than the place of its key.
 */
#ifndef SPOKEI_CORE_JSON_KEYS_H
#define SPOKEI_CORE_JSON_KEYS_H

#include <spoke/value.h>

#include <string.h>

#define SPOKEI_JSON_KEYS_FEW 16u /* keys that are compared at once */

struct spokei_json_keys {
	char *places;   /* 4 bytes for each key: its offset among the packed bytes */
	uint32_t count; /* keys so far */
};

/* Adds the key that was packed last, at this offset, after its colon has been read. Returns false
 * if one of the few keys before it is the same. */
SPOKE_MUST_USE bool spokei_json_keys_add(struct spokei_json_keys *keys,
					 const struct spoke_builder *builder, size_t at);

/* Returns whether a key is repeated in an object that has ended. Sorts the places. */
SPOKE_MUST_USE bool spokei_json_keys_repeat(struct spokei_json_keys *keys,
					    const struct spoke_builder *builder);

#endif
