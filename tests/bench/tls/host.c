/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the parts of the benchmark of TLS share. */
#include "tests/bench/tls/bench.h"

#include <spoke/error.h>

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

char bench_folder[TEXT];
uint16_t bench_ports[PORTS];
pid_t bench_server;

_Noreturn void bench_die(const char *what)
{
	(void)fprintf(stderr, "bench_tls: %s\n", what);
	if (bench_server > 0)
		(void)kill(bench_server, SIGKILL);
	exit(1);
}

void bench_must(const char *what, int error)
{
	char text[TEXT];

	if (error == 0)
		return;
	(void)snprintf(text, sizeof(text), "%s: %s", what, spoke_strerror(error));
	bench_die(text);
}

const char *bench_path(const char *name)
{
	static char paths[8][2 * TEXT];
	static unsigned next;
	char *text = paths[next++ % 8];

	(void)snprintf(text, 2 * TEXT, "%s/%s", bench_folder, name);
	return text;
}

double bench_now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void bench_rest(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	(void)nanosleep(&time, NULL);
}

void bench_pin(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)core, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_size);
	return values[count / 2];
}

/* Returns the CPU time of this process, in seconds. */
double bench_own_cpu(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}
