/* SPDX-License-Identifier: Apache-2.0 */
/* Prints progress, and the table with targets and results. */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>

#define SLOPE_MAX 1.0    /* KB per minute */
#define SLOPE_MINUTES 10 /* span of the samples, at least */

static uint64_t all_calls(void)
{
	return cast_count_of(false, COUNT_CALLS) + cast_count_of(false, COUNT_FUTURES);
}

static uint64_t stat_of_all(enum spoke_stat stat)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < PROCESSES; i++)
		sum += cast.actors[i].past.stats[stat] + board->desks[i].stats[stat];
	return sum;
}

static uint64_t error_of_consumers(unsigned index, bool refused)
{
	uint64_t sum = 0;

	for (unsigned i = PROVIDERS; i < PROCESSES; i++) {
		const struct desk *past = &cast.actors[i].past;
		const struct desk *desk = &board->desks[i];

		sum += refused ? past->refusals[index] + desk->refusals[index]
			       : past->errors[index] + desk->errors[index];
	}
	return sum;
}

static void print_errors(FILE *to, const char *between)
{
	for (unsigned refused = 0; refused < 2; refused++)
		for (unsigned i = 1; i < ERRORS; i++) {
			uint64_t count = error_of_consumers(i, refused);

			if (count > 0)
				(void)fprintf(to, "%s%s %" PRIu64 "%s", between,
					      spoke_errname(error_of_index(i)), count,
					      refused ? " at once" : "");
		}
}

void report_line(const struct gauge *gauges, bool rest)
{
	static uint64_t calls_before;
	static uint64_t before_ns;
	uint64_t now = cast_now();
	uint64_t calls = all_calls();
	double since = (double)(now - (before_ns ? before_ns : cast.begun_ns)) / (double)NS_PER_S;

	(void)printf("%6.1f s%s  %" PRIu64 " calls, %.0f/s, lost %" PRIu64 ", twice %" PRIu64
		     ", wrong %" PRIu64 "; killed %" PRIu64 ", frozen %" PRIu64
		     ", restarted %" PRIu64 ";",
		     (double)(now - cast.begun_ns) / (double)NS_PER_S, rest ? " rest" : "", calls,
		     (double)(calls - calls_before) / since, cast_count(COUNT_LOST),
		     cast_count(COUNT_TWICE), cast_count(COUNT_WRONG),
		     cast.harms[0][HARM_KILL] + cast.harms[1][HARM_KILL],
		     cast.harms[0][HARM_FREEZE] + cast.harms[1][HARM_FREEZE],
		     cast.harms[0][HARM_END] + cast.harms[1][HARM_END]);
	for (unsigned i = 0; i < GAUGES; i++)
		(void)printf(
			" %s RSS %.0f KB (anonymous %.0f, files %.0f), library %.0f KB, heap %.0f"
			" KB and %.0f free, %.0f fds;",
			gauges[i].actor->name, gauges[i].now[GAUGE_RSS],
			gauges[i].now[GAUGE_ANONYMOUS], gauges[i].now[GAUGE_FILES],
			gauges[i].now[GAUGE_LIBRARY], gauges[i].now[GAUGE_HEAP],
			gauges[i].now[GAUGE_HOLES], gauges[i].now[GAUGE_DESCRIPTORS]);
	print_errors(stdout, " ");
	(void)putchar('\n');
	(void)fflush(stdout);
	calls_before = calls;
	before_ns = now;
}

/* --- the table */

static FILE *table;
static bool well;
static bool plain; /* malloc is not tuned */

static void row(const char *what, const char *target, bool judged, bool reached, int places,
		double value)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%.*f", places, value);
	(void)fprintf(table, "| %s | %s | %s | %s |\n", what, text, target,
		      judged ? reached ? "PASS" : "FAIL" : "");
	well = well && (!judged || reached);
}

static void count_row(const char *what, uint64_t value)
{
	row(what, "", false, true, 0, (double)value);
}

static void zero_row(const char *what, uint64_t value)
{
	row(what, "0", true, value == 0, 0, (double)value);
}

