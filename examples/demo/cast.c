/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and ends the processes of the demo, and handles signals of the driver. */
#define _GNU_SOURCE
#include "examples/demo/cast.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct cast cast;

static char folder[CAST_TEXT];
static volatile sig_atomic_t interrupted;
static sigset_t heard; /* unblocked only while the driver waits */

static void interrupt(int number)
{
	interrupted = number;
}

int cast_interrupted(void)
{
	return interrupted;
}

void cast_clear_interrupt(void)
{
	interrupted = 0;
}

void cast_begin(const char *driver, uint64_t patience_ns)
{
	static const int ends[] = { SIGHUP, SIGINT, SIGTERM };
	struct sigaction action = { .sa_handler = interrupt };
	struct sigaction ignored = { .sa_handler = SIG_IGN };
	const char *slash = strrchr(driver, '/');

	(void)snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - driver) : 1,
		       slash ? driver : ".");
	cast.patience_ns = patience_ns;
	(void)sigemptyset(&heard);
	for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		(void)sigaddset(&heard, ends[i]);
		(void)sigaction(ends[i], &action, NULL);
	}
	(void)sigprocmask(SIG_BLOCK, &heard, NULL);
	(void)sigaction(SIGPIPE, &ignored, NULL);
}

const char *cast_folder(void)
{
	return folder;
}

bool cast_trouble(const char *format, ...)
{
	va_list args;

	if (cast.trouble[0] != '\0')
		return false;
	va_start(args, format);
	(void)vsnprintf(cast.trouble, sizeof(cast.trouble), format, args);
	va_end(args);
	return false;
}

/* --- actors */

struct actor *cast_add(const char *program, const char *name)
{
	struct actor *actor = &cast.actors[cast.count++];

	*actor = (struct actor){ .from = -1 };
	(void)snprintf(actor->name, sizeof(actor->name), "%s", name);
	if (program[0] == '/')
		(void)snprintf(actor->program, sizeof(actor->program), "%s", program);
	else
		(void)snprintf(actor->program, sizeof(actor->program), "%.400s/%s", folder,
			       program);
	return actor;
}

void actor_add_arg(struct actor *actor, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(actor->args[actor->arg_count++], CAST_TEXT, format, args);
	va_end(args);
}

/* Runs in the child. The kernel kills the child when the driver exits. */
static void become(struct actor *actor, int to, pid_t driver)
{
	struct sigaction usual = { .sa_handler = SIG_DFL };
	bool foreign = actor->alias[0] != '\0';
	char *argv[CAST_ARGS + 3] = { foreign ? actor->alias : actor->program, actor->name };

	(void)setpgid(0, 0); /* Ctrl-C at the terminal signals only the driver */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != driver)
		_exit(126);
	for (unsigned i = 0; i < actor->arg_count; i++)
		argv[i + (foreign ? 1 : 2)] = actor->args[i];
	(void)sigaction(SIGPIPE, &usual, NULL);
	(void)sigprocmask(SIG_UNBLOCK, &heard, NULL);
	if (cast.live)
		(void)setenv("SPOKE_DEMO_TOKEN", cast.token, 1);
	(void)dup2(to, STDOUT_FILENO);
	(void)execv(actor->program, argv);
	(void)fprintf(stderr, "demo: cannot start %s\n", actor->program);
	_exit(127);
}

/* Keeps the counts of the process that is replaced. */
static void keep_counts(struct actor *actor)
{
	actor->died += actor->counts[COUNT_OPEN] + actor->counts[COUNT_WAITING];
	actor->died_leases += actor->counts[COUNT_HOLDS];
	for (unsigned i = COUNT_FIRST_SUM; i < COUNTS; i++)
		actor->past[i] += actor->counts[i];
	memset(actor->counts, 0, sizeof(actor->counts));
}

bool actor_start(struct actor *actor)
{
	pid_t driver = getpid();
	int ends[2];
	pid_t pid;

	keep_counts(actor);
	/* Reuse the addresses of the previous process. */
	if (actor->page[0] != '\0')
		(void)snprintf(actor->args[actor->arg_count - 1], CAST_TEXT, "%s", actor->page);
	if (actor->address[0] != '\0')
		(void)snprintf(actor->args[2], sizeof(actor->args[2]), "dubbo://%s",
			       actor->address);
	if (pipe2(ends, O_CLOEXEC))
		return cast_trouble("cannot create a pipe: %s", strerror(errno));
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		become(actor, ends[1], driver);
	(void)close(ends[1]);
	if (pid < 0) {
		(void)close(ends[0]);
		return cast_trouble("cannot fork for %s: %s", actor->name, strerror(errno));
	}
	actor->pid = pid;
	actor->started = true;
	actor->from = ends[0];
	actor->line_len = 0;
	actor->leaving = false;
	actor->stopped = false;
	return true;
}

uint64_t actor_count(const struct actor *actor, enum message_count count)
{
	return actor->past[count] + actor->counts[count];
}

void actor_watch(struct actor *actor, const struct actor *peer)
{
	actor->watched = peer;
	memset(actor->seen, 0, sizeof(actor->seen));
	actor->missed = 0;
}

/* --- the end */

void cast_end_all(void)
{
	for (unsigned i = 0; i < cast.count; i++)
		if (cast.actors[i].pid)
			(void)kill(cast.actors[i].pid, SIGKILL);
	for (unsigned i = 0; i < cast.count; i++)
		while (cast.actors[i].pid && waitpid(cast.actors[i].pid, NULL, 0) < 0 &&
		       errno == EINTR)
			;
}
