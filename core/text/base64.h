/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as text in base64 (RFC 4648). Pure. */
#ifndef SPOKEI_CORE_TEXT_BASE64_H
#define SPOKEI_CORE_TEXT_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes in place, with or without "=" at the end. Returns false if the text is invalid. */
bool spokei_base64_read(char *text, size_t len, size_t *ret_len);

/* Encodes one to three bytes as four characters; of more, the first three. */
void spokei_base64_write(const unsigned char *bytes, size_t len, char out[4]);

#endif
