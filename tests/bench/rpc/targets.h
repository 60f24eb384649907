/* SPDX-License-Identifier: Apache-2.0 */
/* What spoke has set itself to reach: one table for all contests. */
#ifndef BENCH_TARGETS_H
#define BENCH_TARGETS_H

#include <stdio.h>

/* Prints a table in Markdown: for each target, what was measured and whether it was reached.
 * Those in which spoke is compared with somebody who is not in the contest are left out. */
void targets_print(FILE *out);

/* Says on stdout, as a comment, when the raw echo of a pattern is too slow to be compared with. */
void targets_check_raw(const char *pattern);

#endif
