/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim [--seeds N] [--first S] [--verbose] [--steady SECONDS]
 *
 * Runs seeds one after another; the first violation ends it. Some seeds run twice, to see that the
 * same seed gives the same history, once more with other clocks.
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TWICE_EVERY 25u   /* seeds */
#define SEGMENTS_EVERY 5u /* seeds */
#define BOOT_AHEAD_NS (86400 * SECOND)
#define STEADY_CALLS 1000u /* a second */

struct settings {
	uint64_t seeds;
	uint64_t first;
	uint64_t steady_s;
	bool verbose;
};

/* What this program has had of the processor: others on the machine do not count. */
static uint64_t spent_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* What happened twice must be the same twice. */
static void run_again(const struct sim_plan *plan, uint64_t hash)
{
	struct sim_plan other = *plan;
	struct sim_counts counts = { 0 };

	if (sim_run(plan, false, &counts) != hash)
		sim_violation(sim_world_now, "S21", "the same seed gives another history");
	other.boot_ahead_ns = BOOT_AHEAD_NS;
	if (sim_run(&other, false, &counts) != hash)
		sim_violation(sim_world_now, "S22", "another clock gives another history");
}

static void run_seeds(const struct settings *settings, struct sim_counts *counts)
{
	for (uint64_t i = 0; i < settings->seeds; i++) {
		struct sim_plan plan;
		uint64_t hash;

		sim_plan_draw(&plan, settings->first + i);
		hash = sim_run(&plan, settings->verbose, counts);
		if (plan.seed % TWICE_EVERY == 0)
			run_again(&plan, hash);
		if (plan.seed % SEGMENTS_EVERY == 0)
			sim_segments(plan.seed);
	}
}

static void summarize(const struct settings *settings, const struct sim_counts *counts,
		      uint64_t took_ns)
{
	(void)printf("faults:");
	for (unsigned i = 0; i < SIM_FAULTS; i++)
		(void)printf(" %s %" PRIu64, sim_fault_name((enum sim_fault)i),
			     counts->of_fault[i]);
	(void)printf("\n%" PRIu64 " calls ended well, %" PRIu64 " heartbeats were missed, %" PRIu64
		     " connections closed for silence\n",
		     counts->ok, counts->suspects, counts->closed_silent);
	(void)printf("%" PRIu64 " seeds, %.2f simulated hours, %" PRIu64 " calls, %" PRIu64
		     " faults, %.0fx real time, %.1f s\n",
		     settings->seeds, (double)counts->ns / 3600e9, counts->calls, counts->faults,
		     (double)counts->ns / (double)took_ns, (double)took_ns / 1e9);
}

static uint64_t number_of(const char *text)
{
	char *end;
	uint64_t number = strtoull(text ? text : "", &end, 10);

	if (text == NULL || *text == '\0' || *end != '\0') {
		(void)fprintf(stderr, "sim: a number is missing\n");
		exit(2);
	}
	return number;
}

static void read_settings(struct settings *settings, char **args)
{
	*settings = (struct settings){ .seeds = 100, .first = 1 };
	for (; *args; args++) {
		if (strcmp(*args, "--seeds") == 0) {
			settings->seeds = number_of(*++args);
		} else if (strcmp(*args, "--first") == 0) {
			settings->first = number_of(*++args);
		} else if (strcmp(*args, "--steady") == 0) {
			settings->steady_s = number_of(*++args);
		} else if (strcmp(*args, "--verbose") == 0) {
			settings->verbose = true;
		} else {
			(void)fprintf(stderr, "usage: sim [--seeds N] [--first S] [--verbose] "
					      "[--steady SECONDS]\n");
			exit(2);
		}
	}
}

int main(int count, char **args)
{
	struct settings settings;
	struct sim_counts counts = { 0 };
	uint64_t begun_ns = spent_ns();

	(void)count;
	read_settings(&settings, args + 1);
	if (settings.steady_s) {
		struct sim_plan plan;

		settings.seeds = 1;
		sim_plan_steady(&plan, STEADY_CALLS, settings.steady_s * SECOND);
		(void)sim_run(&plan, settings.verbose, &counts);
	} else {
		run_seeds(&settings, &counts);
	}
	summarize(&settings, &counts, spent_ns() - begun_ns);
	return 0;
}
