/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts values to JSON (strict RFC 8259) and back. Integers are exact from -2^63 to 2^64 - 1;
 * larger integers are rejected. A number with a point or an exponent is a double. A double is
 * printed with a point or an exponent, and with the fewest digits that give the same double again.
 * Values without a JSON form are objects with one key, a marker, in both directions:
 *
 *     {"$bin": "base64"}              bytes
 *     {"$str": "base64"}              a text that is not UTF-8
 *     {"$ext": [5, "base64"]}         an extension and its type
 *     {"$float": "nan"}               "nan", "inf", "-inf"
 *     {"$map": [[key, value], ...]}   a map without a form as an object, see below
 *     {"$date": "2024-05-01T12:00:00.123Z"}   a timestamp, e.g. a Java date
 *
 * $map is for a map that has a key other than a text in UTF-8, or a key twice, or a marker as its
 * first key, or a single key that begins with a dollar.
 *
 * Two more are only read: {"$long": 5} is an integer in eight bytes, which hessian2 sends as a
 * long, and {"$typed": ["java.util.HashSet", [1, 2]]} an array or map with the name of a Java type.
 * They print as a number, an array or an object. An object of a Java class is an object with the
 * name of the class under the last key, "class". A reference prints as the value it refers to.
 *
 * Beside other keys, $bin, $str, $float and $date are ordinary keys, while the other markers are an
 * error; so is a marker with base64 or a date that is invalid. A marker with a value of another
 * type, e.g. {"$bin": 5}, is an ordinary key.
 *
 * Otherwise, reading a printed value gives the same value, packed in the fewest bytes; a 4-byte
 * float becomes an 8-byte float. Keys of an object and of a $map keep their order, and differ. A
 * map with a repeated key, which only a peer can have made, prints as $map with up to 64 pairs, and
 * as an object with more; reading refuses both. 1 and {"$long": 1} are two keys. -0 is the integer
 * 0, and -0.0 the double. A number that is too small for a double is read as 0.0, one that is too
 * large is an error.
 *
 * Any thread.
 */
#ifndef SPOKE_JSON_H
#define SPOKE_JSON_H

#include <spoke/value.h>

SPOKE_BEGIN_DECLS

/* The place and the text of an error. */
struct spoke_json_error {
	size_t at;        /* offset in bytes */
	const char *what; /* static */
};

/*
 * Packs the JSON values in `text`, separated by white space, and overwrites `text`. The limits of
 * the builder apply, and no memory but the builder's is needed. Returns 0 and the number of values;
 * or SPOKE_ESYNTAX, SPOKE_EDEPTH, SPOKE_ERANGE, or an error of the builder, and *ret_error. If an
 * object of more than 17 keys has a key twice, the place of the error is the end of the object. For
 * its n keys that takes at most n log n comparisons.
 */
SPOKE_API SPOKE_MUST_USE int spoke_json_read(char *text, size_t len, struct spoke_builder *builder,
					     size_t *ret_count, struct spoke_json_error *ret_error);

/* The forms of printed text. */
enum spoke_json_form {
	SPOKE_JSON_LINE, /* one line without spaces */
	SPOKE_JSON_TREE, /* one line per value, indented by two spaces per level */
};

/* Receives a piece of printed text. */
typedef void (*spoke_json_put_fn)(void *arg, const void *bytes, size_t len);

/*
 * Prints a value without a newline. { 0 } is null. The form of a map depends on its keys, so values
 * between them are skipped once for each map around them, but in all for at most 64 KiB and 8 times
 * the bytes of the value. Maps beyond, in large values of very many levels, print as "$map".
 */
SPOKE_API void spoke_json_print(struct spoke_value value, enum spoke_json_form form,
				spoke_json_put_fn put, void *arg);

/* Prints bytes as a JSON string, with U+FFFD for invalid UTF-8. For texts of peers and names. */
SPOKE_API void spoke_json_print_text(const void *bytes, size_t len, spoke_json_put_fn put,
				     void *arg);

SPOKE_END_DECLS

#endif
