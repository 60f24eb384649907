/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes texts of peers for a terminal. */
#include "examples/spoke/escape.h"

#include <stdio.h>
#include <string.h>

#define DOTS 3u

/* Marks a truncated text with "...". */
static size_t cut(char *text, size_t len, size_t size)
{
	if (len + DOTS >= size)
		len = size > DOTS ? size - DOTS - 1 : 0;
	(void)snprintf(text + len, size - len, "...");
	return strlen(text);
}

size_t escape_text(struct spoke_span span, char *text, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *bytes = span.data;
	size_t len = 0;

	for (size_t i = 0; i < span.len; i++) {
		bool plain = bytes[i] >= ' ' && bytes[i] < 0x7f;
		size_t need = plain ? 1 : 4;

		if (need + DOTS >= size - len && (need >= size - len || i + 1 < span.len))
			return cut(text, len, size);
		if (plain) {
			text[len++] = (char)bytes[i];
			continue;
		}
		text[len++] = '\\';
		text[len++] = 'x';
		text[len++] = digits[bytes[i] >> 4];
		text[len++] = digits[bytes[i] & 0xf];
	}
	text[len] = '\0';
	return len;
}

void escape_end(const char *name, char *text, size_t size)
{
	size_t len = strlen(name);

	if (len < size)
		(void)snprintf(text, size, "%s", name);
	else
		(void)snprintf(text, size, "...%s", name + len + 4 - size);
}

size_t escape_values(struct spoke_span values, char *text, size_t size)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(values);
	struct spoke_value value;
	size_t len = 0;

	text[0] = '\0';
	while (spoke_cursor_next(&cursor, &value)) {
		if (size - len < 8)
			return cut(text, len, size);
		if (len > 0)
			len += (size_t)snprintf(text + len, size - len, ", ");
		len += spoke_value_print(value, text + len, size - len);
	}
	return len;
}
