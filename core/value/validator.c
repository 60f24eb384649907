/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of msgpack's first bytes, and the functions that need nothing else: lengths, and the
 * forms of the exts that contain values.
 *
 * The validator reads msgpack in one loop over heads. A small stack counts down the values that
 * each open container still needs; content is skipped without being read. Between two pieces of
 * input, struct spokei_validator keeps the whole state: the remaining content, or the bytes of an
 * incomplete head.
 */
#include "core/value/validator.h"

#include "core/value/shape.h"
#include "timer/base.h"

#include <string.h>

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

size_t spokei_shape_len_any(const unsigned char *at, const unsigned char *end)
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

/* --- the validator */

/* msgpack-c rejects an ext from this length on, because its length overflows. */
#define EXT_MAX (UINT64_C(1) << 32)

/* The position within a piece of input. */
struct piece {
	const unsigned char *at;
	const unsigned char *end;
	size_t later; /* bytes that may follow this piece */
};

/* Returns how many bytes may follow the position. */
static inline size_t room_of(const struct piece *piece)
{
	return (size_t)(piece->end - piece->at) + piece->later;
}

int spokei_limits_settle(const struct spoke_value_limits *limits, struct spoke_value_limits *ret)
{
	struct spoke_value_limits settled = { 0 };

	if (limits)
		settled = *limits;
	if (settled.depth_max == 0)
		settled.depth_max = SPOKE_VALUE_DEPTH_MAX;
	if (settled.items_max == 0)
		settled.items_max = SPOKE_VALUE_ITEMS_MAX;
	if (settled.object_bytes_max == 0)
		settled.object_bytes_max = SPOKE_VALUE_OBJECT_BYTES_MAX;
	if (settled.bytes_max == 0)
		settled.bytes_max = SPOKE_VALUE_BYTES_MAX;
	if (settled.depth_max > SPOKE_VALUE_DEPTH_MAX)
		return SPOKE_EINVAL;
	*ret = settled;
	return 0;
}

static void start(struct spokei_validator *validator, const struct spoke_value_limits *limits)
{
	SPOKE_ASSERT(limits->depth_max <= SPOKE_VALUE_DEPTH_MAX);
	memset(validator, 0, offsetof(struct spokei_validator, open));
	validator->depth_max = limits->depth_max;
	validator->items = spokei_limits_items(limits);
	validator->left = 1;
	validator->result = SPOKEI_VALIDATOR_MORE;
}

/* Checks before the next outermost value whether another one is expected and allowed. */
static int begin_value(struct spokei_validator *validator, size_t room)
{
	if (validator->count == validator->wanted)
		return room > 0 && validator->beyond == SPOKE_ETRUNCATED ? SPOKE_ETRAILING : 0;
	if (room == 0)
		return validator->wanted == SPOKEI_VALIDATOR_ALL ? 0 : validator->beyond;
	if (validator->items == 0)
		return SPOKE_ETOOLARGE;
	validator->items--;
	return SPOKEI_VALIDATOR_MORE;
}

void spokei_validator_start_body(struct spokei_validator *validator,
				 const struct spoke_value_limits *limits, size_t len, size_t count)
{
	start(validator, limits);
	validator->end = len;
	validator->wanted = count;
	validator->beyond = SPOKE_ETRUNCATED;
	validator->result = len > limits->bytes_max ? SPOKE_ETOOLARGE : begin_value(validator, len);
}

void spokei_validator_start_stream(struct spokei_validator *validator,
				   const struct spoke_value_limits *limits)
{
	start(validator, limits);
	validator->end = limits->bytes_max;
	validator->wanted = 1;
	validator->beyond = SPOKE_ETOOLARGE;
	validator->result = begin_value(validator, limits->bytes_max);
}

/* Ends a value, and every container that it completes. Returns MORE or the final result. */
static inline int end_value(struct spokei_validator *validator, size_t room)
{
	while (--validator->left == 0) {
		if (validator->depth == 0) {
			validator->left = 1;
			validator->count++;
			return begin_value(validator, room);
		}
		validator->left = validator->open[--validator->depth];
	}
	return SPOKEI_VALIDATOR_MORE;
}

/* Begins an array or map that needs `count` values. */
static int begin_container(struct spokei_validator *validator, uint64_t count, size_t room)
{
	if (validator->depth == validator->depth_max)
		return SPOKE_EDEPTH;
	if (count > room)
		return validator->beyond;
	if (count > validator->items)
		return SPOKE_ETOOLARGE;
	if (count == 0)
		return end_value(validator, room);
	validator->items -= (uint32_t)count;
	validator->open[validator->depth++] = validator->left;
	validator->left = (uint32_t)count;
	return SPOKEI_VALIDATOR_MORE;
}

/* Skips `len` bytes of content, or as many as this piece has. */
static inline int pass_content(struct spokei_validator *validator, struct piece *piece, size_t len)
{
	size_t here = (size_t)(piece->end - piece->at);

	if (len > here) {
		piece->at = piece->end;
		validator->content = len - here;
		return SPOKEI_VALIDATOR_MORE;
	}
	piece->at += len;
	validator->content = 0;
	return end_value(validator, room_of(piece));
}

