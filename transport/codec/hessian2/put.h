/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends the scalars of Hessian 2 to a buffer, each in the form that Java's writer chooses. The
 * first error is sticky: later functions do nothing. Owned by one function call; any thread.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_HESSIAN2_PUT_H
#define SPOKEI_TRANSPORT_CODEC_HESSIAN2_PUT_H

#include "core/memory/buffer.h"

#include <spoke/value.h>

struct spokei_hessian_put {
	struct spokei_buffer *out;
	unsigned char *start; /* the first byte that `out` has not recorded */
	unsigned char *at;    /* the next byte */
	unsigned char *end;   /* the end of the reserved room */
	int error;            /* 0, SPOKE_ENOMEM, SPOKE_ETOOLARGE or SPOKE_EUNSUPPORTED */
};

/* Starts to append, with room for about `len` bytes. */
void spokei_hessian_put_start(struct spokei_hessian_put *put, struct spokei_buffer *out,
			      size_t len);

/* Records the appended bytes in the buffer. Returns 0 or the first error. */
SPOKE_MUST_USE int spokei_hessian_put_finish(struct spokei_hessian_put *put);

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

void spokei_hessian_put_int(struct spokei_hessian_put *put, int32_t number);
void spokei_hessian_put_long(struct spokei_hessian_put *put, int64_t number);
void spokei_hessian_put_double(struct spokei_hessian_put *put, double number);

/* Appends the double of the shortest decimal text that names this float, as Java does: 3.14f is
 * written as 3.14. */
void spokei_hessian_put_float(struct spokei_hessian_put *put, float number);

/* Appends a date; `ms` are milliseconds since 1970. */
void spokei_hessian_put_date(struct spokei_hessian_put *put, int64_t ms);

/* Appends a string. Characters outside the basic plane become two surrogates of three bytes each. A
 * surrogate that the text contains in three bytes is kept. Each byte that is not UTF-8 becomes
 * U+FFFD. */
void spokei_hessian_put_string(struct spokei_hessian_put *put, const void *text, size_t len);

/* Appends the head of the next chunk of a binary of which `left` bytes are not written. Returns the
 * address of the content, at most 32,768 bytes, which the caller writes; NULL after an error. */
unsigned char *spokei_hessian_put_chunk(struct spokei_hessian_put *put, size_t left,
					size_t *ret_len);

/* Appends a binary, in such chunks. */
void spokei_hessian_put_binary(struct spokei_hessian_put *put, const void *bytes, size_t len);

#endif
