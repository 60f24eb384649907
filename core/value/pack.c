/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds msgpack values: the life of a builder, whose memory comes from the environment, from the
 * caller or from a buffer; its account; one function per kind of value; and the arguments that
 * SPOKE_ARGS() has made, which are packed directly if they are flat and short. encode.h writes the
 * bytes. The builder counts values as the validator (validator.h) does, so the validator
 * accepts under the same limits everything that was built here.
 */
#include "core/base/env.h"
#include "core/value/builder.h"

#include "core/value/encode.h"
#include "core/value/shape.h"
#include "core/value/validator.h"

/* The bytes of an ext before its payload: the first byte, a length of 32 bits, and the type. Until
 * the length is known, it is the place of the enclosing typed value, and the type is its depth. */
#define TYPED_HEAD 6u

#define CAPACITY_MIN ((size_t)128)

_Static_assert(SPOKE_VALUE_DEPTH_MAX <= UINT8_MAX, "a depth fits in the place of a type");

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

/* Makes room for `len` more bytes. Returns 0, SPOKE_ENOMEM or SPOKE_ETOOLARGE. */
static SPOKEI_NOINLINE int grow(struct spoke_builder *builder, size_t len)
{
	if (builder->buffer)
		return grow_buffer(builder, len);
	if (builder->env)
		return grow_own(builder, builder->len + len);
	return SPOKE_ETOOLARGE;
}

/* Records an error; the first one stays. */
static void fail(struct spoke_builder *builder, int error)
{
	if (builder->error == 0)
		builder->error = error;
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

/* The room in which a head is encoded: the end of the packed bytes, or `aside` if that may not
 * suffice, because the length of the head is not known yet. */
struct head_room {
	unsigned char *start;
	unsigned char aside[SPOKEI_ENCODE_MAX];
};

/* Begins a value with `len` bytes of content. Returns the address of its head, or NULL after an
 * error. */
static inline unsigned char *begin_value(struct spoke_builder *builder, struct head_room *room,
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
	room->start = room->aside;
	if (SPOKEI_LIKELY(end - builder->len >= SPOKEI_ENCODE_MAX &&
			  len <= end - builder->len - SPOKEI_ENCODE_MAX))
		room->start = builder->bytes + builder->len;
	return room->start;
}

/* Moves a head from `aside` to the end of the packed bytes and reserves `len` bytes after it.
 * Returns the end of the head, or NULL after an error. */
static SPOKEI_NOINLINE unsigned char *move_head(struct spoke_builder *builder,
						const struct head_room *room, size_t head_len,
						size_t len)
{
	unsigned char *at = room_for(builder, head_len + len);

	if (at == NULL)
		return NULL;
	memcpy(at, room->aside, head_len);
	return at + head_len;
}

/* Completes the head of a typed value, which spoke_pack_typed() began. */
static SPOKEI_NOINLINE void end_typed(struct spoke_builder *builder)
{
	unsigned char *at = builder->bytes + builder->typed_at;
	unsigned char *name = at + TYPED_HEAD;
	const unsigned char *inside = name + spokei_shape_len(name, builder->bytes + builder->len);
	size_t len = builder->len - builder->typed_at - TYPED_HEAD;

	if (spokei_shapes[*inside].each == 0 && builder->error == 0)
		builder->error = SPOKE_EINVAL;
	if (len >= UINT32_MAX && builder->error == 0)
		builder->error = SPOKE_ETOOLARGE;
	builder->typed_at = (size_t)spokei_number(at + 1, 4);
	builder->typed_depth = at[5];
	(void)spokei_encode_number(at + 1, len, 4);
	at[5] = SPOKE_EXT_TYPED;
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
		if (SPOKEI_UNLIKELY(builder->depth == builder->typed_depth))
			end_typed(builder);
		if (--builder->depth == 0) {
			builder->count++;
			return;
		}
		builder->left = builder->open[builder->depth] - 1;
	}
}

