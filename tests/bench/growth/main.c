/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark of growth: spoke's calls while one quantity grows, compared with the raw echo,
 * which shows the cost of the kernel. Points and peers alternate within each repetition.
 */
#include "count.h"
#include "curve.h"
#include "draw.h"
#include "load.h"

#include "tests/bench/common/options.h"
#include "tests/bench/rpc/meter.h"
#include "tests/bench/rpc/report.h"
#include "tests/bench/rpc/stage.h"

#include <spoke/engine.h>

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define SETUP_NS                                                                                   \
	(30000 * HOST_MS) /* a client may take for a million calls, or 10,000 connections */
#define TIMEOUT_NS (1000 * HOST_MS) /* of a call */
#define RETRIES 24u
#define RETRIES_QUICK 8u
#define DESCRIPTORS_MORE 64u
#define AS_QUICK UINT64_MAX
#define ALL_SIZES UINT64_MAX

struct options {
	bool quick;
	bool instructions;
	uint64_t reps;    /* 0: default of a quick or full run */
	uint64_t span_ms; /* 0: default of a quick or full run */
	uint64_t retries; /* limit of repeated measurements in all; or AS_QUICK */
	uint64_t server_cpu;
	uint64_t client_cpu;
	const char *only;  /* one curve; NULL: all */
	uint64_t size;     /* one size; or ALL_SIZES */
	const char *plots; /* directory */
};

struct bench {
	struct options options;
	bool has_failed;
};

/* --- spoke's roles */

static void serve(const struct rpc_plan *plan)
{
	struct spoke_engine *engine;

	must("engine", spoke_engine_new(NULL, &engine));
	stage_ready(load_serve(engine, plan));
	must("run", spoke_engine_run(engine));
}

static void drive(const struct rpc_plan *plan, struct meter *meter)
{
	struct spoke_engine *engine;
	struct load *load;

	must("engine", spoke_engine_new(NULL, &engine));
	load = load_open(engine, plan, TIMEOUT_NS);
	load_measure(load, meter);
	load_check(load);
}

static const struct rpc_peer growing_spoke = {
	.name = "spoke",
	.serve = serve,
	.drive = drive,
};

/* --- measurement */

static void run_point(struct bench *bench, const struct curve *curve, uint32_t point,
		      const struct runner *runner)
{
	struct options *options = &bench->options;
	const struct rpc_peer *peer = runner->is_raw ? &rpc_raw_libev : &growing_spoke;
	struct rpc_plan plan = curve_plan(curve, curve->sizes[point], runner);
	struct rpc_report report;
	enum stage_end end;

	plan.server_cpu = (int)options->server_cpu;
	plan.client_cpu = (int)options->client_cpu;
	plan.setup_ns = SETUP_NS;
	plan.warm_ns = (options->quick ? 80 : 150) * HOST_MS;
	plan.span_ns = options->span_ms * HOST_MS;
	end = stage_measure(peer, &plan, &report);
	while (end == STAGE_OK && report.foreign > REPORT_FOREIGN_MAX && options->retries > 0) {
		options->retries--;
		end = stage_measure(peer, &plan, &report);
	}
	if (end == STAGE_OK) {
		report_add(draw_pattern(curve, point), runner->name, &report);
		return;
	}
	bench->has_failed = true;
	(void)fprintf(stderr, "%s %u %s: %s\n", curve->name, curve->sizes[point], runner->name,
		      end == STAGE_FAILED ? "wrong answers" : "no figures");
}

static void print_row(const struct curve *curve, uint32_t point, const struct runner *runner)
{
	const char *pattern = draw_pattern(curve, point);
	const struct report_row *raw = report_find(pattern, curve->runners[0].name);
	const struct report_row *row = report_find(pattern, runner->name);
	double ratio;

	if (row == NULL)
		return;
	(void)printf("%s\t%u\t%s\t%.0f\t%.1f\t%.1f\t%.3f\t%.3f\t%.4f\t%.4f\t", curve->name,
		     curve->sizes[point], runner->name, report_median(row, REPORT_CALLS_PER_S),
		     report_median(row, REPORT_P50_US), report_median(row, REPORT_P99_US),
		     report_median(row, REPORT_CPU_US), report_median(row, REPORT_SERVER_CPU_US),
		     report_median(row, REPORT_SERVER_CALLS),
		     report_median(row, REPORT_CLIENT_CALLS));
	if (report_ratio(row, raw, REPORT_CALLS_PER_S, &ratio))
		(void)printf("%.3f\t%.3f\n", ratio,
			     report_median(row, REPORT_CPU_US) / report_median(raw, REPORT_CPU_US));
	else
		(void)puts("-\t-");
	if (row->disturbed > 0) {
		(void)printf("# %s %u %s: others used more than %.0f %% of the CPUs in %u of %u"
			     " repetitions\n",
			     curve->name, curve->sizes[point], runner->name,
			     REPORT_FOREIGN_MAX * 100, row->disturbed, row->reps);
	}
	(void)fflush(stdout);
}

