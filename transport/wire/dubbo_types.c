/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/wire/dubbo_types.h"

#include "transport/wire/hop.h"

#define TYPE(text) spokei_span(text, sizeof(text) - 1)

/*
 * The type that a value is sent as when nobody told: the one its class of values has in most
 * interfaces. An integer is the narrowest of int, long and BigInteger that holds it.
 */
static struct spoke_span describe(struct spoke_value value)
{
	int64_t wide;
	int32_t narrow;

	switch (spoke_value_type(value)) {
	case SPOKE_VALUE_BOOL:
		return TYPE("Z");
	case SPOKE_VALUE_INT:
		if (spoke_value_i32(value, &narrow) == 0)
			return TYPE("I");
		return spoke_value_i64(value, &wide) == 0 ? TYPE("J")
							  : TYPE("Ljava/math/BigInteger;");
	case SPOKE_VALUE_DOUBLE:
		return value.data[0] == 0xca ? TYPE("F") : TYPE("D");
	case SPOKE_VALUE_STR:
		return TYPE("Ljava/lang/String;");
	case SPOKE_VALUE_BIN:
		return TYPE("[B");
	case SPOKE_VALUE_ARRAY:
		return TYPE("Ljava/util/List;");
	case SPOKE_VALUE_MAP:
		return TYPE("Ljava/util/Map;");
	case SPOKE_VALUE_NIL:
	case SPOKE_VALUE_EXT:
	case SPOKE_VALUE_NONE:
		break;
	}
	return TYPE("Ljava/lang/Object;");
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
		struct spoke_span type = describe(value);

		if (ret->count < SPOKEI_DUBBO_TYPES_KEPT)
			ret->first[ret->count] = type;
		ret->count++;
		ret->len += type.len;
	}
}

unsigned char *spokei_dubbo_types_put(unsigned char *at, const struct spokei_dubbo_types *types,
				      struct spoke_span args)
{
	struct spoke_cursor cursor;
	struct spoke_value value;

	if (types->count == 0)
		return spokei_put_str(at, types->told);
	at = spokei_put_str_head(at, types->len);
	if (types->count <= SPOKEI_DUBBO_TYPES_KEPT) {
		for (size_t i = 0; i < types->count; i++)
			at = spokei_put_raw(at, types->first[i].data, types->first[i].len);
		return at;
	}
	cursor = spoke_cursor_bytes(args);
	while (spokei_hop_next(&cursor, &value)) {
		struct spoke_span type = describe(value);

		at = spokei_put_raw(at, type.data, type.len);
	}
	return at;
}
