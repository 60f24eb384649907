/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a tracestate: a list of members "key=value", separated by commas. */
#include "cluster/trace/state.h"

#include <spoke/trace.h>

#include <string.h>

#define MEMBERS_MAX 32u
#define PART_MAX 256u /* bytes of a key, and of a value */

struct part {
	const unsigned char *data;
	size_t len;
};

static bool is_alnum(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_space(unsigned char c)
{
	return c == ' ' || c == '\t';
}

static bool is_key(struct part key)
{
	if (key.len == 0 || key.len > PART_MAX || !is_alnum(key.data[0]))
		return false;
	for (size_t i = 1; i < key.len; i++)
		if (!is_alnum(key.data[i]) &&
		    (key.data[i] == '\0' || strchr("_-*/@", key.data[i]) == NULL))
			return false;
	return true;
}

static bool is_value(struct part value)
{
	if (value.len == 0 || value.len > PART_MAX)
		return false;
	for (size_t i = 0; i < value.len; i++)
		if (value.data[i] < 0x20 || value.data[i] > 0x7e || value.data[i] == '=')
			return false;
	return true;
}

/* Cuts the next member off, without the spaces around it. */
static struct part next_member(struct part *rest)
{
	const unsigned char *comma = memchr(rest->data, ',', rest->len);
	size_t len = comma ? (size_t)(comma - rest->data) : rest->len;
	struct part member = { rest->data, len };

	rest->data += len + (comma != NULL);
	rest->len -= len + (comma != NULL);
	for (; member.len > 0 && is_space(member.data[0]); member.len--)
		member.data++;
	while (member.len > 0 && is_space(member.data[member.len - 1]))
		member.len--;
	return member;
}

bool spokei_trace_state_check(struct spoke_span text)
{
	struct part rest = { text.data, text.len };
	struct part keys[MEMBERS_MAX];
	size_t count = 0;

	if (text.len > SPOKE_TRACE_STATE_MAX)
		return false;
	while (rest.len > 0) {
		struct part member = next_member(&rest);
		const unsigned char *equals;
		struct part key;

		if (member.len == 0)
			continue; /* empty members are allowed */
		equals = memchr(member.data, '=', member.len);
		if (equals == NULL || count == MEMBERS_MAX)
			return false;
		key = (struct part){ member.data, (size_t)(equals - member.data) };
		member = (struct part){ equals + 1, member.len - key.len - 1 };
		if (!is_key(key) || !is_value(member))
			return false;
		for (size_t i = 0; i < count; i++)
			if (keys[i].len == key.len && memcmp(keys[i].data, key.data, key.len) == 0)
				return false;
		keys[count++] = key;
	}
	return count > 0;
}
