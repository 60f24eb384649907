/* SPDX-License-Identifier: Apache-2.0 */
/* What lines of a file of settings are made of: blanks, comments, quotation marks. Texts end with a
 * NUL, and are changed in place. A decider; any thread. */
#ifndef SPOKEI_CLUSTER_CONFIG_LINE_H
#define SPOKEI_CLUSTER_CONFIG_LINE_H

#include <stdbool.h>

/* What is behind the blanks. */
char *spokei_line_skip(char *at);

/* Cuts blanks from the end. */
void spokei_line_trim(char *text);

/* Is there nothing but a comment, or nothing at all? */
bool spokei_line_is_comment(const char *at);

/* Cuts a comment off, which begins with # behind a blank, and the blanks before it. */
void spokei_line_cut(char *text);

/*
 * Reads what stands in quotation marks, where \" and \\ stand for what is behind the backslash.
 * Returns what is wrong with it, or NULL; *ret_value is the value.
 */
const char *spokei_line_unquote(char *at, char **ret_value);

#endif
