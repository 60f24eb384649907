/* SPDX-License-Identifier: Apache-2.0 */
/* Derives the types of arguments, and writes them as a text. */
#include "transport/wire/dubbo/types.h"

#include "transport/wire/hop.h"

enum {
	OBJECT,
	BOOLEAN,
	INT,
	LONG,
	BIG,
	FLOAT,
	DOUBLE,
	STRING,
	BYTES,
	LIST,
	MAP,
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
};

static int describe_int(struct spoke_value value)
{
	int64_t wide;
	int32_t narrow;

	if (spoke_value_i32(value, &narrow) == 0)
		return INT;
	return spoke_value_i64(value, &wide) == 0 ? LONG : BIG;
}

/*
 * Returns the type that most interfaces use for this kind of value, for calls without given types.
 * An integer is the narrowest of int, long and BigInteger.
 */
static const struct spokei_dubbo_type *describe(struct spoke_value value)
{
	static const unsigned char usual[] = {
		[SPOKE_VALUE_NONE] = OBJECT,   [SPOKE_VALUE_NIL] = OBJECT,
		[SPOKE_VALUE_BOOL] = BOOLEAN,  [SPOKE_VALUE_INT] = INT,
		[SPOKE_VALUE_DOUBLE] = DOUBLE, [SPOKE_VALUE_STR] = STRING,
		[SPOKE_VALUE_BIN] = BYTES,     [SPOKE_VALUE_ARRAY] = LIST,
		[SPOKE_VALUE_MAP] = MAP,       [SPOKE_VALUE_EXT] = OBJECT,
	};
	unsigned type = usual[spokei_shapes[value.data[0]].type];

	if (type == INT && value.len > 3)
		type = (unsigned)describe_int(value);
	else if (value.data[0] == 0xca)
		type = FLOAT;
	return &types_known[type];
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
	if (ret->len > 0 || message->generic)
		return;
	args = spoke_cursor_bytes(message->args);
	while (spokei_hop_next(&args, &value)) {
		const struct spokei_dubbo_type *type = describe(value);

		if (ret->count < SPOKEI_DUBBO_TYPES_KEPT)
			ret->first[ret->count] = type;
		ret->count++;
		ret->len += type->len;
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
	if (types->count <= SPOKEI_DUBBO_TYPES_KEPT) {
		for (size_t i = 0; i < types->count; i++)
			at = put_type(at, types->first[i]);
		return at;
	}
	cursor = spoke_cursor_bytes(args);
	while (spokei_hop_next(&cursor, &value))
		at = put_type(at, describe(value));
	return at;
}

unsigned char *spokei_dubbo_types_put_one(unsigned char *at, struct spoke_span arg)
{
	const struct spokei_dubbo_type *type = describe((struct spoke_value){ arg.data, arg.len });

	*at = (unsigned char)(0xa0 | type->len);
	return put_type(at + 1, type);
}
