/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a document of JSON into a buffer, member by member, on one line and without spaces. A text
 * may have any bytes: invalid UTF-8 becomes U+FFFD, and "<" is escaped, so that a document may be
 * embedded in HTML. After the first error nothing more is written.
 */
#ifndef SPOKEI_CORE_JSON_DOCUMENT_H
#define SPOKEI_CORE_JSON_DOCUMENT_H

#include "core/memory/buffer.h"

#include <spoke/value.h>

#define SPOKEI_JSON_TEXT 256u /* bytes of a text; longer ones are cut, and end in "..." */

struct spokei_json {
	struct spokei_buffer *out; /* borrowed */
	int error;
	bool comma; /* the next value needs a comma before it */
};

static inline struct spokei_json spokei_json_make(struct spokei_buffer *out)
{
	return (struct spokei_json){ .out = out };
}

/* Begin and end an object or a list: '{' or '[', and '}' or ']'. */
void spokei_json_open(struct spokei_json *json, char bracket);
void spokei_json_close(struct spokei_json *json, char bracket);

/* Writes the name of the next member, which needs no escapes. */
void spokei_json_key(struct spokei_json *json, const char *key);

/* Write a value. */
void spokei_json_u64(struct spokei_json *json, uint64_t value);
void spokei_json_null(struct spokei_json *json);
void spokei_json_bool(struct spokei_json *json, bool value);
void spokei_json_span(struct spokei_json *json, const void *bytes, size_t len);
void spokei_json_text(struct spokei_json *json, const char *text);

/* Write a member: its name and value. */
void spokei_json_put_u64(struct spokei_json *json, const char *key, uint64_t value);
void spokei_json_put_bool(struct spokei_json *json, const char *key, bool value);
void spokei_json_put_text(struct spokei_json *json, const char *key, const char *text);

/* Writes a time in ms, rounded down; null for UINT64_MAX. */
void spokei_json_put_ms(struct spokei_json *json, const char *key, uint64_t ns);

/* Writes the name of a member, and begins its object or list. */
void spokei_json_open_member(struct spokei_json *json, const char *key, char bracket);

#endif
