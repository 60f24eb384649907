/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the tables of the race; see results.h. */
#include "results.h"

#include "machine.h"
#include "tests/bench/rpc/contest.h"
#include "tests/bench/rpc/pattern.h"
#include "tests/bench/rpc/report.h"
#include "tests/bench/rpc/targets.h"

#include <string.h>

#define NAMES_MAX (ROUTES * PATTERNS)

static void print_versions(FILE *out)
{
	char text[480];

	machine_versions(text, sizeof(text));
	(void)fprintf(out, "Versions: %s.\n", text);
}

static void print_notes(FILE *out)
{
	for (size_t i = 0; i < contest.count; i++) {
		const struct rpc_peer *peer = contest.entries[i].peer;

		if (peer != NULL && peer->note != NULL)
			(void)fprintf(out, "- %s: %s\n", peer->name, peer->note);
	}
}

/* Prints the ratio to the base, which is spoke; empty for spoke itself and without a measurement. A
 * peer with a server only is compared with spoke's server. */
static void print_times(FILE *out, const struct report_row *row, enum report_column column)
{
	const struct report_row *base = row == NULL ? NULL : report_base(row);
	bool is_more = column == REPORT_CALLS_PER_S;
	double ratio;

	if (column == REPORT_CPU_US && row != NULL && row->is_server_alone)
		column = REPORT_SERVER_CPU_US;
	if (base == NULL || base == row ||
	    !report_ratio(is_more ? base : row, is_more ? row : base, column, &ratio))
		(void)fprintf(out, " %9s |", "");
	else
		(void)fprintf(out, " %7.2f x |", ratio);
}

/* Prints a table: one row per peer, one column per pattern. */
static void print_matrix(FILE *out, const char *const *names, size_t count,
			 enum report_column column)
{
	(void)fprintf(out, "| %-14s |", "");
	for (size_t i = 0; i < count; i++)
		(void)fprintf(out, " %9s |", names[i]);
	(void)fputs("\n|---|", out);
	for (size_t i = 0; i < count; i++)
		(void)fputs("---:|", out);
	(void)fputc('\n', out);
	for (size_t j = 0; j < contest.count; j++) {
		const char *peer = contest.entries[j].name;

		if (strcmp(peer, REPORT_SPOKE) == 0 || strcmp(peer, REPORT_SPOKE_SPIN) == 0)
			continue;
		(void)fprintf(out, "| %-14s |", peer);
		for (size_t i = 0; i < count; i++)
			print_times(out, report_find(names[i], peer), column);
		(void)fputc('\n', out);
	}
}

static void print_pattern(FILE *out, const char *name)
{
	(void)fprintf(out, "\n| %-14s | %9s | %8s | %8s | %8s | %9s | %9s | disturbed |\n", name,
		      "calls/s", "p50 us", "p99 us", "CPU us", "calls/s", "CPU");
	(void)fputs("|---|---:|---:|---:|---:|---:|---:|---:|\n", out);
	for (size_t i = 0; i < contest.count; i++) {
		const struct report_row *row = report_find(name, contest.entries[i].name);

		if (row == NULL)
			continue;
		if (row->reps == 0) {
			(void)fprintf(out, "| %-14s | FAILED | | | | | | |\n", row->peer);
			continue;
		}
		(void)fprintf(out, "| %-14s | %9.0f | %8.1f | %8.1f | %8.3f |", row->peer,
			      report_median(row, REPORT_CALLS_PER_S),
			      report_median(row, REPORT_P50_US), report_median(row, REPORT_P99_US),
			      report_median(row, REPORT_CPU_US));
		print_times(out, row, REPORT_CALLS_PER_S);
		print_times(out, row, REPORT_CPU_US);
		if (row->disturbed > 0)
			(void)fprintf(out, " %4u of %u |\n", row->disturbed, row->reps);
		else
			(void)fputs("           |\n", out);
	}
}

void results_print(FILE *out)
{
	const char *names[NAMES_MAX];
	size_t patterns_count = report_patterns(names, NAMES_MAX);
	const struct report_row *first = report_at(0);

	(void)fputs("## The race\n\n", out);
	machine_print(out);
	print_versions(out);
	(void)fprintf(out,
		      "Medians of %u repetitions; ratios are medians of the ratios per repetition. "
		      "Patterns are"
		      " named\npayload-connections x calls in flight on each. CPU time is that of"
		      " client and server, per call.\n",
		      first == NULL ? 0 : first->reps + first->failed);
	(void)fputs(
		"The server has one core and the client another, with all their threads: libraries "
		"that start threads of\ntheir own are held to one core on each side.\n",
		out);
	print_notes(out);
	report_print_failures(out);
	(void)fputs("\nspoke makes N times as many calls/s as:\n\n", out);
	print_matrix(out, names, patterns_count, REPORT_CALLS_PER_S);
	(void)fputs("\nCPU time per call, divided by spoke's:\n\n", out);
	print_matrix(out, names, patterns_count, REPORT_CPU_US);
	(void)fputs("\nAbsolute figures; the last columns repeat the ratios above:\n", out);
	for (size_t i = 0; i < patterns_count; i++)
		print_pattern(out, names[i]);
	(void)fputs("\nTargets:\n\n", out);
	targets_print(out);
}
