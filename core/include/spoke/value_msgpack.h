/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts values to msgpack_object and back, for programs that use msgpack-c themselves. No other
 * header of spoke includes <msgpack.h>. All functions are inline, so the interface of the library
 * does not depend on the version of msgpack-c (4.0 or later). The program must link msgpack-c.
 *
 *     msgpack_zone zone;
 *     msgpack_object object;
 *
 *     if (!msgpack_zone_init(&zone, MSGPACK_ZONE_CHUNK_SIZE))
 *             return SPOKE_ENOMEM;
 *     error = spoke_value_to_msgpack(result->value, NULL, &zone, &object);
 *     ...
 *     spoke_pack_msgpack(&builder, &object);
 *     error = spoke_builder_finish(&builder, &args);
 *     msgpack_zone_destroy(&zone);
 *
 * A typed array or map, and a reference, become the array or map inside. These functions convert up
 * to SPOKE_VALUE_DEPTH_MAX levels; msgpack_unpack_next() of msgpack-c itself rejects more than 32.
 *
 * Stateless; any thread, one at a time for a zone or a builder. The functions do not recurse. Names
 * that begin with spokei_ are internal.
 */
#ifndef SPOKE_VALUE_MSGPACK_H
#define SPOKE_VALUE_MSGPACK_H

#include <spoke/value.h>

#include <msgpack.h>

SPOKE_BEGIN_DECLS

/* An array or map during a traversal; a map has two children for each pair. */
struct spokei_msgpack_open {
	const msgpack_object *container;
	uint64_t next;
	uint64_t end;
	struct spoke_cursor cursor; /* over the source values, when converting to an object */
};

/* Returns the number of children; 0 unless the object is an array or map. */
static inline uint64_t spokei_msgpack_children(const msgpack_object *object)
{
	if (object->type == MSGPACK_OBJECT_ARRAY)
		return object->via.array.size;
	return object->type == MSGPACK_OBJECT_MAP ? (uint64_t)object->via.map.size * 2 : 0;
}

/* Returns a child of an array or map: key and value of a pair alternate. */
static inline msgpack_object *spokei_msgpack_child(const msgpack_object *object, uint64_t index)
{
	msgpack_object_kv *pair;

	if (object->type == MSGPACK_OBJECT_ARRAY)
		return &object->via.array.ptr[index];
	pair = &object->via.map.ptr[index / 2];
	return index % 2 ? &pair->val : &pair->key;
}

/* Leaves the finished containers. Returns whether an unfinished one is left. */
static inline bool spokei_msgpack_go_on(struct spokei_msgpack_open *open, unsigned *depth)
{
	while (*depth > 0 && open[*depth - 1].next == open[*depth - 1].end)
		--*depth;
	return *depth > 0;
}

/* --- from a value to an object */

/* Converts an integer or a double. */
static inline int spokei_msgpack_number(struct spoke_value value, msgpack_object *object)
{
	bool is_short = value.data[0] == 0xca;

	object->type = MSGPACK_OBJECT_POSITIVE_INTEGER;
	if (spoke_value_u64(value, &object->via.u64) == 0)
		return 0;
	object->type = MSGPACK_OBJECT_NEGATIVE_INTEGER;
	if (spoke_value_i64(value, &object->via.i64) == 0)
		return 0;
	object->type = is_short ? MSGPACK_OBJECT_FLOAT32 : MSGPACK_OBJECT_FLOAT64;
	return spoke_value_double(value, &object->via.f64);
}

/* Converts a str, bin or ext, whose content stays in the value's bytes. The format limits lengths
 * to 32 bits. */
static inline int spokei_msgpack_bytes(struct spoke_value value, msgpack_object *object)
{
	struct spoke_span span = { NULL, 0 };
	int error;

	if (spoke_value_str(value, &span) == 0) {
		object->type = MSGPACK_OBJECT_STR;
		object->via.str.ptr = (const char *)span.data;
		object->via.str.size = (uint32_t)span.len;
		return 0;
	}
	if (spoke_value_bin(value, &span) == 0) {
		object->type = MSGPACK_OBJECT_BIN;
		object->via.bin.ptr = (const char *)span.data;
		object->via.bin.size = (uint32_t)span.len;
		return 0;
	}
	error = spoke_value_ext(value, &object->via.ext.type, &span);
	object->type = MSGPACK_OBJECT_EXT;
	object->via.ext.ptr = (const char *)span.data;
	object->via.ext.size = (uint32_t)span.len;
	return error;
}

