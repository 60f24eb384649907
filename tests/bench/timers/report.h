/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the results, one row per workload, size and peer, and prints them. The value of a row is
 * the median of its repetitions; its ratio the median of the ratios within each repetition, because
 * a disturbance of the machine affects neighbouring measurements alike.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#define REPORT_REPS_MAX 16

struct report_key {
	const char *workload;
	uint64_t n;
	const char *peer;
	const char *unit;
};

struct report_row {
	struct report_key key;
	uint32_t reps;
	double samples[REPORT_REPS_MAX];
};

/* Adds one repetition to the row, and creates the row if it is missing. */
void report_add(const struct report_key *key, double sample);

/* Returns the row, or NULL. */
const struct report_row *report_find(const char *workload, uint64_t n, const char *peer);

double report_median(const struct report_row *row);

/* Stores the median of row / base. Returns false if there is none: no base, or a base of 0. */
bool report_ratio(const struct report_row *row, const struct report_row *base, double *ret_ratio);

/* Print the header, and all rows of a workload and size as TSV to stdout; ratio to peer `base`. */
void report_print_header(void);
void report_print(const char *workload, uint64_t n, const char *base);

#endif
