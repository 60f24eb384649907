/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, freezes, kills and reaps the processes of a test. */
#define _GNU_SOURCE
#include "tests/integration/rig_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARGUMENTS_MAX 24u

struct rig_process *rig_processes;

uint64_t rig_now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

void rig_sleep(uint64_t ns)
{
	uint64_t until_ns = rig_now() + ns;
	struct timespec until = { (time_t)(until_ns / SECOND), (long)(until_ns % SECOND) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		continue;
}

/* --- start */

bool rig_enter_netns(pid_t pid)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && setns(fd, CLONE_NEWNET) == 0;
}

/* Kills all processes when the test program ends, even by a crash. */
static bool become_child(const int *fds, pid_t parent)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent &&
	       dup2(fds[0], 0) >= 0 && dup2(fds[1], 1) >= 0;
}

static void become(const char *program, const struct rig_process *netns, char *const *arguments)
{
	if (netns && !rig_enter_netns(netns->pid))
		_exit(126);
	(void)execvp(program, arguments);
	_exit(127);
}

struct rig_process *rig_new_process(const char *name)
{
	struct rig_process *process = calloc(1, sizeof(*process));

	assert_non_null(process);
	process->lines = calloc(RIG_LINES_MAX, sizeof(*process->lines));
	assert_non_null(process->lines);
	process->name = name;
	process->to = -1;
	process->from = -1;
	process->next = rig_processes;
	rig_processes = process;
	return process;
}

bool rig_fork(struct rig_process *process)
{
	pid_t parent = getpid();
	int to[2];
	int from[2];

	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	process->pid = fork();
	if (process->pid == 0) {
		if (!become_child((int[]){ to[0], from[1] }, parent))
			_exit(126);
		return true;
	}
	(void)close(to[0]);
	(void)close(from[1]);
	process->to = to[1];
	process->from = from[0];
	assert_true(process->pid > 0);
	assert_true(fcntl(process->from, F_SETFL, O_NONBLOCK) == 0);
	return false;
}

struct rig_process *rig_start(const char *program, const struct rig_process *netns,
			      const char *const *arguments)
{
	const char *slash = strrchr(program, '/');
	struct rig_process *process = rig_new_process(slash ? slash + 1 : program);
	char *given[ARGUMENTS_MAX] = { (char *)(uintptr_t)program };

	for (size_t i = 0; arguments[i]; i++) {
		assert_true(i + 2 < ARGUMENTS_MAX);
		given[i + 1] = (char *)(uintptr_t)arguments[i];
	}
	if (rig_fork(process))
		become(program, netns, given);
	return process;
}

struct rig_process *rig_netns(void)
{
	struct rig_process *process = rig_new_process("network");

	if (rig_fork(process)) {
		static const char said[] = "0 stands\n";
		char end;

		if (unshare(CLONE_NEWNET) == 0)
			(void)!write(STDOUT_FILENO, said, sizeof(said) - 1);
		(void)!read(STDIN_FILENO, &end, 1);
		_exit(0);
	}
	(void)rig_wait(process, "stands");
	return process;
}

/* Splits a text at its spaces, in place. */
static void cut(char *text, const char **ret_parts)
{
	size_t count = 0;

	for (char *at = text + strspn(text, " "); *at; at += strspn(at, " ")) {
		assert_true(count + 1 < ARGUMENTS_MAX);
		ret_parts[count++] = at;
		at += strcspn(at, " ");
		if (*at)
			*at++ = '\0';
	}
	ret_parts[count] = NULL;
}

__attribute__((format(printf, 3, 0))) static struct rig_process *start_format(
	const char *program, const struct rig_process *netns, const char *format, va_list list)
{
	const char *parts[ARGUMENTS_MAX];
	char text[RIG_LINE_SIZE];

	(void)vsnprintf(text, sizeof(text), format, list);
	cut(text, parts);
	return rig_start(program, netns, parts);
}

struct rig_process *rig_provider(const struct rig_process *netns, const char *format, ...)
{
	struct rig_process *process;
	va_list list;

	va_start(list, format);
	process = start_format(RIG_PROGRAMS "/live_provider", netns, format, list);
	va_end(list);
	return process;
}

struct rig_process *rig_consumer(const struct rig_process *netns, const char *format, ...)
{
	struct rig_process *process;
	va_list list;

	va_start(list, format);
	process = start_format(RIG_PROGRAMS "/live_consumer", netns, format, list);
	va_end(list);
	return process;
}

struct rig_process *rig_caller(const char *format, ...)
{
	struct rig_process *process;
	va_list list;

