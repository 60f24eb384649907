/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the members of a document. */
#include "examples/spoke/fields.h"

#include "examples/spoke/escape.h"

struct spoke_value field_child(struct spoke_value map, const char *key)
{
	struct spoke_value value;

	return spoke_value_get(map, key, &value) == SPOKE_OK ? value : (struct spoke_value){ 0 };
}

bool field_has_number(struct spoke_value map, const char *key, double *ret)
{
	return spoke_value_double(field_child(map, key), ret) == SPOKE_OK;
}

double field_number(struct spoke_value map, const char *key)
{
	double value;

	return field_has_number(map, key, &value) ? value : 0;
}

uint64_t field_count(struct spoke_value map, const char *key)
{
	uint64_t value;

	return spoke_value_u64(field_child(map, key), &value) == SPOKE_OK ? value : 0;
}

/* Returns a text, escaped, in one of a few buffers used in turn: valid for one line. */
const char *field_text(struct spoke_value map, const char *key)
{
	static char texts[4][FIELD_TEXT];
	static unsigned turn;
	struct spoke_span span = { NULL, 0 };
	char *place = texts[turn++ % 4];

	if (spoke_value_str(field_child(map, key), &span) != SPOKE_OK)
		span.len = 0;
	(void)escape_text(span, place, FIELD_TEXT);
	return place;
}

bool field_is_true(struct spoke_value map, const char *key)
{
	bool value;

	return spoke_value_bool(field_child(map, key), &value) == SPOKE_OK && value;
}

/* Returns a cursor over an array; an empty one if there is none. */
struct spoke_cursor field_list(struct spoke_value map, const char *key)
{
	struct spoke_cursor cursor;

	if (spoke_cursor_array(field_child(map, key), &cursor) != SPOKE_OK)
		cursor = spoke_cursor_bytes((struct spoke_span){ NULL, 0 });
	return cursor;
}

size_t field_list_len(struct spoke_value map, const char *key)
{
	size_t len;

	return spoke_value_array_len(field_child(map, key), &len) == SPOKE_OK ? len : 0;
}

struct spoke_value field_last_of(struct spoke_value map, const char *key)
{
	struct spoke_cursor cursor = field_list(map, key);
	struct spoke_value last = { NULL, 0 };
	struct spoke_value value;

	while (spoke_cursor_next(&cursor, &value))
		last = value;
	return last;
}
