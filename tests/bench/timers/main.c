/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark of timers: every workload, at every size, with every peer. The peers alternate
 * within each repetition, so that a slow minute of the machine affects all of them.
 */
#include "dice.h"
#include "host.h"
#include "peer.h"
#include "tests/bench/common/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

/*
 * --- keeps the results, one row per workload, size and peer, and prints them. The value of a
 * row is the median of its repetitions; its ratio the median of the ratios within each
 * repetition, because a disturbance of the machine affects neighbouring measurements alike
 */

#define REPORT_REPS_MAX 16

struct report_key {
	const char *workload;
	uint64_t n;
	const char *peer;
	const char *unit;
};

struct report_row {
	struct report_key key;
	uint32_t reps;
	double samples[REPORT_REPS_MAX];
};

/* --- measurements that need real time: wake-ups of an idle loop, and lateness of timers */

struct realtime_lateness {
	double p50_ms;
	double p99_ms;
	double max_ms;
	double early; /* timers that fired before their deadline */
};

/* --- rows of samples and their medians */

#define ROWS_MAX 512

static struct report_row report_rows[ROWS_MAX];

static uint32_t count;

static struct report_row *find(const char *workload, uint64_t n, const char *peer)
{
	for (uint32_t i = 0; i < count; i++) {
		struct report_row *row = &report_rows[i];

		if (row->key.n == n && strcmp(row->key.workload, workload) == 0 &&
		    strcmp(row->key.peer, peer) == 0)
			return row;
	}
	return NULL;
}

/* Returns the row, or NULL. */
static const struct report_row *report_find(const char *workload, uint64_t n, const char *peer)
{
	return find(workload, n, peer);
}

