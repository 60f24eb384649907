/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodings of text: UTF-8, which is validated by the ranges of lead and second bytes; percent
 * encoding, one pass each way; and base64. The C library's isalnum() and tolower() depend on the
 * locale, so they are not used.
 */
#include "core/text/encoding.h"

#include <string.h>

/* --- UTF-8 */

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

/* --- percent encoding: a decoded text is never longer than the encoded one, an encoded text at
 * most three times as long */

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

bool spokei_hex_read(const char *digits, size_t len, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (size_t i = 0; i < len; i++) {
		int digit = spokei_hex_value(digits[i]);

		if (digit < 0)
			return false;
		value = value << 4 | (unsigned)digit;
	}
	*ret_value = value;
	return true;
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

/* --- base64 */

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool spokei_base64_read(char *text, size_t len, size_t *ret_len)
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

void spokei_base64_write(const unsigned char *bytes, size_t len, char out[4])
{
	uint32_t bits = (uint32_t)bytes[0] << 16;

	if (len > 1)
		bits |= (uint32_t)bytes[1] << 8;
	if (len > 2)
		bits |= bytes[2];
	for (unsigned i = 0; i < 4; i++)
		out[i] = i > len ? '=' : letters[bits >> (18 - 6 * i) & 0x3f];
}
