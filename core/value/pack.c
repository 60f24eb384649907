/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds msgpack values: memory, accounts and the end of a builder, then one function per kind of
 * value. encode.h writes the bytes. The builder counts values as the validator (skim.h) does, so
 * the validator accepts under the same limits everything that was built here.
 */
#include "core/value/pack.h"
#include "core/base/env.h"

#include "core/value/encode.h"
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

/* Records an error; the first one stays. */
static void fail(struct spoke_builder *builder, int error)
{
	if (builder->error == 0)
		builder->error = error;
}

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

static SPOKEI_NOINLINE int grow(struct spoke_builder *builder, size_t len)
{
	if (builder->buffer)
		return grow_buffer(builder, len);
	if (builder->env)
		return grow_own(builder, builder->len + len);
	return SPOKE_ETOOLARGE;
}

/* Returns room for `len` bytes at the end, or NULL after an error. */
static unsigned char *room_for(struct spoke_builder *builder, size_t len)
{
	int error;

	if (SPOKEI_UNLIKELY(builder->error != 0))
		return NULL;
	if (SPOKEI_UNLIKELY(len > builder->max - builder->len)) {
		builder->error = SPOKE_ETOOLARGE;
		return NULL;
	}
	if (SPOKEI_UNLIKELY(len > builder->capacity - builder->len)) {
		error = grow(builder, len);
		if (error != 0) {
			builder->error = error;
			return NULL;
		}
	}
	return builder->bytes + builder->len;
}

/* --- account */

/* The place where a value is encoded: the end of the packed bytes, or `aside` if the room may not
 * suffice, because the length of the head is not known yet. */
struct place {
	unsigned char *start;
	unsigned char aside[SPOKEI_ENCODE_MAX];
};

/* Begins a value with `len` bytes of content. Returns the address of its head, or NULL after an
 * error. */
static inline unsigned char *begin_value(struct spoke_builder *builder, struct place *place,
					 size_t len)
{
	size_t end = builder->capacity < builder->max ? builder->capacity : builder->max;

	if (SPOKEI_UNLIKELY(builder->error != 0))
		return NULL;
	if (builder->depth == 0) {
		if (builder->items == 0) {
			builder->error = SPOKE_ETOOLARGE;
			return NULL;
		}
		builder->items--;
	}
	place->start = place->aside;
	if (SPOKEI_LIKELY(end - builder->len >= SPOKEI_ENCODE_MAX &&
			  len <= end - builder->len - SPOKEI_ENCODE_MAX))
		place->start = builder->bytes + builder->len;
	return place->start;
}

/* Moves a head from `aside` to the end of the packed bytes and reserves `len` bytes after it.
 * Returns the end of the head, or NULL after an error. */
static SPOKEI_NOINLINE unsigned char *move_head(struct spoke_builder *builder,
						const struct place *place, size_t head_len,
						size_t len)
{
	unsigned char *at = room_for(builder, head_len + len);

	if (at == NULL)
		return NULL;
	memcpy(at, place->aside, head_len);
	return at + head_len;
}

/* Ends `count` values, and every container whose last value is complete with them. */
static void end_values(struct spoke_builder *builder, size_t count)
{
	if (builder->depth == 0) {
		builder->count += count;
		return;
	}
	builder->left -= (uint32_t)count;
	while (builder->left == 0) {
		if (--builder->depth == 0) {
			builder->count++;
			return;
		}
		builder->left = builder->open[builder->depth] - 1;
	}
}

/* Ends a head at `at` and copies the content after it. Returns false after an error. */
static inline bool end_head(struct spoke_builder *builder, const struct place *place,
			    unsigned char *at, const void *bytes, size_t len)
{
	if (SPOKEI_UNLIKELY(place->start == place->aside)) {
		at = move_head(builder, place, (size_t)(at - place->start), len);
		if (at == NULL)
			return false;
	}
	if (len > 0)
		memcpy(at, bytes, len);
	builder->len = (size_t)(at - builder->bytes) + len;
	return true;
}

static inline void end_value(struct spoke_builder *builder, const struct place *place,
			     unsigned char *at, const void *bytes, size_t len)
{
	if (end_head(builder, place, at, bytes, len))
		end_values(builder, 1);
}

/* --- scalars */

void spoke_pack_nil(struct spoke_builder *builder)
{
	struct place place;
	unsigned char *at = begin_value(builder, &place, 0);

	if (at)
		end_value(builder, &place, spokei_encode_nil(at), NULL, 0);
}

void spoke_pack_bool(struct spoke_builder *builder, bool value)
{
	struct place place;
	unsigned char *at = begin_value(builder, &place, 0);

	if (at)
		end_value(builder, &place, spokei_encode_bool(at, value), NULL, 0);
}

void spoke_pack_u64(struct spoke_builder *builder, uint64_t value)
{
	struct place place;
	unsigned char *at = begin_value(builder, &place, 0);

	if (at)
		end_value(builder, &place, spokei_encode_u64(at, value), NULL, 0);
}

