/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans the tokens of JSON: white space, strings, numbers, words. The functions for frequent tokens
 * get the place of a token and return the end of it; NULL is an error. The place of an error, and
 * the place for the other functions, is `at`.
 */
#ifndef SPOKEI_CORE_JSON_SCAN_H
#define SPOKEI_CORE_JSON_SCAN_H

#include "core/json/plain.h"
#include "timer/base.h"

#include <spoke/value.h>

/* The text being read. */
struct spokei_json_scan {
	char *text;
	char *at;
	char *end;
	struct spoke_builder *builder; /* receives the values */
	int error;                     /* the first one; `what` describes it */
	const char *what;
};

/* Records the first error; returns false. */
bool spokei_json_fail(struct spokei_json_scan *scan, int error, const char *what);

/* Does the same at this place, and returns NULL. */
char *spokei_json_fail_at(struct spokei_json_scan *scan, char *at, int error, const char *what);

static inline bool spokei_json_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Returns the next byte; NUL at the end. */
static inline char spokei_json_here(const struct spokei_json_scan *scan)
{
	return scan->at < scan->end ? *scan->at : '\0';
}

/* Returns the next byte that is not white space, or the end. */
static inline char *spokei_json_skip(char *at, const char *end)
{
	while (at < end && SPOKEI_UNLIKELY((unsigned char)*at <= ' ') && spokei_json_is_space(*at))
		at++;
	return at;
}

/* Skips white space. */
static inline void spokei_json_space(struct spokei_json_scan *scan)
{
	scan->at = spokei_json_skip(scan->at, scan->end);
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
	if (spokei_json_peek(scan) != c || scan->at == scan->end)
		return false;
	scan->at++;
	return true;
}

/* Skips these bytes, if they are next. */
bool spokei_json_pass_word(struct spokei_json_scan *scan, const char *word);

/* Decodes the rest of a string in place. Returns false on an error, like the functions below. */
bool spokei_json_string(struct spokei_json_scan *scan, char **ret_text, size_t *ret_len);

/* Decodes the string after the quote at `start` in place, whose beginning up to `at` is plain. */
char *spokei_json_decode(struct spokei_json_scan *scan, char *start, char *at, char **ret_text,
			 size_t *ret_len);

/* Does the same after the quote; a plain string needs no decoding. */
static inline char *spokei_json_take_string(struct spokei_json_scan *scan, char *at,
					    char **ret_text, size_t *ret_len)
{
	char *start = at;

	at += spokei_json_plain(at, (size_t)(scan->end - at));
	if (SPOKEI_UNLIKELY(at == scan->end || *at != '"'))
		return spokei_json_decode(scan, start, at, ret_text, ret_len);
	*ret_text = start;
	*ret_len = (size_t)(at - start);
	return at + 1;
}

/* Packs null, true or false. */
char *spokei_json_take_word(struct spokei_json_scan *scan, char *at);

/* Packs a number. */
char *spokei_json_take_number(struct spokei_json_scan *scan, char *at);

/* Reads an integer of 64 bits, after white space. Returns 0, SPOKE_ESYNTAX or SPOKE_ERANGE. */
int spokei_json_integer(struct spokei_json_scan *scan, int64_t *ret);

#endif
