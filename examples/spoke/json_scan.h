/* SPDX-License-Identifier: Apache-2.0 */
/* The small parts of JSON: white space, strings, numbers, words. */
#ifndef COMMAND_JSON_SCAN_H
#define COMMAND_JSON_SCAN_H

#include <spoke/value.h>

/* A text that is being read; text[len] is NUL. */
struct scan {
	char *text;
	size_t at;
	size_t len;
	struct spoke_builder *builder; /* takes what is read */
	int error;                     /* the first one, and what is wrong at `at` */
	const char *what;
};

/* Keeps an error, unless there is one; returns false. */
bool scan_fail(struct scan *scan, int error, const char *what);

bool scan_is_space(char c);

/* Passes white space. */
void scan_space(struct scan *scan);

/* The next byte that is no space; NUL at the end. */
char scan_peek(struct scan *scan);

/* Is the next byte that is no space this one? It is passed then. */
bool scan_pass(struct scan *scan, char c);

/* The rest of a string, decoded in place. As all below false after an error. */
bool scan_string(struct scan *scan, char **ret_text, size_t *ret_len);

/* Packs a number; null, true or false. */
bool scan_number(struct scan *scan);
bool scan_word(struct scan *scan);

#endif
