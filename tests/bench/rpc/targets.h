/* SPDX-License-Identifier: Apache-2.0 */
/* What spoke has set itself to reach. */
#ifndef BENCH_TARGETS_H
#define BENCH_TARGETS_H

#include "report.h"

#include <stddef.h>
#include <stdio.h>

/*
 * With a base: calls/s, at least `limit` times the base's; of any other column, at least `limit`
 * times less than the base. Without: at most `limit`, of calls/s at least.
 */
struct target {
	const char *pattern;
	const char *peer; /* NULL: spoke */
	const char *base;
	const char *base_pattern; /* NULL: the same */
	enum report_column column;
	double limit;
};

/* Prints a table in Markdown: for each target, what was measured and whether it was reached. */
void targets_print(FILE *out, const struct target *targets, size_t count);

/* Says on stdout, as a comment, when the raw echo of a pattern is too slow to be compared with. */
void targets_check_raw(const char *pattern);

#endif
