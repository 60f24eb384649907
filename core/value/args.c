/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs arguments that SPOKE_ARGS() has made: flat and short ones directly, all others with a
 * builder.
 */
#include "core/value/args.h"
#include "core/base/env.h"

#include "core/value/encode.h"
#include "core/value/shape.h"

/* --- by a builder */

static void fail(struct spoke_builder *builder, int error)
{
	if (builder->error == 0)
		builder->error = error;
}

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
