/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The race: spoke and other RPC libraries with the same work; see contest.h. A thin RPC is
 * included as the limit, a raw echo as the share of the kernel, and redis as a reference for the
 * cost of a server. Prints all results as a chapter in Markdown, which is also legible on a
 * terminal.
 */
#include "tests/bench/rpc/contest.h"
#include "tests/bench/rpc/host.h"
#include "tests/bench/rpc/pattern.h"
#include "tests/bench/rpc/report.h"
#include "tests/bench/rpc/targets.h"

#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Peers whose libraries were missing in the build are listed by name. */
#ifdef RACE_GRPC
#define GRPC (&rpc_grpc)
#else
#define GRPC NULL
#endif
#ifdef RACE_CAPNP
#define CAPNP (&rpc_capnp)
#else
#define CAPNP NULL
#endif
#ifdef RACE_NNG
#define NNG (&rpc_nng)
#else
#define NNG NULL
#endif
#ifdef RACE_ZEROMQ
#define ZEROMQ (&rpc_zeromq)
#else
#define ZEROMQ NULL
#endif

static const struct contest_entry entries[] = {
	{ "spoke", &rpc_spoke, "" },
	{ "grpc", GRPC, "libgrpc++-dev" },
	{ "zeromq", ZEROMQ, "libzmq3-dev" },
	{ "nng", NNG, "libnng-dev" },
	{ "capnp", CAPNP, "libcapnp-dev" },
	{ "redis", &rpc_redis, "redis-tools" },
	{ "thin", &rpc_thin, "" },
	{ "thin-spin", &rpc_thin_spin, "" },
	{ "raw-epoll", &rpc_raw_epoll, "" },
	{ "spoke-sleep", &rpc_spoke_sleep, "" },
	{ "spoke-spin", &rpc_spoke_spin, "" },
	{ "spoke-object", &rpc_spoke_object, "" },
	{ "raw-shm-spin", &rpc_raw_shm_spin, "" },
};

/* --- the machine */

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* Returns the text after `key` and any of " \t:=\"" in the first line that begins with it. */
static void find_value(const char *path, const char *key, char *ret_value, size_t size)
{
	static const char between[] = " \t:=\"";
	FILE *file = fopen(path, "re");
	char line[512];

	(void)snprintf(ret_value, size, "unknown");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		const char *value = line + strlen(key);

		if (strncmp(line, key, strlen(key)) != 0 || strchr(between, *value) == NULL)
			continue;
		value += strspn(value, between);
		(void)snprintf(ret_value, size, "%.*s", (int)strcspn(value, "\"\n"), value);
		break;
	}
	if (file != NULL)
		(void)fclose(file);
}

static void describe_machine(char *text, size_t size)
{
	char model[128];

	find_value("/proc/cpuinfo", "model name", model, sizeof(model));
	(void)snprintf(text, size, "%s, %ld cores", model, sysconf(_SC_NPROCESSORS_ONLN));
}

static void describe_system(char *text, size_t size)
{
	char system[128];
	struct utsname kernel;

	find_value("/etc/os-release", "PRETTY_NAME", system, sizeof(system));
	if (uname(&kernel) != 0)
		(void)snprintf(kernel.release, sizeof(kernel.release), "unknown");
	(void)snprintf(text, size, "Linux %s %s, %s", kernel.release, kernel.machine, system);
}

static void describe_congestion(char *text, size_t size)
{
	if (!host_find_congestion(NULL, text, size))
		(void)snprintf(text, size, "unknown");
}

static void print_machine(FILE *out)
{
	char machine[256];
	char system[512];
	char congestion[32];

	describe_machine(machine, sizeof(machine));
	describe_system(system, sizeof(system));
	describe_congestion(congestion, sizeof(congestion));
	(void)fprintf(out, "Machine: %s; %s; compiler %s; congestion control of TCP %s.\n", machine,
		      system, COMPILER, congestion);
}

static void find_versions(char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < contest.count && len < size; i++) {
		const struct contest_entry *entry = &contest.entries[i];
		bool has_version = entry->peer != NULL && entry->peer->version != NULL;
		const char *version = has_version ? entry->peer->version() : NULL;

		if (version == NULL && (has_version || entry->peer == NULL))
			version = "not installed";
		if (version != NULL)
			len += (size_t)snprintf(text + len, size - len, "%s%s %s",
						len > 0 ? ", " : "", entry->name, version);
	}
}

/* --- the results */

#define NAMES_MAX (ROUTES * PATTERNS)

static void print_versions(FILE *out)
{
	char text[480];

	find_versions(text, sizeof(text));
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

static void print_results(FILE *out)
{
	const char *names[NAMES_MAX];
	size_t patterns_count = report_patterns(names, NAMES_MAX);
	const struct report_row *first = report_at(0);

	(void)fputs("## The race\n\n", out);
	print_machine(out);
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

const struct contest contest = {
	.entries = entries,
	.count = sizeof(entries) / sizeof(entries[0]),
	.reps = 5,
	.quick_reps = 3,
	.span_ms = 1000,
	.quick_span_ms = 500,
	.budget_s = 5 * 60,
	.quick_budget_s = 40,
	.print = print_results,
};
