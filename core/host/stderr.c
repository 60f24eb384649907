/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of programs that have none: lines on the standard error output. The reader may be a pipe
 * that is full or closed, which must neither stop nor end the program.
 */
#define _GNU_SOURCE
#include "core/host/stderr.h"

#include "core/base/log.h"
#include "core/host/clock.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_LEN                                                                               \
	(SPOKEI_LOG_TEXT_MAX + 128u) /* with time, level and the number of dropped lines */

/* Returns whether a line can be written without waiting for the reader. */
static bool is_writable(void)
{
	struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&fd, 1, 0) == 1 && (fd.revents & (POLLOUT | POLLERR | POLLNVAL)) == POLLOUT;
}

/* Writes without raising SIGPIPE: the signal of this write is taken back before it is delivered,
 * unless one was pending before. */
static void write_quietly(const char *line, size_t len)
{
	const struct timespec at_once = { 0, 0 };
	sigset_t pending;
	sigset_t before;
	sigset_t pipe;

	(void)sigemptyset(&pipe);
	(void)sigaddset(&pipe, SIGPIPE);
	if (sigpending(&pending) || pthread_sigmask(SIG_BLOCK, &pipe, &before))
		return;
	if (write(STDERR_FILENO, line, len) < 0 && errno == EPIPE &&
	    !sigismember(&pending, SIGPIPE))
		(void)sigtimedwait(&pipe, NULL, &at_once);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Prints the time as ISO 8601, UTC, with milliseconds. */
static void print_time(char *text, size_t size)
{
	uint64_t wall_ns = spokei_clock_wall(NULL);
	time_t seconds = (time_t)(wall_ns / UINT64_C(1000000000));
	struct tm utc;
	size_t len = 0;

	if (gmtime_r(&seconds, &utc))
		len = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &utc);
	(void)snprintf(text + len, size - len, ".%03uZ", (unsigned)(wall_ns / 1000000 % 1000));
}

void spokei_stderr_print(void *ctx, const struct spoke_log_line *line)
{
	int saved = errno;
	char text[LINE_MAX_LEN];
	char dropped[48] = "";
	char at[48];
	int len;

	(void)ctx;
	print_time(at, sizeof(at));
	if (line->suppressed)
		(void)snprintf(dropped, sizeof(dropped), " (%llu similar lines dropped)",
			       (unsigned long long)line->suppressed);
	len = snprintf(text, sizeof(text), "%s %s %s%s\n", at, spokei_log_level_name(line->level),
		       line->text, dropped);
	if (len > 0 && (size_t)len < sizeof(text) && is_writable())
		write_quietly(text, (size_t)len);
	errno = saved;
}

const char *spokei_stderr_variable(void *ctx, const char *name)
{
	(void)ctx;
	/* Safe unless another thread changes the environment meanwhile. */
	return getenv(name); /* NOLINT(concurrency-mt-unsafe) */
}
