/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes first, then connections, then calls; fails when a target is missed. */
#include "memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define DESCRIPTORS_MORE 100u /* than connections */

static void make_room(unsigned conns)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		die("no limit of descriptors");
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_max < conns + DESCRIPTORS_MORE || setrlimit(RLIMIT_NOFILE, &limit))
		die("%u connections need a hard limit of %u descriptors; it is %lu", conns,
		    conns + DESCRIPTORS_MORE, (unsigned long)limit.rlim_max);
}

int main(int argc, char **argv)
{
	bool is_quick = argc == 2 && strcmp(argv[1], "--quick") == 0;
	unsigned conns = is_quick ? 1000 : 10000;

	if (argc > 1 && !is_quick) {
		(void)fprintf(stderr, "usage: bench_memory [--quick]\n");
		return 2;
	}
	make_room(conns);
	measure_sizes();
	measure_idle(conns);
	if (is_quick)
		measure_pending(1000, 100000, 20000);
	else
		measure_pending(1000, 1000000, 200000);
	return !report_is_good();
}
