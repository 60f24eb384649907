/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 and base64. */
#include "examples/spoke/json_text.h"

#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t utf8_next(const unsigned char *bytes, size_t len)
{
	unsigned char first = bytes[0];
	size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	if (!size || size > len || first > 0xf4)
		return 0;
	for (size_t i = 1; i < size; i++)
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
	/* Longer than needed, a surrogate, or beyond U+10FFFF. */
	if ((first == 0xe0 && bytes[1] < 0xa0) || (first == 0xed && bytes[1] > 0x9f) ||
	    (first == 0xf0 && bytes[1] < 0x90) || (first == 0xf4 && bytes[1] > 0x8f))
		return 0;
	return size;
}

bool utf8_is(const unsigned char *bytes, size_t len)
{
	size_t size;

	for (size_t at = 0; at < len; at += size) {
		size = utf8_next(bytes + at, len - at);
		if (!size)
			return false;
	}
	return true;
}

size_t utf8_write(uint32_t character, char *out)
{
	size_t size = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
	static const unsigned char marks[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (size_t i = size; i-- > 1; character >>= 6)
		out[i] = (char)(0x80 | (character & 0x3f));
	out[0] = (char)(marks[size] | character);
	return size;
}

bool base64_read(char *text, size_t len, size_t *ret_len)
{
	uint32_t bits = 0;
	unsigned held = 0;
	size_t written = 0;
	size_t padded = len;

	while (len && text[len - 1] == '=' && padded - len < 2)
		len--;
	if (len % 4 == 1 || (padded != len && padded % 4 != 0))
		return false;
	for (size_t i = 0; i < len; i++) {
		const char *letter = text[i] ? strchr(letters, text[i]) : NULL;

		if (!letter)
			return false;
		bits = bits << 6 | (uint32_t)(letter - letters);
		held += 6;
		if (held >= 8) {
			held -= 8;
			text[written++] = (char)(unsigned char)(bits >> held);
			bits &= (1u << held) - 1;
		}
	}
	*ret_len = written;
	return bits == 0;
}

void base64_write(const unsigned char *bytes, size_t len, char out[4])
{
	uint32_t bits = (uint32_t)bytes[0] << 16;

	if (len > 1)
		bits |= (uint32_t)bytes[1] << 8;
	if (len > 2)
		bits |= bytes[2];
	for (unsigned i = 0; i < 4; i++)
		out[i] = i > len ? '=' : letters[bits >> (18 - 6 * i) & 0x3f];
}
