/* SPDX-License-Identifier: Apache-2.0 */
/* Is it UTF-8? A decider. */
#ifndef SPOKEI_CORE_TEXT_UTF8_H
#define SPOKEI_CORE_TEXT_UTF8_H

#include <stddef.h>

#define SPOKEI_UTF8_INSTEAD "\xef\xbf\xbd" /* U+FFFD: what stands for bytes that are none */

/* Bytes of the character that `len` bytes, at least one, begin with; 0: they begin with none. */
size_t spokei_utf8_len(const unsigned char *bytes, size_t len);

#endif
