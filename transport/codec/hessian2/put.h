/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends the scalars of Hessian 2 to a buffer, each in the form that Java's writer chooses. The
 * first error is sticky: later functions do nothing. Owned by one function call; any thread.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_HESSIAN2_PUT_H
#define SPOKEI_TRANSPORT_CODEC_HESSIAN2_PUT_H

#include "core/memory/buffer.h"
#include "transport/codec/hessian2/ascii.h"

#include <spoke/value.h>

struct spokei_hessian_put {
	struct spokei_buffer *out;
	unsigned char *start; /* the first byte that `out` has not recorded */
	unsigned char *at;    /* the next byte */
	unsigned char *end;   /* the end of the reserved room */
	int error;            /* 0, SPOKE_ENOMEM, SPOKE_ETOOLARGE or SPOKE_EUNSUPPORTED */
};

/* Ends a start that got no room: less may suffice, unless there is no memory. */
void spokei_hessian_put_starve(struct spokei_hessian_put *put, size_t len);

/* Starts to append, with room for about `len` bytes. */
static inline void spokei_hessian_put_start(struct spokei_hessian_put *put,
					    struct spokei_buffer *out, size_t len)
{
	unsigned char *room = spokei_buffer_reserve(out, len);

	*put = (struct spokei_hessian_put){ out, room, room, room ? room + len : NULL, 0 };
	if (SPOKEI_UNLIKELY(room == NULL))
		spokei_hessian_put_starve(put, len);
}

/* Records the appended bytes in the buffer. Returns 0 or the first error. */
SPOKE_MUST_USE static inline int spokei_hessian_put_finish(const struct spokei_hessian_put *put)
{
	if (put->at != put->start)
		spokei_buffer_commit(put->out, (size_t)(put->at - put->start));
	return put->error;
}

/* The slow path of spokei_hessian_put_room(). */
unsigned char *spokei_hessian_put_more(struct spokei_hessian_put *put, size_t len);

/* Returns the address of at least `len` free bytes, or NULL after an error. The caller advances
 * `at` by the bytes that it wrote. */
static inline unsigned char *spokei_hessian_put_room(struct spokei_hessian_put *put, size_t len)
{
	if (SPOKEI_LIKELY(len <= (size_t)(put->end - put->at)))
		return put->at;
	return spokei_hessian_put_more(put, len);
}

/* Reports an error, unless there was one before. */
static inline void spokei_hessian_put_fail(struct spokei_hessian_put *put, int error)
{
	if (put->error == 0)
		put->error = error;
	put->end = put->at; /* the next room is refused */
}

static inline void spokei_hessian_put_byte(struct spokei_hessian_put *put, unsigned byte)
{
	unsigned char *at = spokei_hessian_put_room(put, 1);

	if (at) {
		*at = (unsigned char)byte;
		put->at++;
	}
}

/* Returns the number of bytes in the buffer, the appended ones included. */
static inline size_t spokei_hessian_put_len(const struct spokei_hessian_put *put)
{
	return spokei_buffer_len(put->out) + (size_t)(put->at - put->start);
}

/* Takes the last bytes back. */
static inline void spokei_hessian_put_back(struct spokei_hessian_put *put, size_t len)
{
	put->at -= len;
	if (put->at < put->start) {
		put->out->end -= (size_t)(put->start - put->at);
		put->start = put->at;
	}
}

/* Leaves bytes free. */
static inline void spokei_hessian_put_skip(struct spokei_hessian_put *put, size_t len)
{
	if (spokei_hessian_put_room(put, len))
		put->at += len;
}

static inline void spokei_hessian_put_raw(struct spokei_hessian_put *put, const void *bytes,
					  size_t len)
{
	unsigned char *at = len > 0 ? spokei_hessian_put_room(put, len) : NULL;

	if (at) {
		memcpy(at, bytes, len);
		put->at += len;
	}
}

/* --- numbers
 *
 * Write a number in its shortest form, where there is room for NUMBER_MAX bytes, and return the
 * next byte. */

static inline unsigned char *spokei_hessian_wide(unsigned char *to, unsigned tag, uint64_t number,
						 unsigned width)
{
	*to++ = (unsigned char)tag;
	for (unsigned i = 0; i < width; i++)
		to[i] = (unsigned char)(number >> 8 * (width - 1 - i));
	return to + width;
}

