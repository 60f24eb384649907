/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of the objects that are open, to find one that is repeated: those of the innermost
 * object are at the end of the list. */
#ifndef SPOKEI_CORE_JSON_KEYS_H
#define SPOKEI_CORE_JSON_KEYS_H

#include "core/base/env.h"

#include <stdbool.h>
#include <stddef.h>

struct spokei_json_key {
	const char *text; /* borrowed */
	size_t len;
	unsigned depth; /* of its object */
};

#define SPOKEI_JSON_KEYS_FEW 32u /* keys that need no memory */

/* Must not be copied. */
struct spokei_json_keys {
	const struct spoke_env *env;  /* NULL: there is no memory for more keys */
	struct spokei_json_key *keys; /* `few`, or memory of the environment */
	size_t count;
	size_t room;
	struct spokei_json_key few[SPOKEI_JSON_KEYS_FEW];
};

void spokei_json_keys_init(struct spokei_json_keys *keys, const struct spoke_env *env);
void spokei_json_keys_fini(struct spokei_json_keys *keys);

/* Adds a key of the object of this depth. Returns 0, SPOKE_EEXIST if a short object has it already,
 * or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_json_keys_add(struct spokei_json_keys *keys, unsigned depth,
					const char *text, size_t len);

/* Ends the object of this depth. Returns a key that it has twice; NULL: none. */
const char *spokei_json_keys_close(struct spokei_json_keys *keys, unsigned depth);

#endif