/* Ends a head at `at` and copies the content after it. Returns false after an error. */
static inline bool end_head(struct spoke_builder *builder, const struct head_room *room,
			    unsigned char *at, const void *bytes, size_t len)
{
	if (SPOKEI_UNLIKELY(room->start == room->aside)) {
		at = move_head(builder, room, (size_t)(at - room->start), len);
		if (at == NULL)
			return false;
	}
	if (len > 0)
		memcpy(at, bytes, len);
	builder->len = (size_t)(at - builder->bytes) + len;
	return true;
}

static inline void end_value(struct spoke_builder *builder, const struct head_room *room,
			     unsigned char *at, const void *bytes, size_t len)
{
	if (end_head(builder, room, at, bytes, len))
		end_values(builder, 1);
}

/* --- scalars */

void spoke_pack_nil(struct spoke_builder *builder)
{
	struct head_room room;
	unsigned char *at = begin_value(builder, &room, 0);

	if (at)
		end_value(builder, &room, spokei_encode_nil(at), NULL, 0);
}

void spoke_pack_bool(struct spoke_builder *builder, bool value)
{
	struct head_room room;
	unsigned char *at = begin_value(builder, &room, 0);

	if (at)
		end_value(builder, &room, spokei_encode_bool(at, value), NULL, 0);
}

void spoke_pack_u64(struct spoke_builder *builder, uint64_t value)
{
	struct head_room room;
	unsigned char *at = begin_value(builder, &room, 0);

	if (at)
		end_value(builder, &room, spokei_encode_u64(at, value), NULL, 0);
}

void spoke_pack_i64(struct spoke_builder *builder, int64_t value)
{
	struct head_room room;
	unsigned char *at = begin_value(builder, &room, 0);

	if (at)
		end_value(builder, &room, spokei_encode_i64(at, value), NULL, 0);
}

void spoke_pack_long(struct spoke_builder *builder, int64_t value)
{
	struct head_room room;
	unsigned char *at = begin_value(builder, &room, 0);

	if (at == NULL)
		return;
	*at++ = 0xd3;
	end_value(builder, &room, spokei_encode_number(at, (uint64_t)value, 8), NULL, 0);
}

void spoke_pack_float(struct spoke_builder *builder, float value)
{
	struct head_room room;
	unsigned char *at = begin_value(builder, &room, 0);

	if (at)
		end_value(builder, &room, spokei_encode_float(at, value), NULL, 0);
}

void spoke_pack_double(struct spoke_builder *builder, double value)
{
	struct head_room room;
	unsigned char *at = begin_value(builder, &room, 0);

	if (at)
		end_value(builder, &room, spokei_encode_double(at, value), NULL, 0);
}

/* --- content */

/* Begins a value with content. Returns the address of its head, or NULL after an error. */
static inline unsigned char *begin_content(struct spoke_builder *builder, struct head_room *room,
					   const void *bytes, size_t len)
{
	/* msgpack-c cannot read an ext of 2^32 - 1 bytes. */
	if (len >= UINT32_MAX)
		fail(builder, SPOKE_ETOOLARGE);
	else if (bytes == NULL && len > 0)
		fail(builder, SPOKE_EINVAL);
	return begin_value(builder, room, len);
}

void spoke_pack_str(struct spoke_builder *builder, const char *text, size_t len)
{
	struct head_room room;
	unsigned char *at = begin_content(builder, &room, text, len);

	if (at)
		end_value(builder, &room, spokei_encode_str(at, len), text, len);
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
	struct head_room room;
	unsigned char *at = begin_content(builder, &room, bytes, len);

	if (at)
		end_value(builder, &room, spokei_encode_bin(at, len), bytes, len);
}

/* Counts the values inside the ext that begins at `start` and ends the packed bytes. */
static SPOKEI_NOINLINE void count_inside(struct spoke_builder *builder, size_t start)
{
	struct spoke_value_limits limits = {
		.depth_max = builder->limits.depth_max - builder->depth,
		.items_max = builder->items + 1, /* the ext is counted already */
		.object_bytes_max = SIZE_MAX,
		.bytes_max = SIZE_MAX,
	};
	struct spokei_validator validator;

	spokei_validator_start_body(&validator, &limits, builder->len - start, 1);
	builder->error = spokei_validate(&validator, builder->bytes + start, builder->len - start);
	builder->items = validator.items;
}

