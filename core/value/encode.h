/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes msgpack with the inlined templates of msgpack-c. A template writes to the address that a
 * pointer holds and advances the pointer. Every function returns the address of the next byte; the
 * caller has reserved the room. No other file of the library uses msgpack-c, and nothing of it is
 * linked. Stateless; any thread.
 */
#ifndef SPOKEI_CORE_VALUE_ENCODE_H
#define SPOKEI_CORE_VALUE_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <msgpack/pack_define.h>
#include <msgpack/timestamp.h>

#define msgpack_pack_inline_func(name) static inline void msgpack_pack##name
#define msgpack_pack_inline_func_cint(name) static inline void msgpack_pack##name
#define msgpack_pack_user unsigned char **
#define msgpack_pack_append_buffer(at, bytes, len) (memcpy(*(at), bytes, len), *(at) += (len))
#include <msgpack/pack_template.h>

/* The largest number of bytes of a scalar, or of the head of another value. */
#define SPOKEI_ENCODE_MAX 9u

static inline unsigned char *spokei_encode_nil(unsigned char *at)
{
	msgpack_pack_nil(&at);
	return at;
}

static inline unsigned char *spokei_encode_bool(unsigned char *at, bool value)
{
	if (value)
		msgpack_pack_true(&at);
	else
		msgpack_pack_false(&at);
	return at;
}

static inline unsigned char *spokei_encode_u64(unsigned char *at, uint64_t value)
{
	msgpack_pack_uint64(&at, value);
	return at;
}

static inline unsigned char *spokei_encode_i64(unsigned char *at, int64_t value)
{
	msgpack_pack_int64(&at, value);
	return at;
}

static inline unsigned char *spokei_encode_u32(unsigned char *at, uint32_t value)
{
	msgpack_pack_uint32(&at, value);
	return at;
}

static inline unsigned char *spokei_encode_i32(unsigned char *at, int32_t value)
{
	msgpack_pack_int32(&at, value);
	return at;
}

static inline unsigned char *spokei_encode_float(unsigned char *at, float value)
{
	msgpack_pack_float(&at, value);
	return at;
}

static inline unsigned char *spokei_encode_double(unsigned char *at, double value)
{
	msgpack_pack_double(&at, value);
	return at;
}

/* Write the head of a str, bin or ext with `len` bytes of content, of an array of `len` elements,
 * or of a map of `len` pairs. `len` is below 2^32. */
static inline unsigned char *spokei_encode_str(unsigned char *at, size_t len)
{
	msgpack_pack_str(&at, len);
	return at;
}

static inline unsigned char *spokei_encode_bin(unsigned char *at, size_t len)
{
	msgpack_pack_bin(&at, len);
	return at;
}

static inline unsigned char *spokei_encode_ext(unsigned char *at, size_t len, int8_t type)
{
	msgpack_pack_ext(&at, len, type);
	return at;
}

static inline unsigned char *spokei_encode_array(unsigned char *at, size_t len)
{
	msgpack_pack_array(&at, len);
	return at;
}

static inline unsigned char *spokei_encode_map(unsigned char *at, size_t len)
{
	msgpack_pack_map(&at, len);
	return at;
}

/* Writes the content of a timestamp in the shortest of its three forms: 4, 8 or 12 bytes. */
static inline unsigned char *spokei_encode_time(unsigned char *at, int64_t seconds, uint32_t ns)
{
	const msgpack_timestamp time = { seconds, ns };
	unsigned char ext[15];
	unsigned char *end = ext;
	size_t head;

	msgpack_pack_timestamp(&end, &time);
	head = end - ext == sizeof(ext) ? 3 : 2;
	memcpy(at, ext + head, (size_t)(end - ext) - head);
	return at + (end - ext) - head;
}

/* Writes a number of `width` bytes in big-endian order. */
static inline unsigned char *spokei_encode_number(unsigned char *at, uint64_t value, unsigned width)
{
	for (unsigned i = 0; i < width; i++)
		at[i] = (unsigned char)(value >> (8 * (width - 1 - i)));
	return at + width;
}

#endif
