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

/* Returns whether all bytes are UTF-8. */
bool spokei_utf8_all(const unsigned char *bytes, size_t len);

/* Writes a character up to U+10FFFF; returns its bytes, 1 to 4. */
size_t spokei_utf8_write(uint32_t character, char *out);

#endif
