/* SPDX-License-Identifier: Apache-2.0 */
/* The table of targets and their results; see targets.h. */
#include "targets.h"

#include "contest.h"
#include "report.h"

#include <string.h>

/* Targets are shares of what an RPC needs at least. spoke polls as the machine allows, so it is
 * compared with a thin RPC that polls; spoke without polls with one that sleeps. */
#define LIMIT REPORT_THIN_SPIN

/* With a base: at least `limit` times the base's calls/s; for any other column, at most 1 / `limit`
 * of the base. Without a base: at least `limit` calls/s; for other columns at most `limit`. */
struct target {
	const char *pattern;
	const char *peer; /* NULL: spoke */
	const char *base;
	const char *base_pattern; /* NULL: the same */
	enum report_column column;
	double limit;
};

static const struct target targets[] = {
	{ "32B-1x1", NULL, "grpc", NULL, REPORT_CALLS_PER_S, 2.2 },
	{ "32B-1x1", NULL, LIMIT, NULL, REPORT_CALLS_PER_S, 0.9 },
	{ "32B-1x1", REPORT_SPOKE_SLEEP, REPORT_THIN, NULL, REPORT_CALLS_PER_S, 0.95 },
	{ "32B-1x1", REPORT_SPOKE_SPIN, NULL, NULL, REPORT_P50_US, 12 },
	{ "32B-1x64", NULL, "grpc", NULL, REPORT_CALLS_PER_S, 12 },
	{ "32B-1x64", NULL, "zeromq", NULL, REPORT_CALLS_PER_S, 1.5 },
	{ "32B-1x64", NULL, LIMIT, NULL, REPORT_CALLS_PER_S, 0.88 },
	{ "32B-1x64", NULL, "grpc", NULL, REPORT_CPU_US, 25 },
	{ "32B-1x64", NULL, "zeromq", NULL, REPORT_CPU_US, 2 },
	{ "32B-1x64", REPORT_SPOKE_SLEEP, NULL, NULL, REPORT_SERVER_CALLS, 0.15 },
	{ "32B-1x64", REPORT_SPOKE_SLEEP, NULL, NULL, REPORT_CLIENT_CALLS, 0.15 },
	{ "32B-1x256", NULL, "grpc", NULL, REPORT_CALLS_PER_S, 38 },
	{ "32B-1x256", NULL, "zeromq", NULL, REPORT_CALLS_PER_S, 1.7 },
	{ "32B-1x256", NULL, LIMIT, NULL, REPORT_CALLS_PER_S, 0.85 },
	{ "32B-64x1", NULL, "grpc", NULL, REPORT_CALLS_PER_S, 4.5 },
	{ "32B-64x1", NULL, LIMIT, NULL, REPORT_CALLS_PER_S, 0.95 },
	{ "unix-32B-64x1", NULL, REPORT_SPOKE, "32B-64x1", REPORT_CALLS_PER_S, 2 },
	{ "32B-64x4", NULL, "grpc", NULL, REPORT_CALLS_PER_S, 16 },
	{ "32B-64x4", NULL, LIMIT, NULL, REPORT_CALLS_PER_S, 0.95 },
	{ "32B-10x10", NULL, LIMIT, NULL, REPORT_CALLS_PER_S, 0.9 },
	{ "32B-10x10", NULL, LIMIT, NULL, REPORT_CPU_US, 1 / 1.15 },
	{ "32B-100x10", NULL, LIMIT, NULL, REPORT_CALLS_PER_S, 0.9 },
	{ "32B-100x10", NULL, LIMIT, NULL, REPORT_CPU_US, 1 / 1.15 },
	{ "32B-10x100", NULL, LIMIT, NULL, REPORT_CALLS_PER_S, 0.8 },
	{ "32B-1000x1", NULL, LIMIT, NULL, REPORT_CALLS_PER_S, 0.85 },
	{ "unix-32B-1000x1", NULL, LIMIT, NULL, REPORT_CALLS_PER_S, 0.85 },
	{ "64KiB-1x1", NULL, "grpc", NULL, REPORT_CALLS_PER_S, 2 },
	{ "64KiB-1x1", NULL, LIMIT, NULL, REPORT_CALLS_PER_S, 0.85 },
	{ "cubic-64KiB-1x64", NULL, LIMIT, NULL, REPORT_CALLS_PER_S, 0.9 },
	{ "unix-64KiB-1x64", NULL, LIMIT, NULL, REPORT_CALLS_PER_S, 0.9 },
};

