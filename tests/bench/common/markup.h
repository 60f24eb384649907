/* SPDX-License-Identifier: Apache-2.0 */
/* Text and numbers in XML and HTML. */
#ifndef BENCH_MARKUP_H
#define BENCH_MARKUP_H

#include <stddef.h>
#include <stdio.h>

/* Writes the text with its special characters escaped. */
void markup_text(FILE *file, const char *text);

/* Writes a number with three digits and a unit of thousands: "15.4 k", "2.80 M". */
void markup_number(char *text, size_t size, double value);

#endif
