/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that come in at the end and go out at the start. Grows with the data it is given, never
 * with what somebody claims will come, and not beyond its maximum. Owned by one object, on its
 * thread.
 */
#ifndef SPOKEI_CORE_MEMORY_BUFFER_H
#define SPOKEI_CORE_MEMORY_BUFFER_H

#include "core/base/env.h"

struct spokei_buffer {
	const struct spoke_env *env; /* borrowed for the buffer's life */
	unsigned char *bytes;        /* NULL while nothing is held */
	size_t start;                /* bytes before this are gone */
	size_t end;                  /* bytes from here on are free */
	size_t capacity;
	size_t max; /* bytes it may hold */
};

/* An empty buffer that holds no memory yet. */
void spokei_buffer_init(struct spokei_buffer *buffer, const struct spoke_env *env, size_t max);

/* Gives the memory back; the buffer is empty then and may be used again. */
void spokei_buffer_fini(struct spokei_buffer *buffer);

/* spokei_buffer_reserve(), where the room has to be made. */
unsigned char *spokei_buffer_reserve_more(struct spokei_buffer *buffer, size_t len);

static inline size_t spokei_buffer_len(const struct spokei_buffer *buffer)
{
	return buffer->end - buffer->start;
}

/* The first byte; valid until the buffer is next written to. NULL while it holds no memory. */
static inline unsigned char *spokei_buffer_data(const struct spokei_buffer *buffer)
{
	return buffer->bytes ? buffer->bytes + buffer->start : NULL;
}

/*
 * Room for `len` more bytes behind the end; they count once spokei_buffer_commit() says how many
 * were written. Returns NULL when that would exceed the maximum or there is no memory; the content
 * stays.
 */
static inline unsigned char *spokei_buffer_reserve(struct spokei_buffer *buffer, size_t len)
{
	size_t held = spokei_buffer_len(buffer);

	if (SPOKEI_LIKELY(len < buffer->capacity - buffer->end && held <= buffer->max &&
			  len <= buffer->max - held))
		return buffer->bytes + buffer->end;
	return spokei_buffer_reserve_more(buffer, len);
}

static inline void spokei_buffer_commit(struct spokei_buffer *buffer, size_t len)
{
	SPOKE_ASSERT(len <= buffer->capacity - buffer->end);
	buffer->end += len;
}

/* Appends a copy. Returns 0, SPOKE_ETOOLARGE (beyond the maximum) or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_buffer_append(struct spokei_buffer *buffer, const void *bytes,
					size_t len);

/* Drops `len` bytes, at most what is there, from the start. */
void spokei_buffer_consume(struct spokei_buffer *buffer, size_t len);

/* Drops everything after the first `len` bytes. */
void spokei_buffer_truncate(struct spokei_buffer *buffer, size_t len);

#endif
