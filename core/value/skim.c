/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validates msgpack in one loop over heads. A small stack counts down the values that each open
 * container still needs; content is skipped without being read. Between two pieces of input, struct
 * spokei_skim keeps the whole state: the remaining content, or the bytes of an incomplete head.
 */
#include "core/value/skim.h"

#include "core/value/shape.h"
#include "timer/base.h"

#include <string.h>

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

uint32_t spokei_limits_items(const struct spoke_value_limits *limits)
{
	size_t objects = limits->object_bytes_max / SPOKE_VALUE_OBJECT_BYTES;

	return objects < limits->items_max ? (uint32_t)objects : limits->items_max;
}

static void start(struct spokei_skim *skim, const struct spoke_value_limits *limits)
{
	SPOKE_ASSERT(limits->depth_max <= SPOKE_VALUE_DEPTH_MAX);
	memset(skim, 0, offsetof(struct spokei_skim, open));
	skim->depth_max = limits->depth_max;
	skim->items = spokei_limits_items(limits);
	skim->left = 1;
	skim->result = SPOKEI_SKIM_MORE;
}

/* Checks before the next outermost value whether another one is expected and allowed. */
static int begin_value(struct spokei_skim *skim, size_t room)
{
	if (skim->count == skim->wanted)
		return room > 0 && skim->beyond == SPOKE_ETRUNCATED ? SPOKE_ETRAILING : 0;
	if (room == 0)
		return skim->wanted == SPOKEI_SKIM_ALL ? 0 : skim->beyond;
	if (skim->items == 0)
		return SPOKE_ETOOLARGE;
	skim->items--;
	return SPOKEI_SKIM_MORE;
}

void spokei_skim_start_body(struct spokei_skim *skim, const struct spoke_value_limits *limits,
			    size_t len, size_t count)
{
	start(skim, limits);
	skim->end = len;
	skim->wanted = count;
	skim->beyond = SPOKE_ETRUNCATED;
	skim->result = len > limits->bytes_max ? SPOKE_ETOOLARGE : begin_value(skim, len);
}

void spokei_skim_start_stream(struct spokei_skim *skim, const struct spoke_value_limits *limits)
{
	start(skim, limits);
	skim->end = limits->bytes_max;
	skim->wanted = 1;
	skim->beyond = SPOKE_ETOOLARGE;
	skim->result = begin_value(skim, limits->bytes_max);
}

/* Ends a value, and every container that it completes. Returns MORE or the final result. */
static inline int end_value(struct spokei_skim *skim, size_t room)
{
	while (--skim->left == 0) {
		if (skim->depth == 0) {
			skim->left = 1;
			skim->count++;
			return begin_value(skim, room);
		}
		skim->left = skim->open[--skim->depth];
	}
	return SPOKEI_SKIM_MORE;
}

/* Begins an array or map that needs `count` values. */
static int begin_container(struct spokei_skim *skim, uint64_t count, size_t room)
{
	if (skim->depth == skim->depth_max)
		return SPOKE_EDEPTH;
	if (count > room)
		return skim->beyond;
	if (count > skim->items)
		return SPOKE_ETOOLARGE;
	if (count == 0)
		return end_value(skim, room);
	skim->items -= (uint32_t)count;
	skim->open[skim->depth++] = skim->left;
	skim->left = (uint32_t)count;
	return SPOKEI_SKIM_MORE;
}

/* Skips `len` bytes of content, or as many as this piece has. */
static inline int pass_content(struct spokei_skim *skim, struct piece *piece, size_t len)
{
	size_t here = (size_t)(piece->end - piece->at);

	if (len > here) {
		piece->at = piece->end;
		skim->content = len - here;
		return SPOKEI_SKIM_MORE;
	}
	piece->at += len;
	skim->content = 0;
	return end_value(skim, room_of(piece));
}

/* Handles an ext of `len` bytes, with its type. */
static SPOKEI_NOINLINE int take_ext(struct spokei_skim *skim, struct piece *piece, uint64_t len)
{
	struct spokei_pair pair;

	if (len == EXT_MAX)
		return SPOKE_ECORRUPT;
	if (len > room_of(piece))
		return skim->beyond;
	if (!skim->whole)
		skim->exts = true;
	else if (spokei_shape_open_ext(piece->at, (size_t)len, &pair)) {
		piece->at++;
		return begin_container(skim, 2, room_of(piece));
	}
	return pass_content(skim, piece, (size_t)len);
}