	va_start(list, format);
	process = start_format(RIG_PROGRAMS "/live_caller", NULL, format, list);
	va_end(list);
	return process;
}

struct rig_process *rig_holder(const char *format, ...)
{
	struct rig_process *process;
	va_list list;

	va_start(list, format);
	process = start_format(RIG_PROGRAMS "/live_holder", NULL, format, list);
	va_end(list);
	return process;
}

struct rig_process *rig_astray_provider(const char *format, ...)
{
	struct rig_process *process;
	va_list list;

	va_start(list, format);
	process = start_format(RIG_PROGRAMS "/astray_provider", NULL, format, list);
	va_end(list);
	return process;
}

struct rig_process *rig_astray_consumer(const char *format, ...)
{
	struct rig_process *process;
	va_list list;

	va_start(list, format);
	process = start_format(RIG_PROGRAMS "/astray_consumer", NULL, format, list);
	va_end(list);
	return process;
}

/* --- signals and ends */

void rig_signal(struct rig_process *process, int signal)
{
	assert_true(process->pid > 0);
	assert_int_equal(kill(process->pid, signal), 0);
}

void rig_until_stopped(struct rig_process *process)
{
	int status = 0;

	assert_int_equal(waitpid(process->pid, &status, WUNTRACED), process->pid);
	assert_true(WIFSTOPPED(status));
}

void rig_freeze(struct rig_process *process)
{
	rig_signal(process, SIGSTOP);
	rig_until_stopped(process);
}

void rig_thaw(struct rig_process *process)
{
	int status = 0;

	rig_signal(process, SIGCONT);
	assert_int_equal(waitpid(process->pid, &status, WCONTINUED), process->pid);
	assert_true(WIFCONTINUED(status));
}

static void reap(struct rig_process *process)
{
	if (process->to >= 0)
		(void)close(process->to);
	process->to = -1;
	if (process->pid > 0)
		(void)waitpid(process->pid, &process->status, 0);
	process->pid = 0;
}

void rig_kill(struct rig_process *process)
{
	rig_signal(process, SIGKILL);
	reap(process);
	rig_hear(process);
}

int rig_end(struct rig_process *process)
{
	uint64_t end_ns = rig_now() + RIG_PATIENCE_NS;

	while (process->from >= 0) {
		if (rig_now() > end_ns)
			fail_msg("%s did not end in time", process->name);
		rig_hear_all();
	}
	reap(process);
	return WIFEXITED(process->status) ? WEXITSTATUS(process->status) : -1;
}

void assert_ends_well(struct rig_process *process)
{
	rig_tell(process, "quit");
	assert_int_equal(rig_end(process), 0);
}

size_t rig_descriptors(const struct rig_process *process)
{
	char path[64];
	size_t count = 0;
	DIR *folder;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)process->pid);
	folder = opendir(path);
	assert_non_null(folder);
	while (readdir(folder)) // NOLINT(concurrency-mt-unsafe): there is one thread
		count++;
	(void)closedir(folder);
	return count;
}

int rig_run(const struct rig_process *netns, const char *format, ...)
{
	const char *parts[ARGUMENTS_MAX];
	char text[RIG_LINE_SIZE];
	struct rig_process *process;
	va_list list;
	int status;

	va_start(list, format);
	(void)vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	cut(text, parts);
	process = rig_start(parts[0], netns, parts + 1);
	status = rig_end(process);
	return status;
}

/* --- set-up and tear-down */

int rig_set_up(void **state)
{
	const struct sigaction ignored = { .sa_handler = SIG_IGN };
	struct rlimit files;

	(void)state;
	if (getrlimit(RLIMIT_NOFILE, &files))
		return -1;
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files))
		return -1;
	return sigaction(SIGPIPE, &ignored, NULL);
}

/* Prints the output of the processes if the test failed. cmocka does not report that to the tear-
 * down; a process that had to be killed, or ended badly, indicates it. */
RIG_STEP(rig_tear_down)
{
	struct rig_process *process;
	bool is_left = false;

	for (process = rig_processes; process; process = process->next)
		is_left |= (process->pid > 0 && strcmp(process->name, "network") != 0) ||
			   (process->status && !WIFSIGNALED(process->status));
	while ((process = rig_processes) != NULL) {
		rig_processes = process->next;
		if (process->pid > 0)
			(void)kill(process->pid, SIGKILL);
		reap(process);
		if (is_left)
			rig_show(process);
		if (process->from >= 0)
			(void)close(process->from);
		for (size_t i = 0; i < process->line_count; i++)
			free(process->lines[i].text);
		free(process->lines);
		free(process);
	}
}