/* Allocates an array or map with room for its children, and makes a cursor over its values. */
static inline int spokei_msgpack_container(struct spoke_value value, msgpack_zone *zone,
					   msgpack_object *object, struct spoke_cursor *cursor)
{
	bool is_map = spoke_value_type(value) == SPOKE_VALUE_MAP;
	size_t size = is_map ? sizeof(msgpack_object_kv) : sizeof(msgpack_object);
	void *memory = NULL;
	size_t count = 0;
	int error = is_map ? spoke_value_map_len(value, &count)
			   : spoke_value_array_len(value, &count);

	if (error == 0)
		error = is_map ? spoke_cursor_map(value, cursor)
			       : spoke_cursor_array(value, cursor);
	if (error)
		return error;
	if (count > 0) {
		if (count < SIZE_MAX / size - 1)
			memory = msgpack_zone_malloc(zone, count * size);
		if (memory == NULL)
			return SPOKE_ENOMEM;
	}
	if (is_map) {
		object->type = MSGPACK_OBJECT_MAP;
		object->via.map.size = (uint32_t)count;
		object->via.map.ptr = (msgpack_object_kv *)memory;
	} else {
		object->type = MSGPACK_OBJECT_ARRAY;
		object->via.array.size = (uint32_t)count;
		object->via.array.ptr = (msgpack_object *)memory;
	}
	return 0;
}

/* Converts one value; the children of an array or map are left to the caller. */
static inline int spokei_msgpack_object(struct spoke_value value, msgpack_zone *zone,
					msgpack_object *object, struct spoke_cursor *cursor)
{
	switch (spoke_value_type(value)) {
	case SPOKE_VALUE_NIL:
		object->type = MSGPACK_OBJECT_NIL;
		return 0;
	case SPOKE_VALUE_BOOL:
		object->type = MSGPACK_OBJECT_BOOLEAN;
		return spoke_value_bool(value, &object->via.boolean);
	case SPOKE_VALUE_INT:
	case SPOKE_VALUE_DOUBLE:
		return spokei_msgpack_number(value, object);
	case SPOKE_VALUE_STR:
	case SPOKE_VALUE_BIN:
	case SPOKE_VALUE_EXT:
		return spokei_msgpack_bytes(value, object);
	case SPOKE_VALUE_ARRAY:
	case SPOKE_VALUE_MAP:
		return spokei_msgpack_container(value, zone, object, cursor);
	case SPOKE_VALUE_NONE:
		break;
	}
	return SPOKE_ECORRUPT;
}

/*
 * Converts a value to a tree of objects. Arrays and maps are allocated in the zone; str, bin and
 * ext stay in place. The tree is valid as long as the zone and the value's bytes. The value is
 * checked under `limits` first (NULL: all defaults), so unchecked bytes are safe. Returns 0, an
 * error of spoke_value_check(), or ENOMEM. After an error *ret_object is nil, and memory taken from
 * the zone stays allocated.
 */
SPOKE_MUST_USE static inline int spoke_value_to_msgpack(struct spoke_value value,
							const struct spoke_value_limits *limits,
							msgpack_zone *zone,
							msgpack_object *ret_object)
{
	struct spokei_msgpack_open open[SPOKE_VALUE_DEPTH_MAX];
	struct spoke_cursor cursor = { NULL, NULL, 0 };
	msgpack_object root;
	msgpack_object *object = &root;
	unsigned depth = 0;
	int error = spoke_value_check(value.data, value.len, limits, &value);

	ret_object->type = MSGPACK_OBJECT_NIL;
	while (error == 0) {
		error = spokei_msgpack_object(value, zone, object, &cursor);
		if (error)
			break;
		if (spokei_msgpack_children(object) > 0) {
			open[depth].container = object;
			open[depth].next = 0;
			open[depth].end = spokei_msgpack_children(object);
			open[depth++].cursor = cursor;
		}
		if (!spokei_msgpack_go_on(open, &depth)) {
			*ret_object = root;
			break;
		}
		if (!spoke_cursor_next(&open[depth - 1].cursor, &value))
			error = SPOKE_ECORRUPT;
		object = spokei_msgpack_child(open[depth - 1].container, open[depth - 1].next++);
	}
	return error;
}