static void call_rows(const struct plan *plan)
{
	uint64_t calls = cast_count_of(false, COUNT_CALLS);
	uint64_t ok = cast_count_of(false, COUNT_OK);
	uint64_t failed = cast_count_of(false, COUNT_FAILED);
	uint64_t tickets = cast_count_of(false, COUNT_TICKETS);
	uint64_t dropped = 0;
	char target[64];

	for (unsigned i = PROVIDERS; i < PROCESSES; i++)
		dropped += cast.actors[i].dropped;
	(void)snprintf(target, sizeof(target), ">= %" PRIu64, plan->calls);
	row("calls", target, true, all_calls() >= plan->calls, 0, (double)all_calls());
	count_row("... through futures of other threads", cast_count_of(false, COUNT_FUTURES));
	count_row("answered", ok);
	count_row("failed", failed);
	count_row("deferred, and the ticket settled", tickets);
	count_row("open when their process was killed", dropped);
	row("calls minus the four rows above", "0", true, calls == ok + failed + tickets + dropped,
	    0, (double)calls - (double)(ok + failed + tickets + dropped));
	count_row("rejected by spoke_call()", cast_count_of(false, COUNT_REFUSED));
	count_row("pushes by providers", cast_count_of(true, COUNT_CALLS));
	zero_row("lost", cast_count(COUNT_LOST));
	zero_row("completed twice", cast_count(COUNT_TWICE));
	zero_row("answers that do not match their requests", cast_count(COUNT_WRONG));
}

static const char *name_stat(enum spoke_stat stat, char *text, size_t size)
{
	(void)snprintf(text, size, "`%s`: %s", spoke_stat_name(stat), spoke_stat_sentence(stat));
	return text;
}

