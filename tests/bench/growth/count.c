/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions per call; see count.h. */
#include "count.h"

#include "curve.h"
#include "load.h"

#include <spoke/engine.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION ((void)0)
#define CALLGRIND_STOP_INSTRUMENTATION ((void)0)
#define RUNNING_ON_VALGRIND 0
#endif

#define TIMEOUT_NS (600000 * HOST_MS) /* callgrind takes its time */
#define WARM_CALLS 20000u
#define CALLS 20000u
#define CONNECTIONS_MAX 5000u /* each has two ends here */

int count_point(const char *curve_name, const char *size, const char *runner_name)
{
	const struct curve *curve = curve_find(curve_name);
	struct spoke_engine *engine;
	struct rpc_plan plan = { 0 };
	struct load *load;

	if (curve == NULL)
		host_die("%s is no curve", curve_name);
	if (!RUNNING_ON_VALGRIND)
		host_die("only callgrind can count, and valgrind's headers have to be there");
	for (uint32_t i = 0; i < curve->runner_count; i++)
		if (strcmp(curve->runners[i].name, runner_name) == 0)
			plan = curve_plan(curve, (uint32_t)strtoul(size, NULL, 10),
					  &curve->runners[i]);
	if (plan.total == 0)
		host_die("%s is not on this curve", runner_name);
	must("engine", spoke_engine_new(NULL, &engine));
	plan.port = load_serve(engine, &plan);
	load = load_open(engine, &plan, TIMEOUT_NS);
	load_repeat(load, WARM_CALLS);
	CALLGRIND_START_INSTRUMENTATION;
	load_repeat(load, CALLS);
	CALLGRIND_STOP_INSTRUMENTATION;
	load_check(load);
	return 0;
}

/* Instructions per call, or 0. */
static double count(const struct curve *curve, uint32_t size, const struct runner *runner)
{
	static const char mark[] = "Collected : ";
	char self[PATH_MAX];
	char command[PATH_MAX + 256];
	char line[256];
	double instructions = 0;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	FILE *output;

	if (len < 0)
		return 0;
	self[len] = '\0';
	(void)snprintf(command, sizeof(command),
		       "valgrind --tool=callgrind --instr-atstart=no"
		       " --callgrind-out-file=/dev/null '%s' " COUNT_POINT " %s %u %s 2>&1",
		       self, curve->name, size, runner->name);
	output = popen(command, "re");
	if (output == NULL)
		return 0;
	while (fgets(line, sizeof(line), output) != NULL) {
		const char *at = strstr(line, mark);

		if (at)
			instructions = strtod(at + sizeof(mark) - 1, NULL);
		else if (line[0] != '=')
			(void)fputs(line, stderr);
	}
	return pclose(output) == 0 ? instructions / CALLS : 0;
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
