/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The validator: a loop over heads. Containers are counted down on a small stack of what each still
 * lacks; content is passed over without a look. Between two pieces everything is in struct
 * spokei_skim: content that is still to come, or the bytes of a head that was cut.
 */
#include "core/value/skim.h"

#include "core/value/shape.h"
#include "timer/base.h"

#include <string.h>

/* Above it msgpack-c's length of an ext overflows, and it refuses. */
#define EXT_MAX (UINT64_C(1) << 32)

/* Where it stands within a piece. */
struct piece {
	const unsigned char *at;
	const unsigned char *end;
	size_t later; /* bytes that may come behind this piece */
};

/* Bytes that may come from here on. */
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

/* Before the next value on the outside: whether there is to be one, and may be. */
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

/* A value is complete, and so may be what it was the last one of. MORE, or the answer to all. */
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

/* An array or map that lacks `count` values begins. */
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

/* Passes over `len` bytes of content, or over those that are here. */
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

/* A head has been read, all of it; `piece` stands behind it. */
static inline int take_head(struct spokei_skim *skim, struct piece *piece,
			    const struct spokei_shape *shape, const unsigned char *head)
{
	uint64_t number = spokei_shape_number(shape, head);

	if (shape->each > 0)
		return begin_container(skim, number * shape->each, room_of(piece));
	if (number == EXT_MAX)
		return SPOKE_ECORRUPT;
	if (number > room_of(piece))
		return skim->beyond;
	return pass_content(skim, piece, (size_t)number);
}

/* Takes as much as is here of a head that is not here as a whole. */
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

/* Looks at what comes next. */
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

/* Passes over values that are of a fixed size, all here, and not the last ones of anything. The
 * most frequent of them are told by comparisons, which the processor foresees; the table it waits
 * for. */
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
			if (!spokei_shape_is_fixed(&spokei_shapes[first]))
				break;
			len += spokei_shapes[first].fixed;
		}
		if (len > (size_t)(piece->end - at))
			break;
		at += len;
		left--;
	}
	piece->at = at;
	skim->left = left;
}

/* Goes on with what the last piece left open. */
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
