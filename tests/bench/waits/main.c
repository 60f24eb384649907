/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What adaptive waiting and early writes must not cost. Each case is measured in turns with the
 * engine as shipped and with the alternatives: engines that sleep at once (spin = off), and engines
 * that write early in each turn, or in none. Results are medians of the ratios within each
 * repetition.
 */
#include "tests/bench/common/options.h"
#include "tests/bench/rpc/host.h"
#include "tests/bench/rpc/pattern.h"
#include "tests/bench/rpc/report.h"
#include "tests/bench/rpc/stage.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOGS 2u
#define LOST_MAX 0.05  /* of calls/s or CPU time, by waiting */
#define WORSE_MAX 0.03 /* of calls/s, by the choice of early writes */

struct trial {
	const char *name;
	uint32_t payload;
	uint32_t connections;
	uint32_t outstanding;
	uint32_t pause_us;
	bool is_one_core;
	bool has_hogs; /* a busy process on each core, at normal priority like the peers */
	bool is_idle;
};

static const struct trial waiting[] = {
	{ "1x1", 32, 1, 1, 0, false, false, false },
	{ "1x64", 32, 1, 64, 0, false, false, false },
	{ "64x1", 32, 64, 1, 0, false, false, false },
	{ "10x10", 32, 10, 10, 0, false, false, false },
	{ "64KiB-1x1", 65536, 1, 1, 0, false, false, false },
	{ "1x1, one core", 32, 1, 1, 0, true, false, false },
	{ "1x64, one core", 32, 1, 64, 0, true, false, false },
	{ "1x1, pauses of 100 us", 32, 1, 1, 100, false, false, false },
	{ "1x1, pauses of 1 ms", 32, 1, 1, 1000, false, false, false },
	{ "1x1, busy machine", 32, 1, 1, 0, false, true, false },
	{ "64x1, busy machine", 32, 64, 1, 0, false, true, false },
	{ "idle", 32, 1, 1, 0, false, false, true },
};

