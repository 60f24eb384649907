/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RESP2, the protocol of Redis: a parser of replies and a writer of commands. Pure. The parser is
 * resumable: it scans each byte once, however the reply is cut, and a prefix of a reply never gets
 * another verdict than "incomplete" or that of the whole. Its memory is bounded: a reply that
 * announces more than the limits below is rejected before its bytes arrive. Any thread.
 */
#ifndef SPOKEI_CLUSTER_LEASE_RESP_H
#define SPOKEI_CLUSTER_LEASE_RESP_H

#include "core/memory/buffer.h"

#include <spoke/value.h>

#define SPOKEI_RESP_DEPTH 4u     /* arrays inside of one another */
#define SPOKEI_RESP_BYTES 65536u /* of one reply, or of the replies that are read together */
#define SPOKEI_RESP_ELEMENTS 1024u
enum spokei_resp_kind {
	SPOKEI_RESP_NIL,     /* a bulk string or an array that does not exist */
	SPOKEI_RESP_SIMPLE,  /* `text`, e.g. OK */
	SPOKEI_RESP_ERROR,   /* `text`; its first word is a code in capitals, e.g. WRONGTYPE */
	SPOKEI_RESP_INTEGER, /* `integer` */
	SPOKEI_RESP_BULK,    /* `text`: any bytes */
	SPOKEI_RESP_ARRAY,   /* `count` values follow */
};

/* A value of a reply. `text` is borrowed from the reply. */
struct spokei_resp_value {
	enum spokei_resp_kind kind;
	int64_t integer;
	struct spoke_span text;
	uint32_t count;
};

/* A place in a complete reply, which it borrows. All zero: there is no reply. */
struct spokei_resp_cursor {
	const unsigned char *at;
	const unsigned char *end;
};

/* Reads the next value: an array first, then its elements. Returns false at the end. */
bool spokei_resp_next(struct spokei_resp_cursor *cursor, struct spokei_resp_value *ret);

/* Converts a value to a number: an integer, or a text of decimal digits, e.g. the value of a
 * counter. Returns false if it is neither, or does not fit. */
bool spokei_resp_number(const struct spokei_resp_value *value, int64_t *ret);

/* Reads the next value, which must be a number. Returns false otherwise. */
bool spokei_resp_next_number(struct spokei_resp_cursor *cursor, int64_t *ret);

/* Returns whether a value's text is this one. */
static inline bool spokei_resp_is(const struct spokei_resp_value *value, const char *text)
{
	size_t len = strlen(text);

	return value->text.len == len && (len == 0 || memcmp(value->text.data, text, len) == 0);
}

/* --- the parser */

enum spokei_resp_verdict {
	SPOKEI_RESP_MORE,   /* the reply is incomplete */
	SPOKEI_RESP_WHOLE,  /* it is complete */
	SPOKEI_RESP_BROKEN, /* it is not RESP2, or too large: reader->why */
};

/* How far a reply has been read. */
struct spokei_resp_reader {
	uint32_t depth;                       /* arrays that are open */
	uint32_t elements;                    /* of all arrays so far */
	uint32_t left[SPOKEI_RESP_DEPTH + 1]; /* values missing: of all, of each open array */
	size_t at;                            /* the next value begins here */
	size_t seen; /* bytes from `at` on that are known to hold no end of a line */
	const char *why;
};

/* Prepares for a reply. */
void spokei_resp_begin(struct spokei_resp_reader *reader);

/* Reads on. `bytes` are all bytes since the beginning of the reply, including those that were
 * passed before; further ones may follow the reply. WHOLE: its length is reader->at. */
enum spokei_resp_verdict spokei_resp_read(struct spokei_resp_reader *reader,
					  const unsigned char *bytes, size_t len);

/* --- the writer; each function returns 0, SPOKE_ETOOLARGE (the buffer's maximum) or SPOKE_ENOMEM
 */

/* Begins a command of `count` texts; its name is the first. */
SPOKE_MUST_USE int spokei_resp_put_command(struct spokei_buffer *out, uint32_t count);
SPOKE_MUST_USE int spokei_resp_put_text(struct spokei_buffer *out, struct spoke_span text);
SPOKE_MUST_USE int spokei_resp_put_number(struct spokei_buffer *out, uint64_t number);

#endif
