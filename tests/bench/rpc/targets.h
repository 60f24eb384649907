/* SPDX-License-Identifier: Apache-2.0 */
/* The targets of spoke: one table for all contests. */
#ifndef BENCH_TARGETS_H
#define BENCH_TARGETS_H

#include <stdio.h>

/* Prints a table in Markdown: each target, the measured value and the result. Targets whose base is
 * not in the contest are left out. */
void targets_print(FILE *out);

/* Prints a comment to stdout if the raw echo of a pattern is too slow for comparisons. */
void targets_check_raw(const char *pattern);

#endif
