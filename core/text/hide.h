/* SPDX-License-Identifier: Apache-2.0 */
/* Hides secrets in texts for people. Pure. */
#ifndef SPOKEI_CORE_TEXT_HIDE_H
#define SPOKEI_CORE_TEXT_HIDE_H

#include <spoke/value.h>

#include <stdbool.h>

/* Returns whether a parameter of this name is a secret, e.g. "token", in any case. Only the part
 * after the last dot counts, because methods and sections stand before it. */
bool spokei_hide_is_secret(struct spoke_span name);

/*
 * Replaces secrets in a text, in place, with at most three asterisks each: values of parameters
 * with such a name ("token=TEXT", "token:TEXT"), and user and password before the @ of a URL. A
 * value ends at a blank, a comma or "&". For texts that need not be valid URLs; those
 * that are valid are printed by spoke_url_print() with SPOKE_URL_DISPLAY.
 */
void spokei_hide_secrets(char *text);

#endif
