/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of a test: talks with them, starts, freezes and ends them, and puts a wire between two
 * network namespaces. See rig.h.
 */
#define _GNU_SOURCE
#include "tests/integration/rig.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES_MAX 16u
#define LOOK_MS 20 /* interval of checks of a process without output */
#define TAIL 40u   /* last lines of each process that a failure prints */
#define ARGUMENTS_MAX 24u
#define UNDER_WAY 4096u
#define PACKET_MAX 2048u
#define THOUSAND 1000u
#define RIG_PATIENCE_NS (60 * SECOND)

static struct rig_process *processes; /* of the current test */

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

/* --- lines */

static void add_line(struct rig_process *process, const char *text)
{
	struct rig_line *line;
	char *rest;

	if (process->line_count == RIG_LINES_MAX)
		fail_msg("%s prints too many lines", process->name);
	line = &process->lines[process->line_count];
	line->at_ns = strtoull(text, &rest, 10);
	line->text = strdup(rest + (*rest == ' '));
	assert_non_null(line->text);
	process->line_count++;
}

static void take_lines(struct rig_process *process)
{
	char *at = process->part;
	char *end;

	while ((end = memchr(at, '\n', process->part_len)) != NULL) {
		*end = '\0';
		add_line(process, at);
		process->part_len -= (size_t)(end + 1 - at);
		at = end + 1;
	}
	memmove(process->part, at, process->part_len);
	assert_true(process->part_len < sizeof(process->part));
}

/* Reads all pending output of a process. */
static void hear(struct rig_process *process)
{
	ssize_t got = 1;

	while (got > 0 && process->from >= 0) {
		got = read(process->from, process->part + process->part_len,
			   sizeof(process->part) - process->part_len);
		if (got > 0) {
			process->part_len += (size_t)got;
			take_lines(process);
		} else if (got == 0) {
			(void)close(process->from);
			process->from = -1;
		}
	}
}

/* Waits a short time for output of any process and reads all of it, so that no pipe fills up. */
static void hear_all(void)
{
	struct pollfd fds[PROCESSES_MAX];
	nfds_t count = 0;

	for (struct rig_process *process = processes; process; process = process->next)
		if (process->from >= 0 && count < PROCESSES_MAX)
			fds[count++] = (struct pollfd){ process->from, POLLIN, 0 };
	(void)poll(fds, count, LOOK_MS);
	for (struct rig_process *process = processes; process; process = process->next)
		hear(process);
}

static void show(const struct rig_process *process)
{
	size_t from = process->line_count > TAIL ? process->line_count - TAIL : 0;

	for (size_t i = from; i < process->line_count; i++) {
		print_message("%llu.%06llu %s: %s\n",
			      (unsigned long long)(process->lines[i].at_ns / SECOND),
			      (unsigned long long)(process->lines[i].at_ns % SECOND / 1000),
			      process->name, process->lines[i].text);
	}
}

const struct rig_line *rig_wait(struct rig_process *process, const char *pattern)
{
	uint64_t end_ns = rig_now() + RIG_PATIENCE_NS;

	for (;;) {
		bool is_over = process->from < 0;

		while (process->heard < process->line_count) {
			const struct rig_line *line = &process->lines[process->heard++];

			if (fnmatch(pattern, line->text, 0) == 0)
				return line;
		}
		if (is_over)
			fail_msg("%s ended without printing \"%s\"", process->name, pattern);
		if (rig_now() > end_ns)
			fail_msg("%s did not print \"%s\" in time", process->name, pattern);
		hear_all();
	}
}

void rig_skip(struct rig_process *process)
{
	hear(process);
	process->heard = process->line_count;
}

size_t rig_count_between(struct rig_process *process, const char *pattern, uint64_t from_ns,
			 uint64_t to_ns)
{
	size_t count = 0;

	hear(process);
	for (size_t i = 0; i < process->line_count; i++)
		count += process->lines[i].at_ns >= from_ns && process->lines[i].at_ns <= to_ns &&
			 fnmatch(pattern, process->lines[i].text, 0) == 0;
	return count;
}

size_t rig_count(struct rig_process *process, const char *pattern)
{
	return rig_count_between(process, pattern, 0, UINT64_MAX);
}

const char *rig_address(struct rig_process *provider)
{
	return rig_wait(provider, "listens *")->text + strlen("listens ");
}

/* --- commands */

void rig_tell(struct rig_process *process, const char *format, ...)
{
	char line[RIG_LINE_SIZE];
	va_list list;
	size_t len;

	va_start(list, format);
	(void)vsnprintf(line, sizeof(line) - 1, format, list);
	va_end(list);
	len = strlen(line);
	line[len] = '\n';
	assert_int_equal(write(process->to, line, len + 1), len + 1);
}

uint64_t rig_stat(struct rig_process *process, const char *name)
{
	const struct rig_line *line;
	uint64_t value = 0;
	size_t len = strlen(name);

	rig_tell(process, "stats");
	do {
		line = rig_wait(process, "stat *");
		if (strncmp(line->text + 5, name, len) == 0 && line->text[5 + len] == ' ')
			value = strtoull(line->text + 5 + len, NULL, 10);
	} while (strcmp(line->text, "stat end") != 0);
	return value;
}

