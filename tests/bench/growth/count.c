/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions per call; see count.h. */
#include "count.h"

#include "curve.h"
#include "load.h"

#include <spoke/engine.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION ((void)0)
#define CALLGRIND_STOP_INSTRUMENTATION ((void)0)
#define RUNNING_ON_VALGRIND 0
#endif

#define TIMEOUT_NS (600000 * HOST_MS) /* callgrind is slow */
#define WARM_CALLS 20000u
#define CALLS 20000u
#define CONNECTIONS_MAX 5000u /* both ends are in this process */

static void start_counting(void)
{
	CALLGRIND_START_INSTRUMENTATION;
}

static void stop_counting(void)
{
	CALLGRIND_STOP_INSTRUMENTATION;
}

static struct rpc_plan find_plan(const char *name, const char *size, const char *runner)
{
	const struct curve *curve = curve_find(name);

	for (uint32_t i = 0; curve && i < curve->runner_count; i++)
		if (strcmp(curve->runners[i].name, runner) == 0)
			return curve_plan(curve, (uint32_t)strtoul(size, NULL, 10),
					  &curve->runners[i]);
	host_die("unknown runner %s of curve %s", runner, name);
}

int count_point(const char *curve, const char *size, const char *runner)
{
	struct rpc_plan plan = find_plan(curve, size, runner);
	struct spoke_engine *engine;
	struct load *load;

	if (!RUNNING_ON_VALGRIND)
		host_die("counting requires callgrind, and valgrind's headers in the build");
	must("engine", spoke_engine_new(NULL, &engine));
	plan.port = load_serve(engine, &plan);
	load = load_open(engine, &plan, TIMEOUT_NS);
	load_repeat(load, WARM_CALLS);
	start_counting();
	load_repeat(load, CALLS);
	stop_counting();
	load_check(load);
	return 0;
}

/* Prepares the child between fork and exec. */
static _Noreturn void become(int output, const char *curve, const char *size, const char *runner)
{
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len > 0 && dup2(output, STDERR_FILENO) == STDERR_FILENO) {
		self[len] = '\0';
		(void)execlp("valgrind", "valgrind", "--tool=callgrind", "--instr-atstart=no",
			     "--callgrind-out-file=/dev/null", self, COUNT_POINT, curve, size,
			     runner, (char *)NULL);
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
static double count(const struct curve *curve, uint32_t size, const struct runner *runner)
{
	char text[16];
	int status = -1;
	int pipes[2];
	double sum;
	FILE *output;
	pid_t pid;

	(void)snprintf(text, sizeof(text), "%u", size);
	if (pipe2(pipes, O_CLOEXEC) != 0 || (output = fdopen(pipes[0], "r")) == NULL)
		host_die("no pipe");
	pid = fork();
	if (pid < 0)
		host_die("no process");
	if (pid == 0)
		become(pipes[1], curve->name, text, runner->name);
	(void)close(pipes[1]);
	sum = read_sum(output);
	(void)fclose(output);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	return status == 0 ? sum / CALLS : 0;
}

static bool count_curve(const struct curve *curve, bool is_quick)
{
	bool good = true;

	for (uint32_t i = 0; i < curve->runner_count; i++) {
		const struct runner *runner = &curve->runners[i];

		for (uint32_t j = 0; j < curve->size_count && !runner->is_raw; j++) {
			uint32_t size = curve->sizes[j];
			double instructions;

			if (is_quick && !(runner->is_quick && curve->is_quick[j]))
				continue;
			if (strcmp(curve->name, "connections") == 0 && size > CONNECTIONS_MAX)
				size = CONNECTIONS_MAX;
			instructions = count(curve, size, runner);
			if (instructions > 0)
				printf("%s\t%u\t%s\t%.1f\n", curve->name, size, runner->name,
				       instructions);
			(void)fflush(stdout);
			good = good && instructions > 0;
		}
	}
	return good;
}

bool count_curves(const char *only, bool is_quick)
{
	bool good = true;

	(void)puts("curve\tsize\tpeer\tinstructions_per_call");
	for (unsigned i = 0; i < CURVES; i++)
		if (only == NULL || strcmp(only, curves[i].name) == 0)
			good = count_curve(&curves[i], is_quick) && good;
	return good;
}
