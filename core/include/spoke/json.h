/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts values to JSON (strict RFC 8259) and back. Integers are exact from -2^63 to 2^64 - 1;
 * larger integers are rejected. A number with a point or an exponent is a double. A double is
 * printed with a point or an exponent, and with few digits that give the same double again.
 * Values without a JSON form are objects with one key, in both directions:
 *
 *     {"$bin": "base64"}              bytes
 *     {"$str": "base64"}              a text that is not UTF-8
 *     {"$ext": [5, "base64"]}         an extension and its type
 *     {"$float": "nan"}               "nan", "inf", "-inf"
 *     {"$map": [[key, value], ...]}   a map that has keys other than strings, or a single key
 *                                     that begins with a dollar
 *     {"$date": "2024-05-01T12:00:00.123Z"}   a timestamp, e.g. a Java date
 *
 * Two more are only read: {"$long": 5} is an integer in eight bytes, which hessian2 sends as a
 * long, and {"$typed": ["java.util.HashSet", [1, 2]]} an array or map with the name of a Java type.
 * They print as a number, an array or an object. An object of a Java class is an object with the
 * name of the class under the last key, "class". A reference prints as the value it refers to.
 *
 * Otherwise, reading a printed value gives the same value, packed in the fewest bytes; a 4-byte
 * float becomes an 8-byte float. Keys of an object keep their order, and differ.
 *
 * Any thread.
 */
#ifndef SPOKE_JSON_H
#define SPOKE_JSON_H

#include <spoke/value.h>

SPOKE_BEGIN_DECLS

struct spoke_json_error {
	size_t at;        /* offset in bytes */
	const char *what; /* error text; static */
};

/*
 * Packs the JSON values in `text`, separated by white space, and overwrites `text`. The limits of
 * the builder apply. Returns 0 and the number of values; or SPOKE_ESYNTAX, SPOKE_EDEPTH,
 * SPOKE_ERANGE, or an error of the builder, and *ret_error. The keys of open objects are compared;
 * a builder in memory of the caller has room for 32 of them.
 */
SPOKE_API SPOKE_MUST_USE int spoke_json_read(char *text, size_t len, struct spoke_builder *builder,
					     size_t *ret_count, struct spoke_json_error *ret_error);

enum spoke_json_form {
	SPOKE_JSON_LINE, /* one line without spaces */
	SPOKE_JSON_TREE, /* one line per value, indented by two spaces per level */
};

/* Receives a piece of printed text. */
typedef void (*spoke_json_put_fn)(void *arg, const void *bytes, size_t len);

/* Prints a value without a newline. { 0 } is null. */
SPOKE_API void spoke_json_print(struct spoke_value value, enum spoke_json_form form,
				spoke_json_put_fn put, void *arg);

/* Prints bytes as a JSON string, with U+FFFD for invalid UTF-8. For texts of peers and names. */
SPOKE_API void spoke_json_print_text(const void *bytes, size_t len, spoke_json_put_fn put,
				     void *arg);

SPOKE_END_DECLS

#endif
