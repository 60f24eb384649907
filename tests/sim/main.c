/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim [--seeds N] [--first S] [--verbose] [--gateways] [--secure] [--shared] [--steady SECONDS]
 * [--outage] [--journals]
 *
 * Runs seeds one after another; the first violation ends the program. Some seeds run twice, which
 * must produce the same history, and once more with shifted clocks. A part of the seeds has a
 * second world with a gateway for browsers; with --gateways each seed has only that one. A part of
 * the seeds runs over TLS, or has lists of callers; with --secure each seed does. With --journals
 * consumers of each seed, and not only of a part, have journals, and are killed. With
 * --steady no faults are injected. With --outage the only provider is away for ten minutes, while a
 * consumer makes a thousand failback calls a second.
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/sim/gateway.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TWICE_EVERY 25u   /* seeds */
#define SEGMENTS_EVERY 5u /* seeds */
#define BOOT_AHEAD_NS (86400 * SECOND)
#define STEADY_CALLS 1000u /* per second */
#define STEADY_MOST 86400u /* seconds */
#define PATIENCE_S 120u    /* per seed, of CPU time */

struct settings {
	uint64_t seeds;
	uint64_t first;
	uint64_t steady_s;
	bool outage;
	bool gateways;
	bool secure;
	bool shared;
	bool journals;
	bool verbose;
};

/* Returns the CPU time of this program; other load of the machine does not count. */
static uint64_t spent_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* Runs a seed again, and with shifted clocks, and compares the histories. */
static void run_again(struct sim_plan *plan, uint64_t hash)
{
	struct sim_counts counts = { 0 };

	if (sim_run(plan, false, &counts) != hash)
		sim_violation(sim_world_now, SIM_S21, "the same seed gives a different history");
	plan->boot_ahead_ns = BOOT_AHEAD_NS;
	if (sim_run(plan, false, &counts) != hash)
		sim_violation(sim_world_now, SIM_S22,
			      "a different clock gives a different history");
}

static void summarize_gateways(const struct sim_gateway_counts *counts, uint64_t trace)
{
	(void)printf("faults of gateways:");
	for (unsigned i = 0; i < SIM_GATEWAY_FAULTS; i++)
		(void)printf(" %s %" PRIu64, sim_gateway_fault_name((enum sim_gateway_fault)i),
			     counts->faults[i]);
	(void)printf("\n%" PRIu64 " worlds with gateways, %.2f simulated hours, %" PRIu64
		     " messages, read %" PRIu64 " times, %" PRIu64 " times lost, %" PRIu64
		     " connections, trace %016" PRIx64 "\n",
		     counts->worlds, (double)counts->ns / 3600e9, counts->pushes, counts->events,
		     counts->lost, counts->opened, trace);
}

/* Adds the history of a seed to those of the seeds before. */
static uint64_t mix(uint64_t trace, uint64_t hash)
{
	trace = (trace ^ hash) * UINT64_C(0x9e3779b97f4a7c15);
	return trace ^ trace >> 29;
}

/* Runs the world with a gateway, if the seed has one. Returns the trace with its history. */
static uint64_t run_gateway(const struct settings *settings, uint64_t seed, uint64_t trace,
			    struct sim_gateway_counts *counts)
{
	struct sim_gateway_counts again = { 0 };
	uint64_t hash;

	if (!settings->gateways && !sim_gateway_drawn(seed))
		return trace;
	sim_crash_watch(PATIENCE_S);
	hash = sim_gateway_run(seed, settings->gateways, settings->verbose, counts);
	if (seed % TWICE_EVERY == 0 &&
	    sim_gateway_run(seed, settings->gateways, false, &again) != hash)
		sim_violation(sim_world_now, SIM_S21,
			      "the same seed gives a different history of the gateway");
	return mix(trace, hash);
}

/* Tells how far a long run is. */
static void tell_progress(const struct settings *settings, uint64_t done)
{
	if (done % 1000 == 0 && done > 0)
		(void)fprintf(stderr, "sim: %" PRIu64 " of %" PRIu64 " seeds\n", done,
			      settings->seeds);
}

