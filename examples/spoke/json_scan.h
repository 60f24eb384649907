/* SPDX-License-Identifier: Apache-2.0 */
/* Scans the tokens of JSON: white space, strings, numbers, words. */
#ifndef COMMAND_JSON_SCAN_H
#define COMMAND_JSON_SCAN_H

#include <spoke/value.h>

/* The text being read; text[len] is NUL. */
struct scan {
	char *text;
	size_t at;
	size_t len;
	struct spoke_builder *builder; /* receives the values */
	int error;                     /* the first one; `what` describes it */
	const char *what;
};

/* Records the first error; returns false. */
bool scan_fail(struct scan *scan, int error, const char *what);

bool scan_is_space(char c);

/* Skips white space. */
void scan_space(struct scan *scan);

/* Returns the next byte that is not white space; NUL at the end. */
char scan_peek(struct scan *scan);

/* Skips white space, and then this byte. Returns whether the byte was there. */
bool scan_pass(struct scan *scan, char c);

/* Decodes the rest of a string in place. Returns false on an error, like the functions below. */
bool scan_string(struct scan *scan, char **ret_text, size_t *ret_len);

/* Packs a number; packs null, true or false. */
bool scan_number(struct scan *scan);
bool scan_word(struct scan *scan);

#endif
