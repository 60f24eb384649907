/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as text: UTF-8 and base64. */
#ifndef COMMAND_JSON_TEXT_H
#define COMMAND_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of the character that these begin with, 1 to 4; 0: it is no UTF-8. `len` is not 0. */
size_t utf8_next(const unsigned char *bytes, size_t len);

bool utf8_is(const unsigned char *bytes, size_t len);

/* Writes a character up to U+10FFFF; returns its bytes, 1 to 4. */
size_t utf8_write(uint32_t character, char *out);

/* Decodes in place, with "=" at the end or without. Returns whether it is base64, and the length.
 */
bool base64_read(char *text, size_t len, size_t *ret_len);

/* Three bytes, or the one or two that are left, as four letters. */
void base64_write(const unsigned char *bytes, size_t len, char out[4]);

#endif
