/* SPDX-License-Identifier: Apache-2.0 */
/* Compares secrets, e.g. tokens, with texts of peers, and wipes them. Pure. */
#ifndef SPOKEI_CORE_TEXT_SECRET_H
#define SPOKEI_CORE_TEXT_SECRET_H

#include <spoke/value.h>

#include <stdbool.h>

/* Returns whether a text of a peer is the secret; an empty secret equals no text. The duration
 * depends on the length of the text, not on its content. */
bool spokei_secret_is(struct spoke_span given, const char *secret);

/* Returns whether two runs of bytes are the same. The duration depends on the length only. */
bool spokei_secret_same(const void *a, const void *b, size_t len);

/* Overwrites bytes with zeros, also if nothing reads them afterwards. */
void spokei_secret_wipe(void *bytes, size_t len);

#endif
