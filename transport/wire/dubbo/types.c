/* SPDX-License-Identifier: Apache-2.0 */
/* Derives the types of arguments, and writes them as a text. */
#include "transport/wire/dubbo/types.h"

#include "core/value/java.h"
#include "transport/wire/hop.h"

/* From INT on, the value decides. */
enum {
	OBJECT,
	BOOLEAN,
	STRING,
	BYTES,
	LIST,
	INT,
	LONG,
	BIG,
	FLOAT,
	DOUBLE,
	MAP,
	EXT,
	DATE,
	CLASS, /* of the value: of an object */
};

#define TYPE(text)                                                                                 \
	{                                                                                          \
		sizeof(text) - 1, text                                                             \
	}

static const struct spokei_dubbo_type types_known[] = {
	[OBJECT] = TYPE("Ljava/lang/Object;"),
	[BOOLEAN] = TYPE("Z"),
	[INT] = TYPE("I"),
	[LONG] = TYPE("J"),
	[BIG] = TYPE("Ljava/math/BigInteger;"),
	[FLOAT] = TYPE("F"),
	[DOUBLE] = TYPE("D"),
	[STRING] = TYPE("Ljava/lang/String;"),
	[BYTES] = TYPE("[B"),
	[LIST] = TYPE("Ljava/util/List;"),
	[MAP] = TYPE("Ljava/util/Map;"),
	[EXT] = TYPE("Ljava/lang/Object;"),
	[DATE] = TYPE("Ljava/util/Date;"),
	[CLASS] = TYPE(""),
};

/* An integer that is packed in 8 bytes is a long: codecs pack those of Java so. */
static int describe_int(struct spoke_value value)
{
	int64_t wide;
	int32_t narrow;

	if (value.len < 9 && spoke_value_i32(value, &narrow) == 0)
		return INT;
	return spoke_value_i64(value, &wide) == 0 ? LONG : BIG;
}

/* A map may be an object of a class, and an ext a date or a typed map. An object whose class is no
 * name of Java counts as a map: a peer may have sent the class, and other characters, e.g. a
 * semicolon, could add types to a descriptor. */
static int describe_java(struct spoke_value value, int usual)
{
	struct spoke_span name;
	int64_t seconds;
	uint32_t ns;

	if (spoke_value_time(value, &seconds, &ns) == 0)
		return DATE;
	if (spoke_value_type(value) == SPOKE_VALUE_MAP && spoke_value_class(value, &name) == 0)
		return spokei_java_identifiers(name) > 0 ? CLASS : MAP;
	return usual;
}

static SPOKEI_NOINLINE int describe_further(struct spoke_value value, int usual)
{
	if (usual == INT)
		return value.len > 3 ? describe_int(value) : INT;
	if (usual == DOUBLE)
		return value.data[0] == 0xca ? FLOAT : DOUBLE;
	return describe_java(value, usual);
}

/*
 * Returns the type that most interfaces use for this kind of value, for calls without given types.
 * An integer is the narrowest of int, long and BigInteger, but no int if it is packed in 8 bytes.
 */
static const struct spokei_dubbo_type *describe(struct spoke_value value)
{
	static const unsigned char usual[] = {
		[SPOKE_VALUE_NONE] = OBJECT,   [SPOKE_VALUE_NIL] = OBJECT,
		[SPOKE_VALUE_BOOL] = BOOLEAN,  [SPOKE_VALUE_INT] = INT,
		[SPOKE_VALUE_DOUBLE] = DOUBLE, [SPOKE_VALUE_STR] = STRING,
		[SPOKE_VALUE_BIN] = BYTES,     [SPOKE_VALUE_ARRAY] = LIST,
		[SPOKE_VALUE_MAP] = MAP,       [SPOKE_VALUE_EXT] = EXT,
	};
	unsigned type = usual[spokei_shapes[value.data[0]].type];

	if (type >= INT)
		type = (unsigned)describe_further(value, (int)type);
	return &types_known[type];
}

/* Returns the length of the descriptor of an object: L, the class with slashes, a semicolon. */
static size_t class_len(struct spoke_value object)
{
	struct spoke_span name;

	return spoke_value_class(object, &name) == 0 ? name.len + 2 : 0;
}

static unsigned char *put_class(unsigned char *at, struct spoke_value object)
{
	struct spoke_span name;

	if (spoke_value_class(object, &name) != 0)
		return at;
	*at++ = 'L';
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = ((const unsigned char *)name.data)[i];

		*at++ = c == '.' ? '/' : c;
	}
	*at++ = ';';
	return at;
}

static inline unsigned char *put_type(unsigned char *at, const struct spokei_dubbo_type *type)
{
	memcpy(at, type->text, sizeof(type->text));
	return at + type->len;
}

void spokei_dubbo_types_plan(const struct spokei_message *message, struct spokei_dubbo_types *ret)
{
	struct spoke_cursor args;
	struct spoke_value value;

	ret->told = message->types;
	ret->len = message->types.len;
	ret->count = 0;
	ret->named = false;
	if (ret->len > 0 || message->generic)
		return;
	args = spoke_cursor_bytes(message->args);
	while (spokei_hop_next(&args, &value)) {
		const struct spokei_dubbo_type *type = describe(value);

		if (ret->count < SPOKEI_DUBBO_TYPES_KEPT)
			ret->first[ret->count] = type;
		ret->count++;
		ret->len += type->len;
		if (SPOKEI_UNLIKELY(type == &types_known[CLASS])) {
			ret->len += class_len(value);
			ret->named = true;
		}
	}
}

unsigned char *spokei_dubbo_types_put(unsigned char *at, const struct spokei_dubbo_types *types,
				      struct spoke_span args)
{
	struct spoke_cursor cursor;
	struct spoke_value value;

	if (types->count == 0)
		return spokei_put_str(at, types->told);
	at = spokei_encode_str(at, types->len);
	if (types->count <= SPOKEI_DUBBO_TYPES_KEPT && !types->named) {
		for (size_t i = 0; i < types->count; i++)
			at = put_type(at, types->first[i]);
		return at;
	}
	cursor = spoke_cursor_bytes(args);
	while (spokei_hop_next(&cursor, &value)) {
		const struct spokei_dubbo_type *type = describe(value);

		at = type->len > 0 ? put_type(at, type) : put_class(at, value);
	}
	return at;
}

unsigned char *spokei_dubbo_types_put_one(unsigned char *at, struct spoke_span arg)
{
	const struct spokei_dubbo_type *type = describe((struct spoke_value){ arg.data, arg.len });

	if (SPOKEI_UNLIKELY(type->len == 0))
		return NULL;
	*at = (unsigned char)(0xa0 | type->len);
	return put_type(at + 1, type);
}
