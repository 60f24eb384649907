/* SPDX-License-Identifier: Apache-2.0 */
/* Compares texts of a request. Any thread. */
#ifndef SPOKEI_TRANSPORT_HTTP_TEXT_H
#define SPOKEI_TRANSPORT_HTTP_TEXT_H

#include <spoke/value.h>

#include <stdbool.h>
#include <string.h>

/* Returns an ASCII letter in lower case, any other byte as it is. */
static inline char spokei_http_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Is it exactly this text? */
static inline bool spokei_http_is(struct spoke_span span, const char *text)
{
	return span.len == strlen(text) && memcmp(span.data, text, span.len) == 0;
}

/* Is it this text, in either case? `len` is that of `text`. */
static inline bool spokei_http_is_any_case(struct spoke_span span, const char *text, size_t len)
{
	const char *bytes = span.data;

	if (span.len != len)
		return false;
	/* Most bytes are the same in the same case. */
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] != text[i] &&
		    spokei_http_lower(bytes[i]) != spokei_http_lower(text[i]))
			return false;
	}
	return true;
}

#endif
