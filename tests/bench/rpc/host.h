/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine, and what a process asks of it: the benchmark defines the C library's functions that
 * read, write and wait itself, so that the system calls of every peer are counted by the same code.
 */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOST_MS UINT64_C(1000000) /* ns */

/*
 * System calls that moved or tried to move data, waited, or told the kernel what to wait for.
 * Threads that wait for each other do so by futexes, which are not seen. Counted by all threads of
 * a process: host_count() adds, host_peek() copies.
 */
struct host_calls {
	uint64_t reads;
	uint64_t writes;
	uint64_t waits;
	uint64_t others; /* epoll_ctl, timerfd_settime */
	uint64_t bytes_read;
	uint64_t bytes_written;
};

/* Where this process counts; never NULL, and set before there are threads. */
extern struct host_calls *host_calls;

static inline void host_count(uint64_t *counter, uint64_t more)
{
	(void)__atomic_fetch_add(counter, more, __ATOMIC_RELAXED);
}

/* How often this process has read. */
static inline uint64_t host_reads(void)
{
	return __atomic_load_n(&host_calls->reads, __ATOMIC_RELAXED);
}

struct host_calls host_peek(const struct host_calls *calls);

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
void host_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif

#endif
