/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the fields and the class of a map that is an object. Values inside the map are passed
 * over, not looked at. */
#include "transport/codec/hessian2/object.h"

#include <string.h>

/* Passes a value of a map, and counts the bytes of a container. Each map that lies in another one
 * is passed once for each, so the sum is bounded: see SPOKEI_HESSIAN2_PASSES. */
static bool pass_value(struct spokei_hessian2_writer *writer, struct spoke_value value)
{
	if (spokei_shapes[*value.data].each == 0)
		return true;
	if (value.len > writer->passes) {
		spokei_hessian2_put_fail(&writer->put, SPOKE_EDEPTH);
		return false;
	}
	writer->passes -= value.len;
	return true;
}

/* Reads the pairs of a map. Returns false unless all keys are str and all pairs are there. Writes
 * the last pair, if there is one. */
static bool read_fields(struct spokei_hessian2_writer *writer, struct spoke_cursor *pairs,
			struct spokei_hessian2_class *class, struct spoke_value *ret_key,
			struct spoke_value *ret_value)
{
	size_t count = (size_t)pairs->left / 2;
	struct spoke_span name;
	size_t i = 0;

	class->pairs = spoke_cursor_rest(pairs);
	for (; spoke_cursor_next_pair(pairs, ret_key, ret_value); i++) {
		if (!spokei_plain_str(*ret_key, &name) || !pass_value(writer, *ret_value))
			return false;
		spokei_hessian2_keep_key(class, i, ret_key->data);
	}
	return i == count;
}

bool spokei_hessian2_find_fields(struct spokei_hessian2_writer *writer,
				 struct spokei_hessian2_object *ret)
{
	struct spoke_cursor pairs;
	struct spoke_value value;
	struct spoke_value key;

	if (spokei_hessian2_type(writer) != SPOKE_VALUE_MAP ||
	    spoke_cursor_map(spokei_hessian2_peek(writer), &pairs) != 0)
		return false;
	ret->class.renamed = false;
	ret->class.fields = (size_t)pairs.left / 2;
	if (!read_fields(writer, &pairs, &ret->class, &key, &value))
		return false;
	ret->end = pairs.at;
	return true;
}

/* Returns whether a generic call has objects of this class, as Java does for numbers, dates and
 * times. Of other classes it has maps with the field "class". */
static bool stays_object(struct spoke_span class)
{
	static const char *const packages[] = { "java.", "com.alibaba.com.caucho.hessian." };

	for (size_t i = 0; i < 2; i++) {
		size_t len = strlen(packages[i]);

		if (class.len > len && memcmp(class.data, packages[i], len) == 0)
			return true;
	}
	return false;
}

bool spokei_hessian2_find_object(struct spokei_hessian2_writer *writer, bool any,
				 struct spokei_hessian2_object *ret)
{
	enum spokei_objects objects = any ? SPOKEI_OBJECTS_ANY : SPOKEI_OBJECTS_NAMED;
	struct spoke_value map = spokei_hessian2_peek(writer);
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;
	struct spoke_span name;

	if (spokei_hessian2_type(writer) != SPOKE_VALUE_MAP ||
	    !spokei_may_be_object(objects, *map.data) || spoke_cursor_map(map, &pairs) != 0 ||
	    pairs.left == 0)
		return false;
	ret->class.renamed = false;
	ret->class.fields = (size_t)pairs.left / 2 - 1;
	if (!read_fields(writer, &pairs, &ret->class, &key, &value) ||
	    !spokei_is_object(objects, map, key, value, &name) ||
	    (writer->generic && !any && !stays_object(name)))
		return false;
	ret->class.name = spokei_hessian2_name_of(name);
	ret->end = pairs.at;
	return true;
}
