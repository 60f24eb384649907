/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner face of JSON, for code that owns a buffer: values are printed into it and read into it
 * without a copy in between. <spoke/json.h> describes the forms of values, which are the same here.
 */
#ifndef SPOKEI_CORE_JSON_JSON_H
#define SPOKEI_CORE_JSON_JSON_H

#include "core/memory/buffer.h"

#include <spoke/json.h>

/* Appends a value as JSON on one line; { 0 } is null. Returns 0, SPOKE_ETOOLARGE (the maximum of
 * the buffer) or SPOKE_ENOMEM; after an error the buffer is as before. */
SPOKE_MUST_USE int spokei_json_append(struct spokei_buffer *out, struct spoke_value value);

/* Appends bytes as a JSON string, with U+FFFD for invalid UTF-8. Returns as above. */
SPOKE_MUST_USE int spokei_json_append_text(struct spokei_buffer *out, const void *bytes,
					   size_t len);

/*
 * Reads a document as the arguments of a call, and overwrites `text`: the items of an array are the
 * arguments; any other value is the only one; a document of white space has none. Packs them at the
 * end of the buffer, within the limits (NULL: all defaults), and writes the packed arguments, which
 * are valid until the next write to the buffer, and their number. Returns as spoke_json_read()
 * does; after an error the buffer is as before.
 */
SPOKE_MUST_USE int spokei_json_read_args(char *text, size_t len,
					 const struct spoke_value_limits *limits,
					 struct spokei_buffer *out, struct spoke_span *ret_args,
					 size_t *ret_count, struct spoke_json_error *ret_error);

#endif
