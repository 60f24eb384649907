/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads values in place, also those that only Java has: names of types, objects of a class, and
 * timestamps, which are maps and exts with a documented form. A view ends where its value ends, and
 * each getter compares every length with that end, so unchecked bytes are safe to read. Stateless;
 * any thread.
 */
#include <spoke/value.h>

#include "core/value/encode.h"
#include "core/value/java.h"
#include "core/value/validator.h"
#include "timer/base.h"

#include <string.h>

#define TIMESTAMP (-1)
#define NS_MAX 999999999u

/* --- checking */

static int check(const void *bytes, size_t len, const struct spoke_value_limits *limits,
		 size_t wanted, size_t *ret_count)
{
	struct spoke_value_limits settled;
	struct spokei_validator validator;
	int result;

	if (limits == NULL && spokei_shape_is_scalar(bytes, len)) {
		*ret_count = 1;
		return 0;
	}
	result = spokei_limits_settle(limits, &settled);
	if (result != 0)
		return result;
	if (bytes == NULL && len > 0)
		return SPOKE_EINVAL;
	spokei_validator_start_body(&validator, &settled, len, wanted);
	result = spokei_validate(&validator, bytes, len);
	SPOKE_ASSERT(result != SPOKEI_VALIDATOR_MORE);
	if (result == 0)
		*ret_count = validator.count;
	return result;
}

int spoke_value_check(const void *bytes, size_t len, const struct spoke_value_limits *limits,
		      struct spoke_value *ret_value)
{
	size_t count;
	int result = check(bytes, len, limits, 1, &count);

	if (result == 0)
		*ret_value = (struct spoke_value){ bytes, len };
	return result;
}

int spoke_values_check(const void *bytes, size_t len, const struct spoke_value_limits *limits,
		       struct spoke_cursor *ret_values, size_t *ret_count)
{
	size_t count;
	int result = check(bytes, len, limits, SPOKEI_VALIDATOR_ALL, &count);

	if (result != 0)
		return result;
	*ret_values = spoke_cursor_bytes((struct spoke_span){ bytes, len });
	if (ret_count)
		*ret_count = count;
	return 0;
}

/* --- the head */

static const struct spokei_shape *shape_of(struct spoke_value value)
{
	return &spokei_shapes[value.len > 0 ? value.data[0] : 0xc1];
}

/* Reads the head. Returns the remaining bytes and the amount that should follow, or false if the
 * head is incomplete. */
static bool open_head(struct spoke_value value, struct spoke_span *ret_rest, uint64_t *ret_number)
{
	const struct spokei_shape *shape = shape_of(value);
	size_t head_len = 1 + (size_t)shape->width;

	if (head_len > value.len)
		return false;
	*ret_number = spokei_shape_number(shape, value.data);
	*ret_rest = (struct spoke_span){ value.data + head_len, value.len - head_len };
	return true;
}

/* Returns the content of a value of this type, which is not a container. */
static int open_content(struct spoke_value value, enum spoke_value_type type,
			struct spoke_span *ret_content)
{
	struct spoke_span content;
	uint64_t number;

	if (shape_of(value)->type != (uint8_t)type || !open_head(value, &content, &number) ||
	    number > content.len)
		return SPOKE_ETYPE;
	content.len = (size_t)number;
	*ret_content = content;
	return 0;
}

/* Opens an ext that contains values. Returns false for all other values. */
static SPOKEI_NOINLINE bool open_ext(struct spoke_value value, struct spokei_pair *ret,
				     unsigned char *ret_type)
{
	struct spoke_span content;

	if (open_content(value, SPOKE_VALUE_EXT, &content) != 0)
		return false;
	*ret_type = *(const unsigned char *)content.data;
	return spokei_shape_open_ext(content.data, content.len, ret);
}

/* Returns the value inside an ext, which may be two deep; other values as they are. */
static struct spoke_value look_through(struct spoke_value value)
{
	struct spokei_pair pair;
	unsigned char type;

	while (shape_of(value)->type == SPOKE_VALUE_EXT && open_ext(value, &pair, &type))
		value = pair.inside;
	return value;
}

/* The type of an ext, or of the value inside. */
static SPOKEI_NOINLINE enum spoke_value_type ext_type(struct spoke_value value)
{
	return (enum spoke_value_type)shape_of(look_through(value))->type;
}

enum spoke_value_type spoke_value_type(struct spoke_value value)
{
	uint8_t type = shape_of(value)->type;

	return SPOKEI_UNLIKELY(type == SPOKE_VALUE_EXT) ? ext_type(value)
							: (enum spoke_value_type)type;
}

const char *spoke_value_type_name(enum spoke_value_type type)
{
	static const char *const names[] = {
		[SPOKE_VALUE_NONE] = "none",     [SPOKE_VALUE_NIL] = "nil",
		[SPOKE_VALUE_BOOL] = "bool",     [SPOKE_VALUE_INT] = "int",
		[SPOKE_VALUE_DOUBLE] = "double", [SPOKE_VALUE_STR] = "str",
		[SPOKE_VALUE_BIN] = "bin",       [SPOKE_VALUE_ARRAY] = "array",
		[SPOKE_VALUE_MAP] = "map",       [SPOKE_VALUE_EXT] = "ext",
	};

	if ((size_t)type >= sizeof(names) / sizeof(names[0]))
		return names[SPOKE_VALUE_NONE];
	return names[type];
}

