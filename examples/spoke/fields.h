/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the members of a document that an admin page sent. It is not trusted: a member that is
 * missing or has another type reads as 0, "", false or empty.
 */
#ifndef COMMAND_FIELDS_H
#define COMMAND_FIELDS_H

#include <spoke/value.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIELD_TEXT 232u /* bytes of a text, with the NUL */

struct spoke_value field_child(struct spoke_value map, const char *key);
bool field_has_number(struct spoke_value map, const char *key, double *ret);
double field_number(struct spoke_value map, const char *key);
uint64_t field_count(struct spoke_value map, const char *key);
bool field_is_true(struct spoke_value map, const char *key);

/* Returns a text, escaped, in one of a few static buffers used in turn: valid for one line. */
const char *field_text(struct spoke_value map, const char *key);

/* Returns a cursor over an array, its length, and its last element. */
struct spoke_cursor field_list(struct spoke_value map, const char *key);
size_t field_list_len(struct spoke_value map, const char *key);
struct spoke_value field_last_of(struct spoke_value map, const char *key);

#endif