/* Runs all seeds. Returns a hash of their histories. */
static uint64_t run_seeds(const struct settings *settings, struct sim_counts *counts)
{
	static struct sim_plan plan; /* static: reports print it */
	struct sim_gateway_counts of_gateways = { 0 };
	uint64_t gateways = 0; /* their trace */
	uint64_t trace = 0;

	for (uint64_t i = 0; i < settings->seeds; i++) {
		uint64_t hash;

		tell_progress(settings, i);
		gateways = run_gateway(settings, settings->first + i, gateways, &of_gateways);
		if (settings->gateways)
			continue;

		sim_crash_watch(PATIENCE_S);
		sim_plan_draw(&plan, settings->first + i, settings->secure);
		plan.secure.tls = plan.secure.tls && sim_cert(SIM_CERT_AUTHORITY, 0);
		sim_plan_share(&plan, settings->shared);
		sim_plan_journals(&plan, settings->journals);
		hash = sim_run(&plan, settings->verbose, counts);
		if (plan.seed % TWICE_EVERY == 0)
			run_again(&plan, hash);
		if (plan.seed % SEGMENTS_EVERY == 0)
			sim_segments(plan.seed);
		trace = mix(trace, hash);
	}
	summarize_gateways(&of_gateways, gateways);
	return trace;
}

static uint64_t run_steady(const struct settings *settings, struct sim_counts *counts)
{
	static struct sim_plan plan;

	sim_crash_watch(PATIENCE_S + settings->steady_s);
	sim_plan_steady(&plan, STEADY_CALLS, settings->steady_s * SECOND);
	return sim_run(&plan, settings->verbose, counts);
}

/* Runs the outage once for each overflow policy of tickets: reject new ones, drop the oldest. */
static uint64_t run_outage(const struct settings *settings, struct sim_counts *counts)
{
	static struct sim_plan plan;
	uint64_t hash;

	sim_crash_watch(2 * PATIENCE_S);
	sim_plan_outage(&plan, STEADY_CALLS, false);
	hash = sim_run(&plan, settings->verbose, counts);
	sim_plan_outage(&plan, STEADY_CALLS, true);
	return hash ^ sim_run(&plan, settings->verbose, counts);
}

static void summarize(const struct settings *settings, const struct sim_counts *counts,
		      uint64_t trace, uint64_t took_ns)
{
	(void)printf("faults:");
	for (unsigned i = 0; i < SIM_FAULTS; i++)
		(void)printf(" %s %" PRIu64, sim_fault_name((enum sim_fault)i),
			     counts->of_fault[i]);
	(void)printf("\n%" PRIu64 " calls succeeded, %" PRIu64 " heartbeats were missed, %" PRIu64
		     " connections closed for silence\n",
		     counts->ok, counts->suspects, counts->closed_silent);
	(void)printf("faults of the store:");
	for (unsigned i = 0; i < SIM_STORE_FAULTS; i++)
		(void)printf(" %s %" PRIu64, sim_store_fault_name((enum sim_store_fault)i),
			     counts->of_store_fault[i]);
	(void)printf("\n%" PRIu64 " leases asked for, %" PRIu64 " held, %" PRIu64 " lost\n",
		     counts->leases, counts->held, counts->lost);
	(void)printf("%" PRIu64 " secure worlds, %" PRIu64 " of them with TLS: %" PRIu64
		     " bytes were read, certificates were replaced %" PRIu64
		     " times; consumers were shut out %" PRIu64 " times, calls refused %" PRIu64
		     " times\n",
		     counts->secure, counts->tls, counts->veiled, counts->renewed, counts->shut,
		     counts->forbidden);
	(void)printf("%" PRIu64 " worlds with journals, %" PRIu64 " deaths, %" PRIu64
		     " tickets restored; faults:",
		     counts->journals, counts->deaths, counts->restored);
	for (unsigned i = 0; i < SIM_JOURNAL_FAULTS; i++)
		(void)printf(" %s %" PRIu64, sim_journal_fault_name((enum sim_journal_fault)i),
			     counts->of_journal_fault[i]);
	(void)printf("\n%" PRIu64 " worlds with shared memory; %" PRIu64 " floods; %" PRIu64
		     " requests would have been late\n",
		     counts->shares, counts->floods, counts->late);
	(void)printf("%" PRIu64 " inner calls, %" PRIu64 " of them run; %" PRIu64
		     " ended because their callers were gone, %" PRIu64 " were refused then\n",
		     counts->inner, counts->inner_runs, counts->inner_gone, counts->inner_refused);
	(void)printf("%" PRIu64 " tickets, %" PRIu64 " retries, %" PRIu64
		     " provider lists received; at most %.2f MB in a consumer\n",
		     counts->tickets, counts->retries, counts->lists,
		     (double)counts->bytes_most / 1e6);
	(void)printf("%" PRIu64 " seeds, %.2f simulated hours, %" PRIu64 " calls, %" PRIu64
		     " faults, %.0fx real time, %.1f s, trace %016" PRIx64 "\n",
		     settings->seeds, (double)counts->ns / 3600e9, counts->calls, counts->faults,
		     (double)counts->ns / (double)took_ns, (double)took_ns / 1e9, trace);
}

