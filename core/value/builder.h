/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds values at the end of a buffer that already holds other bytes, and packs arguments for one
 * call or reply. Short ones are encoded on the stack of the caller, without a builder; only long or
 * nested ones take memory. Any thread.
 */
#ifndef SPOKEI_CORE_VALUE_BUILDER_H
#define SPOKEI_CORE_VALUE_BUILDER_H

#include "core/memory/buffer.h"

#include <spoke/args.h>
#include <spoke/value.h>

/* Starts building at the end of a buffer, which the builder borrows until finish or drop. If finish
 * returns 0, the buffer holds the values; otherwise it is unchanged. The caller must not touch the
 * buffer in between. */
void spokei_builder_init_buffer(struct spoke_builder *builder, struct spokei_buffer *buffer,
				const struct spoke_value_limits *limits);

/* Discards the packed values and leaves the buffer unchanged. Does nothing after finish. */
void spokei_builder_drop(struct spoke_builder *builder);

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

/* --- arguments */

#define SPOKEI_PACKED_LOCAL 512u                   /* bytes that need no memory */
#define SPOKEI_ARGS_BYTES_MAX (UINT32_C(64) << 20) /* no frame is larger */

/* Packed arguments. Must not be copied. */
struct spokei_packed {
	struct spoke_span values;
	const struct spoke_env *env;
	unsigned char *kept; /* memory of the environment; NULL: none */
	size_t kept_size;
	unsigned char local[SPOKEI_PACKED_LOCAL];
};

/* Packs arguments. Returns 0 or an error of spoke_builder_finish() or spoke_value_check(). Undo
 * with spokei_packed_free(), after an error too. */
SPOKE_MUST_USE int spokei_args_pack(const struct spoke_env *env, struct spoke_args args,
				    struct spokei_packed *ret);

/* Returns the value of a single argument. */
static inline struct spoke_value spokei_packed_value(const struct spokei_packed *packed)
{
	return (struct spoke_value){ packed->values.data, packed->values.len };
}

/* Frees the memory of packed arguments. */
void spokei_packed_free(struct spokei_packed *packed);

#endif
