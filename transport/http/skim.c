/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the end of a whole request without parsing it. */
#include "transport/http/skim.h"

#include "transport/http/request.h"
#include "transport/http/text.h"

/* Does the header line have this name? */
static bool is_field(struct spoke_span line, const char *name)
{
	const size_t len = strlen(name);
	const char *text = line.data;

	return line.len > len && text[len] == ':' &&
	       spokei_http_is_any_case((struct spoke_span){ text, len }, name, len);
}

/* Takes the length of the body from its line. Returns false if another line could tell the end. */
static bool skim_line(struct spoke_span line, size_t *length)
{
	struct spoke_span name;
	struct spoke_span value;

	if (is_field(line, "content-length"))
		return spokei_http_next_field(&line, &name, &value) &&
		       spokei_http_length(value, length);
	return !is_field(line, "transfer-encoding") && !is_field(line, "expect");
}

size_t spokei_http_skim(const void *bytes, size_t len)
{
	const char *text = bytes;
	const char *end;
	size_t at = 0;
	size_t length = 0;

	while ((end = len > at ? memchr(text + at, '\n', len - at) : NULL) != NULL) {
		struct spoke_span line = { text + at, (size_t)(end - text) - at + 1 };
		bool is_first = at == 0;

		at += line.len;
		switch (*(const char *)line.data) {
		case '\n':
			return 0;
		case '\r':
			if (!is_first)
				return length <= len - at ? at + length : 0;
			break;
		case 'c':
		case 'C':
		case 'e':
		case 'E':
		case 't':
		case 'T':
			if (!skim_line(line, &length))
				return 0;
			break;
		default:
			break;
		}
	}
	return 0;
}
