/* SPDX-License-Identifier: Apache-2.0 */
/* The description of the machine that a result requires. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <stdio.h>

/* Prints a line in Markdown: processor, cores, kernel, system, compiler. */
void machine_print(FILE *out);

#endif
