/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine as the event libraries see it. All of them read the clock and wait through functions
 * of the C library. The benchmark overrides those functions, so that it can stop, advance or move
 * time, and so that a turn of a loop costs what the library does, without a system call.
 */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include <stdbool.h>
#include <stdint.h>

#define HOST_MS UINT64_C(1000000) /* ns */
#define HOST_START_NS (UINT64_C(1000000) * HOST_MS)

/* The time in ns: the virtual time, or the last noted real time. */
extern uint64_t host_now_ns;

/* Number of waits of an event loop that returned in real time; reset by the reader. */
extern uint64_t host_wakeups;

/* Finds the real clock and binds the process to one CPU (cpu < 0: the last one allowed). */
void host_init(int cpu);

/* Switches to virtual time: the clock is host_now_ns, beginning at HOST_START_NS, and a wait
 * returns at once. */
void host_virtual(void);

/* Switches to real time; notes the time. */
void host_real(void);

/* Returns the real monotonic time, whatever the loops see. */
uint64_t host_real_ns(void);

/* Returns the CPU time of this thread, which excludes the time used by other processes. */
uint64_t host_cpu_ns(void);

/* Prints a message to stderr and ends the program, so that an invalid measurement reports nothing.
 */
_Noreturn void host_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns zeroed memory aligned to a cache line, with every page touched; never NULL. */
void *host_memory(uint64_t count, uint64_t size);

#endif
