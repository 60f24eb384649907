/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and builds the values that only Java has: names of types, objects of a class, and
 * timestamps. They are maps and exts with a documented form. Stateless; any thread.
 */
#include "core/value/java.h"

#include "core/value/encode.h"

#define TIMESTAMP (-1)
#define NS_MAX 999999999u

/* --- objects */

static bool is_letter(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
	       c >= 0x80;
}

size_t spokei_java_identifiers(struct spoke_span text)
{
	const unsigned char *at = text.data;
	bool begins = true;
	size_t count = 0;

	for (size_t i = 0; i < text.len; i++) {
		if (is_letter(at[i]) || (at[i] >= '0' && at[i] <= '9' && !begins)) {
			count += begins;
			begins = false;
		} else if (at[i] == '.' && !begins) {
			begins = true;
		} else {
			return 0;
		}
	}
	return begins ? 0 : count;
}

/* Returns whether a reader made the map of an object; see SPOKEI_OBJECT_HEAD. */
static bool was_read(struct spoke_value map, struct spoke_value key)
{
	return map.data[0] == SPOKEI_OBJECT_HEAD &&
	       (spokei_number(map.data + 1, 2) <= SPOKEI_OBJECT_SHORT || key.data[0] == 0xd9);
}

bool spokei_is_object(enum spokei_objects objects, struct spoke_value map, struct spoke_value key,
		      struct spoke_value value, struct spoke_span *ret_class)
{
	struct spoke_span name;
	struct spoke_span text;

	if (!spokei_may_be_object(objects, *map.data) || !spokei_plain_str(key, &name) ||
	    name.len != 5 || memcmp(name.data, "class", 5) != 0 || !spokei_plain_str(value, &text))
		return false;
	if (objects != SPOKEI_OBJECTS_ANY && !was_read(map, key) &&
	    spokei_java_identifiers(text) < 2)
		return false;
	*ret_class = text;
	return true;
}

static int class_of_map(struct spoke_value map, struct spoke_span *ret)
{
	struct spoke_value key = { 0 };
	struct spoke_value value = { 0 };
	struct spoke_cursor pairs;
	struct spoke_span name;

	if (spoke_cursor_map(map, &pairs) != 0)
		return SPOKE_ETYPE;
	while (spoke_cursor_next_pair(&pairs, &key, &value))
		if (!spokei_plain_str(key, &name))
			return SPOKE_ENOENT;
	return spokei_is_object(SPOKEI_OBJECTS_NAMED, map, key, value, ret) ? 0 : SPOKE_ENOENT;
}

int spoke_value_class(struct spoke_value value, struct spoke_span *ret)
{
	enum spoke_value_type type = spoke_value_type(value);
	struct spokei_pair pair;
	struct spoke_span payload;
	int8_t ext;

	if (type != SPOKE_VALUE_ARRAY && type != SPOKE_VALUE_MAP)
		return SPOKE_ETYPE;
	while (spoke_value_ext(value, &ext, &payload) == 0) {
		const unsigned char *content = payload.data;

		if (!spokei_shape_open_ext(content - 1, payload.len + 1, &pair))
			return SPOKE_ENOENT;
		if (ext == SPOKE_EXT_TYPED)
			return spoke_value_str(pair.head, ret);
		value = pair.inside;
	}
	return type == SPOKE_VALUE_MAP ? class_of_map(value, ret) : SPOKE_ENOENT;
}

void spoke_pack_class(struct spoke_builder *builder, const char *name)
{
	spoke_pack_str(builder, "class", 5);
	spoke_pack_text(builder, name);
}

void spoke_pack_enum(struct spoke_builder *builder, const char *type, const char *name)
{
	spoke_pack_object(builder, 1);
	spoke_pack_text(builder, "name");
	spoke_pack_text(builder, name);
	spoke_pack_class(builder, type);
}

void spoke_pack_decimal(struct spoke_builder *builder, const char *digits)
{
	spoke_pack_object(builder, 1);
	spoke_pack_text(builder, "value");
	spoke_pack_text(builder, digits);
	spoke_pack_class(builder, "java.math.BigDecimal");
}

/* --- timestamps */

int spoke_value_time(struct spoke_value value, int64_t *ret_seconds, uint32_t *ret_ns)
{
	struct spoke_span content;
	const unsigned char *at;
	uint64_t seconds;
	uint64_t ns = 0;
	int8_t type;

	if (spoke_value_ext(value, &type, &content) != 0 || type != TIMESTAMP)
		return SPOKE_ETYPE;
	at = content.data;
	if (content.len == 4) {
		seconds = spokei_number(at, 4);
	} else if (content.len == 8) {
		seconds = spokei_number(at, 8);
		ns = seconds >> 34;
		seconds &= (UINT64_C(1) << 34) - 1;
	} else if (content.len == 12) {
		ns = spokei_number(at, 4);
		seconds = spokei_number(at + 4, 8);
	} else {
		return SPOKE_ETYPE;
	}
	if (ns > NS_MAX)
		return SPOKE_ERANGE;
	*ret_seconds = seconds > INT64_MAX ? -(int64_t)~seconds - 1 : (int64_t)seconds;
	*ret_ns = (uint32_t)ns;
	return 0;
}

void spoke_pack_time(struct spoke_builder *builder, int64_t seconds, uint32_t ns)
{
	unsigned char bytes[12];
	unsigned char *end = spokei_encode_time(bytes, seconds, ns);

	if (ns > NS_MAX && builder->error == 0)
		builder->error = SPOKE_EINVAL;
	spoke_pack_ext(builder, TIMESTAMP, bytes, (size_t)(end - bytes));
}
