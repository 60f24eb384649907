/* SPDX-License-Identifier: Apache-2.0 */
/* Time and waiting, real or virtual; see host.h. Needs _GNU_SOURCE (RTLD_NEXT, CPU sets). */
#include "host.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Between virtual monotonic and virtual wall time: constant, so that no loop sees a time jump. */
#define WALL_OFFSET_S 1700000000

#define KERNEL_SIGSET_BYTES 8

/* Overrides the C library's function, for shared libraries as well. */
#define EXPORTED __attribute__((visibility("default")))

typedef int (*clock_fn)(clockid_t clock, struct timespec *ret_time);

uint64_t host_now_ns;
uint64_t host_wakeups;

static bool is_virtual;
static clock_fn true_clock;

static uint64_t read_true(clockid_t clock)
{
	struct timespec time = { 0 };

	if (true_clock(clock, &time) != 0)
		host_die("cannot read the clock");
	return (uint64_t)time.tv_sec * 1000 * HOST_MS + (uint64_t)time.tv_nsec;
}

EXPORTED int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (is_virtual && clock != CLOCK_THREAD_CPUTIME_ID && clock != CLOCK_PROCESS_CPUTIME_ID) {
		time->tv_sec = (time_t)(host_now_ns / (1000 * HOST_MS));
		time->tv_nsec = (long)(host_now_ns % (1000 * HOST_MS));
		if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
			time->tv_sec += WALL_OFFSET_S;
		return 0;
	}
	if (true_clock == NULL)
		return (int)syscall(SYS_clock_gettime, clock, time);
	return true_clock(clock, time);
}

EXPORTED int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	struct timespec now = { 0 };

	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &now) != 0)
		return -1;
	time->tv_sec = now.tv_sec;
	time->tv_usec = now.tv_nsec / 1000;
	return 0;
}

EXPORTED int epoll_pwait(int epoll, struct epoll_event *events, int max, int timeout_ms,
			 const sigset_t *mask)
{
	long count;

	if (is_virtual)
		return 0;
	count = syscall(SYS_epoll_pwait, epoll, events, max, timeout_ms, mask, KERNEL_SIGSET_BYTES);
	host_wakeups++;
	return (int)count;
}

EXPORTED int epoll_wait(int epoll, struct epoll_event *events, int max, int timeout_ms)
{
	return epoll_pwait(epoll, events, max, timeout_ms, NULL);
}

static void pin_to(int cpu)
{
	cpu_set_t set;
	size_t chosen = 0;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		host_die("cannot read the allowed CPUs");
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		chosen = CPU_ISSET(i, &set) ? i : chosen;
	if (cpu >= 0)
		chosen = (size_t)cpu;
	CPU_ZERO(&set);
	CPU_SET(chosen, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		host_die("cannot bind to CPU %zu", chosen);
}

/* Checks that all libraries use our functions. Otherwise the loops would use real time unnoticed.
 */
static void check_doors(void)
{
	static const char *const names[] = { "clock_gettime", "gettimeofday", "epoll_wait",
					     "epoll_pwait" };
	Dl_info own;
	Dl_info info;

	if (dladdr(&host_now_ns, &own) == 0)
		host_die("dladdr of the program failed");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *symbol = dlsym(RTLD_DEFAULT, names[i]);

		if (symbol == NULL || dladdr(symbol, &info) == 0 || info.dli_fbase != own.dli_fbase)
			host_die("%s is not exported: time cannot be virtual", names[i]);
	}
}

void host_init(int cpu)
{
	void *symbol = dlsym(RTLD_NEXT, "clock_gettime");

	if (symbol == NULL)
		host_die("clock_gettime of the C library not found");
	/* ISO C has no conversion from an object pointer to a function pointer; POSIX needs one. */
	memcpy(&true_clock, &symbol, sizeof(true_clock));
	check_doors();
	pin_to(cpu);
}

void host_virtual(void)
{
	host_now_ns = HOST_START_NS;
	is_virtual = true;
}

void host_real(void)
{
	is_virtual = false;
	host_now_ns = host_real_ns();
}

uint64_t host_real_ns(void)
{
	return read_true(CLOCK_MONOTONIC);
}

uint64_t host_cpu_ns(void)
{
	return read_true(CLOCK_THREAD_CPUTIME_ID);
}

void host_die(const char *format, ...)
{
	va_list args;

	(void)fputs("bench: ", stderr);
	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	(void)fputc('\n', stderr);
	exit(1);
}

void *host_memory(uint64_t count, uint64_t size)
{
	size_t len = (size_t)(count * size + 63) / 64 * 64;
	void *memory = aligned_alloc(64, len);

	if (memory == NULL) {
		host_die("no memory for %llu times %llu bytes", (unsigned long long)count,
			 (unsigned long long)size);
	}
	memset(memory, 0, len);
	return memory;
}
