/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The share of the CPUs that other processes used. The busy time of /proc/stat is useless here: it
 * is sampled at ticks, which miss processes that run for 10 µs at a time; and its idle time
 * excludes the entry to and exit from idle. The CPU time of processes is exact but for the last 10
 * ms of each.
 */
#ifndef BENCH_FOREIGN_H
#define BENCH_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>

struct foreign {
	uint64_t at_ns;
	uint64_t all_ns; /* CPU time of all processes, ended ones too, and of the hypervisor */
	uint64_t own_ns; /* of this process and the children it has waited for */
	uint32_t cpus;
};

struct foreign foreign_begin(void);

/* Returns the share of all CPUs since then that was used neither by this process nor by children
 * that were started and waited for meanwhile. */
double foreign_end(const struct foreign *begin);

#endif
