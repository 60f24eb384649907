/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the last request of a stream said before its arguments, as bytes and as what they mean. Most
 * requests of a connection begin as the one before: those bytes are compared, not read again. A
 * memo belongs to one stream, of one wire and one set of limits; all zero it knows nothing.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_MEMO_H
#define SPOKEI_TRANSPORT_WIRE_MEMO_H

#include "transport/wire/message.h"

#define SPOKEI_MEMO_BYTES 448u

/* A part of the bytes that are kept. */
struct spokei_memo_part {
	uint16_t at;
	uint16_t len;
};

struct spokei_memo {
	uint16_t len;  /* of the beginning, which is kept first; 0: nothing is known */
	uint16_t used; /* ... with what is kept behind it */
	uint16_t tail; /* bytes of it that are all that followed the arguments; 0: only parts are */
	bool bare;
	/* So many bytes of arguments have to be looked at one by one, for they may exceed limits;
	 * 0: any, for nobody knows, or the tail is not kept. */
	uint32_t free_len;
	uint32_t tail_items;             /* values in the tail ... */
	int64_t timeout_ms;              /* ... and the time that it told */
	struct spokei_memo_part service; /* of the beginning */
	struct spokei_memo_part version;
	struct spokei_memo_part method;
	struct spokei_memo_part types;
	struct spokei_memo_part said[3]; /* otherwise, by the tail, kept behind it; or at 0 */
	unsigned char bytes[SPOKEI_MEMO_BYTES];
};

_Static_assert(sizeof(struct spokei_memo) <= 512, "one for each connection that serves");

static inline void spokei_memo_forget(struct spokei_memo *memo)
{
	if (memo)
		memo->len = 0;
}

/* Do these bytes begin as the last request? */
static inline bool spokei_memo_knows(const struct spokei_memo *memo, const unsigned char *at,
				     size_t len)
{
	return memo && memo->len > 0 && memo->len <= len && memcmp(memo->bytes, at, memo->len) == 0;
}

/* Keeps the beginning of a request; the rest is to be filled in. False: it is too long. */
static inline bool spokei_memo_begin(struct spokei_memo *memo, const unsigned char *at, size_t len)
{
	memset(memo, 0, offsetof(struct spokei_memo, bytes));
	if (len > sizeof(memo->bytes))
		return false;
	memo->len = (uint16_t)len;
	memo->used = memo->len;
	memcpy(memo->bytes, at, len);
	return true;
}

/* Where in the beginning, which lies at `at`, a text stands; and the other way round. */
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
