/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine as the event libraries see it. All of them read the clock and wait in functions of
 * the C library; the benchmark defines those functions itself, so that it can let time stand still,
 * pass or jump, and so that a turn of a loop costs what the library does and not a system call.
 */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include <stdbool.h>
#include <stdint.h>

#define HOST_MS UINT64_C(1000000) /* ns */
#define HOST_START_NS (UINT64_C(1000000) * HOST_MS)

/* The time in ns: what every clock says while the host is virtual, else what it last noted. */
extern uint64_t host_now_ns;

/* How often a wait of an event loop came back in real time; whoever counts sets it to 0. */
extern uint64_t host_wakeups;

/* Finds the real clock and ties the process to one CPU (cpu < 0: the last one allowed). */
void host_init(int cpu);

/* From now on the clock is host_now_ns, beginning at HOST_START_NS, and a wait finds nothing. */
void host_virtual(void);

/* From now on clock and waits are the machine's; notes the time. */
void host_real(void);

/* The true monotonic clock, whatever the loops are told. */
uint64_t host_real_ns(void);

/* CPU time of this thread: what a step cost even when other processes took the CPU meanwhile. */
uint64_t host_cpu_ns(void);

/* A sentence to stderr, and the end: a benchmark that measured something else must not report. */
_Noreturn void host_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Zeroed memory aligned to a cache line, every page of it touched; never NULL. */
void *host_memory(uint64_t count, uint64_t size);

#endif