static const struct trial writing[] = {
	{ "early 1x1", 32, 1, 1, 0, false, false, false },
	{ "early 1x64", 32, 1, 64, 0, false, false, false },
	{ "early 1x256", 32, 1, 256, 0, false, false, false },
	{ "early 64x4", 32, 64, 4, 0, false, false, false },
	{ "early 10x10", 32, 10, 10, 0, false, false, false },
	{ "early 100x10", 32, 100, 10, 0, false, false, false },
	{ "early 10x100", 32, 10, 100, 0, false, false, false },
	{ "early 1KiB-1x64", 1024, 1, 64, 0, false, false, false },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct rpc_peer *const waiters[] = { &rpc_spoke, &rpc_spoke_sleep };
static const struct rpc_peer *const writers[] = { &rpc_spoke, &rpc_spoke_early, &rpc_spoke_late };

struct bench {
	uint64_t reps;
	uint64_t span_ms;
	const char *only; /* part of the names to measure; NULL: all */
	uint64_t wakeups; /* of the idle trial, of spoke as shipped */
	bool has_failed;
};

static pid_t start_hog(int cpu)
{
	pid_t pid = fork();

	if (pid < 0)
		host_die("no process");
	if (pid > 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	host_pin(cpu);
	for (;;)
		__asm__ volatile("");
}

/* Measures one peer. Hogs and peers then have the same priority. */
static void measure(struct bench *bench, const struct trial *trial, const struct rpc_peer *peer)
{
	const struct sched_param normal = { .sched_priority = 0 };
	const int policy = sched_getscheduler(0);
	struct sched_param param;
	pid_t hogs[HOGS] = { 0 };
	struct rpc_report report;
	struct rpc_plan plan = {
		.address = "127.0.0.1",
		.payload = trial->payload,
		.connections = trial->connections,
		.outstanding = trial->outstanding,
		.pause_us = trial->pause_us,
		.is_idle = trial->is_idle,
		.warm_ns = 200 * HOST_MS,
		.span_ns = bench->span_ms * HOST_MS,
		.server_cpu = trial->is_one_core ? 1 : 0,
		.client_cpu = 1,
	};

	if (sched_getparam(0, &param) != 0)
		host_die("no priority");
	if (trial->has_hogs)
		(void)sched_setscheduler(0, SCHED_OTHER, &normal);
	for (unsigned i = 0; i < HOGS && trial->has_hogs; i++)
		hogs[i] = start_hog((int)i);
	if (stage_measure(peer, &plan, &report) != STAGE_OK) {
		bench->has_failed = true;
		report_fail(trial->name, peer->name);
	} else if (!trial->is_idle) {
		report_add(trial->name, peer->name, &report);
	} else if (peer == &rpc_spoke) {
		bench->wakeups += report.server.waits + report.client.waits;
	}
	for (unsigned i = 0; i < HOGS && trial->has_hogs; i++) {
		(void)kill(hogs[i], SIGKILL);
		(void)waitpid(hogs[i], NULL, 0);
	}
	if (trial->has_hogs)
		(void)sched_setscheduler(0, policy, &param);
}

static void print_values(const struct trial *trial, const struct rpc_peer *peer)
{
	const struct report_row *row = report_find(trial->name, peer->name);

	if (row != NULL && row->reps > 0)
		printf("%s\t%s\t%.0f\t%.3f\n", trial->name, peer->name,
		       report_median(row, REPORT_CALLS_PER_S), report_median(row, REPORT_CPU_US));
	(void)fflush(stdout);
}

/* Returns the ratio of spoke as shipped to another peer; 0: not measured. */
static double against(const struct trial *trial, const struct rpc_peer *peer,
		      enum report_column column)
{
	double ratio = 0;

	(void)report_ratio(report_find(trial->name, REPORT_SPOKE),
			   report_find(trial->name, peer->name), column, &ratio);
	return ratio;
}

static void judge_waiting(const struct bench *bench, const struct trial *trial)
{
	double calls = against(trial, &rpc_spoke_sleep, REPORT_CALLS_PER_S);
	double cpu = against(trial, &rpc_spoke_sleep, REPORT_CPU_US);

	if (trial->is_idle)
		(void)fprintf(stderr, "%-24s %llu wake-ups, of 0  %s\n", trial->name,
			      (unsigned long long)bench->wakeups,
			      bench->wakeups == 0 ? "ok" : "SHORT");
	else
		(void)fprintf(stderr, "%-24s auto / off: calls/s %.3f, CPU per call %.3f  %s\n",
			      trial->name, calls, cpu,
			      calls >= 1 - LOST_MAX && cpu <= 1 + LOST_MAX ? "ok" : "SHORT");
}

static void judge_writing(const struct trial *trial)
{
	double early = against(trial, &rpc_spoke_early, REPORT_CALLS_PER_S);
	double late = against(trial, &rpc_spoke_late, REPORT_CALLS_PER_S);
	double worst = early < late ? early : late;

	(void)fprintf(stderr, "%-24s shipped / early %.3f, / not early %.3f  %s\n", trial->name,
		      early, late, worst >= 1 - WORSE_MAX ? "ok" : "SHORT");
}

/* Measures all peers of a trial in turn, and begins each repetition with another one. */
static void run(struct bench *bench, const struct trial *trial, const struct rpc_peer *const *peers,
		size_t count)
{
	if (bench->only != NULL && strstr(trial->name, bench->only) == NULL)
		return;
	for (uint64_t rep = 0; rep < bench->reps; rep++)
		for (size_t i = 0; i < count; i++)
			measure(bench, trial, peers[(rep + i) % count]);
	for (size_t i = 0; i < count; i++)
		print_values(trial, peers[i]);
	if (peers == waiters)
		judge_waiting(bench, trial);
	else
		judge_writing(trial);
}

static const struct rpc_peer *find(const char *name)
{
	for (size_t i = 0; i < COUNT(writers); i++)
		if (strcmp(writers[i]->name, name) == 0)
			return writers[i];
	return &rpc_spoke_sleep;
}

int main(int argc, char **argv)
{
	static const char usage[] = "[--quick] [--reps <1-16>] [--span <ms>] [--only <word>]";
	struct bench bench = { .reps = 0 };
	bool is_quick = false;
	const struct option_row rows[] = {
		{ "--quick", .flag = &is_quick },
		{ "--reps", .number = &bench.reps, .min = 1, .max = REPORT_REPS_MAX },
		{ "--span", .number = &bench.span_ms, .min = 1, .max = 60000 },
		{ "--only", .text = &bench.only },
	};

	if (argc == 3 && (strcmp(argv[1], STAGE_SERVER) == 0 || strcmp(argv[1], STAGE_CLIENT) == 0))
		return stage_play(argv[1], find(argv[2]));
	options_read(argc, argv, rows, COUNT(rows), usage);
	if (bench.reps == 0)
		bench.reps = is_quick ? 3 : 9;
	if (bench.span_ms == 0)
		bench.span_ms = is_quick ? 200 : 500;
	(void)puts("case\tpeer\tcalls_per_s\tcpu_us_per_call");
	for (size_t i = 0; i < COUNT(waiting); i++)
		run(&bench, &waiting[i], waiters, COUNT(waiters));
	for (size_t i = 0; i < COUNT(writing); i++)
		run(&bench, &writing[i], writers, COUNT(writers));
	return bench.has_failed;
}
