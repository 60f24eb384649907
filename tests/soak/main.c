/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The soak test: the driver of the cluster, what it does to the processes, what it measures,
 * and its report.
 */
#define _GNU_SOURCE
#include "cast.h"
#include "memory.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* --- growth rates of measured values */

struct series {
	double *times; /* in minutes */
	double *values;
	size_t count;
	size_t max;
};

/* The 95 % confidence interval of a slope, if the samples depend on time only. */
struct slope_range {
	double low;
	double high;
};

/*
 * --- memory and descriptors of the processes that live for the whole run, read from outside.
 * While a process works, its memory varies by much more than a leak. Slopes are therefore
 * computed from samples at rests, when all connections exist and no call is open
 */

/* Values read of a process; in KB, except the descriptors. */
enum gauge_value {
	GAUGE_RSS,       /* all resident pages: the next two together */
	GAUGE_ANONYMOUS, /* heap, stacks, static data: contains a leak */
	GAUGE_FILES,     /* pages of the program, its libraries and the board */
	GAUGE_LIBRARY,   /* bytes that the library has allocated */
	GAUGE_HEAP,      /* bytes in use in malloc, the library's and others */
	GAUGE_HOLES,     /* free bytes that malloc keeps */
	GAUGE_DESCRIPTORS,
	GAUGE_VALUES,
};

struct gauge {
	const struct actor *actor;
	double now[GAUGE_VALUES];
	double resident_max;
	struct series rests[GAUGE_VALUES];
};

/*
 * --- the schedule of faults: processes are disturbed at random. At rests in between all
 * processes are up and no calls are made
 */

struct acts {
	const struct plan *plan;
	struct sim_dice dice;
	enum act_phase {
		ACT_HARM, /* calls and faults */
		ACT_HEAL, /* calls without faults, until all processes are up */
		ACT_HUSH, /* no calls begin */
		ACT_TRIM, /* no call is open, memory is trimmed */
	} phase;
	uint64_t phase_ns; /* when the phase began */
	uint64_t good_ns;  /* since when the phase's condition holds; 0: it does not */
	uint64_t next_ns;  /* time of the next fault */
	uint64_t rest_ns;  /* time of the next rest */
	uint64_t rests;
};

/* --- output of a soak: a line now and then, and a table with the results at the end */

#define GAUGES 2u /* a provider and a consumer */
/* --- least-squares and Theil-Sen slopes of samples */

/* Returns false if there is no memory. */
static bool series_init(struct series *series, size_t max)
{
	*series = (struct series){
		.times = calloc(max, sizeof(double)),
		.values = calloc(max, sizeof(double)),
		.max = max,
	};
	return series->times && series->values;
}

static void series_fini(struct series *series)
{
	free(series->times);
	free(series->values);
}

/* Adds a sample; ignored if the series is full. */
static void series_add(struct series *series, double time, double value)
{
	if (series->count == series->max)
		return;
	series->times[series->count] = time;
	series->values[series->count++] = value;
}

