/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the command line of the soak. */
#define _GNU_SOURCE
#include "plan.h"

#include "board.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define CALLS_PER_MINUTE (1e7 / 30)
#define RATE 12000u
#define RATE_MAX 100000u
#define MINUTES_MAX 10000.0
#define WARM_LEAST_NS (60 * NS_PER_S)
#define RESTS 60u /* per run */
#define REST_LEAST_NS (20 * NS_PER_S)
#define REST_MOST_NS (60 * NS_PER_S)

static void help(FILE *to)
{
	(void)fputs(
		"usage: soak [option...] [minutes]\n"
		"  minutes          duration of the run, default 30\n"
		"  --rate NUMBER    most calls per second, all processes together, default 12000\n"
		"  --seed NUMBER    seed of the random numbers, default: from the clock\n"
		"  --table FILE     also write the table to FILE, in Markdown\n"
		"  --calm           do not kill, freeze or restart processes\n"
		"  --plain          do not tune malloc; the slopes then include its caches and\n"
		"                   have no target\n",
		to);
}

static bool read_number(const char *text, uint64_t most, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && *ret > 0 && *ret <= most;
}

static bool read_minutes(const char *text, double *ret)
{
	char *end;

	*ret = strtod(text, &end);
	return end != text && *end == '\0' && *ret >= 0.1 && *ret <= MINUTES_MAX;
}

static uint64_t clamp(uint64_t value, uint64_t least, uint64_t most)
{
	if (value < least)
		return least;
	return value < most ? value : most;
}

static void derive(struct plan *plan)
{
	plan->end_ns = (uint64_t)(plan->minutes * 60 * (double)NS_PER_S);
	plan->warm_ns = clamp(plan->end_ns / 5, WARM_LEAST_NS, plan->end_ns / 2 + WARM_LEAST_NS);
	if (plan->warm_ns > plan->end_ns / 2)
		plan->warm_ns = plan->end_ns / 2;
	plan->rest_ns = clamp(plan->end_ns / RESTS, REST_LEAST_NS, REST_MOST_NS);
	plan->calls = (uint64_t)(plan->minutes * CALLS_PER_MINUTE);
}

static bool read_option(int option, struct plan *plan)
{
	switch (option) {
	case 'r':
		return read_number(optarg, RATE_MAX, &plan->rate);
	case 's':
		return read_number(optarg, UINT32_MAX, &plan->seed);
	case 't':
		plan->table = optarg;
		return true;
	case 'c':
		plan->calm = true;
		return true;
	case 'p':
		plan->plain = true;
		return true;
	default:
		return false;
	}
}

enum plan_verdict plan_read(int argc, char **argv, struct plan *ret_plan)
{
	static const struct option options[] = {
		{ "rate", required_argument, NULL, 'r' },
		{ "seed", required_argument, NULL, 's' },
		{ "table", required_argument, NULL, 't' },
		{ "calm", no_argument, NULL, 'c' },
		{ "plain", no_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct plan plan = { .minutes = 30, .rate = RATE, .seed = ret_plan->seed };
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (option == 'h') {
			help(stdout);
			return PLAN_HELPED;
		}
		if (!read_option(option, &plan)) {
			help(stderr);
			return PLAN_WRONG;
		}
	}
	if (optind + 1 < argc || (optind < argc && !read_minutes(argv[optind], &plan.minutes))) {
		help(stderr);
		return PLAN_WRONG;
	}
	derive(&plan);
	*ret_plan = plan;
	return PLAN_GO;
}
