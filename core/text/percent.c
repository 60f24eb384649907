/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Percent encoding and decoding, one pass each. A decoded text is never longer than the encoded
 * one, an encoded text at most three times as long. The C library's isalnum() and tolower() depend
 * on the locale, so they are not used.
 */
#include "core/text/percent.h"

#include <string.h>

static bool is_kept(unsigned char byte, const char *marks)
{
	if ((byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
	    (byte >= 'a' && byte <= 'z'))
		return true;
	return byte != '\0' && strchr(marks, byte) != NULL;
}

static void put_byte(struct spokei_text *text, char byte)
{
	if (text->len < text->size)
		text->out[text->len] = byte;
	text->len++;
}

void spokei_text_put(struct spokei_text *text, const char *string)
{
	while (*string != '\0')
		put_byte(text, *string++);
}

size_t spokei_text_end(const struct spokei_text *text)
{
	if (text->size > 0)
		text->out[text->len < text->size ? text->len : text->size - 1] = '\0';
	return text->len;
}

void spokei_percent_put(struct spokei_text *text, const void *bytes, size_t len, const char *marks)
{
	static const char digits[] = "0123456789ABCDEF";
	const unsigned char *from = bytes;

	for (size_t i = 0; i < len; i++) {
		if (is_kept(from[i], marks)) {
			put_byte(text, (char)from[i]);
			continue;
		}
		put_byte(text, '%');
		put_byte(text, digits[from[i] >> 4]);
		put_byte(text, digits[from[i] & 0xf]);
	}
}

int spokei_hex_value(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	if (byte >= 'A' && byte <= 'F')
		return byte - 'A' + 10;
	if (byte >= 'a' && byte <= 'f')
		return byte - 'a' + 10;
	return -1;
}

enum spokei_percent spokei_percent_decode(const char *from, size_t len, char *out, size_t *ret_len)
{
	size_t used = 0;

	for (size_t i = 0; i < len; i++) {
		int high;
		int low;

		if (from[i] != '%') {
			out[used++] = from[i];
			continue;
		}
		*ret_len = i;
		high = len - i > 2 ? spokei_hex_value(from[i + 1]) : -1;
		low = len - i > 2 ? spokei_hex_value(from[i + 2]) : -1;
		if (high < 0 || low < 0)
			return SPOKEI_PERCENT_BAD;
		if (high == 0 && low == 0)
			return SPOKEI_PERCENT_NUL;
		out[used++] = (char)(high << 4 | low);
		i += 2;
	}
	*ret_len = used;
	return SPOKEI_PERCENT_FINE;
}