/* Returns the least-squares slope per minute; 0 for fewer than two samples. */
static double slope_plain(const struct series *series)
{
	double count = (double)series->count;
	double time = 0;
	double value = 0;
	double above = 0;
	double below = 0;

	for (size_t i = 0; i < series->count; i++) {
		time += series->times[i] / count;
		value += series->values[i] / count;
	}
	for (size_t i = 0; i < series->count; i++) {
		above += (series->times[i] - time) * (series->values[i] - value);
		below += (series->times[i] - time) * (series->times[i] - time);
	}
	return below > 0 ? above / below : 0;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a;
	double right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Returns the number of pairs on either side of the median (Kendall). */
static struct slope_range range_of(const double *slopes, size_t pairs, double count)
{
	double half = 1.96 / 2 * sqrt(count * (count - 1) * (2 * count + 5) / 18);
	double low = (double)pairs / 2 - half;
	double high = (double)pairs / 2 + half;

	return (struct slope_range){
		slopes[low > 0 ? (size_t)low : 0],
		slopes[high < (double)pairs - 1 ? (size_t)high : pairs - 1],
	};
}

/* Returns the median of the slopes of all pairs (Theil-Sen estimator). Single outliers do not
 * change it; steady growth does. */
static double slope_median(const struct series *series, struct slope_range *ret_range)
{
	size_t count = series->count < 2 ? 0 : series->count * (series->count - 1) / 2;
	double *slopes = calloc(count ? count : 1, sizeof(double));
	double median = 0;
	size_t at = 0;

	*ret_range = (struct slope_range){ 0 };
	for (size_t i = 0; slopes && i < series->count; i++)
		for (size_t j = i + 1; j < series->count; j++)
			slopes[at++] = (series->values[j] - series->values[i]) /
				       (series->times[j] - series->times[i]);
	if (at > 0) {
		qsort(slopes, at, sizeof(double), compare);
		median = at % 2 ? slopes[at / 2] : (slopes[at / 2 - 1] + slopes[at / 2]) / 2;
		*ret_range = range_of(slopes, at, (double)series->count);
	}
	free(slopes);
	return median;
}

/* --- reads memory and descriptors of a process from /proc */

#define RESTS 1000u /* kept samples: enough for 16 hours, more than a shorter run has */
/* Returns false if there is no memory. */
static bool gauge_init(struct gauge *gauge, const struct actor *actor)
{
	bool well = true;

	*gauge = (struct gauge){ .actor = actor };
	for (unsigned i = 0; i < GAUGE_VALUES && well; i++)
		well = series_init(&gauge->rests[i], RESTS);
	return well;
}

static void gauge_fini(struct gauge *gauge)
{
	for (unsigned i = 0; i < GAUGE_VALUES; i++)
		series_fini(&gauge->rests[i]);
}

/* Reads smaps_rollup, which walks the pages. In some kernels /proc/PID/statm and status omit what a
 * CPU or thread has not yet added to the total, dozens of pages each. */
static void read_resident(struct gauge *gauge)
{
	char path[64];
	char text[128];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)gauge->actor->pid);
	gauge->now[GAUGE_RSS] = 0;
	gauge->now[GAUGE_ANONYMOUS] = 0;
	file = fopen(path, "re");
	while (file && fgets(text, sizeof(text), file)) {
		if (strncmp(text, "Rss:", 4) == 0)
			gauge->now[GAUGE_RSS] = strtod(text + 4, NULL);
		else if (strncmp(text, "Anonymous:", 10) == 0)
			gauge->now[GAUGE_ANONYMOUS] = strtod(text + 10, NULL);
	}
	if (file)
		(void)fclose(file);
	gauge->now[GAUGE_FILES] = gauge->now[GAUGE_RSS] - gauge->now[GAUGE_ANONYMOUS];
	if (gauge->now[GAUGE_RSS] > gauge->resident_max)
		gauge->resident_max = gauge->now[GAUGE_RSS];
}

static double count_descriptors(pid_t pid)
{
	const struct dirent *entry;
	char path[64];
	double count = 0;
	DIR *folder;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	folder = opendir(path);
	if (folder == NULL)
		return 0;
	while ((entry = readdir(folder)) != NULL)
		count += entry->d_name[0] != '.';
	(void)closedir(folder);
	return count;
}

/* Reads the values; adds them to the series if the process is at rest. */
static void gauge_look(struct gauge *gauge, bool rest)
{
	double minute = (double)(cast_now() - cast.begun_ns) / (60.0 * (double)NS_PER_S);
	const struct desk *desk = &board->desks[gauge->actor - cast.actors];

	read_resident(gauge);
	gauge->now[GAUGE_LIBRARY] = (double)desk->memory / 1024;
	gauge->now[GAUGE_HEAP] = (double)desk->heap / 1024;
	gauge->now[GAUGE_HOLES] = (double)desk->holes / 1024;
	gauge->now[GAUGE_DESCRIPTORS] = count_descriptors(gauge->actor->pid);
	if (!rest)
		return;
	if (gauge->now[GAUGE_RSS] <= 0)
		cast_fail("/proc/%d/smaps_rollup of %s cannot be read; Linux 4.14 is required",
			  (int)gauge->actor->pid, gauge->actor->name);
	for (unsigned i = 0; i < GAUGE_VALUES; i++)
		series_add(&gauge->rests[i], minute, gauge->now[i]);
}

/* --- schedules faults and rests: */

#define HARM_LEAST_MS 500u /* between two faults */
#define HARM_MOST_MS 4000u
#define FREEZE_LEAST_MS 200u
#define FREEZE_MOST_MS 8000u
#define AWAY_LEAST_MS 100u
#define AWAY_MOST_MS 3000u
#define HARMED_MAX 3u /* processes at a time */
#define PROVIDERS_HARMED_MAX 2u
#define WHOLE_NS NS_PER_S      /* long enough that no report is older than the phase */
#define CALM_NS (2 * NS_PER_S) /* long enough for a heartbeat on every connection */
#define TRIM_NS (100 * NS_PER_MS)
#define PATIENCE_NS (60 * NS_PER_S)

static void acts_begin(struct acts *acts, const struct plan *plan)
{
	uint64_t now = cast_now();

	*acts = (struct acts){
		.plan = plan,
		.dice = sim_dice_make(plan->seed),
		.phase = ACT_HEAL,
		.phase_ns = now,
		.rest_ns = now,
	};
}

