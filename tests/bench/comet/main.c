/* SPDX-License-Identifier: Apache-2.0 */
/* Measures gateways of comet; fails if a first bar was missed or an event got lost. */
#include "comet.h"

#include "tests/bench/common/options.h"

#include <string.h>
#include <sys/resource.h>

#define CONNS_DEFAULT 100000u
#define CONNS_QUICK 12000u

static void make_room(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		die("cannot read the limit of descriptors");
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_max < CONNS_MAX + 100 || setrlimit(RLIMIT_NOFILE, &limit))
		die("a hard limit of %u descriptors is needed; it is %lu", CONNS_MAX + 100,
		    (unsigned long)limit.rlim_max);
}

int main(int argc, char **argv)
{
	struct bench bench = { .broadcasts = 10 };
	bool is_short = false;
	uint64_t conns = 0;
	const char *part = "";
	const char *only = "";
	const struct option_row options[] = {
		{ "--quick", .flag = &bench.is_quick },
		{ "--connections", .number = &conns, .min = 1000, .max = 100002 },
		{ "--no-idle", .flag = &is_short },
		{ "--idle-minutes", .number = &bench.idle_minutes, .min = 1, .max = 1440 },
		{ "--part", .text = &part },
		{ "--only", .text = &only },
		{ "--broadcasts", .number = &bench.broadcasts, .min = 1, .max = 10000 },
	};

	options_read(argc, argv, options, sizeof(options) / sizeof(options[0]),
		     "[--quick] [--connections <number>] [--no-idle | --idle-minutes <number>] "
		     "[--part storm|fanout|mute] "
		     "[--only floor|spoke] [--broadcasts <number>]");
	bench.conns = conns > 0 ? (unsigned)conns : bench.is_quick ? CONNS_QUICK : CONNS_DEFAULT;
	bench.is_idle = !bench.is_quick && !is_short;
	bench.has[FLOOR] = strcmp(only, "spoke") != 0;
	bench.has[SPOKE] = strcmp(only, "floor") != 0;
	make_room();
	if (bench.has[FLOOR] && bench.has[SPOKE])
		stage_learn_answer();
	figures_begin();
	if (*part == '\0' || strcmp(part, "storm") == 0)
		measure_storm(&bench);
	if (*part == '\0' || strcmp(part, "fanout") == 0)
		measure_fanout(&bench);
	if (*part == '\0' || strcmp(part, "mute") == 0)
		measure_mute(&bench);
	return !figures_are_good();
}
