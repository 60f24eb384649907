/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes texts of peers for a terminal: printable ASCII in one line. */
#ifndef COMMAND_ESCAPE_H
#define COMMAND_ESCAPE_H

#include <spoke/value.h>

/* Copies printable ASCII, writes other bytes as \xff, and truncates with "..." to `size` bytes with
 * the NUL. Returns the length. */
size_t escape_text(struct spoke_span span, char *text, size_t size);

/* Copies a printable text; a longer one loses its beginning, and "..." stands there. For names that
 * differ at their end. */
void escape_end(const char *name, char *text, size_t size);

/* Writes values as a list, e.g. "\"a\", 7"; truncates in the same way. */
size_t escape_values(struct spoke_span values, char *text, size_t size);

#endif