/* --- from an object to a builder */

/* Packs one object without its children. */
static inline void spokei_pack_msgpack_one(struct spoke_builder *builder,
					   const msgpack_object *object)
{
	switch (object->type) {
	case MSGPACK_OBJECT_NIL:
		spoke_pack_nil(builder);
		return;
	case MSGPACK_OBJECT_BOOLEAN:
		spoke_pack_bool(builder, object->via.boolean);
		return;
	case MSGPACK_OBJECT_POSITIVE_INTEGER:
		spoke_pack_u64(builder, object->via.u64);
		return;
	case MSGPACK_OBJECT_NEGATIVE_INTEGER:
		spoke_pack_i64(builder, object->via.i64);
		return;
	case MSGPACK_OBJECT_FLOAT32:
		spoke_pack_float(builder, (float)object->via.f64);
		return;
	case MSGPACK_OBJECT_FLOAT64:
		spoke_pack_double(builder, object->via.f64);
		return;
	case MSGPACK_OBJECT_STR:
		spoke_pack_str(builder, object->via.str.ptr, object->via.str.size);
		return;
	case MSGPACK_OBJECT_BIN:
		spoke_pack_bin(builder, object->via.bin.ptr, object->via.bin.size);
		return;
	case MSGPACK_OBJECT_EXT:
		spoke_pack_ext(builder, object->via.ext.type, object->via.ext.ptr,
			       object->via.ext.size);
		return;
	case MSGPACK_OBJECT_ARRAY:
		spoke_pack_array(builder, object->via.array.size);
		return;
	case MSGPACK_OBJECT_MAP:
		spoke_pack_map(builder, object->via.map.size);
		return;
	}
	builder->error = builder->error ? builder->error : SPOKE_EINVAL;
}

/* Returns whether an array or map has children, but no memory for them. */
static inline bool spokei_msgpack_lacks_content(const msgpack_object *object)
{
	if (object->type == MSGPACK_OBJECT_ARRAY)
		return object->via.array.size > 0 && object->via.array.ptr == NULL;
	if (object->type == MSGPACK_OBJECT_MAP)
		return object->via.map.size > 0 && object->via.map.ptr == NULL;
	return false;
}

/*
 * Packs an object and its children, like the other spoke_pack_*(): numbers take the fewest bytes,
 * and an error is sticky. An object beyond the builder's limits, e.g. one that contains itself, is
 * EDEPTH or ETOOLARGE. An unknown type, or an array, map or text with a length and a NULL pointer,
 * is EINVAL.
 */
static inline void spoke_pack_msgpack(struct spoke_builder *builder, const msgpack_object *object)
{
	struct spokei_msgpack_open open[SPOKE_VALUE_DEPTH_MAX];
	unsigned depth = 0;

	for (;;) {
		if (builder->error == 0 && spokei_msgpack_lacks_content(object))
			builder->error = SPOKE_EINVAL;
		spokei_pack_msgpack_one(builder, object);
		if (builder->error)
			return;
		if (spokei_msgpack_children(object) > 0) {
			/* `depth` fits: beyond the builder's limit there would be an error. */
			open[depth].container = object;
			open[depth].next = 0;
			open[depth++].end = spokei_msgpack_children(object);
		}
		if (!spokei_msgpack_go_on(open, &depth))
			return;
		object = spokei_msgpack_child(open[depth - 1].container, open[depth - 1].next++);
	}
}

SPOKE_END_DECLS

#endif
