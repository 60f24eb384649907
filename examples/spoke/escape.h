/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of peers, as a terminal may be given them: printable ASCII in one line. */
#ifndef COMMAND_ESCAPE_H
#define COMMAND_ESCAPE_H

#include <spoke/value.h>

/* Copies printable ASCII, writes the rest as \xff, and cuts with "..." where `size` (with the NUL)
 * does not suffice. Returns the length. */
size_t escape_text(struct spoke_span span, char *text, size_t size);

/* Values one after another, as "\"a\", 7"; cut alike. */
size_t escape_values(struct spoke_span values, char *text, size_t size);

#endif
