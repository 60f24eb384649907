/* SPDX-License-Identifier: Apache-2.0 */
/* Iterates over the table of keys by section. */
#include "examples/spoke/config.h"

#include <stdio.h>
#include <string.h>

static bool key_at(size_t index, struct spoke_config_key *ret_key)
{
	return spoke_config_key(index, ret_key);
}

/* Is this key the first one of its sections? */
static bool begins_group(size_t index)
{
	struct spoke_config_key key;
	struct spoke_config_key other;

	(void)key_at(index, &key);
	for (size_t i = 0; i < index && key_at(i, &other); i++)
		if (strcmp(other.sections, key.sections) == 0)
			return false;
	return true;
}

/* The next key of the present group, from `next` on. */
static bool find_member(struct config_walk *walk)
{
	struct spoke_config_key group;

	(void)key_at(walk->group, &group);
	for (size_t i = walk->next; key_at(i, &walk->key); i++) {
		if (strcmp(walk->key.sections, group.sections) != 0)
			continue;
		walk->next = i + 1;
		return true;
	}
	return false;
}

bool config_walk(struct config_walk *walk)
{
	struct spoke_config_key key;
	size_t next = walk->begun ? walk->group + 1 : 0;

	walk->first = false;
	if (walk->begun && find_member(walk))
		return true;
	while (key_at(next, &key) && !begins_group(next))
		next++;
	if (!key_at(next, &key))
		return false;
	walk->begun = true;
	walk->first = true;
	walk->group = next;
	walk->next = next;
	return find_member(walk);
}

void config_print_sections(const char *sections)
{
	const char *before = "[";

	while (*sections) {
		size_t len = strcspn(sections, ",");

		printf("%s%.*s]", before, (int)len, sections);
		before = ", [";
		sections += len + strspn(sections + len, ", ");
	}
}
