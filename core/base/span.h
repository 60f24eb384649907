/* SPDX-License-Identifier: Apache-2.0 */
/* Compares spans of bytes with texts. Letters are those of ASCII. Pure; any thread. */
#ifndef SPOKEI_CORE_BASE_SPAN_H
#define SPOKEI_CORE_BASE_SPAN_H

#include <spoke/value.h>

#include <stdbool.h>
#include <string.h>

static inline struct spoke_span spokei_span(const void *data, size_t len)
{
	return (struct spoke_span){ data, len };
}

static inline struct spoke_span spokei_span_of(const char *text)
{
	return spokei_span(text, strlen(text));
}

/* Returns the bytes after the first `len`. */
static inline struct spoke_span spokei_span_after(struct spoke_span bytes, size_t len)
{
	return spokei_span((const unsigned char *)bytes.data + len, bytes.len - len);
}

/* Returns the bytes without blanks and tabs around them. */
static inline struct spoke_span spokei_span_trim(struct spoke_span bytes)
{
	const char *text = bytes.data;

	while (bytes.len > 0 && (*text == ' ' || *text == '\t')) {
		text++;
		bytes.len--;
	}
	while (bytes.len > 0 && (text[bytes.len - 1] == ' ' || text[bytes.len - 1] == '\t'))
		bytes.len--;
	bytes.data = text;
	return bytes;
}

static inline bool spokei_span_same(struct spoke_span a, struct spoke_span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* Returns whether the span equals the text. */
static inline bool spokei_span_is(struct spoke_span span, const char *text)
{
	return spokei_span_same(span, spokei_span_of(text));
}

static inline bool spokei_span_begins(struct spoke_span span, const char *text)
{
	const size_t len = strlen(text);

	return span.len >= len && spokei_span_is(spokei_span(span.data, len), text);
}

static inline bool spokei_span_ends(struct spoke_span span, const char *text)
{
	const size_t len = strlen(text);

	return span.len >= len && spokei_span_is(spokei_span_after(span, span.len - len), text);
}

/* Returns an ASCII letter in lower case, any other byte as it is. */
static inline char spokei_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Returns whether both have the same letters, in either case. */
static inline bool spokei_span_same_letters(struct spoke_span a, struct spoke_span b)
{
	const char *some = a.data;
	const char *others = b.data;

	if (a.len != b.len)
		return false;
	/* Most bytes are the same in the same case. */
	for (size_t i = 0; i < a.len; i++) {
		if (some[i] != others[i] && spokei_lower(some[i]) != spokei_lower(others[i]))
			return false;
	}
	return true;
}

/* Returns whether the span equals the text, in either case. */
static inline bool spokei_span_is_any_case(struct spoke_span span, const char *text)
{
	return spokei_span_same_letters(span, spokei_span_of(text));
}

#endif
