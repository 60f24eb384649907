/* SPDX-License-Identifier: Apache-2.0 */
/* Encodings of text: UTF-8, percent encoding of URLs, base64 (RFC 4648). Pure; any thread. */
#ifndef SPOKEI_CORE_TEXT_ENCODING_H
#define SPOKEI_CORE_TEXT_ENCODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- UTF-8 */

#define SPOKEI_UTF8_INSTEAD "\xef\xbf\xbd" /* U+FFFD: replaces invalid bytes */

/* Returns the size of the character at the start of `len` bytes, at least one; 0: it is invalid. */
size_t spokei_utf8_len(const unsigned char *bytes, size_t len);

/* Returns whether a character of `len` > 0 bytes controls a terminal: U+0000 to U+001F and U+007F
 * to U+009F. */
static inline bool spokei_utf8_is_control(const unsigned char *bytes, size_t len)
{
	if (len == 1)
		return *bytes < 0x20 || *bytes == 0x7f;
	return len == 2 && bytes[0] == 0xc2 && bytes[1] < 0xa0;
}

/* Returns whether all bytes are UTF-8. */
bool spokei_utf8_all(const unsigned char *bytes, size_t len);

/* A check of text that arrives in pieces. Zero-initialised: between characters. */
struct spokei_utf8_run {
	uint8_t left; /* bytes of the character that are still to come */
	uint8_t from; /* range of the next of them */
	uint8_t to;
};

/* Checks the next piece of a text. Returns the number of bytes before the first one that no valid
 * text can have at this place; `len`: all are valid. After less, the run is over. */
size_t spokei_utf8_run(struct spokei_utf8_run *run, const unsigned char *bytes, size_t len);

/* Returns whether the text may end here. */
static inline bool spokei_utf8_may_end(const struct spokei_utf8_run *run)
{
	return run->left == 0;
}

/* Writes a character up to U+10FFFF; returns its bytes, 1 to 4. */
size_t spokei_utf8_write(uint32_t character, char *out);

/* --- percent encoding, and the text buffer that it writes into */

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

/* Reads up to 16 hexadecimal digits; returns false if there is another byte. */
bool spokei_hex_read(const char *digits, size_t len, uint64_t *ret_value);

/* Writes a number as 16 hexadecimal digits, without a NUL: eight at a time, each of them first as a
 * byte of its own. */
static inline void spokei_hex_write(unsigned char out[16], uint64_t number)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);

	for (unsigned i = 0; i < 16; i += 8, number <<= 32) {
		uint64_t bytes = number >> 32;
		uint64_t letters;

		bytes = (bytes << 16 & UINT64_C(0xffff00000000)) | (bytes & 0xffff);
		bytes = (bytes << 8 | bytes) & UINT64_C(0x00ff00ff00ff00ff);
		bytes = (bytes << 4 | bytes) & UINT64_C(0x0f0f0f0f0f0f0f0f);
		letters = (bytes + 6 * ones) >> 4 & ones; /* 1 for each of 10 to 15 */
		bytes += '0' * ones + letters * ('a' - '0' - 10);
		for (unsigned k = 0; k < 8; k++)
			out[i + k] = (unsigned char)(bytes >> (56 - 8 * k));
	}
}

enum spokei_percent {
	SPOKEI_PERCENT_FINE,
	SPOKEI_PERCENT_BAD, /* a percent sign without two hex digits */
	SPOKEI_PERCENT_NUL, /* an encoded NUL, which no string can hold */
};

/* Decodes `len` bytes to `out`, which has room for as many and may be the same memory. *ret_len
 * gets the length of the result, or the position of the wrong percent sign. */
enum spokei_percent spokei_percent_decode(const char *from, size_t len, char *out, size_t *ret_len);

/* --- base64 */

/* Decodes in place, with or without "=" at the end. Returns false if the text is invalid. */
bool spokei_base64_read(char *text, size_t len, size_t *ret_len);

/* Encodes one to three bytes as four characters; of more, the first three. */
void spokei_base64_write(const unsigned char *bytes, size_t len, char out[4]);

#endif
