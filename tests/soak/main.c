/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The soak test: providers and consumers with a thousand connections run for a long time while they
 * are killed, frozen and restarted at random, and every call is accounted for. This is the
 * conductor; the others are its child processes. `sh tests/run.sh soak` runs the test.
 */
#define _GNU_SOURCE
#include "memory.h"
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

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