void rig_until_stat(struct rig_process *process, const char *name, uint64_t least)
{
	uint64_t end_ns = rig_now() + RIG_PATIENCE_NS;

	while (rig_stat(process, name) < least) {
		if (rig_now() > end_ns)
			fail_msg("%s: counter %s did not reach %llu in time", process->name, name,
				 (unsigned long long)least);
		rig_sleep(LOOK_MS * MS);
	}
}

void rig_until(struct rig_process *process, const char *question, const char *answer)
{
	uint64_t end_ns = rig_now() + RIG_PATIENCE_NS;
	char pattern[64];

	(void)snprintf(pattern, sizeof(pattern), "%s *", question);
	for (;;) {
		rig_tell(process, "%s", question);
		if (strcmp(rig_wait(process, pattern)->text, answer) == 0)
			return;
		if (rig_now() > end_ns)
			fail_msg("%s did not answer \"%s\" in time", process->name, answer);
		rig_sleep(LOOK_MS * MS);
	}
}

void rig_until_ready(struct rig_process *consumer, unsigned count)
{
	char wanted[32];

	(void)snprintf(wanted, sizeof(wanted), "ready %u", count);
	rig_until(consumer, "ready", wanted);
}

uint64_t rig_number(const char *text, const char *words)
{
	const char *at = strstr(text, words);

	if (at == NULL)
		fail_msg("not \"%s\": %s", words, text);
	return strtoull(at + strlen(words), NULL, 10);
}

void rig_until_endpoints(struct rig_process *caller, unsigned count)
{
	char wanted[32];

	(void)snprintf(wanted, sizeof(wanted), "endpoints %u", count);
	rig_until(caller, "endpoints", wanted);
}

struct rig_table rig_table(struct rig_process *consumer)
{
	const char *text;

	rig_tell(consumer, "table");
	text = rig_wait(consumer, "table *")->text;
	return (struct rig_table){
		.taken = rig_number(text, " taken "),
		.ok = rig_number(text, " ok "),
		.wrong = rig_number(text, " wrong "),
		.timeouts = rig_number(text, " timeouts "),
		.lost = rig_number(text, " lost "),
		.refused = rig_number(text, " refused "),
		.other = rig_number(text, " other "),
		.twice = rig_number(text, " twice "),
		.not_taken = rig_number(text, " not_taken "),
	};
}

struct rig_table assert_all_ended_once(struct rig_process *consumer)
{
	struct rig_table table;

	rig_tell(consumer, "rest");
	table = rig_table(consumer);
	assert_int_equal(table.twice, 0);
	assert_int_equal(table.wrong, 0);
	assert_int_equal(table.other, 0);
	assert_int_equal(table.ok + table.timeouts + table.lost + table.refused, table.taken);
	return table;
}

/* A provider that was just thawed cannot know how long a request lay in its socket, and may reject
 * those of its first turn as expired. Then a later call counts. */
void assert_call_works(struct rig_process *consumer)
{
	static unsigned number = 1000000;

	for (unsigned tries = 0;; tries++) {
		char pattern[64];

		number++;
		rig_tell(consumer, "echo %u", number);
		(void)snprintf(pattern, sizeof(pattern), "end echo %u *", number);
		if (strstr(rig_wait(consumer, pattern)->text, " OK "))
			return;
		(void)snprintf(pattern, sizeof(pattern), "end echo %u EEXPIRED *", number);
		assert_true(tries < 5 && rig_count(consumer, pattern) == 1);
		rig_sleep(LOOK_MS * MS);
	}
}

/* --- start */

static bool enter_netns(pid_t pid)
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
	if (netns && !enter_netns(netns->pid))
		_exit(126);
	(void)execvp(program, arguments);
	_exit(127);
}

static struct rig_process *new_process(const char *name)
{
	struct rig_process *process = calloc(1, sizeof(*process));

	assert_non_null(process);
	process->lines = calloc(RIG_LINES_MAX, sizeof(*process->lines));
	assert_non_null(process->lines);
	process->name = name;
	process->to = -1;
	process->from = -1;
	process->next = processes;
	processes = process;
	return process;
}

static bool fork_process(struct rig_process *process)
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
	struct rig_process *process = new_process(slash ? slash + 1 : program);
	char *given[ARGUMENTS_MAX] = { (char *)(uintptr_t)program };

	for (size_t i = 0; arguments[i]; i++) {
		assert_true(i + 2 < ARGUMENTS_MAX);
		given[i + 1] = (char *)(uintptr_t)arguments[i];
	}
	if (fork_process(process))
		become(program, netns, given);
	return process;
}

struct rig_process *rig_netns(void)
{
	struct rig_process *process = new_process("network");

