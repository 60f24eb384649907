/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a builder: its start, its end, and its memory, which comes from the environment, from
 * the caller, or from a buffer.
 */
#include "core/value/builder.h"
#include "core/base/env.h"

#include "core/value/skim.h"

#define CAPACITY_MIN ((size_t)128)

/* --- life */

static void start(struct spoke_builder *builder)
{
	builder->len = 0;
	builder->committed = 0;
	builder->count = 0;
	builder->depth = 0;
	builder->left = 0;
	builder->typed_depth = 0;
	builder->typed_at = 0;
	builder->error = builder->limits.depth_max > SPOKE_VALUE_DEPTH_MAX ? SPOKE_EINVAL : 0;
	builder->items = spokei_limits_items(&builder->limits);
	builder->max = builder->limits.bytes_max;
}

static void init(struct spoke_builder *builder, const struct spoke_value_limits *limits)
{
	memset(builder, 0, sizeof(*builder));
	if (spokei_limits_settle(limits, &builder->limits) != 0)
		builder->limits = *limits; /* start() checks them each time */
	start(builder);
}

void spoke_builder_init(struct spoke_builder *builder, const struct spoke_env *env,
			const struct spoke_value_limits *limits)
{
	init(builder, limits);
	builder->env = env;
}

void spoke_builder_init_fixed(struct spoke_builder *builder, void *memory, size_t size,
			      const struct spoke_value_limits *limits)
{
	init(builder, limits);
	builder->bytes = memory;
	builder->capacity = memory ? size : 0;
}

void spokei_builder_init_buffer(struct spoke_builder *builder, struct spokei_buffer *buffer,
				const struct spoke_value_limits *limits)
{
	init(builder, limits);
	builder->buffer = buffer;
	builder->start = spokei_buffer_len(buffer);
}

void spoke_builder_reset(struct spoke_builder *builder)
{
	SPOKE_ASSERT(builder->buffer == NULL);
	start(builder);
}

void spoke_builder_fini(struct spoke_builder *builder)
{
	if (builder->env)
		spokei_free(builder->env, builder->bytes, builder->capacity, 1);
	builder->bytes = NULL;
	builder->capacity = 0;
	builder->len = 0;
}

void spokei_builder_drop(struct spoke_builder *builder)
{
	if (builder->buffer == NULL)
		return;
	spokei_buffer_truncate(builder->buffer, builder->start);
	builder->buffer = NULL;
	builder->bytes = NULL;
	builder->capacity = 0;
	if (builder->error == 0)
		builder->error = SPOKE_ESTATE;
}

static int finish(struct spoke_builder *builder)
{
	if (builder->error == 0 && builder->depth > 0)
		builder->error = SPOKE_ETRUNCATED;
	if (builder->buffer == NULL)
		return builder->error;
	if (builder->error != 0) {
		spokei_builder_drop(builder);
		return builder->error;
	}
	spokei_buffer_commit(builder->buffer, builder->len - builder->committed);
	builder->buffer = NULL;
	return 0;
}

int spoke_builder_finish(struct spoke_builder *builder, struct spoke_span *ret_values)
{
	int result = finish(builder);

	if (result == 0)
		*ret_values = (struct spoke_span){ builder->bytes, builder->len };
	return result;
}

int spoke_builder_finish_value(struct spoke_builder *builder, struct spoke_value *ret_value)
{
	int result;

	if (builder->error == 0 && builder->depth == 0 && builder->count != 1)
		builder->error = builder->count > 1 ? SPOKE_ETRAILING : SPOKE_ETRUNCATED;
	result = finish(builder);
	if (result == 0)
		*ret_value = (struct spoke_value){ builder->bytes, builder->len };
	return result;
}

/* --- memory */

static int grow_own(struct spoke_builder *builder, size_t need)
{
	size_t next = builder->capacity > builder->max / 2 ? builder->max : 2 * builder->capacity;
	unsigned char *bytes;

	if (next < CAPACITY_MIN)
		next = CAPACITY_MIN;
	if (next < need)
		next = need;
	bytes = builder->env->resize(builder->env->ctx, builder->bytes, builder->capacity, next);
	if (bytes == NULL)
		return SPOKE_ENOMEM;
	builder->bytes = bytes;
	builder->capacity = next;
	return 0;
}

/* A buffer that moves keeps only committed bytes, so commit first. */
static int grow_buffer(struct spoke_builder *builder, size_t len)
{
	struct spokei_buffer *buffer = builder->buffer;

	if (builder->len > builder->committed)
		spokei_buffer_commit(buffer, builder->len - builder->committed);
	builder->committed = builder->len;
	if (len > buffer->max - spokei_buffer_len(buffer))
		return SPOKE_ETOOLARGE;
	if (spokei_buffer_reserve(buffer, len) == NULL)
		return SPOKE_ENOMEM;
	builder->bytes = spokei_buffer_data(buffer) + builder->start;
	builder->capacity = buffer->capacity - buffer->start - builder->start;
	return 0;
}

SPOKEI_NOINLINE int spokei_builder_grow(struct spoke_builder *builder, size_t len)
{
	if (builder->buffer)
		return grow_buffer(builder, len);
	if (builder->env)
		return grow_own(builder, builder->len + len);
	return SPOKE_ETOOLARGE;
}
