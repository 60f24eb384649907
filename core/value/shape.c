/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of msgpack's first bytes, ordered by first byte, and the functions that need nothing
 * else: lengths, and the forms of the exts that contain values. Stateless; any thread.
 */
#include "core/value/shape.h"

#define SHAPE(type, width, fixed, each)                                                            \
	{                                                                                          \
		SPOKE_VALUE_##type, width, fixed, each                                             \
	}

#define ALIKE_4(...) __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__
#define ALIKE_16(...) ALIKE_4(ALIKE_4(__VA_ARGS__))

/* Rows whose fixed number is the low bits of the first byte. */
#define LOW_4(type, low, each)                                                                     \
	SHAPE(type, 0, (low), each), SHAPE(type, 0, (low) + 1, each),                              \
		SHAPE(type, 0, (low) + 2, each), SHAPE(type, 0, (low) + 3, each)
#define LOW_16(type, low, each)                                                                    \
	LOW_4(type, low, each), LOW_4(type, (low) + 4, each), LOW_4(type, (low) + 8, each),        \
		LOW_4(type, (low) + 12, each)

const struct spokei_shape spokei_shapes[256] = {
	[0x00] = ALIKE_4(ALIKE_16(SHAPE(INT, 0, 0, 0))),
	[0x40] = ALIKE_4(ALIKE_16(SHAPE(INT, 0, 0, 0))),
	[0x80] = LOW_16(MAP, 0, 2),
	[0x90] = LOW_16(ARRAY, 0, 1),
	[0xa0] = LOW_16(STR, 0, 0),
	[0xb0] = LOW_16(STR, 16, 0),
	[0xc0] = SHAPE(NIL, 0, 0, 0),
	[0xc1] = SHAPE(NONE, 0, 0, UINT8_MAX),
	[0xc2] = SHAPE(BOOL, 0, 0, 0),
	[0xc3] = SHAPE(BOOL, 0, 0, 0),
	[0xc4] = SHAPE(BIN, 1, 0, 0),
	[0xc5] = SHAPE(BIN, 2, 0, 0),
	[0xc6] = SHAPE(BIN, 4, 0, 0),
	/* One byte with the type of the ext precedes the content. */
	[0xc7] = SHAPE(EXT, 1, 1, 0),
	[0xc8] = SHAPE(EXT, 2, 1, 0),
	[0xc9] = SHAPE(EXT, 4, 1, 0),
	[0xca] = SHAPE(DOUBLE, 0, 4, 0),
	[0xcb] = SHAPE(DOUBLE, 0, 8, 0),
	[0xcc] = SHAPE(INT, 0, 1, 0),
	[0xcd] = SHAPE(INT, 0, 2, 0),
	[0xce] = SHAPE(INT, 0, 4, 0),
	[0xcf] = SHAPE(INT, 0, 8, 0),
	[0xd0] = SHAPE(INT, 0, 1, 0),
	[0xd1] = SHAPE(INT, 0, 2, 0),
	[0xd2] = SHAPE(INT, 0, 4, 0),
	[0xd3] = SHAPE(INT, 0, 8, 0),
	[0xd4] = SHAPE(EXT, 0, 1 + 1, 0),
	[0xd5] = SHAPE(EXT, 0, 1 + 2, 0),
	[0xd6] = SHAPE(EXT, 0, 1 + 4, 0),
	[0xd7] = SHAPE(EXT, 0, 1 + 8, 0),
	[0xd8] = SHAPE(EXT, 0, 1 + 16, 0),
	[0xd9] = SHAPE(STR, 1, 0, 0),
	[0xda] = SHAPE(STR, 2, 0, 0),
	[0xdb] = SHAPE(STR, 4, 0, 0),
	[0xdc] = SHAPE(ARRAY, 2, 0, 1),
	[0xdd] = SHAPE(ARRAY, 4, 0, 1),
	[0xde] = SHAPE(MAP, 2, 0, 2),
	[0xdf] = SHAPE(MAP, 4, 0, 2),
	[0xe0] = ALIKE_16(SHAPE(INT, 0, 0, 0)),
	[0xf0] = ALIKE_16(SHAPE(INT, 0, 0, 0)),
};

#define LENS_4(len) (len), (len) + 1, (len) + 2, (len) + 3
#define LENS_16(len) LENS_4(len), LENS_4((len) + 4), LENS_4((len) + 8), LENS_4((len) + 12)