/* Parses the number after an option. */
static uint64_t number_of(char ***args, uint64_t least, uint64_t most)
{
	const char *option = **args;
	const char *text = *++*args;
	uint64_t number = 0;
	char *end = NULL;

	errno = 0;
	if (text && *text >= '0' && *text <= '9')
		number = strtoull(text, &end, 10);
	if (end == NULL || *end != '\0' || errno || number < least || number > most) {
		(void)fprintf(stderr,
			      "sim: %s requires a number from %" PRIu64 " to %" PRIu64 "%s%s\n",
			      option, least, most, text ? ", not " : "", text ? text : "");
		exit(2);
	}
	return number;
}

static void read_settings(struct settings *settings, char **args)
{
	*settings = (struct settings){ .seeds = 100, .first = 1 };
	for (; *args; args++) {
		if (strcmp(*args, "--seeds") == 0) {
			settings->seeds = number_of(&args, 1, UINT64_MAX);
		} else if (strcmp(*args, "--first") == 0) {
			settings->first = number_of(&args, 0, UINT64_MAX);
		} else if (strcmp(*args, "--steady") == 0) {
			settings->steady_s = number_of(&args, 1, STEADY_MOST);
		} else if (strcmp(*args, "--outage") == 0) {
			settings->outage = true;
		} else if (strcmp(*args, "--gateways") == 0) {
			settings->gateways = true;
		} else if (strcmp(*args, "--secure") == 0) {
			settings->secure = true;
		} else if (strcmp(*args, "--shared") == 0) {
			settings->shared = true;
		} else if (strcmp(*args, "--journals") == 0) {
			settings->journals = true;
		} else if (strcmp(*args, "--verbose") == 0) {
			settings->verbose = true;
		} else {
			(void)fprintf(stderr,
				      "sim: unknown option %s\n"
				      "usage: sim [--seeds N] [--first S] [--verbose] "
				      "[--gateways] [--secure] [--shared] [--steady SECONDS] "
				      "[--outage] [--journals]\n",
				      *args);
			exit(2);
		}
	}
}

int main(int count, char **args)
{
	struct settings settings;
	struct sim_counts counts = { 0 };
	uint64_t begun_ns = spent_ns();
	uint64_t trace;

	if (count > 0)
		sim_program = args[0];
	read_settings(&settings, args + (count > 0));
	/* Flush each line, so that a log file is complete however the program ends. */
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	sim_crash_begin();
	if (settings.outage) {
		settings.seeds = 2;
		trace = run_outage(&settings, &counts);
	} else if (settings.steady_s) {
		settings.seeds = 1;
		trace = run_steady(&settings, &counts);
	} else {
		trace = run_seeds(&settings, &counts);
	}
	sim_crash_watch(0);
	sim_world_now = NULL;
	if (!settings.gateways)
		summarize(&settings, &counts, trace, spent_ns() - begun_ns);
	return 0;
}
