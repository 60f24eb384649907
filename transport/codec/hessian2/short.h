/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fast paths for null and short texts of ASCII, the most frequent values of short messages. Such a
 * text has the same bytes in msgpack and in Hessian 2, after its head. Stateless; any thread.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_HESSIAN2_SHORT_H
#define SPOKEI_TRANSPORT_CODEC_HESSIAN2_SHORT_H

#include "timer/base.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A longer text has heads of different lengths. */
#define SPOKEI_HESSIAN_SHORT_MAX 255u

/* The heads of texts: below TINY the length itself, else MEDIUM and a byte with the length. */
#define SPOKEI_HESSIAN_TINY 32u
#define SPOKEI_HESSIAN_MEDIUM 0x30u

/* Copies a text. Returns the address of the next byte, or NULL if the text is not ASCII. */
static inline unsigned char *spokei_hessian_copy_ascii(unsigned char *at, const unsigned char *text,
						       size_t len)
{
	uint64_t some[2];
	uint64_t all = 0;
	size_t i = 0;

	for (; len - i >= sizeof(some); i += sizeof(some)) {
		memcpy(some, text + i, sizeof(some));
		memcpy(at + i, some, sizeof(some));
		all |= some[0] | some[1];
	}
	for (; i < len; i++) {
		at[i] = text[i];
		all |= text[i];
	}
	return all & UINT64_C(0x8080808080808080) ? NULL : at + len;
}

/* Returns whether the head of a checked msgpack value is that of a short text. */
static inline bool spokei_hessian_is_short(unsigned head)
{
	return head == 0xd9 || (head & 0xe0) == 0xa0;
}

/* Writes the head of a text of at most SHORT_MAX bytes of ASCII. */
static inline unsigned char *spokei_hessian_short_head(unsigned char *at, size_t len)
{
	if (len >= SPOKEI_HESSIAN_TINY)
		*at++ = SPOKEI_HESSIAN_MEDIUM;
	*at = (unsigned char)len;
	return at + 1;
}

/* Writes a checked msgpack value, in at most as many bytes. Returns the address of the next byte,
 * or NULL if the value is another than those above. */
static inline unsigned char *spokei_hessian_put_short(unsigned char *at, const unsigned char *value)
{
	switch (*value) {
	case 0xc0:
		*at = 'N';
		return at + 1;
	case 0xd9:
		return spokei_hessian_copy_ascii(spokei_hessian_short_head(at, value[1]), value + 2,
						 value[1]);
	default:
		if ((*value & 0xe0) != 0xa0)
			return NULL;
		*at = *value & 0x1f;
		return spokei_hessian_copy_ascii(at + 1, value + 1, *value & 0x1f);
	}
}

/*
 * Reads the value at `from`, which is before `end`, and writes it in msgpack at `to`, in at most
 * one byte more. Returns the address after the value, or NULL if it is another than those above or
 * is incomplete. `ret_to`: the next byte to write.
 */
static inline const unsigned char *spokei_hessian_take_short(const unsigned char *from,
							     const unsigned char *end,
							     unsigned char *to,
							     unsigned char **ret_to)
{
	size_t room = (size_t)(end - from);
	size_t head = 1;
	size_t len = *from;

	if (SPOKEI_LIKELY(len == SPOKEI_HESSIAN_MEDIUM && room > 1)) {
		len = from[1];
		head = 2;
	} else if (len >= SPOKEI_HESSIAN_TINY) {
		*to = 0xc0;
		*ret_to = to + 1;
		return len == 'N' ? from + 1 : NULL;
	}
	if (len > room - head)
		return NULL;
	if (len >= SPOKEI_HESSIAN_TINY) {
		*to++ = 0xd9;
		*to++ = (unsigned char)len;
	} else {
		*to++ = (unsigned char)(0xa0 | len);
	}
	*ret_to = spokei_hessian_copy_ascii(to, from + head, len);
	return *ret_to ? from + head + len : NULL;
}

/* The room that take_number() needs. */
#define SPOKEI_HESSIAN_NUMBER_MAX 16u

/* Does the same for numbers and dates. */
const unsigned char *spokei_hessian_take_number(const unsigned char *from, const unsigned char *end,
						unsigned char *to, unsigned char **ret_to);

#endif
