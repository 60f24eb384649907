/* SPDX-License-Identifier: Apache-2.0 */
/* Packs decoded values again: see rebuild.h. */
#include "tests/core/value/rebuild.h"

static void rebuild_int(struct spoke_builder *builder, struct spoke_value value)
{
	uint64_t large;
	int64_t number;

	if (spoke_value_i64(value, &number) == 0)
		spoke_pack_i64(builder, number);
	else if (spoke_value_u64(value, &large) == 0)
		spoke_pack_u64(builder, large);
}

static void rebuild_double(struct spoke_builder *builder, struct spoke_value value)
{
	double number = 0;

	if (spoke_value_double(value, &number) != 0)
		return;
	if (value.len == 1 + sizeof(float))
		spoke_pack_float(builder, (float)number);
	else
		spoke_pack_double(builder, number);
}

static void rebuild_content(struct spoke_builder *builder, struct spoke_value value)
{
	struct spoke_span content;

	if (spoke_value_str(value, &content) == 0)
		spoke_pack_str(builder, content.data, content.len);
	else if (spoke_value_bin(value, &content) == 0)
		spoke_pack_bin(builder, content.data, content.len);
}

/* Adds a value. Returns true for a container, which is opened and whose values must follow. */
static bool rebuild_value(struct spoke_builder *builder, struct spoke_value value,
			  struct spoke_cursor *ret_inside)
{
	struct spoke_span content;
	int8_t type;
	bool truth;
	size_t len;

	if (spoke_value_ext(value, &type, &content) == 0) {
		spoke_pack_ext(builder, type, content.data, content.len);
		return false;
	}
	switch (spoke_value_type(value)) {
	case SPOKE_VALUE_NIL:
		spoke_pack_nil(builder);
		return false;
	case SPOKE_VALUE_BOOL:
		if (spoke_value_bool(value, &truth) == 0)
			spoke_pack_bool(builder, truth);
		return false;
	case SPOKE_VALUE_INT:
		rebuild_int(builder, value);
		return false;
	case SPOKE_VALUE_DOUBLE:
		rebuild_double(builder, value);
		return false;
	case SPOKE_VALUE_ARRAY:
		if (spoke_value_array_len(value, &len) == 0)
			spoke_pack_array(builder, len);
		return spoke_cursor_array(value, ret_inside) == 0;
	case SPOKE_VALUE_MAP:
		if (spoke_value_map_len(value, &len) == 0)
			spoke_pack_map(builder, len);
		return spoke_cursor_map(value, ret_inside) == 0;
	case SPOKE_VALUE_STR:
	case SPOKE_VALUE_BIN:
	case SPOKE_VALUE_EXT:
		rebuild_content(builder, value);
		return false;
	case SPOKE_VALUE_NONE:
		break;
	}
	return false;
}

const char *rebuild(struct spoke_builder *builder, struct spoke_cursor values)
{
	struct spoke_cursor levels[SPOKE_VALUE_DEPTH_MAX + 2];
	size_t depth = 0;
	struct spoke_value value;

	levels[0] = values;
	for (;;) {
		while (!spoke_cursor_next(&levels[depth], &value)) {
			if (spoke_cursor_rest(&levels[depth]).len > 0)
				return "a cursor stops before the end of its bytes";
			if (depth-- == 0)
				return NULL;
		}
		if (rebuild_value(builder, value, &levels[depth + 1]) &&
		    ++depth > SPOKE_VALUE_DEPTH_MAX)
			return "deeper than a value may be";
	}
}
