/* SPDX-License-Identifier: Apache-2.0 */
/* Validates UTF-8 by the ranges of lead and second bytes, and writes characters. */
#include "core/text/utf8.h"

#include <string.h>

/* The length that a lead byte demands, and the range of the second byte; later bytes are 0x80 to
 * 0xbf. */
struct lead {
	unsigned char len;
	unsigned char second_from;
	unsigned char second_to;
};

/* Excludes overlong forms, surrogates, and characters beyond U+10FFFF. */
static const struct lead leads[] = {
	{ 2, 0x80, 0xbf }, /* 0xc2 to 0xdf */
	{ 3, 0xa0, 0xbf }, /* 0xe0 */
	{ 3, 0x80, 0xbf }, /* 0xe1 to 0xec */
	{ 3, 0x80, 0x9f }, /* 0xed */
	{ 3, 0x80, 0xbf }, /* 0xee, 0xef */
	{ 4, 0x90, 0xbf }, /* 0xf0 */
	{ 4, 0x80, 0xbf }, /* 0xf1 to 0xf3 */
	{ 4, 0x80, 0x8f }, /* 0xf4 */
};

/* The row of a lead byte from 0xc0 on, plus one; 0: it is invalid. */
static const unsigned char rows[64] = {
	0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 5, 5, 6, 7, 7, 7, 8,
};

/* Returns the row of a byte of 0x80 or more; NULL: no character begins with it. */
static const struct lead *find_lead(unsigned char byte)
{
	if (byte < 0xc0 || rows[byte - 0xc0] == 0)
		return NULL;
	return &leads[rows[byte - 0xc0] - 1];
}

size_t spokei_utf8_len(const unsigned char *bytes, size_t len)
{
	const struct lead *lead;

	if (bytes[0] < 0x80)
		return 1;
	lead = find_lead(bytes[0]);
	if (lead == NULL || len < lead->len || bytes[1] < lead->second_from ||
	    bytes[1] > lead->second_to)
		return 0;
	for (size_t i = 2; i < lead->len; i++)
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
	return lead->len;
}

/* Returns the bytes of ASCII at the start, or some of them. */
static size_t skip_ascii(const unsigned char *bytes, size_t len)
{
	size_t at = 0;
	uint64_t word;

	for (; len - at >= sizeof(word); at += sizeof(word)) {
		memcpy(&word, bytes + at, sizeof(word));
		if (word & 0x8080808080808080u)
			break;
	}
	return at;
}

bool spokei_utf8_all(const unsigned char *bytes, size_t len)
{
	size_t at = 0;

	while (at < len) {
		size_t size;

		at += skip_ascii(bytes + at, len - at);
		size = at < len ? spokei_utf8_len(bytes + at, len - at) : 0;
		if (size == 0)
			return at == len;
		at += size;
	}
	return true;
}

/* Takes a byte between characters. Returns false if no character begins with it. */
static bool begin(struct spokei_utf8_run *run, unsigned char byte)
{
	const struct lead *lead;

	if (byte < 0x80)
		return true;
	lead = find_lead(byte);
	if (lead == NULL)
		return false;
	*run = (struct spokei_utf8_run){ (uint8_t)(lead->len - 1), lead->second_from,
					 lead->second_to };
	return true;
}

size_t spokei_utf8_run(struct spokei_utf8_run *run, const unsigned char *bytes, size_t len)
{
	size_t at = 0;

	while (at < len) {
		if (run->left == 0) {
			at += skip_ascii(bytes + at, len - at);
			if (at == len || !begin(run, bytes[at]))
				return at;
		} else if (bytes[at] >= run->from && bytes[at] <= run->to) {
			*run = (struct spokei_utf8_run){ (uint8_t)(run->left - 1), 0x80, 0xbf };
		} else {
			return at;
		}
		at++;
	}
	return at;
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
