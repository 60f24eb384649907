/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds values at the end of a buffer that already holds other bytes.
 */
#ifndef SPOKEI_CORE_VALUE_BUILDER_H
#define SPOKEI_CORE_VALUE_BUILDER_H

#include "core/memory/buffer.h"

#include <spoke/value.h>

/* Starts building at the end of a buffer, which the builder borrows until finish or drop. If finish
 * returns 0, the buffer holds the values; otherwise it is unchanged. The caller must not touch the
 * buffer in between. */
void spokei_builder_init_buffer(struct spoke_builder *builder, struct spokei_buffer *buffer,
				const struct spoke_value_limits *limits);

/* Discards the packed values and leaves the buffer unchanged. Does nothing after finish. */
void spokei_builder_drop(struct spoke_builder *builder);

/* Makes room for `len` more bytes. Returns 0, SPOKE_ENOMEM or SPOKE_ETOOLARGE. */
SPOKE_MUST_USE int spokei_builder_grow(struct spoke_builder *builder, size_t len);

/* Begins an array or a map whose number of values is not known. Returns its place. */
size_t spokei_builder_open(struct spoke_builder *builder, bool is_map);

/* Ends it, after all its values. */
void spokei_builder_close(struct spoke_builder *builder, size_t at);

/* Returns room for a scalar of up to `len` bytes in such an array or map. NULL: there is no error
 * yet, perhaps, but only the functions of <spoke/value.h> can tell. */
static inline unsigned char *spokei_builder_room(struct spoke_builder *builder, size_t len)
{
	size_t end = builder->capacity < builder->max ? builder->capacity : builder->max;

	if (SPOKEI_UNLIKELY(builder->left <= 1 || builder->error != 0 || builder->len > end ||
			    len > end - builder->len))
		return NULL;
	return builder->bytes + builder->len;
}

/* Adds the scalar, whose bytes have been written to the room up to `end`. */
static inline void spokei_builder_take(struct spoke_builder *builder, const unsigned char *end)
{
	builder->len = (size_t)(end - builder->bytes);
	builder->left--;
}

#endif
