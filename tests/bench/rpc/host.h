/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine, and what a process asks of it: the benchmark defines the C library's functions that
 * read, write and wait itself, so that the system calls of every peer are counted by the same code.
 */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include <stdint.h>

#define HOST_MS UINT64_C(1000000) /* ns */

/* System calls that moved or tried to move data, waited, or told the kernel what to wait for. */
struct host_calls {
	uint64_t reads;
	uint64_t writes;
	uint64_t waits;
	uint64_t others; /* epoll_ctl, timerfd_settime */
	uint64_t bytes_read;
	uint64_t bytes_written;
};

/* Where this process counts; never NULL. */
extern struct host_calls *host_calls;

/* A clock in ns. */
uint64_t host_ns(int clock);

/* Monotonic. */
uint64_t host_now_ns(void);

/* CPU time of a process, all its threads; 0 when it is gone. */
uint64_t host_cpu_ns(int pid);

/* Ties the process to one CPU. */
void host_pin(int cpu);

/* Zeroed memory aligned to a cache line; never NULL. */
void *host_memory(uint64_t count, uint64_t size);

/* A sentence to stderr, and the end: a benchmark that measured something else must not report. */
_Noreturn void host_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
