/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache of the last request of a stream: the bytes before and after its arguments, and their
 * meaning. Most requests of a connection begin like the previous one; their bytes are compared
 * instead of read again. A memo belongs to one stream with one wire and one set of limits. All
 * zero: empty.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_MEMO_H
#define SPOKEI_TRANSPORT_WIRE_MEMO_H

#include "transport/wire/message.h"

#define SPOKEI_MEMO_BYTES 448u

/* A part of the kept bytes. */
struct spokei_memo_part {
	uint16_t at;
	uint16_t len;
};

struct spokei_memo {
	uint16_t len;  /* length of the beginning, which is kept first; 0: the memo is empty */
	uint16_t used; /* ... plus the bytes kept after it */
	uint16_t tail; /* kept bytes that follow the arguments; 0: only parts are kept */
	/* Length of the same bytes in the serialization of the request, after the used ones; 0: not
	 * kept. The beginning is always that of the request itself. */
	uint16_t raw_tail;
	uint8_t codec; /* id of the serialization */
	bool bare;
	/* Offset, in a tail of msgpack, of the digits of an id, which differ from request to
	 * request; 0: there is none. `free_len` is 0 then. */
	uint16_t id_at;
	/* Arguments of at least this many bytes are checked one by one, because they may exceed
	 * limits. 0: all arguments are, because the bound is unknown or no tail is kept. */
	uint32_t free_len;
	uint32_t tail_items;             /* number of values in the tail ... */
	int64_t timeout_ms;              /* ... and the timeout that it contains */
	struct spokei_memo_part service; /* in the beginning */
	struct spokei_memo_part version;
	struct spokei_memo_part method;
	struct spokei_memo_part types;
	struct spokei_memo_part said[3]; /* names that attachments override, kept after the
					    beginning; at == 0: none */
	unsigned char bytes[SPOKEI_MEMO_BYTES];
};

_Static_assert(sizeof(struct spokei_memo) <= 512, "one for each connection that serves");

static inline void spokei_memo_forget(struct spokei_memo *memo)
{
	if (memo)
		memo->len = 0;
}

/* Returns whether the bytes begin like the last request, in the same serialization. */
static inline bool spokei_memo_knows(const struct spokei_memo *memo, uint8_t codec,
				     struct spoke_span body)
{
	return memo && memo->codec == codec && memo->len > 0 && memo->len <= body.len &&
	       memcmp(memo->bytes, body.data, memo->len) == 0;
}

/* Keeps the beginning of a request; the caller fills in the rest. Returns false if it is too long.
 */
static inline bool spokei_memo_begin(struct spokei_memo *memo, uint8_t codec,
				     const unsigned char *at, size_t len)
{
	memset(memo, 0, offsetof(struct spokei_memo, bytes));
	if (len > sizeof(memo->bytes))
		return false;
	memo->codec = codec;
	memo->len = (uint16_t)len;
	memo->used = memo->len;
	memcpy(memo->bytes, at, len);
	return true;
}

/* Convert between a text in the beginning, which lies at `at`, and its part. */
static inline struct spokei_memo_part spokei_memo_part(const unsigned char *at,
						       struct spoke_span text)
{
	size_t offset = (size_t)((const unsigned char *)text.data - at);

	return (struct spokei_memo_part){ (uint16_t)offset, (uint16_t)text.len };
}

static inline struct spoke_span spokei_memo_span(const unsigned char *at,
						 struct spokei_memo_part part)
{
	return spokei_span(at + part.at, part.len);
}

#endif