/* --- scalars */

bool spoke_value_is_nil(struct spoke_value value)
{
	return spoke_value_type(value) == SPOKE_VALUE_NIL;
}

int spoke_value_bool(struct spoke_value value, bool *ret)
{
	if (spoke_value_type(value) != SPOKE_VALUE_BOOL)
		return SPOKE_ETYPE;
	*ret = value.data[0] == 0xc3;
	return 0;
}

/* Reads an integer as 64 bits of two's complement, and whether it is negative. */
static int read_int(struct spoke_value value, uint64_t *ret_bits, bool *ret_negative)
{
	struct spoke_span content;
	unsigned char first;
	uint64_t bits;

	if (open_content(value, SPOKE_VALUE_INT, &content) != 0)
		return SPOKE_ETYPE;
	first = value.data[0];
	*ret_negative = false;
	if (content.len == 0) {
		*ret_negative = first >= 0xe0;
		*ret_bits = *ret_negative ? UINT64_MAX - (0xffu - first) : first;
		return 0;
	}
	bits = spokei_number(content.data, (unsigned)content.len);
	if (first >= 0xd0) { /* signed: extend the highest bit */
		uint64_t sign = UINT64_C(1) << (8 * content.len - 1);

		*ret_negative = (bits & sign) != 0;
		bits = (bits ^ sign) - sign;
	}
	*ret_bits = bits;
	return 0;
}

int spoke_value_u64(struct spoke_value value, uint64_t *ret)
{
	uint64_t bits;
	bool negative;
	int result = read_int(value, &bits, &negative);

	if (result != 0)
		return result;
	if (negative)
		return SPOKE_ERANGE;
	*ret = bits;
	return 0;
}

int spoke_value_i64(struct spoke_value value, int64_t *ret)
{
	uint64_t bits;
	bool negative;
	int result = read_int(value, &bits, &negative);

	if (result != 0)
		return result;
	if (!negative && bits > INT64_MAX)
		return SPOKE_ERANGE;
	*ret = negative ? -(int64_t)~bits - 1 : (int64_t)bits;
	return 0;
}

int spoke_value_i32(struct spoke_value value, int32_t *ret)
{
	int64_t number;
	int result = spoke_value_i64(value, &number);

	if (result != 0)
		return result;
	if (number < INT32_MIN || number > INT32_MAX)
		return SPOKE_ERANGE;
	*ret = (int32_t)number;
	return 0;
}

int spoke_value_u32(struct spoke_value value, uint32_t *ret)
{
	uint64_t number;
	int result = spoke_value_u64(value, &number);

	if (result != 0)
		return result;
	if (number > UINT32_MAX)
		return SPOKE_ERANGE;
	*ret = (uint32_t)number;
	return 0;
}

/* Converts an integer to a double if no bit is lost; a double has 53. */
static int double_from_int(uint64_t bits, bool negative, double *ret)
{
	uint64_t size = negative ? 0 - bits : bits;
	uint64_t odd = size;

	while (odd > 0 && odd % 2 == 0)
		odd /= 2;
	if (odd >> 53 != 0)
		return SPOKE_ERANGE;
	*ret = negative ? -(double)size : (double)size;
	return 0;
}

int spoke_value_double(struct spoke_value value, double *ret)
{
	struct spoke_span content;
	uint64_t bits;
	bool negative;

	if (read_int(value, &bits, &negative) == 0)
		return double_from_int(bits, negative, ret);
	if (open_content(value, SPOKE_VALUE_DOUBLE, &content) != 0)
		return SPOKE_ETYPE;
	bits = spokei_number(content.data, (unsigned)content.len);
	if (content.len == sizeof(float)) {
		uint32_t half = (uint32_t)bits;
		float number;

		memcpy(&number, &half, sizeof(number));
		*ret = (double)number;
	} else {
		memcpy(ret, &bits, sizeof(*ret));
	}
	return 0;
}

int spoke_value_str(struct spoke_value value, struct spoke_span *ret)
{
	return open_content(value, SPOKE_VALUE_STR, ret);
}

int spoke_value_bin(struct spoke_value value, struct spoke_span *ret)
{
	return open_content(value, SPOKE_VALUE_BIN, ret);
}

int spoke_value_bytes(struct spoke_value value, struct spoke_span *ret)
{
	if (open_content(value, SPOKE_VALUE_BIN, ret) == 0)
		return 0;
	return open_content(value, SPOKE_VALUE_STR, ret);
}

