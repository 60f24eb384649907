/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a packed value begins: one row for each first byte. It is all that is known here of msgpack's
 * format for reading; skim, value and print go by it. Constant; any thread.
 */
#ifndef SPOKEI_CORE_VALUE_SHAPE_H
#define SPOKEI_CORE_VALUE_SHAPE_H

#include <spoke/value.h>

/*
 * Behind the first byte come `width` bytes that are a number, high byte first. It and `fixed`
 * together say how much follows: so many bytes, or so many times `each` values.
 */
struct spokei_shape {
	uint8_t type;  /* enum spoke_value_type; NONE: no value begins so */
	uint8_t width; /* 0, 1, 2 or 4 */
	uint8_t fixed;
	uint8_t each; /* 1: array, 2: map, 0: bytes follow; of NONE: not 0 */
};

/* It is all told by the first byte, and so many bytes follow as are fixed. */
static inline bool spokei_shape_is_fixed(const struct spokei_shape *shape)
{
	return (shape->width | shape->each) == 0;
}

extern const struct spokei_shape spokei_shapes[256];

/* So many bytes, at most 8, as a number, the high byte first. */
static inline uint64_t spokei_number(const unsigned char *bytes, unsigned width)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < width; i++)
		number = number << 8 | bytes[i];
	return number;
}

/* How much follows the head at `head`, of which all bytes are there. */
static inline uint64_t spokei_shape_number(const struct spokei_shape *shape,
					   const unsigned char *head)
{
	switch (shape->width) {
	case 0:
		return shape->fixed;
	case 1:
		return (uint64_t)head[1] + shape->fixed;
	case 2:
		return spokei_number(head + 1, 2) + shape->fixed;
	default:
		return spokei_number(head + 1, 4) + shape->fixed;
	}
}

/* The bytes of the scalar at `at`, which lies before `end`; 0: it is none, or not all there. This
 * one knows them all. */
size_t spokei_shape_hop_any(const unsigned char *at, const unsigned char *end);

/* By the first byte, the bytes of a scalar of a fixed length, itself among them; TOLD: the next
 * byte tells how many follow that; 0: neither. */
extern const uint8_t spokei_shape_lens[256];

#define SPOKEI_SHAPE_TOLD UINT8_MAX

/* The same by these lengths alone, which most values need: short texts and small numbers. 0 says
 * nothing. */
static inline size_t spokei_shape_hop_short(const unsigned char *at, const unsigned char *end)
{
	size_t room = (size_t)(end - at);
	size_t len = spokei_shape_lens[*at];

	if (len == SPOKEI_SHAPE_TOLD && room > 1)
		len = 2 + (size_t)at[1];
	return len <= room ? len : 0;
}

static inline size_t spokei_shape_hop(const unsigned char *at, const unsigned char *end)
{
	size_t len = spokei_shape_hop_short(at, end);

	return len > 0 ? len : spokei_shape_hop_any(at, end);
}

/* Are the first `len` bytes exactly one text, or bytes, of which the second byte tells the length?
 * What these two have to be is known from it; they can be read, whatever `len` is, which is below
 * 2^56. */
static inline bool spokei_shape_is_told(const unsigned char *bytes, size_t len)
{
	uint64_t head = bytes[0] | (uint64_t)bytes[1] << 8;
	/* What is left is the first byte less the two bytes of the head in `len`; a length that no
	 * byte can tell leaves less. */
	uint64_t left = head - ((uint64_t)len << 8);

	return left == UINT64_C(0xd9) - 0x200 || left == UINT64_C(0xc4) - 0x200;
}

/* Are the bytes, of which there are some, exactly one scalar? Most values are, and nothing has to
 * be kept track of then. */
static inline bool spokei_shape_is_one(const unsigned char *bytes, size_t len)
{
	return (len > 1 && spokei_shape_is_told(bytes, len)) ||
	       spokei_shape_hop(bytes, bytes + len) == len;
}

/* Are they, whatever somebody says they are? */
static inline bool spokei_shape_is_scalar(const unsigned char *bytes, size_t len)
{
	return bytes != NULL && len - 1 < SPOKE_VALUE_BYTES_MAX && spokei_shape_is_one(bytes, len);
}

/* The same of short ones, which are told at once. False says nothing. */
static inline bool spokei_shape_is_short(const unsigned char *bytes, size_t len)
{
	if (bytes == NULL)
		return false;
	if (len < 2)
		return len == 1 && spokei_shape_lens[*bytes] == 1;
	return spokei_shape_is_told(bytes, len) ||
	       spokei_shape_hop_short(bytes, bytes + len) == len;
}

#endif
