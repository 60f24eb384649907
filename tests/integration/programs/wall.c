/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces the wall clock of a program: readings are alternately a day ahead and a day behind. The
 * first reading prints a line, so that a test notices the use of the wall clock.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define DAY 86400
#define INSTEAD __attribute__((visibility("default"))) /* overrides the C library's function */

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): it has none to follow
INSTEAD int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	static unsigned looks;
	long status = syscall(SYS_clock_gettime, clock, ret_time);

	if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
		if (looks == 0)
			(void)!write(STDOUT_FILENO, "0 wall\n", 7);
		ret_time->tv_sec += looks++ % 2 ? DAY : -DAY;
	}
	return (int)status;
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): it has none to follow
INSTEAD int gettimeofday(struct timeval *restrict ret_time, void *restrict zone)
{
	struct timespec time;

	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &time))
		return -1;
	ret_time->tv_sec = time.tv_sec;
	ret_time->tv_usec = time.tv_nsec / 1000;
	return 0;
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): it has none to follow
INSTEAD time_t time(time_t *ret_time)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (ret_time)
		*ret_time = now.tv_sec;
	return now.tv_sec;
}
