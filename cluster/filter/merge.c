/* SPDX-License-Identifier: Apache-2.0 */
/* Adds attachments to those of a call. */
#include "cluster/filter/merge.h"

#include "transport/wire/attachments.h"

/* Has the map an entry with this key? */
static bool has_key(struct spoke_value map, struct spoke_value wanted)
{
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;

	if (spoke_cursor_map(map, &pairs) != 0)
		return false;
	while (spoke_cursor_next_pair(&pairs, &key, &value))
		if (spoke_value_equal(key, wanted))
			return true;
	return false;
}

/* Counts the pairs of a map whose keys `except` does not have, and appends them, unless `to` is
 * NULL. */
static int put_pairs(struct spokei_buffer *to, struct spoke_value map, struct spoke_value except,
		     uint32_t *count)
{
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;
	int error = SPOKE_OK;

	if (map.len == 0 || spoke_cursor_map(map, &pairs) != 0)
		return SPOKE_OK;
	while (error == 0 && spoke_cursor_next_pair(&pairs, &key, &value)) {
		if (except.len > 0 && has_key(except, key))
			continue;
		++*count;
		if (to)
			error = spokei_buffer_append(to, key.data, key.len);
		if (to && error == 0)
			error = spokei_buffer_append(to, value.data, value.len);
	}
	return error;
}

static int put_all(struct spokei_buffer *to, struct spoke_value base, struct spoke_value added,
		   uint32_t *count)
{
	static const struct spoke_value none;
	int error = put_pairs(to, added, none, count);

	return error ? error : put_pairs(to, base, added, count);
}

static int merge(struct spokei_buffer *all, struct spoke_value base, struct spoke_value added)
{
	uint32_t count = 0;
	unsigned char head[5] = { 0xdf }; /* map, with the number of pairs in four bytes */
	int error = put_all(NULL, base, added, &count);

	for (unsigned i = 1; i < sizeof(head); i++)
		head[i] = (unsigned char)(count >> (32 - 8 * i));
	if (error == 0)
		error = spokei_buffer_append(all, head, sizeof(head));
	if (error == 0)
		error = put_all(all, base, added, &count);
	if (error)
		return error;
	return spokei_attachments_check((struct spoke_value){ spokei_buffer_data(all),
							      spokei_buffer_len(all) },
					false);
}

int spokei_merge_attachments(struct spokei_buffer *map, struct spoke_value base,
			     struct spoke_value added)
{
	struct spokei_buffer all;
	int error = spokei_attachments_check(added, false);

	if (error)
		return error;
	spokei_buffer_init(&all, map->env, map->max);
	error = merge(&all, base, added);
	if (error) {
		spokei_buffer_fini(&all);
		return error;
	}
	spokei_buffer_fini(map);
	*map = all;
	return SPOKE_OK;
}