/* Handles an ext of `len` bytes, with its type. */
static SPOKEI_NOINLINE int take_ext(struct spokei_validator *validator, struct piece *piece,
				    uint64_t len)
{
	struct spokei_pair pair;

	if (len == EXT_MAX)
		return SPOKE_ECORRUPT;
	if (len > room_of(piece))
		return validator->beyond;
	if (!validator->whole)
		validator->exts = true;
	else if (spokei_shape_open_ext(piece->at, (size_t)len, &pair)) {
		piece->at++;
		return begin_container(validator, 2, room_of(piece));
	}
	return pass_content(validator, piece, (size_t)len);
}

/* Handles a complete head; `piece` is positioned after it. */
static inline int take_head(struct spokei_validator *validator, struct piece *piece,
			    const struct spokei_shape *shape, const unsigned char *head)
{
	uint64_t number = spokei_shape_number(shape, head);

	if (shape->each > 0)
		return begin_container(validator, number * shape->each, room_of(piece));
	if (SPOKEI_UNLIKELY(shape->type == SPOKE_VALUE_EXT))
		return take_ext(validator, piece, number);
	if (number > room_of(piece))
		return validator->beyond;
	return pass_content(validator, piece, (size_t)number);
}

/* Collects the bytes of a head that this piece does not contain completely. */
static int gather_head(struct spokei_validator *validator, struct piece *piece)
{
	const struct spokei_shape *shape;

	if (validator->head_len == 0)
		validator->head[validator->head_len++] = *piece->at++;
	shape = &spokei_shapes[validator->head[0]];
	while (validator->head_len <= shape->width) {
		if (piece->at == piece->end)
			return SPOKEI_VALIDATOR_MORE;
		validator->head[validator->head_len++] = *piece->at++;
	}
	validator->head_len = 0;
	return take_head(validator, piece, shape, validator->head);
}

/* Handles the next value. */
static inline int look(struct spokei_validator *validator, struct piece *piece)
{
	const unsigned char *head = piece->at;
	const struct spokei_shape *shape = &spokei_shapes[*head];

	if (SPOKEI_UNLIKELY(shape->type == SPOKE_VALUE_NONE))
		return SPOKE_ECORRUPT;
	if (shape->width >= (size_t)(piece->end - head)) {
		if (shape->width >= room_of(piece))
			return validator->beyond;
		return gather_head(validator, piece);
	}
	piece->at += 1 + shape->width;
	return take_head(validator, piece, shape, head);
}

/* Skips complete scalars of fixed size, except the last value of a container. Comparisons find the
 * most frequent ones, because a processor predicts them but has to wait for the table. */
static inline void pass_fixed(struct spokei_validator *validator, struct piece *piece)
{
	const unsigned char *at = piece->at;
	uint32_t left = validator->left;

	while (left > 1 && at < piece->end) {
		unsigned first = *at;
		size_t len = 1;

		if (first >= 0xa0 && first < 0xc0) {
			len += first & 0x1f;
		} else if (first >= 0x80 && first < 0xe0 && first != 0xc0) {
			len = spokei_shape_lens[first];
			if (len == 0 || len == SPOKEI_SHAPE_TOLD)
				break;
		}
		if (len > (size_t)(piece->end - at))
			break;
		at += len;
		left--;
	}
	piece->at = at;
	validator->left = left;
}

/* Continues with the value that the previous piece left incomplete. */
static int resume(struct spokei_validator *validator, struct piece *piece)
{
	if (validator->content > 0)
		return pass_content(validator, piece, validator->content);
	if (validator->head_len > 0)
		return gather_head(validator, piece);
	return SPOKEI_VALIDATOR_MORE;
}

int spokei_validate(struct spokei_validator *validator, const void *bytes, size_t len)
{
	size_t room = validator->end - validator->seen;
	size_t here = len < room ? len : room;
	struct piece piece = { .at = bytes, .later = room - here };
	int result = validator->result;

	if (result != SPOKEI_VALIDATOR_MORE || here == 0)
		return result;
	piece.end = piece.at + here;
	validator->whole = validator->seen == 0 && piece.later == 0 &&
			   validator->beyond == SPOKE_ETRUNCATED;
	result = resume(validator, &piece);
	while (result == SPOKEI_VALIDATOR_MORE && piece.at < piece.end) {
		pass_fixed(validator, &piece);
		if (piece.at < piece.end)
			result = look(validator, &piece);
	}
	if (result == SPOKEI_VALIDATOR_MORE && room_of(&piece) == 0)
		result = validator->beyond;
	validator->seen += (size_t)(piece.at - (const unsigned char *)bytes);
	validator->result = result;
	return result;
}

int spokei_validator_first(const void *bytes, size_t len, uint32_t depth_max, uint32_t *items,
			   size_t *ret_len)
{
	struct spoke_value_limits limits = {
		.depth_max = depth_max,
		.items_max = *items,
		.object_bytes_max = SIZE_MAX,
		.bytes_max = SIZE_MAX,
	};
	struct spokei_validator validator;
	int result;

	spokei_validator_start_body(&validator, &limits, len, 1);
	result = spokei_validate(&validator, bytes, len);
	*items = validator.items;
	*ret_len = validator.seen;
	return result == SPOKE_ETRAILING ? 0 : result; /* other values may follow */
}
