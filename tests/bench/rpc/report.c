/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of samples and their medians; see report.h. */
#include "report.h"

#include "host.h"

#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 512

static struct report_row rows[ROWS_MAX];
static uint32_t count;

static struct report_row *find(const char *pattern, const char *peer)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(rows[i].pattern, pattern) == 0 && strcmp(rows[i].peer, peer) == 0)
			return &rows[i];
	return NULL;
}

const struct report_row *report_find(const char *pattern, const char *peer)
{
	return find(pattern, peer);
}

static uint64_t sum(const struct host_calls *calls)
{
	return calls->reads + calls->writes + calls->waits + calls->others;
}

const struct report_row *report_at(uint32_t index)
{
	return index < count ? &rows[index] : NULL;
}

size_t report_patterns(const char **ret_names, size_t max)
{
	size_t number = 0;

	for (uint32_t i = 0; i < count; i++) {
		size_t at = 0;

		while (at < number && strcmp(ret_names[at], rows[i].pattern) != 0)
			at++;
		if (at == number && number < max)
			ret_names[number++] = rows[i].pattern;
	}
	return number;
}

const struct report_row *report_base(const struct report_row *row)
{
	static const char *const peers[] = { REPORT_SPOKE, REPORT_SPOKE_SPIN, REPORT_THIN_SPIN };
	const struct report_row *base = NULL;

	for (size_t i = 0; base == NULL && i < sizeof(peers) / sizeof(peers[0]); i++)
		base = find(row->pattern, peers[i]);
	return base;
}

static struct report_row *obtain(const char *pattern, const char *peer)
{
	struct report_row *row = find(pattern, peer);

	if (row == NULL) {
		if (count == ROWS_MAX)
			host_die("more rows than the report has room for");
		row = &rows[count++];
		row->pattern = pattern;
		row->peer = peer;
	}
	return row;
}

void report_fail(const char *pattern, const char *peer)
{
	obtain(pattern, peer)->failed++;
}

void report_add(const char *pattern, const char *peer, const struct rpc_report *report)
{
	struct report_row *row = obtain(pattern, peer);
	double calls = (double)report->calls;
	double cpu_us = (double)(report->server_cpu_ns + report->client_cpu_ns) / 1e3;
	const double samples[REPORT_COLUMNS] = {
		[REPORT_CALLS_PER_S] = calls * 1e9 / (double)report->elapsed_ns,
		[REPORT_P50_US] = (double)report->p50_ns / 1e3,
		[REPORT_P99_US] = (double)report->p99_ns / 1e3,
		[REPORT_CPU_US] = cpu_us / calls,
		[REPORT_SERVER_CPU_US] = (double)report->server_cpu_ns / 1e3 / calls,
		[REPORT_SERVER_CALLS] = (double)sum(&report->server) / calls,
		[REPORT_CLIENT_CALLS] = (double)sum(&report->client) / calls,
		[REPORT_FOREIGN] = report->foreign,
	};

	if (row->reps == REPORT_REPS_MAX)
		host_die("more repetitions than the report has room for");
	row->is_server_alone = report->is_server_alone;
	for (unsigned i = 0; i < REPORT_COLUMNS; i++)
		row->samples[i][row->reps] = samples[i];
	row->disturbed += report->foreign > REPORT_FOREIGN_MAX ? 1 : 0;
	row->reps++;
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

double report_median(const struct report_row *row, enum report_column column)
{
	return median(row->samples[column], row->reps);
}

bool report_ratio(const struct report_row *row, const struct report_row *base,
		  enum report_column column, double *ret_ratio)
{
	double ratios[REPORT_REPS_MAX];

	if (row == NULL || base == NULL || row->reps != base->reps || row->reps == 0 ||
	    row->failed + base->failed > 0)
		return false;
	for (uint32_t i = 0; i < row->reps; i++) {
		/* After a short measurement the kernel may not have updated the CPU time. */
		if (base->samples[column][i] <= 0)
			return false;
		ratios[i] = row->samples[column][i] / base->samples[column][i];
	}
	*ret_ratio = median(ratios, row->reps);
	return true;
}

void report_print_header(void)
{
	(void)puts("pattern\tpeer\tcalls_per_s\tp50_us\tp99_us\tcpu_us_per_call\tratio");
	(void)fflush(stdout);
}

static void print_row(const struct report_row *row)
{
	double ratio;

	if (row->failed > 0) {
		(void)printf("# %s %s: failed in %u of %u repetitions\n", row->pattern, row->peer,
			     row->failed, row->failed + row->reps);
	}
	if (row->reps == 0)
		return;
	(void)printf("%s\t%s\t%.0f\t%.1f\t%.1f\t%.3f\t", row->pattern, row->peer,
		     report_median(row, REPORT_CALLS_PER_S), report_median(row, REPORT_P50_US),
		     report_median(row, REPORT_P99_US), report_median(row, REPORT_CPU_US));
	if (report_ratio(row, report_base(row), REPORT_CALLS_PER_S, &ratio))
		(void)printf("%.3f\n", ratio);
	else
		(void)puts("-");
	if (row->disturbed > 0) {
		(void)printf("# %s %s: others used more than %.0f %% of the CPUs in %u of %u"
			     " repetitions\n",
			     row->pattern, row->peer, REPORT_FOREIGN_MAX * 100, row->disturbed,
			     row->reps);
	}
	(void)fflush(stdout);
}

void report_print(const char *pattern)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct report_row *row = &rows[i];

		if (strcmp(row->pattern, pattern) != 0)
			continue;
		print_row(row);
		if (row->reps == 0)
			continue;
		(void)fprintf(stderr, "  %-14s system calls per call: server ", row->peer);
		if (row->is_server_alone)
			(void)fputs("not seen", stderr);
		else
			(void)fprintf(stderr, "%.4f", report_median(row, REPORT_SERVER_CALLS));
		(void)fprintf(stderr, ", client %.4f; others used %.1f %%\n",
			      report_median(row, REPORT_CLIENT_CALLS),
			      report_median(row, REPORT_FOREIGN) * 100);
	}
}

void report_print_failures(FILE *out)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct report_row *row = &rows[i];

		if (row->failed == 0)
			continue;
		(void)fprintf(out,
			      "- FAILED: %s in %s, %u of %u repetitions: a call failed or a process"
			      " died, so it is compared with nothing\n",
			      row->peer, row->pattern, row->failed, row->failed + row->reps);
	}
}
