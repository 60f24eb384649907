/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON and prints the values again, for tests. */
#ifndef TESTS_CORE_JSON_JSONAGAIN_H
#define TESTS_CORE_JSON_JSONAGAIN_H

#include <spoke/json.h>

#include <stdio.h>

/* A function for spoke_json_print(), which writes to a FILE. */
void jsonagain_write(void *out, const void *bytes, size_t len);

/* Opens memory for printing, which the caller frees. */
FILE *jsonagain_open(char **ret_text, size_t *ret_len);

/* Reads a text and prints its values, separated by bars; or returns "error position text". The
 * caller frees the result. */
char *jsonagain(const char *text, enum spoke_json_form form);

/* Does the same in one line, and compares the result. */
void jsonagain_assert(const char *text, const char *wanted);

/* Returns an object of this many keys; number `twice` and the last one are equal. The caller frees
 * the text. */
char *jsonagain_object(unsigned count, unsigned twice);

#endif