/* Adds one repetition to the row, and creates the row if it is missing. */
static void report_add(const struct report_key *key, double sample)
{
	struct report_row *row = find(key->workload, key->n, key->peer);

	if (row == NULL) {
		if (count == ROWS_MAX)
			host_die("more rows than the report has room for");
		row = &report_rows[count++];
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

static double report_median(const struct report_row *row)
{
	return median(row->samples, row->reps);
}

/* Stores the median of row / base. Returns false if there is none: no base, or a base of 0. */
static bool report_ratio(const struct report_row *row, const struct report_row *base,
			 double *ret_ratio)
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

/* Print the header, and all rows of a workload and size as TSV to stdout; ratio to peer `base`. */
static void report_print_header(void)
{
	(void)puts("workload\tn\tpeer\tvalue\tunit\tratio");
}

static void report_print(const char *workload, uint64_t n, const char *base)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct report_row *row = &report_rows[i];
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

/* --- the table of targets and their results */

struct target {
	const char *workload;
	uint64_t n;
	const char *peer; /* its value must be at least `limit` times that of `base`, */
	const char *base; /* or, if this is NULL, at most `limit` itself */
	double limit;
};

static const struct target targets[] = {
	{ "rpc-pair", 1000, "libev", "spoke-disarm", 10 },
	{ "rpc-pair", 1000, "libevent", "spoke-disarm", 20 },
	{ "rpc-pair", 1000, "libuv", "spoke-disarm", 50 },
	{ "rpc-pair", 1000, "libev", "spoke-cancel", 4 },
	{ "rpc-pair", 100000, "libev", "spoke-disarm", 10 },
	{ "rpc-pair", 100000, "libevent", "spoke-disarm", 20 },
	{ "rpc-pair", 100000, "libuv", "spoke-disarm", 50 },
	{ "rpc-pair", 100000, "libev", "spoke-cancel", 4 },
	{ "rpc-pair", 1000000, "libev", "spoke-disarm", 8 },
	{ "rpc-pair", 1000000, "libevent", "spoke-disarm", 20 },
	{ "rpc-pair", 1000000, "libuv", "spoke-disarm", 40 },
	{ "random-victim", 100000, "libev", "spoke-disarm", 4 },
	{ "random-victim", 100000, "libevent", "spoke-disarm", 25 },
	{ "random-victim", 100000, "libuv", "spoke-disarm", 30 },
	{ "expire-step", 1000000, "libev", "spoke", 2 },
	{ "expire-step", 1000000, "libevent", "spoke", 8 },
	{ "expire-step", 1000000, "libuv", "spoke", 8 },
	{ "expire-step-worst", 1000000, "spoke", NULL, 0.5 },
	{ "update-deadline", 100000, "libev", "spoke", 7 },
	{ "update-deadline", 100000, "libevent", "spoke", 70 },
	{ "update-deadline", 100000, "libuv", "spoke", 100 },
	{ "next-expiry", 1000, "libuv", "spoke", 1 },
	{ "next-expiry", 100000, "libuv", "spoke", 1 },
	{ "next-expiry", 1000000, "libuv", "spoke", 1 },
	{ "bytes", 1, "spoke", NULL, 32 },
	{ "idle-wakeups", 1, "spoke", NULL, 0 },
	{ "lateness-p99", 4000, "spoke", NULL, 1.15 },
	{ "early", 4000, "spoke", NULL, 0 },
};

static const char *verdict(bool reached)
{
	return reached ? "ok" : "SHORT";
}

static void print_target(const struct target *target)
{
	const struct report_row *row = report_find(target->workload, target->n, target->peer);
	const struct report_row *base = NULL;
	double value = 0;

	(void)fprintf(stderr, "%-18s %8llu  ", target->workload, (unsigned long long)target->n);
	if (target->base != NULL) {
		base = report_find(target->workload, target->n, target->base);
		(void)fprintf(stderr, "%-8s / %-18s  at least %5gx  ", target->peer, target->base,
			      target->limit);
	} else {
		(void)fprintf(stderr, "%-29s  at most  %5g   ", target->peer, target->limit);
	}
	if (row == NULL || (target->base != NULL && !report_ratio(row, base, &value))) {
		(void)fputs("not measured\n", stderr);
	} else if (target->base != NULL) {
		(void)fprintf(stderr, "%7.2fx  %s\n", value, verdict(value >= target->limit));
	} else {
		value = report_median(row);
		(void)fprintf(stderr, "%7.3g   %s\n", value, verdict(value <= target->limit));
	}
}

/* Prints to stderr, for each target, the measured value and the result. */
static void targets_print(void)
{
	(void)fputs("\ntargets:\n", stderr);
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		print_target(&targets[i]);
}

/* --- idle wake-ups and lateness */

#define FAR_US UINT64_C(600000000)
#define GRACE_MS UINT64_C(200) /* after the last deadline, for late timers */

static struct bench_live live;

static int64_t *late_ns; /* by index of the timer */

static uint64_t fired;

static void note_late(uint64_t index)
{
	uint64_t deadline_ns = live.base_ns + live.delays_us[index] * 1000;

	late_ns[index] = (int64_t)(host_real_ns() - deadline_ns);
	fired++;
}

/* Runs the peer's loop with these delays; it ends after `span_ms`. */
static void run_loop(const struct bench_kit *kit, uint64_t n, const uint64_t *delays_us,
		     uint64_t span_ms)
{
	struct itimerspec span = {
		.it_value = {
			.tv_sec = (time_t)(span_ms / 1000),
			.tv_nsec = (long)(span_ms % 1000 * HOST_MS),
		},
	};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0 || timerfd_settime(fd, 0, &span, NULL) != 0)
		host_die("no timerfd");
	live = (struct bench_live){
		.n = n, .delays_us = delays_us, .stop_fd = fd, .due = note_late
	};
	late_ns = host_memory(n, sizeof(*late_ns));
	fired = 0;
	kit->live(&live);
	(void)close(fd);
}

/* Returns the number of wake-ups of the peer's loop in `span_ms` while its one timer is ten minutes
 * away. */
static double realtime_idle(const struct bench_kit *kit, uint64_t span_ms)
{
	uint64_t delay_us = FAR_US;

	run_loop(kit, 1, &delay_us, span_ms);
	free(late_ns);
	if (fired != 0)
		host_die("a timer of ten minutes fired at once");
	if (live.wakeups == 0)
		host_die("a loop ended without waking up");
	return (double)(live.wakeups - 1);
}

static int realtime_compare(const void *a, const void *b)
{
	int64_t left;
	int64_t right;

	memcpy(&left, a, sizeof(left));
	memcpy(&right, b, sizeof(right));
	return (left > right) - (left < right);
}

static double in_ms(int64_t ns)
{
	return (double)ns / (double)HOST_MS;
}

static struct realtime_lateness realtime_lateness(const struct bench_kit *kit, uint64_t n,
						  uint64_t span_ms)
{
	struct dice dice = { DICE_SEED };
	struct realtime_lateness result = { 0 };
	uint64_t *delays_us = host_memory(n, sizeof(*delays_us));

	for (uint64_t i = 0; i < n; i++)
		delays_us[i] = 1 + dice_below((uint32_t)dice_roll(&dice), (uint32_t)span_ms * 1000);
	run_loop(kit, n, delays_us, span_ms + GRACE_MS);
	if (fired != n)
		host_die("%llu of %llu timers fired in time", (unsigned long long)fired,
			 (unsigned long long)n);
	qsort(late_ns, n, sizeof(*late_ns), realtime_compare);
	result.p50_ms = in_ms(late_ns[n / 2]);
	result.p99_ms = in_ms(late_ns[n * 99 / 100]);
	result.max_ms = in_ms(late_ns[n - 1]);
	for (uint64_t i = 0; i < n; i++)
		result.early += late_ns[i] < 0 ? 1 : 0;
	free(delays_us);
	free(late_ns);
	return result;
}

/*
 * --- the benchmark of timers: every workload, at every size, with every peer. The peers
 * alternate within each repetition, so that a slow minute of the machine affects all of them
 */

/* Groups of contenders: spoke by its way to cancel, and spoke where nothing is cancelled. */
enum group {
	PAIRS = 1,
	PLAIN = 2,
	OTHERS = 4,
};

struct contender {
	const char *name;
	const struct bench_kit *kit;
	enum group group;
};

static const struct contender contenders[] = {
	{ "spoke-disarm", &bench_spoke_disarm, PAIRS },
	{ "spoke-cancel", &bench_spoke_cancel, PAIRS },
	{ "spoke", &bench_spoke_disarm, PLAIN },
	{ "libev", &bench_libev, OTHERS },
	{ "libuv", &bench_libuv, OTHERS },
	{ "libevent", &bench_libevent, OTHERS },
	{ "wheel-lists", &bench_lists, OTHERS },
};

#define CONTENDERS (sizeof(contenders) / sizeof(contenders[0]))
/* The engine's default ways, to which all others are compared. */
#define PAIRS_BASE "spoke-disarm"
#define PLAIN_BASE "spoke"
/* Sizes, as a set. Ten million is measured for spoke only. */
enum size {
	THOUSAND = 1,
	HUNDRED_THOUSAND = 2,
	MILLION = 4,
	TEN_MILLION = 8,
	ALL_SIZES = 15,
	LARGE_SIZES = 14,
	QUICK_SIZES = 3,
};

static const uint64_t sizes[] = { 1000, 100000, 1000000, 10000000 };

struct workload {
	const char *name;
	const char *unit;
	unsigned groups; /* of enum group */
	unsigned sizes;  /* of enum size */
	const char *base;
};

static const struct workload workloads[BENCH_WORKLOADS] = {
	[BENCH_RPC_PAIR] = { "rpc-pair", "ns", PAIRS | OTHERS, ALL_SIZES, PAIRS_BASE },
	[BENCH_RANDOM_VICTIM] = { "random-victim", "ns", PAIRS | OTHERS, ALL_SIZES, PAIRS_BASE },
	[BENCH_RANDOM_MOVE] = { "random-move", "ns", PLAIN | OTHERS, ALL_SIZES, PLAIN_BASE },
	[BENCH_FIFO_ADVANCE] = { "fifo-advance", "ns", PAIRS | OTHERS, ALL_SIZES, PAIRS_BASE },
	[BENCH_EXPIRE_STEP] = { "expire-step", "ns", PLAIN | OTHERS, ALL_SIZES, PLAIN_BASE },
	[BENCH_EXPIRE_STEP_WORST] = { "expire-step-worst", "ms", PLAIN | OTHERS, LARGE_SIZES,
				      PLAIN_BASE },
	[BENCH_EXPIRE_JUMP] = { "expire-jump", "ns", PLAIN | OTHERS, ALL_SIZES, PLAIN_BASE },
	[BENCH_EXPIRE_JUMP_WORST] = { "expire-jump-worst", "ms", PLAIN | OTHERS, LARGE_SIZES,
				      PLAIN_BASE },
	[BENCH_UPDATE_DEADLINE] = { "update-deadline", "ns", PLAIN | OTHERS, ALL_SIZES,
				    PLAIN_BASE },
	[BENCH_NEXT_EXPIRY] = { "next-expiry", "ns", PLAIN | OTHERS, ALL_SIZES, PLAIN_BASE },
	[BENCH_NEXT_AFTER_CHANGE] = { "next-after-change", "ns", PLAIN | OTHERS, ALL_SIZES,
				      PLAIN_BASE },
	[BENCH_BURST] = { "burst", "ns", PLAIN | OTHERS, MILLION, PLAIN_BASE },
	[BENCH_BURST_WORST] = { "burst-worst", "ms", PLAIN | OTHERS, MILLION, PLAIN_BASE },
};

/* The last CPU that is allowed. */
#define LAST_CPU UINT64_MAX

struct options {
	bool quick;
	uint64_t cpu;     /* or LAST_CPU */
	uint64_t reps;    /* 0: default of a quick or full run */
	const char *only; /* one workload; NULL: all */
	const char *peer; /* the beginning of names of peers, separated by commas; NULL: all */
	uint64_t n;       /* one size; 0: all */
};

/* Returns whether the name begins with one of the words of the option. */
static bool named(const struct options *options, const char *name)
{
	const char *word = options->peer;

	while (word != NULL) {
		size_t len = strcspn(word, ",");

		if (strncmp(name, word, len) == 0)
			return true;
		word = word[len] == ',' ? word + len + 1 : NULL;
	}
	return options->peer == NULL;
}

static bool takes_part(const struct options *options, const struct contender *contender,
		       const struct workload *workload, uint64_t n)
{
	if ((workload->groups & contender->group) == 0 || !named(options, contender->name))
		return false;
	return n < 10000000 || contender->group != OTHERS;
}

static bool wanted(const struct options *options, const char *workload)
{
	return options->only == NULL || strcmp(options->only, workload) == 0;
}

static void run_size(const struct options *options, enum bench_workload which, uint64_t n)
{
	const struct workload *workload = &workloads[which];

	(void)fprintf(stderr, "%s %llu\n", workload->name, (unsigned long long)n);
	for (uint32_t rep = 0; rep < options->reps; rep++) {
		for (size_t i = 0; i < CONTENDERS; i++) {
			const struct contender *contender = &contenders[i];
			struct report_key key = { workload->name, n, contender->name,
						  workload->unit };
			struct bench_plan plan = {
				.n = n,
				.spent_min_ns = (options->quick ? 10 : 40) * HOST_MS,
			};

			if (takes_part(options, contender, workload, n) &&
			    contender->kit->run[which] != NULL)
				report_add(&key, contender->kit->run[which](&plan));
		}
	}
	report_print(workload->name, n, workload->base);
}

static void run_workload(const struct options *options, enum bench_workload which)
{
	unsigned set = workloads[which].sizes;

	if (options->quick)
		set = (set & QUICK_SIZES) != 0 ? set & QUICK_SIZES : HUNDRED_THOUSAND;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if ((set & 1u << i) != 0 && (options->n == 0 || options->n == sizes[i]))
			run_size(options, which, sizes[i]);
}

/* Returns the contender that represents its kind where cancelling does not matter. */
static bool stands(const struct options *options, const struct contender *contender)
{
	return contender->group != PAIRS && named(options, contender->name);
}

static void run_bytes(const struct options *options)
{
	for (size_t i = 0; i < CONTENDERS; i++) {
		struct report_key key = { "bytes", 1, contenders[i].name, "bytes" };

		if (stands(options, &contenders[i]))
			report_add(&key, (double)contenders[i].kit->bytes);
	}
	report_print("bytes", 1, PLAIN_BASE);
}

static void run_idle(const struct options *options)
{
	(void)fputs("idle-wakeups\n", stderr);
	for (size_t i = 0; i < CONTENDERS; i++) {
		struct report_key key = { "idle-wakeups", 1, contenders[i].name, "count" };

		if (stands(options, &contenders[i]) && contenders[i].kit->live != NULL)
			report_add(&key,
				   realtime_idle(contenders[i].kit, options->quick ? 500 : 3000));
	}
	report_print("idle-wakeups", 1, PLAIN_BASE);
}

static void add_lateness(const struct contender *contender, uint64_t n, uint64_t span_ms)
{
	struct realtime_lateness late = realtime_lateness(contender->kit, n, span_ms);
	struct report_key keys[] = {
		{ "lateness-p50", n, contender->name, "ms" },
		{ "lateness-p99", n, contender->name, "ms" },
		{ "lateness-max", n, contender->name, "ms" },
		{ "early", n, contender->name, "count" },
	};

	report_add(&keys[0], late.p50_ms);
	report_add(&keys[1], late.p99_ms);
	report_add(&keys[2], late.max_ms);
	report_add(&keys[3], late.early);
}

static void run_lateness(const struct options *options)
{
	const uint64_t n = 4000;

	(void)fputs("lateness\n", stderr);
	for (uint64_t rep = 0; rep < (options->quick ? 1 : options->reps); rep++) {
		for (size_t i = 0; i < CONTENDERS; i++)
			if (stands(options, &contenders[i]) && contenders[i].kit->live != NULL)
				add_lateness(&contenders[i], n, options->quick ? 1000 : 2000);
	}
	report_print("lateness-p50", n, PLAIN_BASE);
	report_print("lateness-p99", n, PLAIN_BASE);
	report_print("lateness-max", n, PLAIN_BASE);
	report_print("early", n, PLAIN_BASE);
}

static struct options read_options(int argc, char **argv)
{
	static const char usage[] =
		"[--quick] [--reps <1-16>] [--cpu <number>]\n"
		"       [--only <workload>] [--peer <name>[,...]] [--n <timers>]";
	struct options options = { .cpu = LAST_CPU };
	const struct option_row rows[] = {
		{ "--quick", .flag = &options.quick },
		{ "--reps", .number = &options.reps, .min = 1, .max = REPORT_REPS_MAX },
		{ "--cpu", .number = &options.cpu, .max = 1023 },
		{ "--n", .number = &options.n, .max = UINT32_MAX },
		{ "--only", .text = &options.only },
		{ "--peer", .text = &options.peer },
	};

	options_read(argc, argv, rows, sizeof(rows) / sizeof(rows[0]), usage);
	if (options.reps == 0)
		options.reps = options.quick ? 3 : 5;
	return options;
}

int main(int argc, char **argv)
{
	struct options options = read_options(argc, argv);

	host_init(options.cpu == LAST_CPU ? -1 : (int)options.cpu);
	report_print_header();
	for (unsigned i = 0; i < BENCH_WORKLOADS; i++)
		if (wanted(&options, workloads[i].name))
			run_workload(&options, (enum bench_workload)i);
	if (wanted(&options, "bytes"))
		run_bytes(&options);
	if (wanted(&options, "idle-wakeups"))
		run_idle(&options);
	if (wanted(&options, "lateness"))
		run_lateness(&options);
	targets_print();
	return 0;
}