void spoke_pack_ext(struct spoke_builder *builder, int8_t type, const void *bytes, size_t len)
{
	struct head_room room;
	unsigned char *at = begin_content(builder, &room, bytes, len);
	size_t start = builder->len;

	if (at == NULL || !end_head(builder, &room, spokei_encode_ext(at, len, type), bytes, len))
		return;
	if (spokei_shape_holds((unsigned char)type))
		count_inside(builder, start);
	end_values(builder, 1);
}

/* --- containers */

/* Writes the head of an object, a map whose head has 16 bits for any number of pairs. */
static inline unsigned char *encode_object(unsigned char *at, size_t count)
{
	*at++ = 0xde;
	return spokei_encode_number(at, count, 2);
}

/* Opens an array, a map or an object of `count` entries with `each` values per entry. */
static inline void pack_container(struct spoke_builder *builder, size_t count, unsigned each,
				  bool is_object)
{
	struct head_room room;
	unsigned char *at;

	if (builder->depth == builder->limits.depth_max)
		fail(builder, SPOKE_EDEPTH);
	at = begin_value(builder, &room, 0);
	if (at == NULL)
		return;
	if (count > builder->items / each) {
		builder->error = SPOKE_ETOOLARGE;
		return;
	}
	at = each == 1   ? spokei_encode_array(at, count)
	     : is_object ? encode_object(at, count)
			 : spokei_encode_map(at, count);
	if (!end_head(builder, &room, at, NULL, 0))
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
	pack_container(builder, count, 1, false);
}

void spoke_pack_map(struct spoke_builder *builder, size_t count)
{
	pack_container(builder, count, 2, false);
}

void spoke_pack_object(struct spoke_builder *builder, size_t count)
{
	if (count >= UINT16_MAX)
		fail(builder, SPOKE_ETOOLARGE);
	pack_container(builder, count + 1, 2, true);
}

/* An open container has a head of one byte, which tells arrays from maps. A larger head moves the
 * values when the container ends. */
#define OPEN_ARRAY 0x90u
#define OPEN_MAP 0x80u

size_t spokei_builder_open(struct spoke_builder *builder, bool is_map)
{
	size_t at = builder->len;
	struct head_room room;
	unsigned char *head;

	if (builder->depth == builder->limits.depth_max)
		fail(builder, SPOKE_EDEPTH);
	head = begin_value(builder, &room, 0);
	if (head == NULL)
		return at;
	*head = is_map ? OPEN_MAP : OPEN_ARRAY;
	if (!end_head(builder, &room, head + 1, NULL, 0))
		return at;
	builder->open[builder->depth++] = builder->left;
	builder->left = UINT32_MAX;
	return at;
}

void spokei_builder_close(struct spoke_builder *builder, size_t at)
{
	uint32_t count = UINT32_MAX - builder->left;
	unsigned char head[SPOKEI_ENCODE_MAX];
	unsigned char *bytes;
	size_t more;

	if (count > builder->items)
		fail(builder, SPOKE_ETOOLARGE);
	if (builder->error != 0)
		return;
	builder->items -= count;
	if (builder->bytes[at] == OPEN_MAP)
		more = (size_t)(spokei_encode_map(head, count / 2) - head) - 1;
	else
		more = (size_t)(spokei_encode_array(head, count) - head) - 1;
	if (more > 0 && room_for(builder, more) == NULL)
		return;
	bytes = builder->bytes + at;
	if (more > 0)
		memmove(bytes + 1 + more, bytes + 1, builder->len - at - 1);
	memcpy(bytes, head, 1 + more);
	builder->len += more;
	builder->left = builder->open[--builder->depth];
	end_values(builder, 1);
}

