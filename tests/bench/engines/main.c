/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark of several engines and of blocking calls: pairs of plans. Each repetition measures
 * all pairs, with both plans of a pair in succession and a rotating order of pairs. The result is
 * the median of the ratios.
 */
#include "engines.h"

#include "tests/bench/common/options.h"
#include "tests/bench/memory/memory.h"
#include "tests/bench/rpc/foreign.h"
#include "tests/bench/rpc/host.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define REPS_MAX 15u
#define RETRIES 2u
#define FOREIGN_MAX 0.05
#define WARM_MS 200u

/* Returns the kernel's id of the CPU clock of a process. */
#define CPU_CLOCK(pid) ((clockid_t)(~(unsigned)(pid) << 3 | 2))

/*
 * What a call of two engines may cost more than one of bare threads of the same run: 0.03 are three
 * percentage points. If two threads take 1.065 times the CPU time of one, two engines may take
 * 1.095 times that of one. So the target excludes what the kernel and the machine take from two
 * threads, which a share of one engine would not.
 */
#define RAW_MARGIN 0.03

/* Two plans, and the target of the second one. */
struct pair {
	struct plan plans[2];
	double calls_min; /* as a share of the first; 0: no target */
	bool beside_raw;  /* its CPU time is compared with that of the raw pair */
};

static const struct pair pairs[] = {
	{ { { .name = "tcp-1-engine", .engines = 1, .connections = 8, .outstanding = 8 },
	    { .name = "tcp-2-engines", .engines = 2, .connections = 8, .outstanding = 8 } },
	  0,
	  true },
	{ { { .name = "tcp-1-engine-turns",
	      .takes_turns = true,
	      .engines = 1,
	      .connections = 8,
	      .outstanding = 8 },
	    { .name = "tcp-2-engines-turns",
	      .takes_turns = true,
	      .engines = 2,
	      .connections = 8,
	      .outstanding = 8 } },
	  0,
	  true },
	{ { { .name = "tcp-1-engine-pinned",
	      .is_pinned = true,
	      .engines = 1,
	      .connections = 8,
	      .outstanding = 8 },
	    { .name = "tcp-2-engines-pinned",
	      .is_pinned = true,
	      .engines = 2,
	      .connections = 8,
	      .outstanding = 8 } },
	  0,
	  false },
	{ { { .name = "raw-1-thread",
	      .is_raw = true,
	      .engines = 1,
	      .connections = 8,
	      .outstanding = 8 },
	    { .name = "raw-2-threads",
	      .is_raw = true,
	      .engines = 2,
	      .connections = 8,
	      .outstanding = 8 } },
	  0,
	  false },
	{ { { .name = "unix-1-engine",
	      .is_unix = true,
	      .engines = 1,
	      .connections = 8,
	      .outstanding = 8 },
	    { .name = "unix-2-engines",
	      .is_unix = true,
	      .engines = 2,
	      .connections = 8,
	      .outstanding = 8 } },
	  0,
	  true },
	{ { { .name = "engine-8", .engines = 1, .connections = 1, .outstanding = 8 },
	    { .name = "8-threads-block",
	      .blocks = true,
	      .engines = 1,
	      .connections = 1,
	      .outstanding = 8 } },
	  0.50,
	  false },
};

#define PAIRS (sizeof(pairs) / sizeof(pairs[0]))

struct sample {
	double calls_per_s;
	double cpu_us;   /* per call, both sides */
	double switches; /* context switches per 1,000 calls, both sides */
	double foreign;  /* share of all CPUs that other processes used */
};

struct bench {
	unsigned reps;
	uint64_t span_ns;
	const char *only; /* substring of the names to run; NULL: all */
	struct board *board;
	char folder[40];
	bool failed;
};

/* Globals that foreign.c requires. */
void host_die(const char *format, ...)
{
	die("%s", format);
}

uint64_t host_now_ns(void)
{
	return now_ns();
}

