/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the attachments that a user passes. */
#include "transport/wire/attachments.h"

#include <string.h>

static bool is_ours(struct spoke_value key)
{
	struct spoke_span text;

	return spoke_value_str(key, &text) == 0 &&
	       ((text.len == 7 && memcmp(text.data, "timeout", 7) == 0) ||
		(text.len == 3 && memcmp(text.data, "_TO", 3) == 0));
}

/* Returns true if the key is among the first `count`. */
static bool is_among(struct spoke_value key, struct spoke_cursor keys, size_t count)
{
	struct spoke_value other;
	struct spoke_value value;

	while (count-- > 0 && spoke_cursor_next_pair(&keys, &other, &value))
		if (spoke_value_equal(other, key))
			return true;
	return false;
}

int spokei_attachments_check(struct spoke_value attachments, bool of_reply)
{
	struct spoke_value checked;
	struct spoke_cursor pairs;
	struct spoke_cursor all;
	struct spoke_value key;
	struct spoke_value value;
	size_t count = 0;
	int error;

	if (attachments.len == 0)
		return SPOKE_OK;
	error = spoke_value_check(attachments.data, attachments.len, NULL, &checked);
	if (error == 0)
		error = spoke_cursor_map(checked, &pairs);
	if (error)
		return error;
	for (all = pairs; spoke_cursor_next_pair(&pairs, &key, &value); count++) {
		if (spoke_value_type(key) != SPOKE_VALUE_STR)
			return SPOKE_ETYPE;
		if (!of_reply && is_ours(key))
			return SPOKE_EINVAL;
		if (is_among(key, all, count))
			return SPOKE_EEXIST;
		if (count == SPOKEI_ATTACHMENTS_MAX)
			return SPOKE_ELIMIT;
	}
	return SPOKE_OK;
}
