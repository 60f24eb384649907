/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark of growth: counts spoke's instructions per call, of both sides together, while one
 * quantity grows. Both sides run in one process, so that the number of frames per turn does not
 * depend on timing. callgrind's counts have no noise and exclude the kernel. Needs valgrind.
 */
#include "load.h"

#include "tests/bench/common/options.h"
#include "tests/bench/memory/memory.h"

#include <spoke/engine.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION ((void)0)
#define CALLGRIND_STOP_INSTRUMENTATION ((void)0)
#define RUNNING_ON_VALGRIND 0
#endif

#define POINT "--count" /* the child process that counts one point */
#define WARM_CALLS 20000u
#define CALLS 20000u
#define DESCRIPTORS 10100u /* 5,000 connections have both ends in one process */
#define SIZES 5
#define BALANCERS 6

/* Quantities that grow. */
static void grow_connections(struct load_plan *plan, uint32_t size)
{
	plan->connections = size;
	plan->total = 1024;
}

static void grow_kept(struct load_plan *plan, uint32_t size)
{
	plan->kept = size;
}

static void grow_endpoints(struct load_plan *plan, uint32_t size)
{
	plan->connections = size;
	plan->endpoints = size;
	plan->total = 256;
}

static void grow_parked(struct load_plan *plan, uint32_t size)
{
	plan->parked = size;
}

static const struct curve {
	const char *name;
	void (*grow)(struct load_plan *plan, uint32_t size);
	uint32_t sizes[SIZES];
	unsigned quick;                   /* the sizes of a quick run, as a set */
	const char *balancers[BALANCERS]; /* the first is part of a quick run; none: the default */
} curves[] = {
	{ "connections", grow_connections, { 1, 10, 100, 1000, 5000 }, 0xd, { NULL } },
	{ "pending", grow_kept, { 0, 1000, 10000, 100000, 1000000 }, 0xb, { NULL } },
	{ "endpoints",
	  grow_endpoints,
	  { 1, 3, 10, 30, 100 },
	  0x15,
	  { "random", "roundrobin", "leastactive", "consistenthash", "shortestresponse",
	    "twochoices" } },
	{ "failback", grow_parked, { 0, 10, 100, 1000, 10000 }, 0x9, { NULL } },
};

#define CURVES (sizeof(curves) / sizeof(curves[0]))

/* --- one point */

static void start_counting(void)
{
	CALLGRIND_START_INSTRUMENTATION;
}

static void stop_counting(void)
{
	CALLGRIND_STOP_INSTRUMENTATION;
}

static const struct curve *find_curve(const char *name)
{
	for (size_t i = 0; i < CURVES; i++)
		if (strcmp(curves[i].name, name) == 0)
			return &curves[i];
	return NULL;
}

static void count_point(const char *name, const char *size, const char *balancer)
{
	const struct curve *curve = find_curve(name);
	struct load_plan plan = { .payload = 32, .connections = 1, .total = 64 };
	struct spoke_engine *engine;
	struct load *load;

	if (curve == NULL)
		die("unknown curve %s", name);
	if (!RUNNING_ON_VALGRIND)
		die("counting requires callgrind, and valgrind's headers in the build");
	curve->grow(&plan, (uint32_t)strtoul(size, NULL, 10));
	if (*balancer)
		plan.balancer = balancer;
	must("engine", spoke_engine_new(NULL, &engine));
	load = load_open(engine, &plan, load_serve(engine, &plan));
	load_repeat(load, WARM_CALLS);
	start_counting();
	load_repeat(load, CALLS);
	stop_counting();
	load_check(load);
}

/* --- all points */

/* Prepares the child between fork and exec. */
static _Noreturn void become(int output, const char *curve, const char *size, const char *balancer)
{
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len > 0 && dup2(output, STDERR_FILENO) == STDERR_FILENO) {
		self[len] = '\0';
		(void)execlp("valgrind", "valgrind", "--tool=callgrind", "--instr-atstart=no",
			     "--callgrind-out-file=/dev/null", self, POINT, curve, size, balancer,
			     (char *)NULL);
		(void)fputs("cannot execute valgrind\n", stderr);
	}
	_exit(127);
}

/* Parses the final output of callgrind and prints its other output to stderr. */
static double read_sum(FILE *output)
{
	static const char mark[] = "Collected : ";
	char line[256];
	double sum = 0;

	while (fgets(line, sizeof(line), output) != NULL) {
		const char *at = strstr(line, mark);

		if (at)
			sum = strtod(at + sizeof(mark) - 1, NULL);
		else if (line[0] != '=')
			(void)fputs(line, stderr);
	}
	return sum;
}

/* Returns the instructions per call, or 0. */
static double count(const struct curve *curve, uint32_t size, const char *balancer)
{
	char text[16];
	int status = -1;
	int pipes[2];
	double sum;
	FILE *output;
	pid_t pid;

	(void)snprintf(text, sizeof(text), "%u", size);
	if (pipe2(pipes, O_CLOEXEC) != 0 || (output = fdopen(pipes[0], "r")) == NULL)
		die("no pipe");
	pid = fork();
	if (pid < 0)
		die("no process");
	if (pid == 0)
		become(pipes[1], curve->name, text, balancer ? balancer : "");
	(void)close(pipes[1]);
	sum = read_sum(output);
	(void)fclose(output);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	return status == 0 ? sum / CALLS : 0;
}

/* Returns whether all points were counted. */
static bool count_curve(const struct curve *curve, bool is_quick)
{
	unsigned balancers = is_quick ? 1 : BALANCERS;
	bool good = true;

	for (unsigned i = 0; i < balancers && (i == 0 || curve->balancers[i]); i++) {
		const char *balancer = curve->balancers[i];

		for (unsigned j = 0; j < SIZES; j++) {
			double instructions;

			if (is_quick && (curve->quick & 1u << j) == 0)
				continue;
			instructions = count(curve, curve->sizes[j], balancer);
			if (instructions > 0)
				printf("%s\t%u\t%s\t%.1f\n", curve->name, curve->sizes[j],
				       balancer ? balancer : "-", instructions);
			(void)fflush(stdout);
			good = good && instructions > 0;
		}
	}
	return good;
}

/* Sets the limit of this process and its children. */
static void make_room(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < DESCRIPTORS)
		die("5,000 connections need a hard limit of %u descriptors", DESCRIPTORS);
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		die("cannot raise the limit of descriptors");
}

int main(int argc, char **argv)
{
	static const char usage[] = "[--quick] [--only <curve>]";
	const char *only = NULL;
	bool quick = false;
	bool good = true;
	const struct option_row rows[] = {
		{ "--quick", .flag = &quick },
		{ "--only", .text = &only },
	};

	if (argc == 5 && strcmp(argv[1], POINT) == 0) {
		count_point(argv[2], argv[3], argv[4]);
		return 0;
	}
	options_read(argc, argv, rows, sizeof(rows) / sizeof(rows[0]), usage);
	if (only != NULL && find_curve(only) == NULL)
		options_refuse(usage);
	make_room();
	(void)puts("curve\tsize\tbalancer\tinstructions_per_call");
	for (size_t i = 0; i < CURVES; i++)
		if (only == NULL || strcmp(curves[i].name, only) == 0)
			good = count_curve(&curves[i], quick) && good;
	return good ? 0 : 1;
}
