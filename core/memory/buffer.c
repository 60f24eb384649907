/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte buffer. Consumed bytes leave a gap at the start; the content moves over the gap
 * only if that frees at least as much as it moves, so each byte moves a bounded number of times.
 * Near the maximum, the capacity exceeds the content by a quarter, for the same reason.
 */
#include "core/memory/buffer.h"
#include "core/base/env.h"

#define CAPACITY_MIN ((size_t)128) /* a power of two */

/* Bytes that an empty buffer keeps; idle owners free them. */
#define CAPACITY_KEPT ((size_t)262144)

void spokei_buffer_init(struct spokei_buffer *buffer, const struct spoke_env *env, size_t max)
{
	*buffer = (struct spokei_buffer){ .env = env, .max = max };
}

void spokei_buffer_fini(struct spokei_buffer *buffer)
{
	spokei_free(buffer->env, buffer->bytes, buffer->capacity, 1);
	spokei_buffer_init(buffer, buffer->env, buffer->max);
}

static size_t sum_or_max(size_t a, size_t b)
{
	return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

/* Returns the next capacity for `need` bytes, which do not exceed the maximum. */
static size_t next_capacity(const struct spokei_buffer *buffer, size_t need)
{
	size_t most = sum_or_max(buffer->max, buffer->max / 4);
	size_t next = sum_or_max(buffer->capacity, buffer->capacity);

	/* A little more: reserving the same again is then quick. */
	if (next < need && need < SIZE_MAX - CAPACITY_MIN)
		next = (need | (CAPACITY_MIN - 1)) + 1;
	if (next < CAPACITY_MIN)
		next = CAPACITY_MIN;
	if (next > most)
		next = most;
	return next < need ? need : next;
}

static void close_gap(struct spokei_buffer *buffer)
{
	size_t len = spokei_buffer_len(buffer);

	if (buffer->start == 0)
		return;
	memmove(buffer->bytes, buffer->bytes + buffer->start, len);
	buffer->start = 0;
	buffer->end = len;
}

/* Makes room for `need` bytes of content in total. */
static bool make_room(struct spokei_buffer *buffer, size_t need)
{
	size_t len = spokei_buffer_len(buffer);
	size_t next = next_capacity(buffer, need);
	unsigned char *bytes;

	if (need <= buffer->capacity && (buffer->start >= len || next <= buffer->capacity)) {
		close_gap(buffer);
		return true;
	}
	close_gap(buffer);
	bytes = buffer->env->resize(buffer->env->ctx, buffer->bytes, buffer->capacity, next);
	if (bytes == NULL)
		return need <= buffer->capacity;
	buffer->bytes = bytes;
	buffer->capacity = next;
	return true;
}

unsigned char *spokei_buffer_reserve_more(struct spokei_buffer *buffer, size_t len)
{
	size_t held = spokei_buffer_len(buffer);

	if (held > buffer->max || len > buffer->max - held)
		return NULL;
	if (len > buffer->capacity - buffer->end && !make_room(buffer, held + len))
		return NULL;
	return buffer->bytes ? buffer->bytes + buffer->end : NULL;
}

int spokei_buffer_append(struct spokei_buffer *buffer, const void *bytes, size_t len)
{
	unsigned char *room;

	if (len == 0)
		return 0;
	if (len > buffer->max - spokei_buffer_len(buffer))
		return SPOKE_ETOOLARGE;
	room = spokei_buffer_reserve(buffer, len);
	if (room == NULL)
		return SPOKE_ENOMEM;
	memcpy(room, bytes, len);
	spokei_buffer_commit(buffer, len);
	return 0;
}

static void settle_empty(struct spokei_buffer *buffer)
{
	buffer->start = 0;
	buffer->end = 0;
	if (buffer->capacity > CAPACITY_KEPT)
		spokei_buffer_fini(buffer);
}

void spokei_buffer_consume(struct spokei_buffer *buffer, size_t len)
{
	size_t held = spokei_buffer_len(buffer);

	if (len >= held)
		settle_empty(buffer);
	else
		buffer->start += len;
}

void spokei_buffer_truncate(struct spokei_buffer *buffer, size_t len)
{
	if (len < spokei_buffer_len(buffer))
		buffer->end = buffer->start + len;
	if (spokei_buffer_len(buffer) == 0)
		settle_empty(buffer);
}

void spokei_buffer_fit(struct spokei_buffer *buffer)
{
	size_t size = buffer->end;
	unsigned char *bytes = NULL;

	if (size > 0 && size < buffer->capacity)
		bytes = buffer->env->resize(buffer->env->ctx, buffer->bytes, buffer->capacity,
					    size);
	if (bytes == NULL)
		return;
	buffer->bytes = bytes;
	buffer->capacity = size;
}

/* --- spare memory */

/* This header lies in the memory. */
struct spokei_spare {
	struct spokei_spare *next;
	size_t capacity;
};

static struct spokei_spare *take_spare(struct spokei_spares *spares)
{
	struct spokei_spare *spare = spares->newest;

	spares->newest = spare->next;
	spares->bytes -= spare->capacity;
	return spare;
}

void spokei_spares_lend(struct spokei_spares *spares, struct spokei_buffer *buffer)
{
	struct spokei_spare *spare;

	spares->lent = true;
	if (spares->newest == NULL)
		return;
	spare = take_spare(spares);
	buffer->capacity = spare->capacity;
	buffer->bytes = (unsigned char *)spare;
	spokei_buffer_clear(buffer);
}

void spokei_spares_return(struct spokei_spares *spares, struct spokei_buffer *buffer)
{
	struct spokei_spare *spare = (struct spokei_spare *)(void *)buffer->bytes;
	size_t capacity = buffer->capacity;

	if (spare == NULL)
		return;
	if (capacity > SPOKEI_SPARE_MAX || capacity < sizeof(*spare) ||
	    spares->bytes > SPOKEI_SPARES_MAX - capacity) {
		spokei_buffer_fini(buffer);
		return;
	}
	*spare = (struct spokei_spare){ .next = spares->newest, .capacity = capacity };
	spares->newest = spare;
	spares->bytes += capacity;
	buffer->bytes = NULL;
	buffer->capacity = 0;
	spokei_buffer_clear(buffer);
}

void spokei_spares_fini(struct spokei_spares *spares, const struct spoke_env *env)
{
	while (spares->newest) {
		struct spokei_spare *spare = take_spare(spares);

		spokei_free(env, spare, 1, spare->capacity);
	}
}

void spokei_spares_slim(struct spokei_spares *spares, const struct spoke_env *env, bool busy)
{
	if (!spares->lent && !busy)
		spokei_spares_fini(spares, env);
	spares->lent = false;
}