/* Handles a complete head; `piece` is positioned after it. */
static inline int take_head(struct spokei_skim *skim, struct piece *piece,
			    const struct spokei_shape *shape, const unsigned char *head)
{
	uint64_t number = spokei_shape_number(shape, head);

	if (shape->each > 0)
		return begin_container(skim, number * shape->each, room_of(piece));
	if (SPOKEI_UNLIKELY(shape->type == SPOKE_VALUE_EXT))
		return take_ext(skim, piece, number);
	if (number > room_of(piece))
		return skim->beyond;
	return pass_content(skim, piece, (size_t)number);
}

/* Collects the bytes of a head that this piece does not contain completely. */
static int gather_head(struct spokei_skim *skim, struct piece *piece)
{
	const struct spokei_shape *shape;

	if (skim->head_len == 0)
		skim->head[skim->head_len++] = *piece->at++;
	shape = &spokei_shapes[skim->head[0]];
	while (skim->head_len <= shape->width) {
		if (piece->at == piece->end)
			return SPOKEI_SKIM_MORE;
		skim->head[skim->head_len++] = *piece->at++;
	}
	skim->head_len = 0;
	return take_head(skim, piece, shape, skim->head);
}

/* Handles the next value. */
static inline int look(struct spokei_skim *skim, struct piece *piece)
{
	const unsigned char *head = piece->at;
	const struct spokei_shape *shape = &spokei_shapes[*head];

	if (SPOKEI_UNLIKELY(shape->type == SPOKE_VALUE_NONE))
		return SPOKE_ECORRUPT;
	if (shape->width >= (size_t)(piece->end - head)) {
		if (shape->width >= room_of(piece))
			return skim->beyond;
		return gather_head(skim, piece);
	}
	piece->at += 1 + shape->width;
	return take_head(skim, piece, shape, head);
}

/* Skips complete scalars of fixed size, except the last value of a container. Comparisons find the
 * most frequent ones, because a processor predicts them but has to wait for the table. */
static inline void pass_fixed(struct spokei_skim *skim, struct piece *piece)
{
	const unsigned char *at = piece->at;
	uint32_t left = skim->left;

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
	skim->left = left;
}

/* Continues with the value that the previous piece left incomplete. */
static int resume(struct spokei_skim *skim, struct piece *piece)
{
	if (skim->content > 0)
		return pass_content(skim, piece, skim->content);
	if (skim->head_len > 0)
		return gather_head(skim, piece);
	return SPOKEI_SKIM_MORE;
}

int spokei_skim_feed(struct spokei_skim *skim, const void *bytes, size_t len)
{
	size_t room = skim->end - skim->seen;
	size_t here = len < room ? len : room;
	struct piece piece = { .at = bytes, .later = room - here };
	int result = skim->result;

	if (result != SPOKEI_SKIM_MORE || here == 0)
		return result;
	piece.end = piece.at + here;
	skim->whole = skim->seen == 0 && piece.later == 0 && skim->beyond == SPOKE_ETRUNCATED;
	result = resume(skim, &piece);
	while (result == SPOKEI_SKIM_MORE && piece.at < piece.end) {
		pass_fixed(skim, &piece);
		if (piece.at < piece.end)
			result = look(skim, &piece);
	}
	if (result == SPOKEI_SKIM_MORE && room_of(&piece) == 0)
		result = skim->beyond;
	skim->seen += (size_t)(piece.at - (const unsigned char *)bytes);
	skim->result = result;
	return result;
}

int spokei_skim_first(const void *bytes, size_t len, uint32_t depth_max, uint32_t *items,
		      size_t *ret_len)
{
	struct spoke_value_limits limits = {
		.depth_max = depth_max,
		.items_max = *items,
		.object_bytes_max = SIZE_MAX,
		.bytes_max = SIZE_MAX,
	};
	struct spokei_skim skim;
	int result;

	spokei_skim_start_body(&skim, &limits, len, 1);
	result = spokei_skim_feed(&skim, bytes, len);
	*items = skim.items;
	*ret_len = skim.seen;
	return result == SPOKE_ETRAILING ? 0 : result; /* other values may follow */
}
