/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of msgpack's first bytes, ordered by first byte. Constant; any thread.
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
	return len <= room ? (size_t)len : 0;
}
