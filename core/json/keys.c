/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds repeated keys. A few keys are compared as they come; more are sorted when the object ends,
 * by a heap, whose time has a bound for any keys.
 */
#include "core/json/keys.h"

#include <spoke/error.h>

#include <string.h>

#define FEW 16u

void spokei_json_keys_init(struct spokei_json_keys *keys, const struct spoke_env *env)
{
	keys->env = env;
	keys->keys = keys->few;
	keys->count = 0;
	keys->room = SPOKEI_JSON_KEYS_FEW;
}

void spokei_json_keys_fini(struct spokei_json_keys *keys)
{
	if (keys->keys != keys->few)
		spokei_free(keys->env, keys->keys, keys->room, sizeof(*keys->keys));
}

static int make_room(struct spokei_json_keys *keys)
{
	struct spokei_json_key *grown;

	if (keys->count < keys->room)
		return SPOKE_OK;
	grown = keys->env ? spokei_alloc_unset(keys->env, 2 * keys->room * sizeof(*grown)) : NULL;
	if (grown == NULL)
		return SPOKE_ENOMEM;
	memcpy(grown, keys->keys, keys->count * sizeof(*grown));
	spokei_json_keys_fini(keys);
	keys->keys = grown;
	keys->room *= 2;
	return SPOKE_OK;
}

static bool is_same(const struct spokei_json_key *a, const char *text, size_t len)
{
	return a->len == len && memcmp(a->text, text, len) == 0;
}

int spokei_json_keys_add(struct spokei_json_keys *keys, unsigned depth, const char *text,
			 size_t len)
{
	size_t least = keys->count > FEW ? keys->count - FEW : 0;

	for (size_t i = keys->count; i > least && keys->keys[i - 1].depth == depth; i--)
		if (is_same(&keys->keys[i - 1], text, len))
			return SPOKE_EEXIST;
	if (make_room(keys))
		return SPOKE_ENOMEM;
	keys->keys[keys->count++] = (struct spokei_json_key){ text, len, depth };
	return SPOKE_OK;
}

/* By length first: any order will do. */
static bool is_less(const struct spokei_json_key *a, const struct spokei_json_key *b)
{
	return a->len != b->len ? a->len < b->len : memcmp(a->text, b->text, a->len) < 0;
}

/* Lets the key at `at` sink to its place in a heap of `count` keys. */
static void sink(struct spokei_json_key *keys, size_t at, size_t count)
{
	struct spokei_json_key key = keys[at];

	for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
		child += child + 1 < count && is_less(&keys[child], &keys[child + 1]);
		if (!is_less(&key, &keys[child]))
			break;
		keys[at] = keys[child];
		at = child;
	}
	keys[at] = key;
}

static void sort(struct spokei_json_key *keys, size_t count)
{
	for (size_t at = count / 2; at-- > 0;)
		sink(keys, at, count);
	while (count-- > 1) {
		struct spokei_json_key greatest = keys[0];

		keys[0] = keys[count];
		keys[count] = greatest;
		sink(keys, 0, count);
	}
}

const char *spokei_json_keys_close(struct spokei_json_keys *keys, unsigned depth)
{
	size_t end = keys->count;
	struct spokei_json_key *first;

	while (keys->count > 0 && keys->keys[keys->count - 1].depth >= depth)
		keys->count--;
	if (end - keys->count <= FEW + 1)
		return NULL;
	first = keys->keys + keys->count;
	sort(first, end - keys->count);
	for (size_t i = 1; i < end - keys->count; i++)
		if (is_same(&first[i - 1], first[i].text, first[i].len))
			return first[i].text > first[i - 1].text ? first[i].text
								 : first[i - 1].text;
	return NULL;
}
