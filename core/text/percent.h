/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Percent encoding of URLs, both ways, and the text buffer that it writes into. Used by url;
 * stateless; any thread.
 */
#ifndef SPOKEI_CORE_TEXT_PERCENT_H
#define SPOKEI_CORE_TEXT_PERCENT_H

#include <stdbool.h>
#include <stddef.h>

/* A text that is written like snprintf() does: bytes that do not fit are only counted. */
struct spokei_text {
	char *out;
	size_t size;
	size_t len; /* of the whole text */
};

void spokei_text_put(struct spokei_text *text, const char *string);

/* Ends the text with a NUL, inside its size, and returns its whole length. */
size_t spokei_text_end(const struct spokei_text *text);

/* Writes bytes; letters, digits and `marks` unchanged, all others as %XX. */
void spokei_percent_put(struct spokei_text *text, const void *bytes, size_t len, const char *marks);

/* Returns the value of a hexadecimal digit, 0 to 15; -1: it is none. */
int spokei_hex_value(char byte);

enum spokei_percent {
	SPOKEI_PERCENT_FINE,
	SPOKEI_PERCENT_BAD, /* a percent sign without two hex digits */
	SPOKEI_PERCENT_NUL, /* an encoded NUL, which no string can hold */
};

/* Decodes `len` bytes to `out`, which has room for as many and may be the same memory. *ret_len
 * gets the length of the result, or the position of the wrong percent sign. */
enum spokei_percent spokei_percent_decode(const char *from, size_t len, char *out, size_t *ret_len);

#endif
