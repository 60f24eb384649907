/* SPDX-License-Identifier: Apache-2.0 */
/* Measures sizes first, then tables, connections and calls; fails if a target is missed. */
#include "memory.h"

#include "tests/bench/common/options.h"

#include <sys/resource.h>

#define DESCRIPTORS_MORE 100u /* more than connections */

static void make_room(unsigned conns)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		die("cannot read the limit of descriptors");
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_max < conns + DESCRIPTORS_MORE || setrlimit(RLIMIT_NOFILE, &limit))
		die("%u connections need a hard limit of %u descriptors; it is %lu", conns,
		    conns + DESCRIPTORS_MORE, (unsigned long)limit.rlim_max);
}

int main(int argc, char **argv)
{
	bool is_quick = false;
	const struct option_row quick = { "--quick", .flag = &is_quick };
	unsigned conns;

	options_read(argc, argv, &quick, 1, "[--quick]");
	conns = is_quick ? 1000 : 10000;
	make_room(conns);
	measure_sizes();
	measure_steps(is_quick ? 300000 : 2200000);
	measure_idle(conns);
	if (is_quick)
		measure_pending(1000, 100000, 20000);
	else
		measure_pending(1000, 1000000, 200000);
	return !report_is_good();
}