static bool takes_part(const struct options *options, const struct curve *curve, uint32_t point,
		       const struct runner *runner)
{
	if (options->size != ALL_SIZES)
		return curve->sizes[point] == options->size;
	return !options->quick || (curve->is_quick[point] && runner->is_quick);
}

/* Measures all points; each repetition starts with another one. */
static void run_once(struct bench *bench, const struct curve *curve, uint32_t rep)
{
	for (uint32_t i = 0; i < curve->size_count * curve->runner_count; i++) {
		uint32_t point = i / curve->runner_count;
		const struct runner *runner = &curve->runners[(rep + i) % curve->runner_count];

		if (takes_part(&bench->options, curve, point, runner))
			run_point(bench, curve, point, runner);
	}
}

static void run_curve(struct bench *bench, const struct curve *curve)
{
	const struct options *options = &bench->options;

	(void)fprintf(stderr, "%s\n", curve->name);
	for (uint32_t rep = 0; rep < options->reps; rep++)
		run_once(bench, curve, rep);
	for (uint32_t i = 0; i < curve->size_count; i++)
		for (uint32_t j = 0; j < curve->runner_count; j++)
			print_row(curve, i, &curve->runners[j]);
	if (options->size == ALL_SIZES && !draw_curve(curve, options->plots)) {
		bench->has_failed = true;
		(void)fprintf(stderr, "%s: cannot write a plot to %s\n", curve->name,
			      options->plots);
	}
}

/* --- options */

static const char usage[] = "[--quick] [--reps <1-16>] [--retries <number>] [--span <ms>]\n"
			    "       [--only <curve>] [--size <number>] [--plots <folder>]"
			    " [--instructions]\n"
			    "       [--server-cpu <number>] [--client-cpu <number>]";

static struct options read_options(int argc, char **argv)
{
	struct options options = {
		.client_cpu = 1, .size = ALL_SIZES, .retries = AS_QUICK, .plots = "build/bench"
	};
	const struct option_row rows[] = {
		{ "--quick", .flag = &options.quick },
		{ "--instructions", .flag = &options.instructions },
		{ "--reps", .number = &options.reps, .min = 1, .max = REPORT_REPS_MAX },
		{ "--retries", .number = &options.retries, .max = UINT32_MAX },
		{ "--span", .number = &options.span_ms, .min = 1, .max = 60000 },
		{ "--server-cpu", .number = &options.server_cpu, .max = 1023 },
		{ "--client-cpu", .number = &options.client_cpu, .max = 1023 },
		{ "--only", .text = &options.only },
		{ "--size", .number = &options.size, .max = UINT32_MAX },
		{ "--plots", .text = &options.plots },
	};

	options_read(argc, argv, rows, sizeof(rows) / sizeof(rows[0]), usage);
	if (options.only != NULL && curve_find(options.only) == NULL)
		options_refuse(usage);
	if (options.reps == 0)
		options.reps = options.quick ? 2 : 5;
	if (options.retries == AS_QUICK)
		options.retries = options.quick ? RETRIES_QUICK : RETRIES;
	if (options.span_ms == 0)
		options.span_ms = options.quick ? 250 : 400;
	return options;
}

/* Sets the limit of this process and its children. */
static void make_room(void)
{
	rlim_t wanted = 10000 + DESCRIPTORS_MORE;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < wanted)
		host_die("10,000 connections need a hard limit of %lu descriptors",
			 (unsigned long)wanted);
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		host_die("cannot raise the limit of descriptors");
}

int main(int argc, char **argv)
{
	struct bench bench = { 0 };

	if (argc == 3 && (strcmp(argv[1], STAGE_SERVER) == 0 || strcmp(argv[1], STAGE_CLIENT) == 0))
		return stage_play(argv[1], strcmp(argv[2], growing_spoke.name) == 0
						   ? &growing_spoke
						   : &rpc_raw_libev);
	if (argc == 5 && strcmp(argv[1], COUNT_POINT) == 0)
		return count_point(argv[2], argv[3], argv[4]);
	bench.options = read_options(argc, argv);
	make_room();
	if (bench.options.instructions)
		return count_curves(bench.options.only, bench.options.quick) ? 0 : 1;
	(void)puts("curve\tsize\tpeer\tcalls_per_s\tp50_us\tp99_us\tcpu_us_per_call"
		   "\tserver_cpu_us\tserver_syscalls\tclient_syscalls\tratio\tcpu_ratio");
	for (unsigned i = 0; i < CURVES; i++)
		if (bench.options.only == NULL || strcmp(bench.options.only, curves[i].name) == 0)
			run_curve(&bench, &curves[i]);
	return bench.has_failed ? 1 : 0;
}