const uint8_t spokei_shape_lens[256] = {
	[0x00] = ALIKE_4(ALIKE_16(1)), /* integers */
	[0x40] = ALIKE_4(ALIKE_16(1)),
	[0xa0] = LENS_16(1), /* strs */
	[0xb0] = LENS_16(17),
	[0xc0] = 1, /* nil, false, true */
	[0xc2] = 1,
	[0xc3] = 1,
	[0xc4] = SPOKEI_SHAPE_TOLD, /* bins */
	[0xca] = 5,                 /* floats and doubles */
	[0xcb] = 9,
	[0xcc] = 2, /* integers */
	[0xcd] = 3,
	[0xce] = 5,
	[0xcf] = 9,
	[0xd0] = 2,
	[0xd1] = 3,
	[0xd2] = 5,
	[0xd3] = 9,
	[0xd9] = SPOKEI_SHAPE_TOLD, /* strs */
	[0xe0] = ALIKE_16(1),       /* integers */
	[0xf0] = ALIKE_16(1),
};

size_t spokei_shape_hop_any(const unsigned char *at, const unsigned char *end)
{
	const struct spokei_shape *shape = &spokei_shapes[*at];
	size_t room = (size_t)(end - at);
	uint64_t len;

	if (shape->each > 0 || shape->width >= room)
		return 0;
	len = spokei_shape_number(shape, at) + shape->width + 1u;
	if (len > room ||
	    (shape->type == SPOKE_VALUE_EXT && spokei_shape_holds(at[1 + shape->width])))
		return 0;
	return (size_t)len;
}

const unsigned char *spokei_shape_skip(const unsigned char *at, const unsigned char *end)
{
	uint64_t owed = 1;

	for (; owed > 0; owed--) {
		const struct spokei_shape *shape;
		const unsigned char *head = at;
		uint64_t number;

		if (at == end)
			return NULL;
		shape = &spokei_shapes[*head];
		if (shape->width >= (size_t)(end - head) || shape->type == SPOKE_VALUE_NONE)
			return NULL;
		at += 1 + shape->width;
		number = spokei_shape_number(shape, head);
		if (shape->each >
		    0) /* at most 2^33 values of at least one byte each: no overflow */
			number *= shape->each;
		if (number > (size_t)(end - at))
			return NULL;
		if (shape->each > 0)
			owed += number;
		else
			at += number;
	}
	return at;
}

/* --- exts that contain values */

static bool is_distance(struct spoke_value value)
{
	return value.data[0] - 1u < 0x7f || (value.data[0] >= 0xcc && value.data[0] <= 0xce);
}

/* Splits the payload of an ext into exactly two values. */
static bool split(const unsigned char *at, const unsigned char *end, struct spokei_pair *ret)
{
	const unsigned char *middle = spokei_shape_skip(at, end);

	if (middle == NULL || middle == end || spokei_shape_skip(middle, end) != end)
		return false;
	ret->head = (struct spoke_value){ at, (size_t)(middle - at) };
	ret->inside = (struct spoke_value){ middle, (size_t)(end - middle) };
	return true;
}

/* Returns whether the bytes are a typed array or map. */
/* NOLINTNEXTLINE(misc-no-recursion): one level */
static bool is_typed(struct spoke_value value)
{
	const unsigned char *content = value.data + 1 + spokei_shapes[value.data[0]].width;
	struct spokei_pair pair;

	return *content == SPOKE_EXT_TYPED &&
	       spokei_shape_open_ext(content, (size_t)(value.data + value.len - content), &pair);
}

/* NOLINTNEXTLINE(misc-no-recursion): one level */
bool spokei_shape_open_ext(const unsigned char *content, size_t len, struct spokei_pair *ret)
{
	uint8_t inside;

	if (len < 3 || !spokei_shape_holds(*content) || !split(content + 1, content + len, ret))
		return false;
	inside = spokei_shapes[ret->inside.data[0]].type;
	if (*content == SPOKE_EXT_TYPED)
		return spokei_shapes[ret->head.data[0]].type == SPOKE_VALUE_STR &&
		       spokei_shapes[ret->inside.data[0]].each > 0;
	return is_distance(ret->head) &&
	       (inside == SPOKE_VALUE_NIL || inside == SPOKE_VALUE_ARRAY ||
		inside == SPOKE_VALUE_MAP || (inside == SPOKE_VALUE_EXT && is_typed(ret->inside)));
}
