/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a line in a configuration file: blanks, comments, quotation marks. Texts are
 * NUL-terminated and changed in place. Pure; any thread. */
#ifndef SPOKEI_CLUSTER_CONFIG_LINE_H
#define SPOKEI_CLUSTER_CONFIG_LINE_H

#include <stdbool.h>

/* Skips blanks. */
char *spokei_line_skip(char *at);

/* Removes blanks at the end. */
void spokei_line_trim(char *text);

/* Returns whether the text is empty or a comment. */
bool spokei_line_is_comment(const char *at);

/* Removes a comment, which begins with # after a blank, and the blanks before it. */
void spokei_line_cut(char *text);

/*
 * Reads a quoted value, in which \" and \\ stand for the character after the backslash. Returns
 * an error message or NULL; *ret_value is the value.
 */
const char *spokei_line_unquote(char *at, char **ret_value);

#endif