static void enter(struct acts *acts, enum act_phase phase)
{
	acts->phase = phase;
	acts->phase_ns = cast_now();
	acts->good_ns = 0;
	board->hush = phase == ACT_HUSH || phase == ACT_TRIM;
	board->trim = phase == ACT_TRIM;
}

/* Returns whether the phase's condition has held for the given time. */
static bool has_been(struct acts *acts, bool good, uint64_t for_ns)
{
	uint64_t now = cast_now();

	if (!good)
		acts->good_ns = 0;
	else if (acts->good_ns == 0)
		acts->good_ns = now;
	return good && now - acts->good_ns >= for_ns;
}

static unsigned providers_harmed(void)
{
	unsigned harmed = 0;

	for (unsigned i = 0; i < PROVIDERS; i++)
		harmed += cast.actors[i].state != ACTOR_UP || !board->desks[i].up;
	return harmed;
}

/* Disturbs a random process. The first process of each kind lives for the whole run. */
static void harm(struct acts *acts)
{
	static const struct {
		unsigned percent;
		bool provider;
		enum actor_harm harm;
		uint64_t least_ms;
		uint64_t most_ms;
	} harms[] = {
		{ 30, true, HARM_FREEZE, FREEZE_LEAST_MS, FREEZE_MOST_MS },
		{ 25, true, HARM_KILL, AWAY_LEAST_MS, AWAY_MOST_MS },
		{ 15, true, HARM_END, 0, 0 },
		{ 15, false, HARM_FREEZE, FREEZE_LEAST_MS, FREEZE_MOST_MS },
		{ 8, false, HARM_END, 0, 0 },
		{ 7, false, HARM_KILL, AWAY_LEAST_MS, AWAY_MOST_MS },
	};
	uint64_t pick = sim_throw(&acts->dice) % 100;
	unsigned i = 0;
	unsigned spared;
	unsigned whom;

	while (pick >= harms[i].percent)
		pick -= harms[i++].percent;
	spared = harms[i].harm == HARM_FREEZE ? 0 : 1;
	if (harms[i].provider)
		whom = (unsigned)sim_between(&acts->dice, spared, PROVIDERS - 1);
	else
		whom = PROVIDERS + (unsigned)sim_between(&acts->dice, spared, CONSUMERS - 1);
	if (cast_harmed() < HARMED_MAX &&
	    (!harms[i].provider || providers_harmed() < PROVIDERS_HARMED_MAX))
		cast_harm(&cast.actors[whom], harms[i].harm,
			  (harms[i].most_ms
				   ? sim_magnitude(&acts->dice, harms[i].least_ms, harms[i].most_ms)
				   : 0) *
				  NS_PER_MS);
}

static void tell_patience(void)
{
	cast_fail("after %d s the processes are not ready and at rest:",
		  (int)(PATIENCE_NS / NS_PER_S));
	for (unsigned i = 0; i < PROCESSES; i++)
		(void)fprintf(stderr,
			      "  %s: state %d, connections %llu, endpoints ready %llu, open %llu\n",
			      cast.actors[i].name, (int)cast.actors[i].state,
			      (unsigned long long)board->desks[i].connections,
			      (unsigned long long)board->desks[i].ready,
			      (unsigned long long)board->desks[i].open);
}

/* Reports a phase that lasts too long, and ends it. */
static bool is_over(const struct acts *acts)
{
	if (cast_now() - acts->phase_ns < PATIENCE_NS)
		return false;
	tell_patience();
	return true;
}

/* Advances the schedule. Returns true when a rest is reached; the rest lasts until acts_wake(). */
static bool acts_step(struct acts *acts)
{
	uint64_t now = cast_now();

	switch (acts->phase) {
	case ACT_HARM:
		if (now >= acts->rest_ns) {
			enter(acts, ACT_HEAL);
		} else if (now >= acts->next_ns && !acts->plan->calm) {
			harm(acts);
			acts->next_ns = now + NS_PER_MS * sim_between(&acts->dice, HARM_LEAST_MS,
								      HARM_MOST_MS);
		}
		return false;
	case ACT_HEAL:
		if (has_been(acts, cast_whole(), WHOLE_NS) || is_over(acts))
			enter(acts, ACT_HUSH);
		return false;
	case ACT_HUSH:
		if (has_been(acts, cast_rests() && cast_whole(), CALM_NS) || is_over(acts))
			enter(acts, ACT_TRIM);
		return false;
	case ACT_TRIM:
		if (!has_been(acts, cast_trimmed(), TRIM_NS) && !is_over(acts))
			return false;
		acts->rests++;
		acts->rest_ns += acts->plan->rest_ns;
		if (acts->rest_ns < now)
			acts->rest_ns = now + acts->plan->rest_ns;
		return true;
	}
	return false;
}

