/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the result of a load run, as text or JSON. */
#include "examples/spoke/load_report.h"

#include "examples/spoke/ending.h"
#include "examples/spoke/terminal.h"

#include <inttypes.h>
#include <stdio.h>

#define BARS 16
#define SECOND 1e9

struct percentile {
	const char *name;
	const char *key;
	uint32_t per_million;
};

static const struct percentile percentiles[] = {
	{ "50%", "p50", 500000 },     { "90%", "p90", 900000 },       { "99%", "p99", 990000 },
	{ "99.9%", "p99_9", 999000 }, { "99.99%", "p99_99", 999900 }, { "max", "max", 1000000 },
};

#define PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

static double seconds_of(const struct load *load)
{
	return (double)load_span_ns(load, UINT64_MAX) / SECOND;
}

static double per_second(const struct load *load)
{
	double seconds = seconds_of(load);

	return seconds > 0 ? (double)load->in_time / seconds : 0;
}

/* Prints a time in the unit that fits, in one of a few static buffers used in turn. */
static const char *time_of(uint64_t ns)
{
	static char texts[4][24];
	static unsigned turn;
	char *text = texts[turn++ % 4];

	if (ns < 1000000)
		(void)snprintf(text, sizeof(texts[0]), "%.1f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		(void)snprintf(text, sizeof(texts[0]), "%.2f ms", (double)ns / 1e6);
	else
		(void)snprintf(text, sizeof(texts[0]), "%.2f s", (double)ns / 1e9);
	return text;
}

/* --- a histogram of the latencies */

struct bar {
	uint64_t to_ns; /* times up to this */
	uint64_t count;
};

/* 1, 2, 5, 10 and so on, microseconds and up. */
static uint64_t next_edge(uint64_t edge_ns)
{
	uint64_t lead = edge_ns;

	while (lead >= 10)
		lead /= 10;
	return lead == 2 ? edge_ns / 2 * 5 : edge_ns * 2;
}

/* Counts the times per bar, from the first to the last non-empty one. Returns the number of bars.
 */
static size_t make_bars(const struct spoke_histogram *times, struct bar *bars)
{
	uint64_t edge_ns = 1000;
	size_t bucket = 0;
	size_t count = 0;

	while (bucket < SPOKE_HISTOGRAM_BUCKETS && count < BARS) {
		struct bar bar = { edge_ns, 0 };

		while (bucket < SPOKE_HISTOGRAM_BUCKETS &&
		       (spoke_histogram_bucket_end(bucket) <= edge_ns || count == BARS - 1))
			bar.count += times->bucket[bucket++];
		if (count > 0 || bar.count > 0)
			bars[count++] = bar;
		edge_ns = next_edge(edge_ns);
	}
	while (count > 0 && bars[count - 1].count == 0)
		count--;
	return count;
}

static void draw_times(const struct spoke_histogram *times)
{
	unsigned width = terminal_width() > 40 ? terminal_width() - 32 : 8;
	struct bar bars[BARS];
	size_t count = make_bars(times, bars);
	uint64_t most = 1;

	for (size_t i = 0; i < count; i++)
		most = bars[i].count > most ? bars[i].count : most;
	for (size_t i = 0; i < count; i++) {
		unsigned len = (unsigned)((double)bars[i].count / (double)most * width);

		printf("  <= %11s %6.2f%% %s", time_of(bars[i].to_ns),
		       100.0 * (double)bars[i].count / (double)times->count,
		       terminal_colour(TERMINAL_BLUE));
		for (unsigned at = 0; at < len; at++)
			(void)putchar('#');
		printf("%s\n", terminal_colour(TERMINAL_NORMAL));
	}
}

/* --- text */

static void print_head(const struct load *load)
{
	const struct load_plan *plan = load->plan;

	if (plan->rate > 0)
		printf("open loop: %g calls/s", plan->rate);
	else
		printf("closed loop: %u outstanding", plan->outstanding);
	printf(", %u connection%s, %.3f s after %.3f s of warm-up\n", plan->connections,
	       plan->connections == 1 ? "" : "s", seconds_of(load),
	       (double)plan->warm_up_ns / SECOND);
}

static void print_failures(const struct load *load)
{
	printf("failed     %" PRIu64 "\n", load->failed);
	for (size_t i = 0; i < LOAD_KINDS && load->kinds[i].count > 0; i++)
		printf("  %-16s %" PRIu64 "  %s\n", spoke_errname(load->kinds[i].error),
		       load->kinds[i].count, spoke_strerror(load->kinds[i].error));
	if (load->first_error[0])
		printf("  the first: %s\n", load->first_error);
	if (load->plan->rate > 0)
		printf("not begun  %" PRIu64 "\n", load->not_begun);
	if (load->not_ended > 0)
		printf("not ended  %" PRIu64 "\n", load->not_ended);
}

void load_report_text(const struct load *load)
{
	print_head(load);
	printf("calls      %" PRIu64 "\nok         %" PRIu64 "\n", load->due, load->ok);
	print_failures(load);
	printf("calls/s    %.1f\n", per_second(load));
	if (load->times.count == 0)
		return;
	printf("times      mean %s\n", time_of(spoke_histogram_mean(&load->times)));
	for (size_t i = 0; i < PERCENTILES; i++)
		printf("  %-7s %12s\n", percentiles[i].name,
		       time_of(spoke_histogram_percentile(&load->times,
							  percentiles[i].per_million)));
	if (terminal_out())
		draw_times(&load->times);
}

/* --- JSON */

void load_report_json(const struct load *load)
{
	const struct load_plan *plan = load->plan;
	const char *comma = "";

	printf("{\"loop\":\"%s\",\"rate\":%g,\"outstanding\":%u,\"connections\":%u,"
	       "\"seconds\":%.6f,\"calls\":%" PRIu64 ",\"ok\":%" PRIu64 ",\"failed\":%" PRIu64
	       ",\"not_begun\":%" PRIu64 ",\"not_ended\":%" PRIu64
	       ",\"per_second\":%.3f,\"errors\":{",
	       plan->rate > 0 ? "open" : "closed", plan->rate,
	       plan->rate > 0 ? LOAD_OUTSTANDING_MAX : plan->outstanding, plan->connections,
	       seconds_of(load), load->due, load->ok, load->failed, load->not_begun,
	       load->not_ended, per_second(load));
	for (size_t i = 0; i < LOAD_KINDS && load->kinds[i].count > 0; i++) {
		printf("%s\"%s\":%" PRIu64, comma, spoke_errname(load->kinds[i].error),
		       load->kinds[i].count);
		comma = ",";
	}
	printf("},\"times_ns\":{\"count\":%" PRIu64 ",\"mean\":%" PRIu64, load->times.count,
	       spoke_histogram_mean(&load->times));
	for (size_t i = 0; i < PERCENTILES; i++)
		printf(",\"%s\":%" PRIu64, percentiles[i].key,
		       spoke_histogram_percentile(&load->times, percentiles[i].per_million));
	printf("}}\n");
}

/* --- progress and exit code */

void load_report_progress(const struct load *load)
{
	double seconds;

	if (load->stage == LOAD_CONNECTING) {
		terminal_progress("connecting ...");
		return;
	}
	seconds = (double)load_span_ns(load, load->env->now(load->env->ctx)) / SECOND;
	terminal_progress("%.1f s  %" PRIu64 " calls  %.0f/s  p50 %s  p99 %s  %" PRIu64 " failed",
			  seconds, load->due, seconds > 0 ? (double)load->ok / seconds : 0,
			  time_of(spoke_histogram_percentile(&load->times, 500000)),
			  time_of(spoke_histogram_percentile(&load->times, 990000)), load->failed);
}

int load_report_end(const struct load *load)
{
	int end = VERB_OK;

	for (size_t i = 0; i < LOAD_KINDS && load->kinds[i].count > 0; i++)
		if (spoke_error_exit(load->kinds[i].error) > end)
			end = spoke_error_exit(load->kinds[i].error);
	return end;
}
