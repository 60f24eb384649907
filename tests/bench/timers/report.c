/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of samples and their medians; see report.h. */
#include "report.h"

#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 512

static struct report_row rows[ROWS_MAX];
static uint32_t count;

static struct report_row *find(const char *workload, uint64_t n, const char *peer)
{
	for (uint32_t i = 0; i < count; i++) {
		struct report_row *row = &rows[i];

		if (row->key.n == n && strcmp(row->key.workload, workload) == 0 &&
		    strcmp(row->key.peer, peer) == 0)
			return row;
	}
	return NULL;
}

const struct report_row *report_find(const char *workload, uint64_t n, const char *peer)
{
	return find(workload, n, peer);
}

void report_add(const struct report_key *key, double sample)
{
	struct report_row *row = find(key->workload, key->n, key->peer);

	if (row == NULL) {
		if (count == ROWS_MAX)
			host_die("more rows than the report has room for");
		row = &rows[count++];
		row->key = *key;
	}
	if (row->reps == REPORT_REPS_MAX)
		host_die("more repetitions than the report has room for");
	row->samples[row->reps++] = sample;
}

static int compare(const void *a, const void *b)
{
	double left;
	double right;

	memcpy(&left, a, sizeof(left));
	memcpy(&right, b, sizeof(right));
	return (left > right) - (left < right);
}

static double median(const double *samples, uint32_t reps)
{
	double sorted[REPORT_REPS_MAX];

	memcpy(sorted, samples, reps * sizeof(*samples));
	qsort(sorted, reps, sizeof(*sorted), compare);
	return (sorted[(reps - 1) / 2] + sorted[reps / 2]) / 2;
}

double report_median(const struct report_row *row)
{
	return median(row->samples, row->reps);
}

bool report_ratio(const struct report_row *row, const struct report_row *base, double *ret_ratio)
{
	double ratios[REPORT_REPS_MAX];

	if (row == NULL || base == NULL || row->reps != base->reps)
		return false;
	for (uint32_t i = 0; i < row->reps; i++) {
		if (base->samples[i] <= 0)
			return false;
		ratios[i] = row->samples[i] / base->samples[i];
	}
	*ret_ratio = median(ratios, row->reps);
	return true;
}

void report_print_header(void)
{
	(void)puts("workload\tn\tpeer\tvalue\tunit\tratio");
}

void report_print(const char *workload, uint64_t n, const char *base)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct report_row *row = &rows[i];
		double ratio;

		if (row->key.n != n || strcmp(row->key.workload, workload) != 0)
			continue;
		(void)printf("%s\t%llu\t%s\t%.4g\t%s\t", workload, (unsigned long long)n,
			     row->key.peer, report_median(row), row->key.unit);
		if (report_ratio(row, report_find(workload, n, base), &ratio))
			(void)printf("%.2f\n", ratio);
		else
			(void)puts("-");
	}
	(void)fflush(stdout);
}
