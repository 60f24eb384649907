/* SPDX-License-Identifier: Apache-2.0 */
/* Compares secrets, e.g. tokens, with texts of peers. Pure. */
#ifndef SPOKEI_CORE_TEXT_SECRET_H
#define SPOKEI_CORE_TEXT_SECRET_H

#include <spoke/value.h>

#include <stdbool.h>

/* Returns whether a text of a peer is the secret; an empty secret equals no text. The duration
 * depends on the length of the text, not on its content. */
bool spokei_secret_is(struct spoke_span given, const char *secret);

#endif