/* Ends the rest. */
static void acts_wake(struct acts *acts)
{
	enter(acts, ACT_HARM);
}

/* --- prints progress, and the table with targets and results */

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

/* Prints a line of progress; `rest`: taken during a rest. */
static void report_line(const struct gauge *gauges, bool rest)
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

static bool all_reached;

static bool plain; /* malloc is not tuned */

static void row(const char *what, const char *target, bool judged, bool reached, int places,
		double value)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%.*f", places, value);
	(void)fprintf(table, "| %s | %s | %s | %s |\n", what, text, target,
		      judged ? reached ? "PASS" : "FAIL" : "");
	all_reached = all_reached && (!judged || reached);
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
	all_reached = cast.failures == 0;
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

/* Prints the table to stdout and to the plan's file. Returns whether every target was reached. */
static bool report_end(const struct acts *acts, const struct gauge *gauges)
{
	FILE *file = acts->plan->table ? fopen(acts->plan->table, "we") : NULL;

	if (acts->plan->table && file == NULL)
		cast_fail("cannot write %s", acts->plan->table);
	if (file) {
		write_table(file, acts, gauges);
		(void)fclose(file);
	}
	write_table(stdout, acts, gauges);
	(void)printf("%s\n", all_reached ? "PASS" : "FAIL");
	return all_reached;
}

/*
 * --- the soak test: providers and consumers with a thousand connections run for a long time
 * while they are killed, frozen and restarted at random, and every call is accounted for. This
 * is the conductor; the others are its child processes. `sh tests/run.sh soak` runs the test
 */

#define STEP_NS (10 * NS_PER_MS)
/* Storms during the warm-up: they open as many calls as possible, so that tables do not grow any
 * more while slopes are measured. */
#define STORMS 2u
#define LINE_NS (60 * NS_PER_S)

static void pause_step(void)
{
	struct timespec time = { .tv_nsec = (long)STEP_NS };

	(void)nanosleep(&time, NULL);
}

static void look(struct gauge *gauges, bool rest)
{
	for (unsigned i = 0; i < GAUGES; i++)
		gauge_look(&gauges[i], rest);
}

/* Runs until the time is over and the last rest is reached. */
static void conduct(struct acts *acts, struct gauge *gauges)
{
	uint64_t look_ns = cast_now();
	uint64_t line_ns = cast_now() + LINE_NS;

	while (!cast_interrupted()) {
		uint64_t now = cast_now();
		bool warm = now - cast.begun_ns >= acts->plan->warm_ns;

		cast_tend();
		if (acts_step(acts)) {
			look(gauges, warm);
			report_line(gauges, true);
			if (now - cast.begun_ns >= acts->plan->end_ns)
				return;
			if (acts->rests <= STORMS)
				board->storms++;
			acts_wake(acts);
		}
		if (now >= look_ns) {
			look(gauges, false);
			look_ns += NS_PER_S;
		}
		if (now >= line_ns) {
			report_line(gauges, false);
			line_ns += LINE_NS;
		}
		pause_step();
	}
}

static int play(const struct plan *plan)
{
	struct gauge gauges[GAUGES] = { 0 };
	struct acts acts;
	bool well = false;

	(void)printf("soak: %.1f minutes, at most %" PRIu64
		     " calls/s, %u connections, seed %" PRIu64 "\n",
		     plan->minutes, plan->rate, CONNECTIONS, plan->seed);
	if (!gauge_init(&gauges[0], &cast.actors[0]) ||
	    !gauge_init(&gauges[1], &cast.actors[PROVIDERS])) {
		(void)fprintf(stderr, "soak: no memory\n");
	} else if (cast_begin(plan)) {
		acts_begin(&acts, plan);
		conduct(&acts, gauges);
		if (!cast_interrupted()) {
			cast_end(false);
			cast_end(true);
			well = report_end(&acts, gauges);
		}
	}
	cast_close();
	for (unsigned i = 0; i < GAUGES; i++)
		gauge_fini(&gauges[i]);
	if (cast_interrupted())
		(void)fprintf(stderr, "soak: interrupted; all processes have ended\n");
	return well ? 0 : cast_interrupted() ? 2 : 1;
}

int main(int argc, char **argv)
{
	struct plan plan = { .seed = (uint64_t)time(NULL) };
	enum plan_verdict verdict = plan_read(argc, argv, &plan);

	if (verdict != PLAN_GO)
		return verdict == PLAN_HELPED ? 0 : 2;
	if (!memory_begin(plan.plain, argv)) {
		(void)fprintf(stderr, "soak: cannot execute /proc/self/exe; mount "
				      "/proc, or set GLIBC_TUNABLES\n");
		return 1;
	}
	return play(&plan);
}
