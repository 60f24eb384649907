/* SPDX-License-Identifier: Apache-2.0 */
/* The targets of spoke: one table for all contests. */
#ifndef BENCH_TARGETS_H
#define BENCH_TARGETS_H

#include <stdio.h>

/* Prints a table in Markdown: each target, the measured value and the result. Targets whose base is
 * not in the contest are left out. */
void targets_print(FILE *out);

#endif
