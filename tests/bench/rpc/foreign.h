/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of the CPUs was used by others. The busy time of /proc/stat is of no use here: it is
 * sampled at ticks, and processes that run for 10 µs at a time are seen too rarely; its idle time
 * lacks the way into idleness and out of it. The CPU time of processes is exact but for the last
 * 10 ms of each.
 */
#ifndef BENCH_FOREIGN_H
#define BENCH_FOREIGN_H

#include <stdint.h>

struct foreign {
	uint64_t at_ns;
	uint64_t all_ns; /* CPU time of all processes, ended ones too, and of the hypervisor */
	uint64_t own_ns; /* of this process and the children it has waited for */
	uint32_t cpus;
};

struct foreign foreign_begin(void);

/* The share of all CPUs since then that neither this process used nor those of its children that
 * were begun and waited for meanwhile. */
double foreign_end(const struct foreign *begin);

#endif
