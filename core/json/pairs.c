/* SPDX-License-Identifier: Apache-2.0 */
/* Decides on the form of a map, by a look at its keys. */
#include "core/json/pairs.h"

#include "core/json/plain.h"
#include "core/text/utf8.h"
#include "core/value/shape.h"

#include <string.h>

struct key {
	const unsigned char *at; /* its head */
	size_t len;              /* with the head */
};

/* Reads a key of any map. Returns false if it is not a text in UTF-8. */
static bool read_key(const unsigned char *at, const unsigned char *end, struct key *ret)
{
	size_t len = spokei_shape_hop(at, end);
	size_t head = 1u + spokei_shapes[*at].width;

	*ret = (struct key){ at, len };
	if (len == 0 || spokei_shapes[*at].type != SPOKE_VALUE_STR)
		return false;
	head += spokei_json_plain_before((const char *)at + head, len - head, (const char *)end);
	return head == len || spokei_utf8_all(at + head, len - head);
}

/* Is the only key, or the first one of several, a marker? A single key that begins with a dollar is
 * one, so that there can be more markers later; but "$ref" is that of JSON Schema and OpenAPI. */
static bool is_marker(const struct key *key, uint64_t count)
{
	static const char *const names[] = { "bin", "str",  "ext",  "float",
					     "map", "date", "long", "typed" };
	const char *text = (const char *)key->at + 1 + spokei_shapes[*key->at].width;
	size_t len = key->len - (size_t)(text - (const char *)key->at);

	if (len == 0 || *text != '$')
		return false;
	if (count == 1)
		return len != sizeof("$ref") - 1 || memcmp(text, "$ref", len) != 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (len == 1 + strlen(names[i]) && memcmp(text + 1, names[i], len - 1) == 0)
			return true;
	return false;
}

static bool are_same(const struct key *a, const struct key *b)
{
	return a->len == b->len && a->at[a->len - 1] == b->at[b->len - 1] &&
	       memcmp(a->at, b->at, a->len) == 0;
}

/* Skips an array or map. Returns NULL if it has more bytes than are left to be skipped. */
static const unsigned char *skip(const unsigned char *at, const unsigned char *end, size_t *skips)
{
	const unsigned char *stop = *skips < (size_t)(end - at) ? at + *skips : end;
	const unsigned char *after = spokei_shape_skip(at, stop);

	*skips -= (size_t)((after ? after : stop) - at);
	return after;
}

bool spokei_pairs_are_object(const unsigned char *at, const unsigned char *end, uint64_t count,
			     size_t *skips)
{
	struct key keys[SPOKEI_PAIRS_COMPARED];
	size_t compared = 0;

	for (uint64_t left = count; left > 0 && at != end; left--) {
		struct key key;
		size_t len;

		if (!read_key(at, end, &key) || (left == count && is_marker(&key, count)))
			return false;
		for (size_t i = 0; i < compared; i++)
			if (are_same(&keys[i], &key))
				return false;
		if (count <= SPOKEI_PAIRS_COMPARED)
			keys[compared++] = key;
		at += key.len;
		if (at == end || left == 1)
			break;
		len = spokei_shape_hop(at, end);
		at = len > 0 ? at + len : skip(at, end, skips);
		if (at == NULL)
			return false;
	}
	return true;
}
