/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JSON into a buffer: on one line, without spaces, numbers as integers. Texts may be any
 * bytes: what is not UTF-8 becomes U+FFFD, and "<" an escape, so that a document may stand inside a
 * page. The first error sticks, and nothing is written after it.
 */
#ifndef SPOKEI_CORE_TEXT_JSON_H
#define SPOKEI_CORE_TEXT_JSON_H

#include "core/memory/buffer.h"

#include <spoke/value.h>

#define SPOKEI_JSON_TEXT 256u /* bytes of a text; longer ones are cut, and end in dots */

struct spokei_json {
	struct spokei_buffer *out; /* borrowed */
	int error;
	bool comma; /* something stands before the next value, on its level */
};

static inline struct spokei_json spokei_json_make(struct spokei_buffer *out)
{
	return (struct spokei_json){ .out = out };
}

/* Begins and ends an object or a list: by '{' or '[', and '}' or ']'. */
void spokei_json_open(struct spokei_json *json, char bracket);
void spokei_json_close(struct spokei_json *json, char bracket);

/* The name of the member whose value comes next; plain. */
void spokei_json_key(struct spokei_json *json, const char *key);

void spokei_json_u64(struct spokei_json *json, uint64_t value);
void spokei_json_null(struct spokei_json *json);
void spokei_json_bool(struct spokei_json *json, bool value);
void spokei_json_span(struct spokei_json *json, const void *bytes, size_t len);
void spokei_json_text(struct spokei_json *json, const char *text);

/* Members, with their names. */
void spokei_json_put_u64(struct spokei_json *json, const char *key, uint64_t value);
void spokei_json_put_bool(struct spokei_json *json, const char *key, bool value);
void spokei_json_put_text(struct spokei_json *json, const char *key, const char *text);

/* A time in ms, rounded down; null if it is UINT64_MAX. */
void spokei_json_put_ms(struct spokei_json *json, const char *key, uint64_t ns);

/* A member that begins an object or a list. */
void spokei_json_open_member(struct spokei_json *json, const char *key, char bracket);

#endif