static uint64_t cpu_of(pid_t pid)
{
	struct timespec time;

	if (clock_gettime(CPU_CLOCK(pid), &time))
		die("a child process ended too early");
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static void sleep_for(uint64_t ns)
{
	const struct timespec pause = { (time_t)(ns / SECOND), (long)(ns % SECOND) };

	(void)nanosleep(&pause, NULL);
}

static uint64_t calls_on(const struct board *board, uint64_t *ret_failed)
{
	uint64_t calls = 0;

	*ret_failed = 0;
	for (unsigned i = 0; i < SEATS_MAX; i++) {
		calls += atomic_load_explicit(&board->candidates[i].calls, memory_order_relaxed);
		*ret_failed += atomic_load_explicit(&board->candidates[i].failed,
						    memory_order_relaxed);
	}
	return calls;
}

/* Measures after both processes have started. Returns the number of failed calls. */
static uint64_t take_sample(const struct bench *bench, const struct helper helpers[2],
			    struct sample *ret)
{
	uint64_t failed;
	uint64_t begun_ns;
	uint64_t cpu;
	uint64_t switches;
	uint64_t calls;

	sleep_for(WARM_MS * MS);
	begun_ns = now_ns();
	switches = switches_of(helpers[0].pid) + switches_of(helpers[1].pid);
	cpu = cpu_of(helpers[0].pid) + cpu_of(helpers[1].pid);
	calls = calls_on(bench->board, &failed);
	sleep_for(bench->span_ns);
	calls = calls_on(bench->board, &failed) - calls;
	cpu = cpu_of(helpers[0].pid) + cpu_of(helpers[1].pid) - cpu;
	switches = switches_of(helpers[0].pid) + switches_of(helpers[1].pid) - switches;
	begun_ns = now_ns() - begun_ns;
	if (calls == 0)
		die("no call was answered");
	ret->calls_per_s = (double)calls * 1e9 / (double)begun_ns;
	ret->cpu_us = (double)cpu / 1e3 / (double)calls;
	ret->switches = (double)switches * 1e3 / (double)calls;
	return failed;
}

static void pin_to(const struct plan *plan, size_t core)
{
	cpu_set_t cores;

	if (!plan->is_pinned)
		return;
	CPU_ZERO(&cores);
	CPU_SET(core, &cores);
	if (sched_setaffinity(0, sizeof(cores), &cores))
		die("cannot pin to core %zu: not available", core);
}

static void play_first(void *arg, int in, int out)
{
	const struct plan *plan = ((const struct part *)arg)->plan;

	pin_to(plan, 0);
	(plan->is_raw ? play_raw_provider : play_provider)(arg, in, out);
}

static void play_second(void *arg, int in, int out)
{
	const struct plan *plan = ((const struct part *)arg)->plan;

	pin_to(plan, 1);
	(plan->is_raw ? play_raw_consumer : play_consumer)(arg, in, out);
}

static struct sample measure_once(struct bench *bench, const struct plan *plan)
{
	struct plan mine = *plan;
	struct part part = { &mine, bench->board };
	struct sample sample = { 0 };
	struct foreign foreign;
	struct helper helpers[2];
	char place[PLACE_SIZE];
	uint64_t failed;
	char ready;

	(void)snprintf(mine.path, sizeof(mine.path), "%s/socket", bench->folder);
	memset(bench->board, 0, sizeof(*bench->board));
	foreign = foreign_begin();
	helper_start(&helpers[0], play_first, &part);
	helper_start(&helpers[1], play_second, &part);
	helper_hear(&helpers[0], NULL, place, sizeof(place));
	helper_tell(&helpers[1], place, sizeof(place));
	helper_hear(&helpers[1], NULL, &ready, 1);
	failed = take_sample(bench, helpers, &sample);
	helper_end(&helpers[1]);
	helper_end(&helpers[0]);
	sample.foreign = foreign_end(&foreign);
	(void)unlink(mine.path);
	if (failed > 0) {
		(void)fprintf(stderr, "%s: %llu calls failed\n", plan->name,
			      (unsigned long long)failed);
		bench->failed = true;
	}
	return sample;
}

/* Repeats a measurement that other processes disturbed, up to a limit. */
static struct sample measure(struct bench *bench, const struct plan *plan)
{
	struct sample sample = measure_once(bench, plan);

	for (unsigned i = 0; i < RETRIES && sample.foreign > FOREIGN_MAX; i++) {
		(void)fprintf(stderr, "  %s: others used %.1f %% of the CPUs, again\n", plan->name,
			      sample.foreign * 100);
		sample = measure_once(bench, plan);
	}
	return sample;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a;
	double right = *(const double *)b;

	return (left > right) - (left < right);
}

static double median(const double *values, unsigned count)
{
	double sorted[REPS_MAX];

	memcpy(sorted, values, count * sizeof(*values));
	qsort(sorted, count, sizeof(*sorted), compare);
	return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

enum column {
	CALLS,
	CPU,
	SWITCHES,
	CALLS_RATIO,
	CPU_RATIO,
	COLUMNS,
};

/* Returns the median of one plan over all repetitions. */
struct series {
	double columns[COLUMNS][REPS_MAX];
	unsigned disturbed;
};

static void print_target(const struct pair *pair, const char *what, double ratio, bool good)
{
	(void)fprintf(stderr, "%-20s %s of %-19s %6.3fx  %s\n", pair->plans[1].name, what,
		      pair->plans[0].name, ratio, good ? "ok" : "SHORT");
}

static bool is_wanted(const struct bench *bench, const struct pair *pair)
{
	return bench->only == NULL || strstr(pair->plans[0].name, bench->only) ||
	       strstr(pair->plans[1].name, bench->only);
}

static void measure_pair(struct bench *bench, const struct pair *pair, unsigned rep,
			 struct series series[2])
{
	struct sample samples[2];

	for (unsigned i = 0; i < 2; i++) {
		unsigned at = (rep + i) % 2;

		samples[at] = measure(bench, &pair->plans[at]);
		series[at].disturbed += samples[at].foreign > FOREIGN_MAX;
	}
	for (unsigned i = 0; i < 2; i++) {
		const struct sample *sample = &samples[i];

		series[i].columns[CALLS][rep] = sample->calls_per_s;
		series[i].columns[CPU][rep] = sample->cpu_us;
		series[i].columns[SWITCHES][rep] = sample->switches;
		series[i].columns[CALLS_RATIO][rep] = sample->calls_per_s / samples[0].calls_per_s;
		series[i].columns[CPU_RATIO][rep] = sample->cpu_us / samples[0].cpu_us;
	}
}

static void print_pair(const struct bench *bench, const struct pair *pair,
		       const struct series series[2])
{
	double medians[COLUMNS] = { 0 };

	for (unsigned i = 0; i < 2; i++) {
		const char *name = pair->plans[i].name;

		for (unsigned j = 0; j < COLUMNS; j++)
			medians[j] = median(series[i].columns[j], bench->reps);
		printf("%s\t%.0f\t%.3f\t%.3f\t%.3f\t%.1f\n", name, medians[CALLS], medians[CPU],
		       medians[CALLS_RATIO], medians[CPU_RATIO], medians[SWITCHES]);
		if (series[i].disturbed)
			printf("# %s: others used more than %.0f %% of the CPUs in %u of %u "
			       "repetitions\n",
			       name, FOREIGN_MAX * 100, series[i].disturbed, bench->reps);
	}
	(void)fflush(stdout);
	if (pair->calls_min > 0)
		print_target(pair, "calls/s", medians[CALLS_RATIO],
			     medians[CALLS_RATIO] >= pair->calls_min);
}

/* Compares the CPU time of two engines, as a multiple of one engine's, with that of two threads, in
 * each repetition. */
static void judge_beside_raw(const struct bench *bench, const struct pair *pair,
			     const struct series series[2], const struct series raw[2])
{
	double points[REPS_MAX];
	double middle;

	for (unsigned i = 0; i < bench->reps; i++)
		points[i] = series[1].columns[CPU_RATIO][i] - raw[1].columns[CPU_RATIO][i];
	middle = median(points, bench->reps);
	(void)fprintf(
		stderr,
		"%-20s CPU/call as a multiple of %s's: raw threads' %+.1f points, of %.0f  %s\n",
		pair->plans[1].name, pair->plans[0].name, middle * 100, RAW_MARGIN * 100,
		middle <= RAW_MARGIN ? "ok" : "SHORT");
}

static unsigned find_raw(void)
{
	unsigned at = 0;

	while (!pairs[at].plans[0].is_raw)
		at++;
	return at;
}

static void run_pairs(struct bench *bench)
{
	static struct series series[PAIRS][2];
	const unsigned raw = find_raw();

	for (unsigned rep = 0; rep < bench->reps; rep++) {
		(void)fprintf(stderr, "repetition %u of %u\n", rep + 1, bench->reps);
		for (unsigned i = 0; i < PAIRS; i++)
			if (is_wanted(bench, &pairs[i]))
				measure_pair(bench, &pairs[i], rep, series[i]);
	}
	printf("case\tcalls_per_s\tcpu_us_per_call\tcalls_ratio\tcpu_ratio\t"
	       "switches_per_1000_calls\n");
	for (unsigned i = 0; i < PAIRS; i++)
		if (is_wanted(bench, &pairs[i]))
			print_pair(bench, &pairs[i], series[i]);
	for (unsigned i = 0; i < PAIRS; i++)
		if (pairs[i].beside_raw && is_wanted(bench, &pairs[i]) &&
		    is_wanted(bench, &pairs[raw]))
			judge_beside_raw(bench, &pairs[i], series[i], series[raw]);
}

static void read_options(struct bench *bench, int argc, char **argv)
{
	static const char usage[] = "[--quick] [--reps <1-15>] [--span <ms>] [--only <word>]";
	bool is_quick = false;
	uint64_t reps = 0;
	uint64_t span_ms = 0;
	const struct option_row rows[] = {
		{ "--quick", .flag = &is_quick },
		{ "--reps", .number = &reps, .min = 1, .max = REPS_MAX },
		{ "--span", .number = &span_ms, .min = 1, .max = 60000 },
		{ "--only", .text = &bench->only },
	};

	options_read(argc, argv, rows, sizeof(rows) / sizeof(rows[0]), usage);
	if (span_ms == 0)
		span_ms = is_quick ? 700 : 1000;
	if (reps == 0)
		reps = is_quick ? 2 : 9;
	bench->span_ns = span_ms * MS;
	bench->reps = (unsigned)reps;
}

int main(int argc, char **argv)
{
	struct bench bench = { .folder = "/tmp/spoke-bench-XXXXXX" };

	read_options(&bench, argc, argv);
	bench.board = mmap(NULL, sizeof(*bench.board), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (bench.board == MAP_FAILED || mkdtemp(bench.folder) == NULL)
		die("cannot map shared memory or create a directory for a socket");
	run_pairs(&bench);
	(void)rmdir(bench.folder);
	return bench.failed;
}
