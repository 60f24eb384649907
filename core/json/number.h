/* SPDX-License-Identifier: Apache-2.0 */
/* The conversion between numbers and decimals. Pure. */
#ifndef SPOKEI_CORE_JSON_NUMBER_H
#define SPOKEI_CORE_JSON_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPOKEI_POWER_MIN (-342)
#define SPOKEI_POWER_MAX 324

/*
 * A power of ten, 10^q, to 128 bits, with the highest bit set: it is at least g x 2^(e - 127) and
 * less than (g + 1) x 2^(e - 127), where g is the number in both words, and e is the logarithm of
 * 10^q to base 2, rounded down.
 */
struct spokei_power {
	uint64_t high;
	uint64_t low;
};

/* Returns a power of ten from SPOKEI_POWER_MIN to SPOKEI_POWER_MAX. */
struct spokei_power spokei_power_of_ten(int power);

/* Returns the exponent of two, e, of such a power. */
static inline int spokei_power_log2(int power)
{
	return (power * 217706) >> 16;
}

/* A number, as an integer and a power of ten. */
struct spokei_decimal {
	uint64_t integer;
	unsigned digits; /* as read, with leading zeros; if many, the integer has overflowed */
	int exponent;
};

#define SPOKEI_DECIMAL_SAFE 19u /* digits that fit into 64 bits */

/* Returns the decimal of the fewest digits that becomes this finite number, above 0, again. Of
 * several it is the nearest; it does not end in 0. `digits` is not set. */
struct spokei_decimal spokei_decimal_of(double number);

/* Converts a decimal that was read from this text, without its sign. Returns false if the text is
 * longer than 511 bytes; infinity if the number is beyond the range. */
bool spokei_decimal_to_double(const struct spokei_decimal *decimal, const char *text, size_t len,
			      double *ret);

#define SPOKEI_JSON_INTEGER 20u /* digits of an integer */

/* Writes the digits of a number so that they end before `end`. Returns the first one. */
char *spokei_json_digits(uint64_t number, char *end);

#define SPOKEI_JSON_NUMBER 40u /* bytes of a printed double */

/* Prints a finite number with a point or an exponent, so that reading it gives the same number
 * again. Returns the length; there is no NUL. */
size_t spokei_json_print_double(double number, char text[SPOKEI_JSON_NUMBER]);

#endif