	if (fork_process(process)) {
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

struct rig_process *rig_program(const char *program, const struct rig_process *netns,
				const char *format, ...)
{
	const char *parts[ARGUMENTS_MAX];
	char path[RIG_LINE_SIZE];
	char text[RIG_LINE_SIZE];
	struct rig_process *process;
	va_list list;

	va_start(list, format);
	(void)vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	(void)snprintf(path, sizeof(path), RIG_PROGRAMS "/%s", program);
	cut(text, parts);
	process = rig_start(path, netns, parts);
	process->name = program;
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
	hear(process);
}

int rig_end(struct rig_process *process)
{
	uint64_t end_ns = rig_now() + RIG_PATIENCE_NS;

	while (process->from >= 0) {
		if (rig_now() > end_ns)
			fail_msg("%s did not end in time", process->name);
		hear_all();
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

	for (process = processes; process; process = process->next)
		is_left |= (process->pid > 0 && strcmp(process->name, "network") != 0) ||
			   (process->status && !WIFSIGNALED(process->status));
	while ((process = processes) != NULL) {
		processes = process->next;
		if (process->pid > 0)
			(void)kill(process->pid, SIGKILL);
		reap(process);
		if (is_left)
			show(process);
		if (process->from >= 0)
			(void)close(process->from);
		for (size_t i = 0; i < process->line_count; i++)
			free(process->lines[i].text);
		free(process->lines);
		free(process);
	}
}

/* --- a wire that delays, drops, duplicates and reorders packets */

struct packet {
	uint64_t due_ns; /* 0: unused */
	int to;
	size_t len;
	unsigned char bytes[PACKET_MAX];
};

struct wire {
	int fds[2];
	const struct rig_wire *how;
	uint64_t dice;
	struct packet packets[UNDER_WAY];
};

static uint64_t throw(struct wire * wire, uint64_t below)
{
	wire->dice ^= wire->dice << 13;
	wire->dice ^= wire->dice >> 7;
	wire->dice ^= wire->dice << 17;
	return wire->dice % below;
}

/* Opens the end of the wire in the namespace of a process; this process changes to that namespace.
 */
static int open_end(pid_t pid)
{
	struct ifreq name = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd;

	(void)snprintf(name.ifr_name, sizeof(name.ifr_name), "harsh");
	if (!enter_netns(pid))
		return -1;
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && ioctl(fd, TUNSETIFF, &name) == 0 ? fd : -1;
}

/* Queues a packet; drops it if there is no room. */
static void send_off(struct wire *wire, int to, const unsigned char *bytes, size_t len)
{
	for (unsigned i = 0; i < UNDER_WAY; i++) {
		struct packet *packet = &wire->packets[i];

		if (packet->due_ns > 0)
			continue;
		packet->due_ns = rig_now() + wire->how->delay_ns +
				 throw(wire, wire->how->jitter_ns + 1);
		packet->to = to;
		packet->len = len;
		memcpy(packet->bytes, bytes, len);
		return;
	}
}

static void take_from(struct wire *wire, unsigned end)
{
	unsigned char bytes[PACKET_MAX];
	ssize_t len;

	while ((len = read(wire->fds[end], bytes, sizeof(bytes))) > 0) {
		if (throw(wire, THOUSAND) < wire->how->lost_permille)
			continue;
		send_off(wire, wire->fds[!end], bytes, (size_t)len);
		if (throw(wire, THOUSAND) < wire->how->doubled_permille)
			send_off(wire, wire->fds[!end], bytes, (size_t)len);
	}
}

/* Delivers the packets that are due; returns ms until the next one. */
static int deliver(struct wire *wire)
{
	uint64_t now_ns = rig_now();
	uint64_t next_ns = now_ns + SECOND;

	for (unsigned i = 0; i < UNDER_WAY; i++) {
		struct packet *packet = &wire->packets[i];

		if (packet->due_ns > 0 && packet->due_ns <= now_ns) {
			(void)!write(packet->to, packet->bytes, packet->len);
			packet->due_ns = 0;
		} else if (packet->due_ns > 0 && packet->due_ns < next_ns) {
			next_ns = packet->due_ns;
		}
	}
	return (int)((next_ns - now_ns) / MS) + 1;
}

/* Forwards packets until the test ends the process. */
static void carry(struct wire *wire)
{
	struct pollfd fds[3] = { { wire->fds[0], POLLIN, 0 },
				 { wire->fds[1], POLLIN, 0 },
				 { STDIN_FILENO, POLLIN, 0 } };

	while (fds[2].revents == 0) {
		(void)poll(fds, 3, deliver(wire));
		take_from(wire, 0);
		take_from(wire, 1);
	}
}

struct rig_process *rig_wire(const struct rig_process *here, const struct rig_process *there,
			     const struct rig_wire *how)
{
	static struct wire wire;
	struct rig_process *process = new_process("network");

	if (fork_process(process)) {
		static const char said[] = "0 carries\n";

		wire = (struct wire){ .how = how, .dice = UINT64_C(0x9e3779b97f4a7c15) };
		wire.fds[0] = open_end(here->pid);
		wire.fds[1] = open_end(there->pid);
		if (wire.fds[0] >= 0 && wire.fds[1] >= 0) {
			(void)!write(STDOUT_FILENO, said, sizeof(said) - 1);
			carry(&wire);
		}
		_exit(0);
	}
	(void)rig_wait(process, "carries");
	return process;
}
