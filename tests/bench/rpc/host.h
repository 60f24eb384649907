/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Services of the operating system. The benchmark overrides the C library's functions that read,
 * write and wait, so that the same code counts the system calls of every peer, and the one that
 * opens sockets, so that the same code sets the congestion control of every peer.
 */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOST_MS UINT64_C(1000000) /* ns */

/*
 * Counters of system calls that moved or tried to move data, waited, or changed what the kernel
 * waits for. Futexes are not counted. All threads of a process count: host_count() adds,
 * host_peek() copies.
 */
struct host_calls {
	uint64_t reads;
	uint64_t writes;
	uint64_t waits;
	uint64_t others; /* epoll_ctl, timerfd_settime */
	uint64_t bytes_read;
	uint64_t bytes_written;
};

/* The counters of this process; never NULL, and set before there are threads. */
extern struct host_calls *host_calls;

/* The congestion control of TCP sockets that this process opens from now on; those that it accepts
 * inherit it. NULL: the kernel's default. */
extern const char *host_congestion;

/* Writes the congestion control of a new TCP socket: `wanted`, or the kernel's default if it is
 * NULL. Returns whether this process may use it. */
bool host_find_congestion(const char *wanted, char *ret_name, size_t size);

static inline void host_count(uint64_t *counter, uint64_t more)
{
	(void)__atomic_fetch_add(counter, more, __ATOMIC_RELAXED);
}

/* Returns the number of reads of this process. */
static inline uint64_t host_reads(void)
{
	return __atomic_load_n(&host_calls->reads, __ATOMIC_RELAXED);
}

struct host_calls host_peek(const struct host_calls *calls);

/* Returns the monotonic time. */
uint64_t host_now_ns(void);

/* Returns the CPU time of a process, all threads together; 0 if it has ended. */
uint64_t host_cpu_ns(int pid);

/* Binds the process to one CPU. */
void host_pin(int cpu);

/* Returns zeroed memory aligned to a cache line; never NULL. */
void *host_memory(uint64_t count, uint64_t size);

/* Prints a message to stderr and ends the program, so that an invalid measurement reports nothing.
 */
void host_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif

#endif
