/* SPDX-License-Identifier: Apache-2.0 */
/* Validates UTF-8. Pure. */
#ifndef SPOKEI_CORE_TEXT_UTF8_H
#define SPOKEI_CORE_TEXT_UTF8_H

#include <stddef.h>

#define SPOKEI_UTF8_INSTEAD "\xef\xbf\xbd" /* U+FFFD: replaces invalid bytes */

/* Returns the size of the character at the start of `len` bytes, at least one; 0: it is invalid. */
size_t spokei_utf8_len(const unsigned char *bytes, size_t len);

#endif
