/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark of timers: every workload, at every size, with every peer. The peers alternate
 * within each repetition, so that a slow minute of the machine affects all of them.
 */
#include "host.h"
#include "realtime.h"
#include "report.h"
#include "targets.h"

#include "tests/bench/common/options.h"

#include <stdio.h>
#include <string.h>

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