void spoke_pack_i64(struct spoke_builder *builder, int64_t value)
{
	struct place place;
	unsigned char *at = begin_value(builder, &place, 0);

	if (at)
		end_value(builder, &place, spokei_encode_i64(at, value), NULL, 0);
}

void spoke_pack_float(struct spoke_builder *builder, float value)
{
	struct place place;
	unsigned char *at = begin_value(builder, &place, 0);

	if (at)
		end_value(builder, &place, spokei_encode_float(at, value), NULL, 0);
}

void spoke_pack_double(struct spoke_builder *builder, double value)
{
	struct place place;
	unsigned char *at = begin_value(builder, &place, 0);

	if (at)
		end_value(builder, &place, spokei_encode_double(at, value), NULL, 0);
}

/* --- content */

/* Begins a value with content. Returns the address of its head, or NULL after an error. */
static inline unsigned char *begin_content(struct spoke_builder *builder, struct place *place,
					   const void *bytes, size_t len)
{
	/* msgpack-c cannot read an ext of 2^32 - 1 bytes. */
	if (len >= UINT32_MAX)
		fail(builder, SPOKE_ETOOLARGE);
	else if (bytes == NULL && len > 0)
		fail(builder, SPOKE_EINVAL);
	return begin_value(builder, place, len);
}

void spoke_pack_str(struct spoke_builder *builder, const char *text, size_t len)
{
	struct place place;
	unsigned char *at = begin_content(builder, &place, text, len);

	if (at)
		end_value(builder, &place, spokei_encode_str(at, len), text, len);
}

void spoke_pack_text(struct spoke_builder *builder, const char *text)
{
	if (text == NULL)
		fail(builder, SPOKE_EINVAL);
	else
		spoke_pack_str(builder, text, strlen(text));
}

void spoke_pack_bin(struct spoke_builder *builder, const void *bytes, size_t len)
{
	struct place place;
	unsigned char *at = begin_content(builder, &place, bytes, len);

	if (at)
		end_value(builder, &place, spokei_encode_bin(at, len), bytes, len);
}

void spoke_pack_ext(struct spoke_builder *builder, int8_t type, const void *bytes, size_t len)
{
	struct place place;
	unsigned char *at = begin_content(builder, &place, bytes, len);

	if (at)
		end_value(builder, &place, spokei_encode_ext(at, len, type), bytes, len);
}

/* --- containers */

/* Opens an array or a map of `count` entries with `each` values per entry. */
static inline void pack_container(struct spoke_builder *builder, size_t count, unsigned each)
{
	struct place place;
	unsigned char *at;

	if (builder->depth == builder->limits.depth_max)
		fail(builder, SPOKE_EDEPTH);
	at = begin_value(builder, &place, 0);
	if (at == NULL)
		return;
	if (count > builder->items / each) {
		builder->error = SPOKE_ETOOLARGE;
		return;
	}
	at = each == 1 ? spokei_encode_array(at, count) : spokei_encode_map(at, count);
	if (!end_head(builder, &place, at, NULL, 0))
		return;
	if (count == 0) {
		end_values(builder, 1);
		return;
	}
	builder->items -= (uint32_t)count * each;
	builder->open[builder->depth++] = builder->left;
	builder->left = (uint32_t)count * each;
}

void spoke_pack_array(struct spoke_builder *builder, size_t count)
{
	pack_container(builder, count, 1);
}

void spoke_pack_map(struct spoke_builder *builder, size_t count)
{
	pack_container(builder, count, 2);
}

/* The values inside a container were counted when the container was announced, and the validator
 * counts them again; `items` is corrected for that. */
void spoke_pack_raw(struct spoke_builder *builder, struct spoke_span values)
{
	uint32_t known = builder->depth > 0 ? builder->left : 0;
	struct spoke_value_limits limits = {
		.depth_max = builder->limits.depth_max - builder->depth,
		.items_max = builder->items + known,
		.object_bytes_max = SIZE_MAX,
		.bytes_max = SIZE_MAX,
	};
	struct spokei_skim skim;
	unsigned char *at;

	if (values.data == NULL && values.len > 0)
		fail(builder, SPOKE_EINVAL);
	if (builder->error != 0 || values.len == 0)
		return;
	spokei_skim_start_body(&skim, &limits, values.len, SPOKEI_SKIM_ALL);
	builder->error = spokei_skim_feed(&skim, values.data, values.len);
	if (builder->depth > 0 && skim.count > builder->left)
		fail(builder, SPOKE_ETRAILING);
	at = room_for(builder, values.len);
	if (at == NULL)
		return;
	memcpy(at, values.data, values.len);
	builder->len += values.len;
	builder->items = skim.items - (known > 0 ? known - (uint32_t)skim.count : 0);
	end_values(builder, skim.count);
}
