/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heads of msgpack values: one table row per first byte. The validator, the getters and the
 * printer all read msgpack by this table. Constant; any thread.
 */
#ifndef SPOKEI_CORE_VALUE_SHAPE_H
#define SPOKEI_CORE_VALUE_SHAPE_H

#include <spoke/value.h>

/*
 * The first byte is followed by a number of `width` bytes in big-endian order. That number plus
 * `fixed` is the amount that follows: bytes of content, or entries of `each` values.
 */
struct spokei_shape {
	uint8_t type;  /* enum spoke_value_type; NONE: not a valid first byte */
	uint8_t width; /* 0, 1, 2 or 4 */
	uint8_t fixed;
	uint8_t each; /* 1: array, 2: map, 0: bytes follow; NONE has a value other than 0 */
};

extern const struct spokei_shape spokei_shapes[256];

/* Read big-endian numbers, in forms that compilers make one load of. */
static inline uint64_t spokei_number_32(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline uint64_t spokei_number_64(const unsigned char *at)
{
	return (uint64_t)at[0] << 56 | (uint64_t)at[1] << 48 | (uint64_t)at[2] << 40 |
	       (uint64_t)at[3] << 32 | (uint64_t)at[4] << 24 | (uint64_t)at[5] << 16 |
	       (uint64_t)at[6] << 8 | at[7];
}

/* Reads one of `width` bytes: 0, 1, 2, 4 or 8. */
static inline uint64_t spokei_number(const unsigned char *bytes, unsigned width)
{
	switch (width) {
	case 0:
		return 0;
	case 1:
		return bytes[0];
	case 2:
		return (uint64_t)bytes[0] << 8 | bytes[1];
	case 4:
		return spokei_number_32(bytes);
	default:
		return spokei_number_64(bytes);
	}
}

/* Returns the amount that follows the head at `head`; all bytes of the head are readable. */
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

/* Returns the length of the scalar at `at`, which is before `end`; 0 if the value is not a scalar
 * or is incomplete. Handles every kind of scalar. An ext that may contain values is no scalar. */
size_t spokei_shape_len_any(const unsigned char *at, const unsigned char *end);

/* Returns the end of the value at `at`, or NULL if it does not end before `end` or is not valid. */
const unsigned char *spokei_shape_skip(const unsigned char *at, const unsigned char *end);

/* Returns whether an ext of this type may contain values. */
static inline bool spokei_shape_holds(unsigned char ext_type)
{
	return ext_type == SPOKE_EXT_TYPED || ext_type == SPOKE_EXT_REF;
}

/* The two values in the payload of an ext. */
struct spokei_pair {
	struct spoke_value head;   /* the name of the type, or the distance */
	struct spoke_value inside; /* the array, map, typed ext or nil */
};

/*
 * Returns whether the content of an ext, which begins with the type, has exactly the form of
 * SPOKE_EXT_TYPED or SPOKE_EXT_REF, and writes the two values. Takes time in proportion to the
 * number of values that are not themselves inside another ext.
 */
bool spokei_shape_open_ext(const unsigned char *content, size_t len, struct spokei_pair *ret);

/* Maps the first byte of a scalar to its whole length. TOLD means that the second byte contains the
 * length of the content; 0 means neither. */
extern const uint8_t spokei_shape_lens[256];

#define SPOKEI_SHAPE_TOLD UINT8_MAX

/* Does the same with this table alone, which covers short texts and small numbers, the most
 * frequent values. 0 means that spokei_shape_len_any() has to decide. */
static inline size_t spokei_shape_len_short(const unsigned char *at, const unsigned char *end)
{
	size_t room = (size_t)(end - at);
	size_t len = spokei_shape_lens[*at];

	if (len == SPOKEI_SHAPE_TOLD && room > 1)
		len = 2 + (size_t)at[1];
	return len <= room ? len : 0;
}

static inline size_t spokei_shape_len(const unsigned char *at, const unsigned char *end)
{
	size_t len = spokei_shape_len_short(at, end);

	return len > 0 ? len : spokei_shape_len_any(at, end);
}

/* Returns true if the first `len` bytes are exactly one str or bin whose length is its second byte.
 * Compares the first two bytes with the expected ones; two bytes must be readable for any `len`,
 * and `len` is below 2^56. */
static inline bool spokei_shape_is_told(const unsigned char *bytes, size_t len)
{
	uint64_t head = bytes[0] | (uint64_t)bytes[1] << 8;
	/* The remainder is the first byte minus the two bytes of the head; a length above one byte
	 * leaves a smaller remainder. */
	uint64_t left = head - ((uint64_t)len << 8);

	return left == UINT64_C(0xd9) - 0x200 || left == UINT64_C(0xc4) - 0x200;
}

/* Returns true if the bytes, at least one, are exactly one scalar. Most values are, and need no
 * further state. */
static inline bool spokei_shape_is_one(const unsigned char *bytes, size_t len)
{
	return (len > 1 && spokei_shape_is_told(bytes, len)) ||
	       spokei_shape_len(bytes, bytes + len) == len;
}

/* Does the same for unchecked input: NULL or any length. */
static inline bool spokei_shape_is_scalar(const unsigned char *bytes, size_t len)
{
	return bytes != NULL && len - 1 < SPOKE_VALUE_BYTES_MAX && spokei_shape_is_one(bytes, len);
}

/* Does the same for short scalars only. False means that a longer check has to decide. */
static inline bool spokei_shape_is_short(const unsigned char *bytes, size_t len)
{
	if (bytes == NULL)
		return false;
	if (len < 2)
		return len == 1 && spokei_shape_lens[*bytes] == 1;
	return spokei_shape_is_told(bytes, len) ||
	       spokei_shape_len_short(bytes, bytes + len) == len;
}

#endif
