/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the results, one row per pattern and peer, and prints them. The value of a row is the
 * median of its repetitions. A ratio is the median of the ratios within each repetition, because a
 * disturbance of the machine affects neighbouring measurements alike.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "peer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define REPORT_REPS_MAX 16

enum report_column {
	REPORT_CALLS_PER_S,
	REPORT_P50_US,
	REPORT_P99_US,
	REPORT_CPU_US, /* per call, of both sides */
	REPORT_SERVER_CPU_US,
	REPORT_SERVER_CALLS, /* system calls per call */
	REPORT_CLIENT_CALLS,
	REPORT_FOREIGN, /* share of all CPUs that other processes used */
	REPORT_COLUMNS,
};

struct report_row {
	const char *pattern; /* its name; compared by address */
	const char *peer;
	bool is_server_alone;
	uint32_t reps;      /* number of measured ones; 0: all failed */
	uint32_t failed;    /* repetitions without results */
	uint32_t disturbed; /* repetitions in which other processes used too much of the CPUs */
	double samples[REPORT_COLUMNS][REPORT_REPS_MAX];
};

#define REPORT_FOREIGN_MAX 0.05

/* Adds one repetition to the row, and creates the row if it is missing. */
void report_add(const char *pattern, const char *peer, const struct rpc_report *report);

/* Records a failed repetition. The values of its row remain, but are compared with nothing. */
void report_fail(const char *pattern, const char *peer);

/* Returns the row, or NULL. */
const struct report_row *report_find(const char *pattern, const char *peer);

/* Returns the median of a row with repetitions. */
double report_median(const struct report_row *row, enum report_column column);

/* Returns rows in the order of their first repetitions; NULL after the last. */
const struct report_row *report_at(uint32_t index);

/* Writes the names of the measured patterns in the order of their rows, `max` at most; returns
 * their number. */
size_t report_patterns(const char **ret_names, size_t max);

/* Returns the row for comparison: spoke's in the same pattern, or the thin one's; or NULL. */
const struct report_row *report_base(const struct report_row *row);

/* Stores the median of row / base within each repetition. Returns false if there is none, or one of
 * both has a failed repetition. */
bool report_ratio(const struct report_row *row, const struct report_row *base,
		  enum report_column column, double *ret_ratio);

/* Print the header, and all rows of a pattern: TSV to stdout; details to stderr. */
void report_print_header(void);
void report_print(const char *pattern);

/* Prints the failures as a list in Markdown, one item per row; nothing if there are none. */
void report_print_failures(FILE *out);

#define REPORT_SPOKE "spoke"
#define REPORT_SPOKE_SPIN "spoke-spin"
#define REPORT_SPOKE_SLEEP "spoke-sleep"
#define REPORT_THIN "thin"
#define REPORT_THIN_SPIN "thin-spin"

#endif
