/* SPDX-License-Identifier: Apache-2.0 */
/* Hides secrets in texts for people. Pure. */
#ifndef SPOKEI_CORE_TEXT_HIDE_H
#define SPOKEI_CORE_TEXT_HIDE_H

#include <spoke/value.h>

#include <stdbool.h>

/* Returns whether the value of a parameter, a header or an attachment of this name is a secret: the
 * name ends, in any case, with "token", "password", "passwd", "secret", "secretAccessKey",
 * "signature" or "authorization". "token.file" is none. */
bool spokei_hide_is_secret(struct spoke_span name);

/* Returns whether an unknown name, e.g. a misspelt one, could be that of a secret: it contains a
 * name of the list, or "pass". */
bool spokei_hide_may_be_secret(const char *name);

/*
 * Replaces secrets in a text, in place, with at most three asterisks each: values of parameters
 * with such a name ("token=TEXT", "token:TEXT"), and user and password before the @ of a URL, if
 * slashes stand before them. A value ends at a blank or "&"; a comma belongs to it. For texts that
 * need not be valid URLs; those that are valid are printed by spoke_url_print() with
 * SPOKE_URL_DISPLAY.
 */
void spokei_hide_secrets(char *text);

#endif
