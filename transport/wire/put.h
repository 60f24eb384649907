/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes big-endian numbers and encoded values into reserved room. Each function returns the
 * address of the next byte. Stateless; any thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_PUT_H
#define SPOKEI_TRANSPORT_WIRE_PUT_H

#include "core/value/encode.h"
#include "transport/wire/message.h"

#define SPOKEI_PUT_HEAD_MAX 5u /* bytes before the content of a str, array or map */

/* Write numbers of 4 and 8 bytes in big-endian order. */
static inline unsigned char *spokei_put_32(unsigned char *at, uint64_t number)
{
	at[0] = (unsigned char)(number >> 24);
	at[1] = (unsigned char)(number >> 16);
	at[2] = (unsigned char)(number >> 8);
	at[3] = (unsigned char)number;
	return at + 4;
}

static inline unsigned char *spokei_put_64(unsigned char *at, uint64_t number)
{
	at[0] = (unsigned char)(number >> 56);
	at[1] = (unsigned char)(number >> 48);
	at[2] = (unsigned char)(number >> 40);
	at[3] = (unsigned char)(number >> 32);
	at[4] = (unsigned char)(number >> 24);
	at[5] = (unsigned char)(number >> 16);
	at[6] = (unsigned char)(number >> 8);
	at[7] = (unsigned char)number;
	return at + 8;
}

/* Read them. */
static inline uint64_t spokei_get_32(const unsigned char *at)
{
	return (uint64_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 |
			  at[3]);
}

static inline uint64_t spokei_get_64(const unsigned char *at)
{
	return (uint64_t)at[0] << 56 | (uint64_t)at[1] << 48 | (uint64_t)at[2] << 40 |
	       (uint64_t)at[3] << 32 | (uint64_t)at[4] << 24 | (uint64_t)at[5] << 16 |
	       (uint64_t)at[6] << 8 | at[7];
}

static inline unsigned char *spokei_put_raw(unsigned char *at, const void *bytes, size_t len)
{
	if (len > 0)
		memcpy(at, bytes, len);
	return at + len;
}

/* Writes args or a value; long ones are lent instead of copied if the caller allows it. */
static inline unsigned char *spokei_put_body(unsigned char *at, struct spokei_lent *lent,
					     struct spoke_span body)
{
	if (SPOKEI_LIKELY(lent == NULL) || body.len < SPOKEI_LENT_MIN)
		return spokei_put_raw(at, body.data, body.len);
	*lent = (struct spokei_lent){ at, body };
	return at + body.len;
}

static inline unsigned char *spokei_put_str(unsigned char *at, struct spoke_span text)
{
	return spokei_put_raw(spokei_encode_str(at, text.len), text.data, text.len);
}

static inline unsigned char *spokei_put_text(unsigned char *at, const char *text)
{
	size_t len = strlen(text);

	return spokei_put_raw(spokei_encode_str(at, len), text, len);
}

#endif
