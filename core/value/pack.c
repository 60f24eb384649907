/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builder: memory, account and finish; then one function per kind of value. By hand, for it is
 * several times faster than a general packer. Each value is accounted for as skim does it, so that
 * what was built here is accepted there under the same limits.
 */
#include "core/value/pack.h"

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
		builder->limits = *limits; /* start() looks at them, each time */
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

/* An error stays, the first one. */
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

/* The buffer keeps only what it knows of when it moves. */
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

/* Room for `len` bytes at the end; NULL: there is an error. */
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

/* Room for a value that takes `len` bytes now; NULL: there is an error. */
static unsigned char *begin_value(struct spoke_builder *builder, size_t len)
{
	if (builder->depth == 0) {
		if (builder->items == 0) {
			fail(builder, SPOKE_ETOOLARGE);
			return NULL;
		}
		builder->items--;
	}
	return room_for(builder, len);
}

/* Values are complete, and so may be what they were the last ones of. */
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

/* Writes a first byte and a number, the high byte first; returns where it ends. */
static inline unsigned char *put_head(unsigned char *at, unsigned first, uint64_t number,
				      unsigned width)
{
	*at++ = (unsigned char)first;
	for (unsigned i = 0; i < width; i++)
		at[i] = (unsigned char)(number >> 8 * (width - 1 - i));
	return at + width;
}

/* A value that is its first byte and a number. */
static inline void pack_number(struct spoke_builder *builder, unsigned first, uint64_t number,
			       unsigned width)
{
	unsigned char *at = begin_value(builder, 1 + width);

	if (at == NULL)
		return;
	(void)put_head(at, first, number, width);
	builder->len += 1 + width;
	end_values(builder, 1);
}

/* --- scalars */

void spoke_pack_nil(struct spoke_builder *builder)
{
	pack_number(builder, 0xc0, 0, 0);
}

void spoke_pack_bool(struct spoke_builder *builder, bool value)
{
	pack_number(builder, value ? 0xc3 : 0xc2, 0, 0);
}

void spoke_pack_u64(struct spoke_builder *builder, uint64_t value)
{
	if (value < 0x80)
		pack_number(builder, (unsigned)value, 0, 0);
	else if (value <= UINT8_MAX)
		pack_number(builder, 0xcc, value, 1);
	else if (value <= UINT16_MAX)
		pack_number(builder, 0xcd, value, 2);
	else if (value <= UINT32_MAX)
		pack_number(builder, 0xce, value, 4);
	else
		pack_number(builder, 0xcf, value, 8);
}

void spoke_pack_i64(struct spoke_builder *builder, int64_t value)
{
	uint64_t bits = (uint64_t)value;

	if (value >= 0)
		spoke_pack_u64(builder, bits);
	else if (value >= -0x20)
		pack_number(builder, (unsigned)(bits & 0xff), 0, 0);
	else if (value >= INT8_MIN)
		pack_number(builder, 0xd0, bits, 1);
	else if (value >= INT16_MIN)
		pack_number(builder, 0xd1, bits, 2);
	else if (value >= INT32_MIN)
		pack_number(builder, 0xd2, bits, 4);
	else
		pack_number(builder, 0xd3, bits, 8);
}

void spoke_pack_float(struct spoke_builder *builder, float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	pack_number(builder, 0xca, bits, sizeof(bits));
}

void spoke_pack_double(struct spoke_builder *builder, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	pack_number(builder, 0xcb, bits, sizeof(bits));
}

/* --- content */

/* How a value with a length begins. */
struct head {
	unsigned first;
	unsigned width; /* of the length */
};

/* `first` is that for a length in one byte; those for two and four follow it. */
static inline struct head head_for(unsigned first, size_t len)
{
	if (len <= UINT8_MAX)
		return (struct head){ first, 1 };
	if (len <= UINT16_MAX)
		return (struct head){ first + 1, 2 };
	return (struct head){ first + 2, 4 };
}

/* Room for a head, `more` bytes behind it and the content; NULL: there is an error. */
static unsigned char *begin_content(struct spoke_builder *builder, struct head head, size_t more,
				    const void *bytes, size_t len)
{
	/* An ext of 2^32 - 1 bytes is one that msgpack-c cannot read. */
	if (len >= UINT32_MAX)
		fail(builder, SPOKE_ETOOLARGE);
	else if (bytes == NULL && len > 0)
		fail(builder, SPOKE_EINVAL);
	if (builder->error != 0)
		return NULL;
	return begin_value(builder, 1 + head.width + more + len);
}

static void end_content(struct spoke_builder *builder, unsigned char *at, const void *bytes,
			size_t len)
{
	if (len > 0)
		memcpy(at, bytes, len);
	builder->len = (size_t)(at - builder->bytes) + len;
	end_values(builder, 1);
}

static inline struct head str_head(size_t len)
{
	return len < 32 ? (struct head){ 0xa0 | (unsigned)len, 0 } : head_for(0xd9, len);
}

void spoke_pack_str(struct spoke_builder *builder, const char *text, size_t len)
{
	struct head head = str_head(len);
	unsigned char *at = begin_content(builder, head, 0, text, len);

	if (at == NULL)
		return;
	at = put_head(at, head.first, len, head.width);
	end_content(builder, at, text, len);
}

unsigned char *spokei_pack_str_room(struct spoke_builder *builder, size_t len)
{
	struct head head = str_head(len);
	unsigned char *at = begin_content(builder, head, 0, "", len);

	if (at == NULL)
		return NULL;
	at = put_head(at, head.first, len, head.width);
	end_content(builder, at + len, NULL, 0);
	return at;
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
	struct head head = head_for(0xc4, len);
	unsigned char *at = begin_content(builder, head, 0, bytes, len);

	if (at == NULL)
		return;
	at = put_head(at, head.first, len, head.width);
	end_content(builder, at, bytes, len);
}

void spoke_pack_ext(struct spoke_builder *builder, int8_t type, const void *bytes, size_t len)
{
	struct head head = head_for(0xc7, len);
	unsigned char *at;

	for (unsigned log = 0; log <= 4; log++)
		if (len == (size_t)1 << log)
			head = (struct head){ 0xd4 + log, 0 };
	at = begin_content(builder, head, 1, bytes, len);
	if (at == NULL)
		return;
	at = put_head(at, head.first, len, head.width);
	*at++ = (unsigned char)type;
	end_content(builder, at, bytes, len);
}

/* --- containers */

/* `few` is the first byte of one with up to 15 entries, `many` that of one counted in two bytes. */
static inline void pack_container(struct spoke_builder *builder, size_t count, unsigned each,
				  unsigned few, unsigned many)
{
	struct head head = { few | (unsigned)(count & 0xf), 0 };
	unsigned char *at;

	if (count > 0xf)
		head = count > UINT16_MAX ? (struct head){ many + 1, 4 } : (struct head){ many, 2 };
	if (builder->depth == builder->limits.depth_max)
		fail(builder, SPOKE_EDEPTH);
	at = builder->error == 0 ? begin_value(builder, 1 + head.width) : NULL;
	if (at == NULL)
		return;
	if (count > builder->items / each) {
		builder->error = SPOKE_ETOOLARGE;
		return;
	}
	(void)put_head(at, head.first, count, head.width);
	builder->len += 1 + head.width;
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
	pack_container(builder, count, 1, 0x90, 0xdc);
}

void spoke_pack_map(struct spoke_builder *builder, size_t count)
{
	pack_container(builder, count, 2, 0x80, 0xde);
}

/* Values inside of a container were accounted for when it was announced; skim does it again. */
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
