/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps what was measured, one row per pattern and peer, and prints it. What a row says is the
 * median of its repetitions; a ratio the median of the ratios within each repetition, because what
 * disturbs the machine disturbs neighbours alike.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "peer.h"

#include <stdbool.h>
#include <stdint.h>

#define REPORT_REPS_MAX 16

enum report_column {
	REPORT_CALLS_PER_S,
	REPORT_P50_US,
	REPORT_P99_US,
	REPORT_CPU_US, /* per call, of both sides */
	REPORT_SERVER_CPU_US,
	REPORT_SERVER_CALLS, /* system calls per call */
	REPORT_CLIENT_CALLS,
	REPORT_FOREIGN, /* share of all CPUs that others used */
	REPORT_COLUMNS,
};

struct report_row {
	const char *pattern; /* its name; kept by address */
	const char *peer;
	uint32_t reps;
	uint32_t disturbed; /* repetitions in which others used too much of the CPUs */
	double samples[REPORT_COLUMNS][REPORT_REPS_MAX];
};

#define REPORT_FOREIGN_MAX 0.05

/* Adds one repetition to the row, which is made when it is not there yet. */
void report_add(const char *pattern, const char *peer, const struct rpc_report *report);

/* The row, or NULL. */
const struct report_row *report_find(const char *pattern, const char *peer);

double report_median(const struct report_row *row, enum report_column column);

/* Median of row / base in calls/s. False when there is none. */
bool report_ratio(const struct report_row *row, const struct report_row *base, double *ret_ratio);

/* The header, and all rows of a pattern: TSV on stdout, ratio to peer `base`; the rest on stderr.
 */
void report_print_header(void);
void report_print(const char *pattern, const char *base);

#endif
