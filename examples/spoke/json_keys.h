/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of the objects that are open, to find one that is repeated. */
#ifndef COMMAND_JSON_KEYS_H
#define COMMAND_JSON_KEYS_H

#include <stdbool.h>
#include <stddef.h>

struct json_key {
	const char *text; /* borrowed */
	size_t len;
	unsigned depth; /* of its object */
};

/* Zero-initialised: none. */
struct json_keys {
	struct json_key *keys;
	size_t count;
	size_t room;
};

/* Adds a key. Returns false if its object has it already, or, with *ret_memory set, if there is no
 * memory. */
bool json_keys_add(struct json_keys *keys, unsigned depth, const char *text, size_t len,
		   bool *ret_memory);

/* Forgets the keys of the objects of this depth and deeper. */
void json_keys_close(struct json_keys *keys, unsigned depth);

void json_keys_free(struct json_keys *keys);

#endif
