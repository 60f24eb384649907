/* SPDX-License-Identifier: Apache-2.0 */
/* Validates and writes UTF-8. Pure. */
#ifndef SPOKEI_CORE_TEXT_UTF8_H
#define SPOKEI_CORE_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
