/* SPDX-License-Identifier: Apache-2.0 */
/* Finds repeated keys: those of the innermost object are at the end of the list. */
#include "examples/spoke/json_keys.h"

#include <stdlib.h>
#include <string.h>

static bool make_room(struct json_keys *keys)
{
	size_t room = keys->room ? 2 * keys->room : 16;
	struct json_key *grown;

	if (keys->count < keys->room)
		return true;
	grown = realloc(keys->keys, room * sizeof(*grown));
	if (!grown)
		return false;
	keys->keys = grown;
	keys->room = room;
	return true;
}

bool json_keys_add(struct json_keys *keys, unsigned depth, const char *text, size_t len,
		   bool *ret_memory)
{
	for (size_t i = keys->count; i > 0 && keys->keys[i - 1].depth == depth; i--)
		if (keys->keys[i - 1].len == len && memcmp(keys->keys[i - 1].text, text, len) == 0)
			return false;
	*ret_memory = !make_room(keys);
	if (*ret_memory)
		return false;
	keys->keys[keys->count++] = (struct json_key){ text, len, depth };
	return true;
}

void json_keys_close(struct json_keys *keys, unsigned depth)
{
	while (keys->count > 0 && keys->keys[keys->count - 1].depth >= depth)
		keys->count--;
}

void json_keys_free(struct json_keys *keys)
{
	free(keys->keys);
}
