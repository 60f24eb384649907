/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values as JSON (RFC 8259, strictly) and back. Integers are exact from -2^63 to 2^64 - 1, and an
 * integer beyond is refused; what has a point or an exponent is a double, and a double is printed
 * with one of them, in as few digits as give the same double again. What JSON has no words for is
 * an object with one key, in both directions:
 *
 *     {"$bin": "base64"}              bytes
 *     {"$str": "base64"}              a text that is not UTF-8
 *     {"$ext": [5, "base64"]}         an extension and its type
 *     {"$float": "nan"}               "nan", "inf", "-inf"
 *     {"$map": [[key, value], ...]}   a map with keys that are no texts, or whose only key begins
 *                                     with a dollar
 *
 * Printing and reading gives the same value again, packed in the fewest bytes; a float of 4 bytes
 * becomes one of 8. Keys of an object stay in their order, and may be there twice.
 */
#ifndef COMMAND_JSON_H
#define COMMAND_JSON_H

#include <spoke/value.h>

#include <stdio.h>

struct json_error {
	size_t at;        /* bytes before the place */
	const char *what; /* a sentence; lives for ever */
};

/*
 * Packs the values of a text, which has any number of them with white space between, and is written
 * over. text[len] has to be there and NUL. Returns 0 and how many there are; or SPOKE_ESYNTAX,
 * SPOKE_EDEPTH, SPOKE_ERANGE, or what the builder says, and *error.
 */
int json_read(char *text, size_t len, struct spoke_builder *builder, size_t *ret_count,
	      struct json_error *error);

enum json_form {
	JSON_LINE, /* without any space */
	JSON_TREE, /* a line for each value, two spaces further for each level */
};

/* Prints a value, without a newline behind it. { 0 } is null. */
void json_print(struct spoke_value value, enum json_form form, FILE *out);

/* Prints bytes as a JSON string: those that are no UTF-8 as U+FFFD. For texts of peers and names.
 */
void json_print_text(const void *bytes, size_t len, FILE *out);

#endif