void spoke_pack_typed(struct spoke_builder *builder, const char *type)
{
	size_t len = type ? strlen(type) : 0;
	struct head_room room;
	unsigned char *at;

	if (type == NULL)
		fail(builder, SPOKE_EINVAL);
	else if (builder->depth == builder->limits.depth_max)
		fail(builder, SPOKE_EDEPTH);
	else if (builder->items < 2 + (builder->depth == 0) || builder->len > UINT32_MAX)
		fail(builder, SPOKE_ETOOLARGE);
	if (begin_value(builder, &room, 0) == NULL)
		return;
	at = room_for(builder, TYPED_HEAD + SPOKEI_ENCODE_MAX + len);
	if (at == NULL)
		return;
	*at = 0xc9;
	at[5] = (unsigned char)builder->typed_depth;
	at = spokei_encode_number(at + 1, builder->typed_at, 4) + 1;
	at = spokei_encode_str(at, len);
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): a str has no NUL */
	memcpy(at, type, len);
	builder->items -= 2;
	builder->open[builder->depth++] = builder->left;
	builder->left = 1;
	builder->typed_depth = builder->depth;
	builder->typed_at = builder->len;
	builder->len = (size_t)(at - builder->bytes) + len;
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
	struct spokei_validator validator;
	unsigned char *at;

	if (values.data == NULL && values.len > 0)
		fail(builder, SPOKE_EINVAL);
	if (builder->error != 0 || values.len == 0)
		return;
	spokei_validator_start_body(&validator, &limits, values.len, SPOKEI_VALIDATOR_ALL);
	builder->error = spokei_validate(&validator, values.data, values.len);
	if (builder->depth > 0 && validator.count > builder->left)
		fail(builder, SPOKE_ETRAILING);
	at = room_for(builder, values.len);
	if (at == NULL)
		return;
	memcpy(at, values.data, values.len);
	builder->len += values.len;
	builder->items = validator.items - (known > 0 ? known - (uint32_t)validator.count : 0);
	end_values(builder, validator.count);
}

/* --- by a builder */

static void pack_value(struct spoke_builder *builder, const struct spoke_arg *arg)
{
	const struct spoke_span span = { arg->as.data, arg->len };
	struct spoke_value value;
	int error;

	if (arg->len == 0) {
		spoke_pack_nil(builder);
		return;
	}
	error = spoke_value_check(span.data, span.len, &builder->limits, &value);
	if (error)
		fail(builder, error);
	else
		spoke_pack_raw(builder, span);
}

static void pack_one(struct spoke_builder *builder, const struct spoke_arg *arg)
{
	switch (arg->kind) {
	case SPOKE_ARG_NIL:
		spoke_pack_nil(builder);
		break;
	case SPOKE_ARG_BOOL:
		spoke_pack_bool(builder, arg->as.u64 != 0);
		break;
	case SPOKE_ARG_INT:
		spoke_pack_i64(builder, arg->as.i64);
		break;
	case SPOKE_ARG_UINT:
		spoke_pack_u64(builder, arg->as.u64);
		break;
	case SPOKE_ARG_DOUBLE:
		spoke_pack_double(builder, arg->as.real);
		break;
	case SPOKE_ARG_STR:
		spoke_pack_str(builder, arg->as.data, arg->len);
		break;
	case SPOKE_ARG_BIN:
		spoke_pack_bin(builder, arg->as.data, arg->len);
		break;
	case SPOKE_ARG_VALUE:
		pack_value(builder, arg);
		break;
	case SPOKE_ARG_LIST:
		spoke_pack_array(builder, arg->len);
		break;
	case SPOKE_ARG_MAP:
		if (arg->len % 2)
			fail(builder, SPOKE_EINVAL);
		spoke_pack_map(builder, arg->len / 2);
		break;
	default:
		fail(builder, SPOKE_EINVAL);
	}
}

