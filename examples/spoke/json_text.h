/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as text: UTF-8 and base64. */
#ifndef COMMAND_JSON_TEXT_H
#define COMMAND_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the length of the first character, 1 to 4; 0: invalid UTF-8. `len` must not be 0. */
size_t utf8_next(const unsigned char *bytes, size_t len);

bool utf8_is(const unsigned char *bytes, size_t len);

/* Writes a character up to U+10FFFF; returns its bytes, 1 to 4. */
size_t utf8_write(uint32_t character, char *out);

/* Decodes base64 in place, with or without "=" at the end. Returns false if it is invalid. */
bool base64_read(char *text, size_t len, size_t *ret_len);

/* Reads a date, e.g. "2024-05-01", "2024-05-01T12:00:00.123Z" or "2024-05-01T12:00:00+02:00", as
 * seconds and nanoseconds since 1970. Returns false if it is invalid. */
bool date_read(const char *text, size_t len, int64_t *ret_seconds, uint32_t *ret_ns);

/* Encodes one to three bytes as four characters. */
void base64_write(const unsigned char *bytes, size_t len, char out[4]);

#endif
