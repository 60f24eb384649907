/* SPDX-License-Identifier: Apache-2.0 */
/* The side of `spoke lock` of a supervised command. */
#include "examples/spoke/runner.h"

#include "examples/spoke/ending.h"
#include "examples/spoke/supervisor.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Signals that are passed on. One that is ignored, e.g. by nohup, stays so for both. */
static const int passed[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2 };

static sigset_t before; /* signals blocked before runner_fork() */

/* --- messages and signals */

static void stop_reports(struct runner *runner)
{
	if (runner->engine && runner->reports.fd >= 0)
		spoke_engine_watch(runner->engine, &runner->reports, 0);
	if (runner->reports.fd >= 0)
		(void)close(runner->reports.fd);
	runner->reports.fd = -1;
}

static void reports_ready(struct spoke_watch *watch, unsigned io)
{
	struct runner *runner = spoke_container_of(watch, struct runner, reports);
	struct supervisor_report report;
	ssize_t len = recv(watch->fd, &report, sizeof(report), MSG_DONTWAIT);

	(void)io;
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len != (ssize_t)sizeof(report)) {
		stop_reports(runner);
		runner->up->orphaned(runner->arg);
		return;
	}
	if (report.kind == SUPERVISOR_STARTED) {
		runner->up->started(runner->arg);
		return;
	}
	stop_reports(runner);
	if (report.kind == SUPERVISOR_FAILED)
		runner->up->failed(runner->arg, report.status);
	else
		runner->up->ended(runner->arg, report.status, report.overdue);
}

static void signals_ready(struct spoke_watch *watch, unsigned io)
{
	struct runner *runner = spoke_container_of(watch, struct runner, signals);
	struct signalfd_siginfo info;

	(void)io;
	/* The terminal sends its signals to the whole foreground group. */
	if (read(watch->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		runner->up->came(runner->arg, (int)info.ssi_signo, info.ssi_code == SI_KERNEL);
}

static int block(struct runner *runner)
{
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
		struct sigaction now;

		if (!sigaction(passed[i], NULL, &now) && now.sa_handler != SIG_IGN)
			(void)sigaddset(&set, passed[i]);
	}
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	runner->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return runner->signals.fd < 0 ? errno : 0;
}

/* --- the functions */

int runner_fork(struct runner *runner, const struct runner_options *options)
{
	struct supervisor_plan plan = {
		.command = options->command,
		.lease = options->lease,
		.grace_ns = options->grace_ns,
		.pipe_ignored = verbs_pipe_ignored,
	};
	int ends[2] = { -1, -1 };
	int error;

	runner->reports = (struct spoke_watch){ .ready = reports_ready, .fd = -1 };
	runner->signals = (struct spoke_watch){ .ready = signals_ready, .fd = -1 };
	(void)pthread_sigmask(SIG_SETMASK, NULL, &before);
	error = block(runner);
	if (error)
		return error;
	runner->deadline_ns = mmap(NULL, sizeof(*runner->deadline_ns), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (runner->deadline_ns == MAP_FAILED) {
		runner->deadline_ns = NULL;
		return errno;
	}
	atomic_init(runner->deadline_ns, 0);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return errno;
	runner->reports.fd = ends[0];
	plan.mask = &before;
	plan.deadline_ns = runner->deadline_ns;
	plan.socket = ends[1];
	(void)fflush(NULL);
	runner->supervisor = fork();
	if (runner->supervisor == 0) {
		(void)close(ends[0]);
		(void)close(runner->signals.fd);
		_exit(supervisor_run(&plan));
	}
	error = runner->supervisor < 0 ? errno : 0;
	(void)close(ends[1]);
	return error;
}

void runner_watch(struct runner *runner, struct spoke_engine *engine)
{
	runner->engine = engine;
	spoke_engine_watch(engine, &runner->reports, SPOKE_IO_READ);
	spoke_engine_watch(engine, &runner->signals, SPOKE_IO_READ);
}

/* An order that cannot be sent finds the supervisor dead, which ends its stream, too. Its buffer
 * holds hundreds of orders, more than there are. Returns whether it was sent. */
static bool order(const struct runner *runner, const struct supervisor_order *what)
{
	return runner->reports.fd >= 0 &&
	       send(runner->reports.fd, what, sizeof(*what), MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

void runner_extend(struct runner *runner, uint64_t deadline_ns)
{
	atomic_store(runner->deadline_ns, deadline_ns);
}

bool runner_start(struct runner *runner, uint64_t fence)
{
	return order(runner, &(struct supervisor_order){ .kind = SUPERVISOR_RUN, .fence = fence });
}

void runner_signal(struct runner *runner, int number)
{
	(void)order(runner,
		    &(struct supervisor_order){ .kind = SUPERVISOR_SIGNAL, .signal = number });
}

void runner_end(struct runner *runner)
{
	(void)order(runner, &(struct supervisor_order){ .kind = SUPERVISOR_END });
}

void runner_kill(struct runner *runner)
{
	if (runner->supervisor > 0)
		(void)kill(runner->supervisor, SIGKILL);
}

void runner_close(struct runner *runner)
{
	stop_reports(runner);
	if (runner->engine && runner->signals.fd >= 0)
		spoke_engine_watch(runner->engine, &runner->signals, 0);
	if (runner->signals.fd >= 0) {
		struct signalfd_siginfo info;

		/* The last ones come too late to be passed on, and need not end this process. */
		while (read(runner->signals.fd, &info, sizeof(info)) > 0)
			;
		(void)close(runner->signals.fd);
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	runner->signals.fd = -1;
	if (runner->supervisor > 0) {
		(void)kill(runner->supervisor, SIGCONT);
		while (waitpid(runner->supervisor, NULL, 0) < 0 && errno == EINTR)
			;
	}
	runner->supervisor = 0;
	if (runner->deadline_ns)
		(void)munmap(runner->deadline_ns, sizeof(*runner->deadline_ns));
	runner->deadline_ns = NULL;
}
