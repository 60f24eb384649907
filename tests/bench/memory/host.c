/* SPDX-License-Identifier: Apache-2.0 */
/* Time, memory and child processes. */
#include "memory.h"

#include <spoke/engine.h>

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static bool missed;

void die(const char *format, ...)
{
	va_list list;

	(void)fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(list, format);
	(void)vfprintf(stderr, format, list);
	va_end(list);
	(void)fputc('\n', stderr);
	_exit(2);
}

void must(const char *what, int error)
{
	if (error)
		die("%s: %s", what, spoke_strerror(error));
}

static uint64_t read_clock(clockid_t clock)
{
	struct timespec time;

	(void)clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

uint64_t now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t cpu_ns(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

struct usage usage_now(void)
{
	struct mallinfo2 info = mallinfo2();
	struct usage usage = { .handed_out = info.uordblks + info.hblkhd };
	FILE *file = fopen("/proc/self/statm", "re");
	char text[128] = "";
	const char *second;

	if (file == NULL || fgets(text, sizeof(text), file) == NULL)
		die("cannot read /proc/self/statm");
	(void)fclose(file);
	second = strchr(text, ' ');
	usage.resident = strtoul(second ? second : "", NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
	return usage;
}

/* --- rows */

void report(const char *figure, double value, const char *unit, double target)
{
	static bool begun;
	char text[32] = "-";

	if (!begun)
		printf("figure\tvalue\tunit\ttarget\n");
	begun = true;
	if (target > 0)
		(void)snprintf(text, sizeof(text), "<= %g", target);
	printf("%s\t%.*f\t%s\t%s\n", figure, value < 100 ? 3 : 0, value, unit, text);
	(void)fflush(stdout);
	if (target > 0 && value > target) {
		missed = true;
		(void)fprintf(stderr, "missed: %s is %.3f %s, target %g\n", figure, value, unit,
			      target);
	}
}

bool report_is_good(void)
{
	return !missed;
}

/* --- child processes */

void read_all(int fd, void *bytes, size_t len)
{
	unsigned char *at = bytes;

	while (len > 0) {
		ssize_t got = read(fd, at, len);

		if (got == 0 || (got < 0 && errno != EINTR))
			die("read failed or the peer has closed: errno %d", got ? errno : 0);
		if (got > 0) {
			at += got;
			len -= (size_t)got;
		}
	}
}

void write_all(int fd, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	while (len > 0) {
		ssize_t put = write(fd, at, len);

		if (put < 0 && errno != EINTR)
			die("cannot write: errno %d", errno);
		if (put > 0) {
			at += put;
			len -= (size_t)put;
		}
	}
}

void helper_start(struct helper *helper, void (*play)(void *arg, int in, int out), void *arg)
{
	pid_t parent = getpid();
	int to[2];
	int from[2];

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		die("no pipes: errno %d", errno);
	(void)fflush(stdout);
	helper->pid = fork();
	if (helper->pid < 0)
		die("no process: errno %d", errno);
	if (helper->pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
			_exit(2);
		(void)close(to[1]);
		(void)close(from[0]);
		play(arg, to[0], from[1]);
		_exit(0);
	}
	(void)close(to[0]);
	(void)close(from[1]);
	helper->to = to[1];
	helper->from = from[0];
	if (fcntl(helper->from, F_SETFL, O_NONBLOCK) < 0)
		die("fcntl: errno %d", errno);
}

void helper_tell(const struct helper *helper, const void *bytes, size_t len)
{
	write_all(helper->to, bytes, len);
}

void helper_hear(const struct helper *helper, struct spoke_engine *engine, void *bytes, size_t len)
{
	unsigned char *at = bytes;
	const struct timespec pause = { 0, MS / 10 };

	while (len > 0) {
		ssize_t got = read(helper->from, at, len);

		if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
			die("a child process ended too early");
		if (got > 0) {
			at += got;
			len -= (size_t)got;
		} else if (engine) {
			must("turn", spoke_engine_turn(engine, false));
		} else {
			(void)nanosleep(&pause, NULL);
		}
	}
}

void helper_end(struct helper *helper)
{
	(void)kill(helper->pid, SIGKILL);
	(void)waitpid(helper->pid, NULL, 0);
	(void)close(helper->to);
	(void)close(helper->from);
}
