/* SPDX-License-Identifier: Apache-2.0 */
/* Scans the tokens of JSON: white space, strings, numbers, words. */
#ifndef SPOKEI_CORE_JSON_SCAN_H
#define SPOKEI_CORE_JSON_SCAN_H

#include <spoke/value.h>

/* The text being read. */
struct spokei_json_scan {
	char *text;
	size_t at;
	size_t len;
	struct spoke_builder *builder; /* receives the values */
	int error;                     /* the first one; `what` describes it */
	const char *what;
};

/* Records the first error; returns false. */
bool spokei_json_fail(struct spokei_json_scan *scan, int error, const char *what);

static inline bool spokei_json_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Returns the next byte; NUL at the end. */
static inline char spokei_json_here(const struct spokei_json_scan *scan)
{
	return scan->at < scan->len ? scan->text[scan->at] : '\0';
}

/* Skips white space. */
static inline void spokei_json_space(struct spokei_json_scan *scan)
{
	while (scan->at < scan->len && spokei_json_is_space(scan->text[scan->at]))
		scan->at++;
}

/* Returns the next byte that is not white space; NUL at the end. */
static inline char spokei_json_peek(struct spokei_json_scan *scan)
{
	spokei_json_space(scan);
	return spokei_json_here(scan);
}

/* Skips white space, and then this byte. Returns whether the byte was there. */
static inline bool spokei_json_pass(struct spokei_json_scan *scan, char c)
{
	if (spokei_json_peek(scan) != c || scan->at == scan->len)
		return false;
	scan->at++;
	return true;
}

/* Skips these bytes, if they are next. */
bool spokei_json_pass_word(struct spokei_json_scan *scan, const char *word);

/* Decodes the rest of a string in place. Returns false on an error, like the functions below. */
bool spokei_json_string(struct spokei_json_scan *scan, char **ret_text, size_t *ret_len);

/* Packs null, true or false. */
bool spokei_json_word(struct spokei_json_scan *scan);

/* --- number.c */

/* Packs a number. */
bool spokei_json_number(struct spokei_json_scan *scan);

/* Reads an integer of 64 bits, after white space. Returns 0, SPOKE_ESYNTAX or SPOKE_ERANGE. */
int spokei_json_integer(struct spokei_json_scan *scan, int64_t *ret);

#endif
