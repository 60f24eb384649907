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
	REPORT_FOREIGN, /* share of all CPUs that others used */
	REPORT_COLUMNS,
};

struct report_row {
	const char *pattern; /* its name; kept by address */
	const char *peer;
	bool spins;
	bool is_server_alone;
	uint32_t reps;      /* that were measured; 0: all failed */
	uint32_t failed;    /* repetitions that have no figures */
	uint32_t disturbed; /* repetitions in which others used too much of the CPUs */
	double samples[REPORT_COLUMNS][REPORT_REPS_MAX];
};

#define REPORT_FOREIGN_MAX 0.05

/* Adds one repetition to the row, which is made when it is not there yet. */
void report_add(const char *pattern, const char *peer, const struct rpc_report *report);

/* Notes that one failed. The figures of its row remain, but are compared with nothing. */
void report_fail(const char *pattern, const char *peer);

/* The row, or NULL. */
const struct report_row *report_find(const char *pattern, const char *peer);

/* Of a row with repetitions. */
double report_median(const struct report_row *row, enum report_column column);

/* Rows in the order in which their first repetitions were added; NULL after the last. */
const struct report_row *report_at(uint32_t index);

/* The row that another is compared with: spoke's in the same pattern, which spins when it does; of
 * raw peers where spoke is not measured; or NULL. */
const struct report_row *report_base(const struct report_row *row);

/* Median of row / base within each repetition. False when there is none, also because one of them
 * failed. */
bool report_ratio(const struct report_row *row, const struct report_row *base,
		  enum report_column column, double *ret_ratio);

/* The header, and all rows of a pattern: TSV on stdout; the rest on stderr. */
void report_print_header(void);
void report_print(const char *pattern);

/* What failed, an item of a list in Markdown for each row; nothing when nothing did. */
void report_print_failures(FILE *out);

#define REPORT_SPOKE "spoke"
#define REPORT_SPOKE_SPIN "spoke-spin"
#define REPORT_RAW "raw-libev"
#define REPORT_RAW_SPIN "raw-epoll-spin"

#endif
