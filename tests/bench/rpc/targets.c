/* SPDX-License-Identifier: Apache-2.0 */
/* The targets and their verdicts; see targets.h. */
#include "targets.h"

#include "report.h"

#include <stddef.h>
#include <stdio.h>

/* The raw echo counts only when it reaches this much of the same echo without libev. */
#define RAW_OF_TWIN 0.95

/* Calls/s of spoke, at least `limit` times those of `base` in `base_pattern`. */
struct target {
	const char *pattern;
	const char *base_pattern;
	const char *base;
	double limit;
};

static const struct target targets[] = {
	{ "32B-1x1", "32B-1x1", TARGETS_RAW, 0.95 },
	{ "32B-1x64", "32B-1x64", TARGETS_RAW, 0.85 },
	{ "32B-1x256", "32B-1x256", TARGETS_RAW, 0.65 },
	{ "32B-64x1", "32B-64x1", TARGETS_RAW, 0.93 },
	{ "32B-64x4", "32B-64x4", TARGETS_RAW, 0.93 },
	{ "64KiB-1x1", "64KiB-1x1", TARGETS_RAW, 0.90 },
	{ "unix-32B-64x1", "32B-64x1", TARGETS_SPOKE, 2 },
};

/* System calls per call, on each side. */
#define CALLS_PATTERN "32B-1x64"
#define CALLS_MAX 0.06

/* Of the peers that spin. */
#define SPIN_PATTERN "32B-1x1"
#define SPIN_P50_MAX_US 12.0
#define SPIN_OF_RAW 0.90

static bool is_raw_good(const char *pattern, double *ret_ratio)
{
	return report_ratio(report_find(pattern, TARGETS_RAW), report_find(pattern, TARGETS_TWIN),
			    ret_ratio) &&
	       *ret_ratio >= RAW_OF_TWIN;
}

void targets_check_raw(const char *pattern)
{
	double ratio = 0;

	if (is_raw_good(pattern, &ratio) || ratio <= 0)
		return;
	(void)printf("# %s %s: does not count, it reaches only %.1f %% of %s\n", pattern,
		     TARGETS_RAW, ratio * 100, TARGETS_TWIN);
	(void)fflush(stdout);
}

static const char *verdict(bool reached)
{
	return reached ? "ok" : "SHORT";
}

static void print_target(const struct target *target)
{
	const struct report_row *row = report_find(target->pattern, TARGETS_SPOKE);
	const struct report_row *base = report_find(target->base_pattern, target->base);
	double ratio;
	double raw = 0;

	(void)fprintf(stderr, "%-14s  calls/s of %-9s in %-9s  at least %4.2fx  ", target->pattern,
		      target->base, target->base_pattern, target->limit);
	if (!report_ratio(row, base, &ratio))
		(void)fputs("not measured\n", stderr);
	else if (target->base[0] == TARGETS_RAW[0] && !is_raw_good(target->pattern, &raw))
		(void)fprintf(stderr, "%5.2fx  but %s does not count\n", ratio, TARGETS_RAW);
	else
		(void)fprintf(stderr, "%5.2fx  %s%s\n", ratio, verdict(ratio >= target->limit),
			      row->disturbed + base->disturbed > 0 ? ", disturbed" : "");
}

static void print_calls(const char *side, enum report_column column)
{
	const struct report_row *row = report_find(CALLS_PATTERN, TARGETS_SPOKE);

	(void)fprintf(stderr, "%-14s  %s's system calls per call        at most  %4.2f   ",
		      CALLS_PATTERN, side, CALLS_MAX);
	if (row == NULL)
		(void)fputs("not measured\n", stderr);
	else
		(void)fprintf(stderr, "%6.3f %s\n", report_median(row, column),
			      verdict(report_median(row, column) <= CALLS_MAX));
}

void targets_print(void)
{
	(void)fputs("\ntargets of spoke:\n", stderr);
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		print_target(&targets[i]);
	print_calls("server", REPORT_SERVER_CALLS);
	print_calls("client", REPORT_CLIENT_CALLS);
}

void targets_print_spin(void)
{
	const struct report_row *row = report_find(SPIN_PATTERN, TARGETS_SPOKE_SPIN);
	const struct report_row *base = report_find(SPIN_PATTERN, TARGETS_RAW_SPIN);
	const char *disturbed = row && base && row->disturbed + base->disturbed > 0 ? ", disturbed"
										    : "";
	double ratio;

	(void)fputs("\ntargets of spoke, spinning:\n", stderr);
	(void)fprintf(stderr, "%-14s  calls/s of %s  at least %4.2fx  ", SPIN_PATTERN,
		      TARGETS_RAW_SPIN, SPIN_OF_RAW);
	if (report_ratio(row, base, &ratio)) {
		(void)fprintf(stderr, "%5.2fx  %s%s\n", ratio, verdict(ratio >= SPIN_OF_RAW),
			      disturbed);
	} else {
		(void)fputs("not measured\n", stderr);
	}
	(void)fprintf(stderr, "%-14s  p50                      at most %4.1f us  ", SPIN_PATTERN,
		      SPIN_P50_MAX_US);
	if (row != NULL) {
		(void)fprintf(stderr, "%4.1f us %s%s\n", report_median(row, REPORT_P50_US),
			      verdict(report_median(row, REPORT_P50_US) <= SPIN_P50_MAX_US),
			      disturbed);
	} else {
		(void)fputs("not measured\n", stderr);
	}
}
