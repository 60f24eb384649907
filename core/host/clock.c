/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the clocks of the machine, without a system call where the kernel maps them into the
 * process. All of them exist on every kernel that spoke supports, so a failure is a bug.
 */
#define _GNU_SOURCE
#include "core/host/clock.h"

#include "timer/base.h"

#include <time.h>

#define NS_PER_S UINT64_C(1000000000)

static uint64_t read_clock(clockid_t clock)
{
	struct timespec time = { 0 };
	int result = clock_gettime(clock, &time);

	SPOKE_ASSERT(result == 0);
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

uint64_t spokei_clock_now(void *ctx)
{
	(void)ctx;
	return read_clock(CLOCK_MONOTONIC);
}

/* The same clock as of the kernel's last tick, which comes at least every 10 ms. */
uint64_t spokei_clock_coarse(void *ctx)
{
	(void)ctx;
	return read_clock(CLOCK_MONOTONIC_COARSE);
}

uint64_t spokei_clock_boot_now(void *ctx)
{
	(void)ctx;
	return read_clock(CLOCK_BOOTTIME);
}

uint64_t spokei_clock_wall(void *ctx)
{
	(void)ctx;
	return read_clock(CLOCK_REALTIME);
}
