/* SPDX-License-Identifier: Apache-2.0 */
/* Validates UTF-8 by the ranges of lead and second bytes, and writes characters. */
#include "core/text/utf8.h"

/* A range of lead bytes, and the range of the second byte; later bytes are 0x80 to 0xbf. */
struct lead {
	unsigned char from;
	unsigned char to;
	unsigned char len;
	unsigned char second_from;
	unsigned char second_to;
};

/* Excludes overlong forms, surrogates, and characters beyond U+10FFFF. */
static const struct lead leads[] = {
	{ 0xc2, 0xdf, 2, 0x80, 0xbf }, { 0xe0, 0xe0, 3, 0xa0, 0xbf }, { 0xe1, 0xec, 3, 0x80, 0xbf },
	{ 0xed, 0xed, 3, 0x80, 0x9f }, { 0xee, 0xef, 3, 0x80, 0xbf }, { 0xf0, 0xf0, 4, 0x90, 0xbf },
	{ 0xf1, 0xf3, 4, 0x80, 0xbf }, { 0xf4, 0xf4, 4, 0x80, 0x8f },
};

size_t spokei_utf8_len(const unsigned char *bytes, size_t len)
{
	const struct lead *lead = leads;

	if (bytes[0] < 0x80)
		return 1;
	while (lead < leads + sizeof(leads) / sizeof(leads[0]) &&
	       (bytes[0] < lead->from || bytes[0] > lead->to))
		lead++;
	if (lead == leads + sizeof(leads) / sizeof(leads[0]) || len < lead->len ||
	    bytes[1] < lead->second_from || bytes[1] > lead->second_to)
		return 0;
	for (size_t i = 2; i < lead->len; i++)
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
	return lead->len;
}

size_t spokei_utf8_write(uint32_t character, char *out)
{
	size_t size = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
	static const unsigned char marks[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (size_t i = size; i-- > 1; character >>= 6)
		out[i] = (char)(0x80 | (character & 0x3f));
	out[0] = (char)(marks[size] | character);
	return size;
}
