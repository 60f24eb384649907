/* SPDX-License-Identifier: Apache-2.0 */
/* What a result has to name so that others can judge it. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <stdio.h>

/* A line in Markdown: processor, cores, kernel, system, compiler. */
void machine_print(FILE *out);

#endif
