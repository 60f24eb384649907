/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A byte queue: bytes enter at the end and leave at the start. It grows with the data it receives,
 * never with an announced length, and not beyond its maximum. Owned by one object, on its thread.
 */
#ifndef SPOKEI_CORE_MEMORY_BUFFER_H
#define SPOKEI_CORE_MEMORY_BUFFER_H

#include "timer/base.h"

#include <spoke/env.h>

#include <string.h>

struct spokei_buffer {
	unsigned char *bytes; /* NULL while the buffer holds no memory */
	size_t start;         /* bytes before this index are consumed */
	size_t end;           /* bytes from this index on are free */
	size_t capacity;
	size_t max;                  /* maximum of bytes it may hold */
	const struct spoke_env *env; /* borrowed for the buffer's life */
};

/* Initialises an empty buffer, which holds no memory. */
void spokei_buffer_init(struct spokei_buffer *buffer, const struct spoke_env *env, size_t max);

/* Frees the memory. The buffer is empty afterwards and may be used again. */
void spokei_buffer_fini(struct spokei_buffer *buffer);

/* The slow path of spokei_buffer_reserve(). */
unsigned char *spokei_buffer_reserve_more(struct spokei_buffer *buffer, size_t len);

static inline size_t spokei_buffer_len(const struct spokei_buffer *buffer)
{
	return buffer->end - buffer->start;
}

/* Returns the first byte, valid until the next write to the buffer; NULL while it holds no memory.
 */
static inline unsigned char *spokei_buffer_data(const struct spokei_buffer *buffer)
{
	return buffer->bytes ? buffer->bytes + buffer->start : NULL;
}

/*
 * Reserves room for `len` more bytes at the end. spokei_buffer_commit() adds the bytes that were
 * written to the content. Returns NULL if the maximum would be exceeded or there is no memory; the
 * content is unchanged then.
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

/* Appends a copy. Returns 0, SPOKE_ETOOLARGE (maximum exceeded) or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_buffer_append(struct spokei_buffer *buffer, const void *bytes,
					size_t len);

/* Removes the first `len` bytes, or all if there are fewer. */
void spokei_buffer_consume(struct spokei_buffer *buffer, size_t len);

/* Removes everything, and keeps the memory. */
static inline void spokei_buffer_clear(struct spokei_buffer *buffer)
{
	buffer->start = buffer->end = 0;
}

/* Removes everything after the first `len` bytes. */
void spokei_buffer_truncate(struct spokei_buffer *buffer, size_t len);

/* Gives back the memory behind the content, which will hardly grow. */
void spokei_buffer_fit(struct spokei_buffer *buffer);

#define SPOKEI_SPARE_MAX 262144u   /* bytes; larger memory is freed */
#define SPOKEI_SPARES_MAX 8388608u /* ... of all spare memory of one engine */

/* Memory of emptied buffers, for the next one that fills. Zero-initialised. */
struct spokei_spares {
	struct spokei_spare *newest;
	size_t bytes;
	bool lent; /* since the last spokei_spares_slim() */
};

/* Lends memory to an empty buffer that is about to fill; takes it back from one that was emptied.
 */
void spokei_spares_lend(struct spokei_spares *spares, struct spokei_buffer *buffer);
void spokei_spares_return(struct spokei_spares *spares, struct spokei_buffer *buffer);

/* Frees the memory, unless a buffer has filled since the last call, or will soon (`busy`). */
void spokei_spares_slim(struct spokei_spares *spares, const struct spoke_env *env, bool busy);

/* Frees the memory. */
void spokei_spares_fini(struct spokei_spares *spares, const struct spoke_env *env);

#endif
