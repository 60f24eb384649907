/* SPDX-License-Identifier: Apache-2.0 */
/* Prints all results as a chapter in Markdown, which is also legible on a terminal. */
#ifndef BENCH_RESULTS_H
#define BENCH_RESULTS_H

#include <stdio.h>

void results_print(FILE *out);

#endif