static const char *const column_names[REPORT_COLUMNS] = {
	[REPORT_CALLS_PER_S] = "calls/s",
	[REPORT_P50_US] = "p50 us",
	[REPORT_P99_US] = "p99 us",
	[REPORT_CPU_US] = "CPU per call",
	[REPORT_SERVER_CPU_US] = "server's CPU per call",
	[REPORT_SERVER_CALLS] = "server's system calls",
	[REPORT_CLIENT_CALLS] = "client's system calls",
	[REPORT_FOREIGN] = "CPUs used by other processes",
};

/* Returns whether all values of the target were measured. */
static bool measure(const struct target *target, const struct report_row *row,
		    const struct report_row *base, double *ret_value)
{
	if (row == NULL || row->failed > 0)
		return false;
	if (target->base == NULL)
		*ret_value = report_median(row, target->column);
	else if (target->column == REPORT_CALLS_PER_S)
		return report_ratio(row, base, target->column, ret_value);
	else
		return report_ratio(base, row, target->column, ret_value);
	return true;
}

static const char *judge(const struct target *target, double value)
{
	bool at_most = target->base == NULL && target->column != REPORT_CALLS_PER_S;

	return (at_most ? value <= target->limit : value >= target->limit) ? "reached" : "SHORT";
}

/* Prints the comparison as text. */
static void name_target(const struct target *target, char *text, size_t size)
{
	bool is_more = target->column == REPORT_CALLS_PER_S;

	if (target->base == NULL)
		(void)snprintf(text, size, is_more ? "at least %g" : "at most %g", target->limit);
	else if (!is_more && target->limit < 1)
		(void)snprintf(text, size, "at most %g x %s", 1 / target->limit, target->base);
	else
		(void)snprintf(text, size, "%s%g x %s%s%s", is_more ? "" : "1 / ", target->limit,
			       target->base, target->base_pattern == NULL ? "" : " in ",
			       target->base_pattern == NULL ? "" : target->base_pattern);
}

/* Returns the row that the target compares with, or NULL. */
static const struct report_row *find_base(const struct target *target)
{
	const char *pattern = target->base_pattern == NULL ? target->pattern : target->base_pattern;

	if (target->base == NULL)
		return NULL;
	return report_find(pattern, target->base);
}

static void print_target(FILE *out, const struct target *target)
{
	const char *name = target->peer == NULL ? REPORT_SPOKE : target->peer;
	const struct report_row *row = report_find(target->pattern, name);
	const struct report_row *base = find_base(target);
	const char *verdict;
	char goal[64];
	double value;

	name_target(target, goal, sizeof(goal));
	(void)fprintf(out, "| %-13s | %-10s | %-21s | %-26s | ", target->pattern, name,
		      column_names[target->column], goal);
	if (!measure(target, row, base, &value)) {
		bool failed = (row != NULL && row->failed > 0) ||
			      (base != NULL && base->failed > 0);

		(void)fprintf(out, "%8s | %s |\n", "", failed ? "FAILED" : "not measured");
		return;
	}
	verdict = judge(target, value);
	if (target->column == REPORT_CPU_US && target->base != NULL && target->limit < 1)
		value = 1 / value; /* below 1 times the base it is shown as it is meant */
	(void)fprintf(out, target->base == NULL ? "%8.3f |" : "%6.2f x |", value);
	(void)fprintf(out, " %s%s |\n", verdict,
		      row->disturbed + (base == NULL ? 0 : base->disturbed) > 0 ? ", disturbed"
										: "");
}

void targets_print(FILE *out)
{
	(void)fprintf(out, "| %-13s | %-10s | %-21s | %-26s | measured | verdict |\n", "pattern",
		      "peer", "what", "target");
	(void)fputs("|---|---|---|---|---:|---|\n", out);
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		if (targets[i].base == NULL || contest_has(targets[i].base))
			print_target(out, &targets[i]);
}
