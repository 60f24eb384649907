/* SPDX-License-Identifier: Apache-2.0 */
/* The decimal digits of doubles. Pure. */
#ifndef SPOKEI_CORE_JSON_DIGITS_H
#define SPOKEI_CORE_JSON_DIGITS_H

#include <stdint.h>

/* Returns an integer of at most 17 digits for a positive, finite number: the double nearest to it,
 * times ten to the power of *ret_exponent, is `number`. No decimal of fewer digits has this
 * property, and none of as many digits is nearer. The last digit is not 0. */
uint64_t spokei_decimal_of(double number, int *ret_exponent);

#endif
