/* SPDX-License-Identifier: Apache-2.0 */
/* The decimal digits of doubles. Pure. */
#ifndef SPOKEI_CORE_JSON_DIGITS_H
#define SPOKEI_CORE_JSON_DIGITS_H

#include <stdint.h>

#define SPOKEI_DIGITS_MAX 20u

/* Writes digits of a positive, finite number, so that the integer that they form, times ten to the
 * power of *ret_exponent, is the double nearest to `number`: reading it gives the number again.
 * Returns their number, at most 17. */
unsigned spokei_digits_of(double number, char digits[SPOKEI_DIGITS_MAX], int *ret_exponent);

#endif
