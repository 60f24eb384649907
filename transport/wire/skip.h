/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fast paths for small values. For a complete scalar, or a few scalars in small containers, one
 * loop determines the length and validates it. Everything else is left to the validator and the
 * cursor, which give the same results. Stateless; any thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_SKIP_H
#define SPOKEI_TRANSPORT_WIRE_SKIP_H

#include "core/value/shape.h"
#include "timer/base.h"

#include <spoke/value.h>

/* Returns the length of the head of a map of at most 15 pairs in the forms with 2 or 4 bytes of
 * length, which translated maps have; 0 for any other value. */
static inline size_t spokei_skip_map_head(const unsigned char *at, const unsigned char *end,
					  uint32_t *ret_pairs)
{
	size_t width = *at == 0xdf ? 4 : *at == 0xde ? 2 : SIZE_MAX;
	uint64_t pairs;

	if (width >= (size_t)(end - at))
		return 0;
	pairs = spokei_number(at + 1, (unsigned)width);
	*ret_pairs = (uint32_t)pairs;
	return pairs < 16 ? 1 + width : 0;
}

/*
 * Returns the length of a scalar, or of an array or map of at most 15 entries with such values
 * inside; 0 if the value is different or incomplete. At most `containers` containers are accepted
 * in all, which also bounds the depth. `ret_items`: the number of values, including the outermost.
 */
static inline size_t spokei_skip_small(const unsigned char *at, const unsigned char *end,
				       unsigned containers, uint32_t *ret_items)
{
	const unsigned char *start = at;
	uint32_t items = 1;

	for (uint32_t left = 1; left > 0; left--) {
		uint32_t inside;
		size_t len = 1;

		if (at == end)
			return 0;
		if (*at >= 0x80 && *at < 0xa0) {
			inside = *at < 0x90 ? (*at & 0xfu) * 2 : *at & 0xfu;
		} else {
			len = spokei_shape_len(at, end);
			at += len;
			if (SPOKEI_LIKELY(len > 0))
				continue;
			len = spokei_skip_map_head(at, end, &inside);
			if (len == 0)
				return 0;
			inside *= 2;
		}
		if (containers-- == 0)
			return 0;
		items += inside;
		left += inside;
		at += len;
	}
	*ret_items = items;
	return (size_t)(at - start);
}

/* Returns the number of containers to accept for this limit of depth. */
static inline unsigned spokei_skip_containers(uint32_t depth_max)
{
	return depth_max < 16 ? depth_max : 16;
}

/* The fast path of spoke_cursor_next(). No address of the caller's variables escapes, so they may
 * stay in registers. */
static inline bool spokei_skip_next(struct spoke_cursor *cursor, struct spoke_value *ret)
{
	const unsigned char *at = cursor->at;
	size_t len = cursor->left > 0 && at < cursor->end ? spokei_shape_len(at, cursor->end) : 0;

	if (SPOKEI_UNLIKELY(len == 0)) {
		struct spoke_cursor copy = *cursor;
		struct spoke_value value;
		bool found = spoke_cursor_next(&copy, &value);

		*cursor = copy;
		if (found)
			*ret = value;
		return found;
	}
	ret->data = at;
	ret->len = len;
	cursor->at = at + len;
	if (cursor->left != UINT64_MAX)
		cursor->left--;
	return true;
}

/* The fast path of spoke_value_u64(). */
static inline int spokei_skip_u64(struct spoke_value value, uint64_t *ret)
{
	const unsigned char *at = value.data;

	if (SPOKEI_LIKELY(value.len == 1 && at[0] < 0x80)) {
		*ret = at[0];
	} else if (value.len == 3 && at[0] == 0xcd) {
		*ret = (uint64_t)at[1] << 8 | at[2];
	} else if (value.len == 5 && at[0] == 0xce) {
		*ret = (uint64_t)at[1] << 24 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 8 | at[4];
	} else {
		uint64_t number;
		int result = spoke_value_u64(value, &number);

		if (result == 0)
			*ret = number;
		return result;
	}
	return 0;
}

/* The fast path of spoke_cursor_array(). */
static inline int spokei_skip_array(struct spoke_value value, struct spoke_cursor *ret)
{
	size_t count = value.len > 0 ? (size_t)(value.data[0] ^ 0x90) : SIZE_MAX;

	if (SPOKEI_UNLIKELY(count >= 16 || count >= value.len)) {
		struct spoke_cursor cursor;
		int result = spoke_cursor_array(value, &cursor);

		if (result == 0)
			*ret = cursor;
		return result;
	}
	ret->at = value.data + 1;
	ret->end = value.data + value.len;
	ret->left = count;
	return 0;
}

/* The fast path of spoke_cursor_map(). */
static inline int spokei_skip_map(struct spoke_value value, struct spoke_cursor *ret)
{
	size_t pairs = value.len > 0 ? (size_t)(value.data[0] ^ 0x80) : SIZE_MAX;

	if (SPOKEI_UNLIKELY(pairs >= 16 || 2 * pairs >= value.len)) {
		struct spoke_cursor cursor;
		int result = spoke_cursor_map(value, &cursor);

		if (result == 0)
			*ret = cursor;
		return result;
	}
	ret->at = value.data + 1;
	ret->end = value.data + value.len;
	ret->left = 2 * pairs;
	return 0;
}

/* The fast path of spoke_value_str(). */
static inline int spokei_skip_str(struct spoke_value value, struct spoke_span *ret)
{
	size_t len = value.len > 0 ? (size_t)(value.data[0] ^ 0xa0) : SIZE_MAX;

	if (value.len > 32 && value.data[0] == 0xd9 && value.len == 2u + value.data[1]) {
		ret->data = value.data + 2;
		ret->len = value.data[1];
		return 0;
	}
	if (SPOKEI_UNLIKELY(len >= 32 || len >= value.len)) {
		struct spoke_span text;
		int result = spoke_value_str(value, &text);

		if (result == 0)
			*ret = text;
		return result;
	}
	ret->data = value.data + 1;
	ret->len = len;
	return 0;
}

#endif