static inline bool is_container(const struct spoke_arg *arg)
{
	return arg->kind == SPOKE_ARG_LIST || arg->kind == SPOKE_ARG_MAP;
}

void spoke_pack_args(struct spoke_builder *builder, struct spoke_args args)
{
	struct spoke_args open[SPOKE_ARGS_DEPTH_MAX + 1];
	size_t depth = 0;

	open[0] = args;
	while (builder->error == 0) {
		const struct spoke_arg *arg = open[depth].items;

		if (open[depth].count == 0) {
			if (depth-- == 0)
				return;
			continue;
		}
		open[depth].items++;
		open[depth].count--;
		pack_one(builder, arg);
		if (!is_container(arg))
			continue;
		if (depth == SPOKE_ARGS_DEPTH_MAX)
			fail(builder, SPOKE_EDEPTH);
		else
			open[++depth] = (struct spoke_args){ arg->as.data, arg->len };
	}
}

/* Values of this side's own, whose real limit is the frame of the call. */
static SPOKEI_NOINLINE int pack_any(struct spoke_args args, struct spokei_packed *packed)
{
	static const struct spoke_value_limits limits = { .object_bytes_max = SIZE_MAX,
							  .bytes_max = SPOKEI_ARGS_BYTES_MAX };
	struct spoke_builder builder;

	spoke_builder_init(&builder, packed->env, &limits);
	spoke_pack_args(&builder, args);
	packed->kept = builder.bytes;
	packed->kept_size = builder.capacity;
	return spoke_builder_finish(&builder, &packed->values);
}

/* --- on the stack */

static inline unsigned char *put_content(unsigned char *at, const struct spoke_arg *arg)
{
	memcpy(at, arg->as.data, arg->len);
	return at + arg->len;
}

/* Encodes an argument that fits. Returns the next byte; NULL: the builder has to decide. */
static inline unsigned char *put_one(unsigned char *at, const struct spoke_arg *arg)
{
	switch (arg->kind) {
	case SPOKE_ARG_NIL:
		return spokei_encode_nil(at);
	case SPOKE_ARG_BOOL:
		return spokei_encode_bool(at, arg->as.u64 != 0);
	case SPOKE_ARG_INT:
		return spokei_encode_i64(at, arg->as.i64);
	case SPOKE_ARG_UINT:
		return spokei_encode_u64(at, arg->as.u64);
	case SPOKE_ARG_DOUBLE:
		return spokei_encode_double(at, arg->as.real);
	case SPOKE_ARG_STR:
		return arg->as.data ? put_content(spokei_encode_str(at, arg->len), arg) : NULL;
	case SPOKE_ARG_BIN:
		return arg->as.data ? put_content(spokei_encode_bin(at, arg->len), arg) : NULL;
	case SPOKE_ARG_VALUE:
		return spokei_shape_is_scalar(arg->as.data, arg->len) ? put_content(at, arg) : NULL;
	case SPOKE_ARG_LIST:
	case SPOKE_ARG_MAP:
	default:
		return NULL;
	}
}

int spokei_args_pack(const struct spoke_env *env, struct spoke_args args, struct spokei_packed *ret)
{
	unsigned char *end = ret->local + sizeof(ret->local);
	unsigned char *at = ret->local;

	ret->env = env;
	ret->kept = NULL;
	for (size_t i = 0; i < args.count; i++) {
		const struct spoke_arg *arg = &args.items[i];

		if (SPOKEI_UNLIKELY((size_t)(end - at) < SPOKEI_ENCODE_MAX ||
				    arg->len > (size_t)(end - at) - SPOKEI_ENCODE_MAX))
			return pack_any(args, ret);
		at = put_one(at, arg);
		if (SPOKEI_UNLIKELY(at == NULL))
			return pack_any(args, ret);
	}
	ret->values = (struct spoke_span){ ret->local, (size_t)(at - ret->local) };
	return SPOKE_OK;
}

void spokei_packed_free(struct spokei_packed *packed)
{
	spokei_free(packed->env, packed->kept, packed->kept_size, 1);
}