static void stat_rows(void)
{
	char text[160];
	static const enum spoke_stat never[] = {
		SPOKE_STAT_CLOSED_PROTOCOL,        SPOKE_STAT_CLOSED_LARGE,
		SPOKE_STAT_CLOSED_ID_TWICE,        SPOKE_STAT_CLOSED_UNWANTED,
		SPOKE_STAT_CLOSED_UNKNOWN_REPLIES, SPOKE_STAT_CLOSED_MEMORY,
		SPOKE_STAT_BAD_REQUESTS,           SPOKE_STAT_BAD_REPLIES,
		SPOKE_STAT_REPLIES_UNKNOWN,        SPOKE_STAT_REQUESTS_NO_SERVICE,
	};
	static const enum spoke_stat told[] = {
		SPOKE_STAT_CONNECTED,     SPOKE_STAT_SUSPECTED,         SPOKE_STAT_PROBATIONS,
		SPOKE_STAT_CLOSED_SILENT, SPOKE_STAT_READONLY_READ,     SPOKE_STAT_REPLIES_LATE,
		SPOKE_STAT_RETRIES,       SPOKE_STAT_TURNS_LATE,        SPOKE_STAT_CLOSED_MUTE,
		SPOKE_STAT_CLOSED,        SPOKE_STAT_CLOSED_FRAME_TIME,
	};

	for (unsigned i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		zero_row(name_stat(never[i], text, sizeof(text)), stat_of_all(never[i]));
	for (unsigned i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		count_row(name_stat(told[i], text, sizeof(text)), stat_of_all(told[i]));
}

/* Returns whether the run was long enough: within minutes a few pages more or less are a large
 * slope. */
static bool can_judge(const struct series *rests)
{
	return rests->count > 1 &&
	       rests->times[rests->count - 1] - rests->times[0] >= SLOPE_MINUTES;
}

/* Prints a slope and its confidence interval. */
static void slope_rows(const struct gauge *gauge, enum gauge_value value, const char *what,
		       bool judged)
{
	const struct series *rests = &gauge->rests[value];
	struct slope_range range;
	double slope = slope_median(rests, &range);
	const char *target = "";
	bool sure = !plain || value == GAUGE_LIBRARY;

	if (judged && !sure)
		target = "no target with `--plain`";
	else if (judged)
		target = can_judge(rests) ? "< 1" : "too short to tell";
	row(what, target, judged && sure && can_judge(rests), slope < SLOPE_MAX, 2, slope);
	row("... 95 % range, from", "", false, true, 2, range.low);
	row("... to", "", false, true, 2, range.high);
	row("... by least squares at rests", "", false, true, 2, slope_plain(rests));
}

/* RSS has a target. The parts that can contain a leak have targets of their own, so that file pages
 * cannot hide a leak. */
static const struct {
	enum gauge_value value;
	bool judged;
	const char *what;
} memories[] = {
	{ GAUGE_RSS, true, "RSS" },
	{ GAUGE_ANONYMOUS, true, "anonymous memory" },
	{ GAUGE_FILES, false, "pages of files" },
	{ GAUGE_LIBRARY, true, "memory of the library" },
	{ GAUGE_HEAP, true, "memory in use in malloc" },
	{ GAUGE_HOLES, false, "free memory kept by malloc" },
};

static void memory_rows(const struct gauge *gauge)
{
	char what[128];

	for (unsigned i = 0; i < sizeof(memories) / sizeof(memories[0]); i++) {
		(void)snprintf(what, sizeof(what), "%s: %s, KB/min at rests, median slope",
			       gauge->actor->name, memories[i].what);
		slope_rows(gauge, memories[i].value, what, memories[i].judged);
		row("... KB at the last rest", "", false, true, 0, gauge->now[memories[i].value]);
	}
	(void)snprintf(what, sizeof(what), "%s: highest RSS, KB", gauge->actor->name);
	row(what, "", false, true, 0, gauge->resident_max);
}

static void descriptor_row(const struct gauge *gauge)
{
	const struct series *rests = &gauge->rests[GAUGE_DESCRIPTORS];
	double first = rests->count ? rests->values[0] : 0;
	double last = rests->count ? rests->values[rests->count - 1] : 0;
	char what[128];
	char target[32] = "too short to tell";

	(void)snprintf(what, sizeof(what), "%s: descriptors at the last rest", gauge->actor->name);
	if (rests->count > 1)
		(void)snprintf(target, sizeof(target), "%.0f", first);
	row(what, target, rests->count > 1, first >= last && last >= first, 0, last);
}

static void write_table(FILE *to, const struct acts *acts, const struct gauge *gauges)
{
	table = to;
	plain = acts->plan->plain;
	well = cast.failures == 0;
	(void)fprintf(to,
		      "| %.1f minutes, seed %" PRIu64
		      " | | target | |\n| --- | --- | --- | --- |\n",
		      acts->plan->minutes, acts->plan->seed);
	call_rows(acts->plan);
	count_row("connections", CONNECTIONS);
	count_row("providers killed", cast.harms[1][HARM_KILL]);
	count_row("providers frozen", cast.harms[1][HARM_FREEZE]);
	count_row("providers drained and started again", cast.harms[1][HARM_END]);
	count_row("consumers killed", cast.harms[0][HARM_KILL]);
	count_row("consumers frozen", cast.harms[0][HARM_FREEZE]);
	count_row("consumers drained and started again", cast.harms[0][HARM_END]);
	stat_rows();
	for (unsigned i = 0; i < GAUGES; i++) {
		memory_rows(&gauges[i]);
		descriptor_row(&gauges[i]);
	}
	zero_row("other failures, see stderr", cast.failures);
	(void)fprintf(to, "\nErrors:");
	print_errors(to, " ");
	(void)fprintf(to, "\n");
}

bool report_end(const struct acts *acts, const struct gauge *gauges)
{
	FILE *file = acts->plan->table ? fopen(acts->plan->table, "we") : NULL;

	if (acts->plan->table && file == NULL)
		cast_fail("cannot write %s", acts->plan->table);
	if (file) {
		write_table(file, acts, gauges);
		(void)fclose(file);
	}
	write_table(stdout, acts, gauges);
	(void)printf("%s\n", well ? "PASS" : "FAIL");
	return well;
}
