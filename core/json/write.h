/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the tokens of JSON: texts, numbers, pieces. They go to the end of a buffer, without a copy
 * in between, or to a function, in pieces. After the first error nothing more is written.
 */
#ifndef SPOKEI_CORE_JSON_WRITE_H
#define SPOKEI_CORE_JSON_WRITE_H

#include "core/memory/buffer.h"

#include <spoke/json.h>

#define SPOKEI_JSON_PIECE 512u /* bytes that are collected for a function */

/* Must not be copied. */
struct spokei_json_out {
	char *at;  /* the next byte is written here ... */
	char *end; /* ... and the window ends here */
	char *start;
	struct spokei_buffer *buffer; /* borrowed; NULL: `put` */
	size_t before;                /* ... bytes that it had */
	spoke_json_put_fn put;
	void *arg;
	int error;
	char piece[SPOKEI_JSON_PIECE];
};

void spokei_json_out_buffer(struct spokei_json_out *out, struct spokei_buffer *buffer);
void spokei_json_out_function(struct spokei_json_out *out, spoke_json_put_fn put, void *arg);

/* Ends the output. Returns 0, SPOKE_ETOOLARGE or SPOKE_ENOMEM; after an error the buffer is as
 * before. */
SPOKE_MUST_USE int spokei_json_out_end(struct spokei_json_out *out);

#define SPOKEI_JSON_ROOM 64u /* the most bytes to ask room for */

/* Makes room for this many bytes, or drops the bytes written after an error. */
void spokei_json_out_more(struct spokei_json_out *out, size_t len);

/* Returns room for `len` bytes, at most SPOKEI_JSON_ROOM. The caller moves `at` behind those that
 * it has written. */
static inline char *spokei_json_room(struct spokei_json_out *out, size_t len)
{
	if (SPOKEI_UNLIKELY(len > (size_t)(out->end - out->at)))
		spokei_json_out_more(out, len);
	return out->at;
}

/* The slow path of spokei_json_put(). */
void spokei_json_put_long(struct spokei_json_out *out, const void *bytes, size_t len);

static inline void spokei_json_put(struct spokei_json_out *out, const void *bytes, size_t len)
{
	if (SPOKEI_UNLIKELY(len > (size_t)(out->end - out->at))) {
		spokei_json_put_long(out, bytes, len);
		return;
	}
	memcpy(out->at, bytes, len);
	out->at += len;
}

static inline void spokei_json_put_char(struct spokei_json_out *out, char c)
{
	*spokei_json_room(out, 1) = c;
	out->at++;
}

enum spokei_json_escape {
	SPOKEI_JSON_ESCAPE_FEW,  /* as JSON demands, and control characters of terminals */
	SPOKEI_JSON_ESCAPE_HTML, /* also "<", so that the text may be embedded in HTML */
};

/* Writes the content of a string, without the quotes, with U+FFFD for invalid UTF-8. */
void spokei_json_put_escaped(struct spokei_json_out *out, const void *bytes, size_t len,
			     enum spokei_json_escape escape);

#define SPOKEI_JSON_INTEGER 20u /* digits of an integer */

/* Writes the digits of a number so that they end before `end`. Returns the first one. */
char *spokei_json_digits(uint64_t number, char *end);

#endif