static inline unsigned char *spokei_hessian_int(unsigned char *to, int64_t number)
{
	uint64_t bits = (uint64_t)number;

	if (number >= -0x10 && number <= 0x2f)
		return spokei_hessian_wide(to, (unsigned)(0x90 + number), 0, 0);
	if (number >= -0x800 && number <= 0x7ff)
		return spokei_hessian_wide(to, (unsigned)(0xc8 + (number >> 8)), bits, 1);
	if (number >= -0x40000 && number <= 0x3ffff)
		return spokei_hessian_wide(to, (unsigned)(0xd4 + (number >> 16)), bits, 2);
	return spokei_hessian_wide(to, 'I', bits, 4);
}

static inline unsigned char *spokei_hessian_long(unsigned char *to, int64_t number)
{
	uint64_t bits = (uint64_t)number;

	if (number >= -0x8 && number <= 0xf)
		return spokei_hessian_wide(to, (unsigned)(0xe0 + number), 0, 0);
	if (number >= -0x800 && number <= 0x7ff)
		return spokei_hessian_wide(to, (unsigned)(0xf8 + (number >> 8)), bits, 1);
	if (number >= -0x40000 && number <= 0x3ffff)
		return spokei_hessian_wide(to, (unsigned)(0x3c + (number >> 16)), bits, 2);
	if (number >= INT32_MIN && number <= INT32_MAX)
		return spokei_hessian_wide(to, 0x59, bits, 4);
	return spokei_hessian_wide(to, 'L', bits, 8);
}

unsigned char *spokei_hessian_double(unsigned char *to, double number);

/* Writes the double of the shortest decimal text that names this float, as Java does: 3.14f is
 * written as 3.14. */
unsigned char *spokei_hessian_float(unsigned char *to, float number);

/* Writes a date; `ms` are milliseconds since 1970. */
static inline unsigned char *spokei_hessian_date(unsigned char *to, int64_t ms)
{
	int64_t minutes = ms / 60000;

	if (ms % 60000 == 0 && minutes >= INT32_MIN && minutes <= INT32_MAX)
		return spokei_hessian_wide(to, 0x4b, (uint64_t)minutes, 4);
	return spokei_hessian_wide(to, 0x4a, (uint64_t)ms, 8);
}

/* Append them. */
void spokei_hessian_put_int(struct spokei_hessian_put *put, int32_t number);
void spokei_hessian_put_long(struct spokei_hessian_put *put, int64_t number);
void spokei_hessian_put_double(struct spokei_hessian_put *put, double number);
void spokei_hessian_put_date(struct spokei_hessian_put *put, int64_t ms);

/* Appends a string. Characters outside the basic plane become two surrogates of three bytes each. A
 * surrogate that the text contains in three bytes is kept. Each byte that is not UTF-8 becomes
 * U+FFFD. */
void spokei_hessian_put_text(struct spokei_hessian_put *put, const void *text, size_t len);

#define SPOKEI_HESSIAN_CHUNK_MAX 0x8000u /* units of a string, or bytes, in one chunk */
#define SPOKEI_HESSIAN_SHORT_MAX 1023u   /* units of a chunk with a head of at most two bytes */

/* Does the same, fast for a short text of ASCII. */
static inline void spokei_hessian_put_string(struct spokei_hessian_put *put, const void *text,
					     size_t len)
{
	unsigned char *at = put->at;

	if (SPOKEI_LIKELY(len <= SPOKEI_HESSIAN_SHORT_MAX && len + 2 <= (size_t)(put->end - at))) {
		if (len >= 32)
			*at++ = (unsigned char)(0x30 | len >> 8);
		*at++ = (unsigned char)len;
		if (SPOKEI_LIKELY(spokei_hessian_copy_ascii(at, text, len))) {
			put->at = at + len;
			return;
		}
	}
	spokei_hessian_put_text(put, text, len);
}

/* Appends the head of the next chunk of a binary of which `left` bytes are not written. Returns the
 * address of the content, at most 32,768 bytes, which the caller writes; NULL after an error. */
unsigned char *spokei_hessian_put_chunk(struct spokei_hessian_put *put, size_t left,
					size_t *ret_len);

/* Appends a binary, in such chunks. */
void spokei_hessian_put_binary(struct spokei_hessian_put *put, const void *bytes, size_t len);

#endif