int spoke_value_ext(struct spoke_value value, int8_t *ret_type, struct spoke_span *ret)
{
	struct spoke_span content;
	const unsigned char *type;

	if (open_content(value, SPOKE_VALUE_EXT, &content) != 0)
		return SPOKE_ETYPE;
	type = content.data;
	*ret_type = (int8_t)(*type < 0x80 ? *type : *type - 0x100);
	*ret = (struct spoke_span){ type + 1, content.len - 1 };
	return 0;
}

bool spoke_value_equal(struct spoke_value a, struct spoke_value b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* --- containers and rows of values */

/* Opens a container of this type. Each of its values takes at least one byte. */
static int open_plain(struct spoke_value value, enum spoke_value_type type,
		      struct spoke_cursor *ret)
{
	struct spoke_span rest;
	uint64_t count;

	if (shape_of(value)->type != (uint8_t)type || !open_head(value, &rest, &count))
		return SPOKE_ETYPE;
	count *= shape_of(value)->each;
	if (count > rest.len)
		return SPOKE_ETYPE;
	ret->at = rest.data;
	ret->end = ret->at + rest.len;
	ret->left = count;
	return 0;
}

/* Does the same, also inside an ext. */
static inline int open_container(struct spoke_value value, enum spoke_value_type type,
				 struct spoke_cursor *ret)
{
	if (SPOKEI_UNLIKELY(shape_of(value)->type == SPOKE_VALUE_EXT))
		value = look_through(value);
	return open_plain(value, type, ret);
}

int spoke_cursor_array(struct spoke_value array, struct spoke_cursor *ret)
{
	return open_container(array, SPOKE_VALUE_ARRAY, ret);
}

int spoke_cursor_map(struct spoke_value map, struct spoke_cursor *ret)
{
	return open_container(map, SPOKE_VALUE_MAP, ret);
}

int spoke_value_array_len(struct spoke_value value, size_t *ret)
{
	struct spoke_cursor cursor;
	int result = spoke_cursor_array(value, &cursor);

	if (result == 0)
		*ret = (size_t)cursor.left;
	return result;
}

int spoke_value_map_len(struct spoke_value value, size_t *ret)
{
	struct spoke_cursor cursor;
	int result = spoke_cursor_map(value, &cursor);

	if (result == 0)
		*ret = (size_t)cursor.left / 2;
	return result;
}

struct spoke_cursor spoke_cursor_bytes(struct spoke_span bytes)
{
	const unsigned char *at = bytes.data;

	return (struct spoke_cursor){ at, at ? at + bytes.len : NULL, UINT64_MAX };
}

static inline bool pass(struct spoke_cursor *cursor, size_t len, struct spoke_value *ret)
{
	*ret = (struct spoke_value){ cursor->at, len };
	cursor->at += len;
	if (cursor->left != UINT64_MAX)
		cursor->left--;
	return true;
}

/* Passes the next value of any kind. */
static SPOKEI_NOINLINE bool pass_any(struct spoke_cursor *cursor, struct spoke_value *ret)
{
	const unsigned char *next = spokei_shape_skip(cursor->at, cursor->end);

	if (next)
		return pass(cursor, (size_t)(next - cursor->at), ret);
	cursor->left = 0;
	return false;
}

bool spoke_cursor_next(struct spoke_cursor *cursor, struct spoke_value *ret)
{
	size_t len;

	if (cursor->left == 0)
		return false;
	/* Short scalars need no loop. */
	len = cursor->at < cursor->end ? spokei_shape_len_short(cursor->at, cursor->end) : 0;
	return SPOKEI_LIKELY(len > 0) ? pass(cursor, len, ret) : pass_any(cursor, ret);
}

bool spoke_cursor_next_pair(struct spoke_cursor *cursor, struct spoke_value *ret_key,
			    struct spoke_value *ret_value)
{
	struct spoke_value key;

	if (!spoke_cursor_next(cursor, &key) || !spoke_cursor_next(cursor, ret_value))
		return false;
	*ret_key = key;
	return true;
}

struct spoke_span spoke_cursor_rest(const struct spoke_cursor *cursor)
{
	return (struct spoke_span){ cursor->at, (size_t)(cursor->end - cursor->at) };
}

int spoke_value_get(struct spoke_value map, const char *key, struct spoke_value *ret)
{
	struct spoke_cursor pairs;
	struct spoke_value name;
	struct spoke_value value;
	struct spoke_span text;
	size_t key_len = strlen(key);
	int result = spoke_cursor_map(map, &pairs);

	if (result != 0)
		return result;
	while (spoke_cursor_next_pair(&pairs, &name, &value)) {
		if (spoke_value_str(name, &text) == 0 && text.len == key_len &&
		    (key_len == 0 || memcmp(text.data, key, key_len) == 0)) {
			*ret = value;
			return 0;
		}
	}
	return SPOKE_ENOENT;
}

/* --- objects of Java */

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

	if (spoke_cursor_map(map, &pairs) != 0)
		return SPOKE_ETYPE;
	while (spoke_cursor_next_pair(&pairs, &key, &value))
		if (spokei_shapes[*key.data].type != SPOKE_VALUE_STR)
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
