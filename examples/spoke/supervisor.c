/* SPDX-License-Identifier: Apache-2.0 */
/* The process between `spoke lock` and the command that runs under a lease. */
#include "examples/spoke/supervisor.h"

#include "examples/spoke/ending.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define VERB "lock"
#define SECOND_NS UINT64_C(1000000000)
#define SLACK_MAX_NS UINT64_C(250000000)
#define LIST_MAX 16384u /* bytes of a list of children */

struct supervisor {
	const struct supervisor_plan *plan;
	int signals;      /* descriptor of SIGCHLD */
	int timer;        /* descriptor: the deadline, then the end of the grace */
	pid_t child;      /* the command; 0: not started */
	bool exited;      /* the command itself has ended, with `status` */
	int status;       /* as waitpid() returned it */
	bool ending;      /* the command gets no more time than the grace */
	bool killing;     /* the grace is over */
	bool overdue;     /* the deadline has passed */
	bool mute;        /* `spoke lock` is gone */
	uint64_t kill_ns; /* of CLOCK_BOOTTIME: end of the grace */
};

uint64_t supervisor_now(void)
{
	struct timespec now = { 0, 0 };

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static void report(const struct supervisor *supervisor, const struct supervisor_report *what)
{
	/* Fails if `spoke lock` is gone; the end of the stream tells it, too. */
	(void)!send(supervisor->plan->socket, what, sizeof(*what), MSG_NOSIGNAL);
}

/* --- the start of the command */

/* The child: becomes the command, or writes the errno to the pipe. */
static _Noreturn void become(const struct supervisor_plan *plan, uint64_t fence, pid_t parent,
			     int pipe_fd)
{
	struct sigaction action = { .sa_handler = plan->pipe_ignored ? SIG_IGN : SIG_DFL };
	char number[24];
	int error;

	(void)snprintf(number, sizeof(number), "%" PRIu64, fence);
	/* NOLINTBEGIN(concurrency-mt-unsafe): one thread */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || sigaction(SIGPIPE, &action, NULL) ||
	    setenv("SPOKE_LEASE", plan->lease, 1) || setenv("SPOKE_FENCE", number, 1)) {
		error = errno;
	} else if (getppid() != parent) {
		_exit(1); /* the supervisor died before prctl() */
	} else {
		(void)pthread_sigmask(SIG_SETMASK, plan->mask, NULL);
		(void)execvp(plan->command[0], plan->command);
		error = errno;
	}
	/* NOLINTEND(concurrency-mt-unsafe) */
	(void)!write(pipe_fd, &error, sizeof(error));
	_exit(127);
}

/* Starts the command. Returns 0 or an errno. */
static int start(struct supervisor *supervisor, uint64_t fence)
{
	pid_t own = getpid();
	int ends[2];
	int error = 0;
	ssize_t len;

	/* Closed by the exec; until then it carries the error. */
	if (pipe2(ends, O_CLOEXEC))
		return errno;
	supervisor->child = fork();
	if (supervisor->child == 0)
		become(supervisor->plan, fence, own, ends[1]);
	if (supervisor->child < 0)
		error = errno;
	(void)close(ends[1]);
	do
		len = read(ends[0], &error, sizeof(error));
	while (len < 0 && errno == EINTR);
	(void)close(ends[0]);
	return error;
}

/* --- the end of the command */

/* Sends a signal to all children: the command, and orphans that it left. Returns false if they
 * cannot be listed. */
static bool signal_children(const struct supervisor *supervisor, int number)
{
	char path[64];
	char list[LIST_MAX];
	char *at = list;
	ssize_t len;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%ld/children", (long)getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd >= 0 ? read(fd, list, sizeof(list) - 1) : -1;
	if (fd >= 0)
		(void)close(fd);
	if (len < 0) {
		if (!supervisor->exited)
			(void)kill(supervisor->child, number);
		return false;
	}
	list[len] = '\0';
	/* Only this process reaps them, so no number can belong to another process yet. The last
	 * number may be cut if there are thousands; the next look finds it. */
	for (char *end; (end = strchr(at, ' ')) != NULL; at = end + 1) {
		pid_t pid = (pid_t)strtol(at, NULL, 10);

		if (pid > 1)
			(void)kill(pid, number);
	}
	return true;
}

/* Returns the lead of `spoke lock`, which knows why a lease is over. It is part of the grace. */
static uint64_t slack(const struct supervisor *supervisor)
{
	uint64_t ns = supervisor->plan->grace_ns / 4;

	return ns < SLACK_MAX_NS ? ns : SLACK_MAX_NS;
}

static void set_timer(const struct supervisor *supervisor)
{
	uint64_t deadline = atomic_load(supervisor->plan->deadline_ns);
	uint64_t at = supervisor->ending ? supervisor->kill_ns : deadline + slack(supervisor);
	const struct itimerspec when = {
		.it_value = { (time_t)(at / SECOND_NS), (long)(at % SECOND_NS) },
	};

	(void)timerfd_settime(supervisor->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void kill_all(struct supervisor *supervisor)
{
	supervisor->ending = true;
	supervisor->killing = true;
	(void)signal_children(supervisor, SIGKILL);
}

/* Ends the command: a signal first, the kill after the grace. The grace begins at the latest when
 * the lease is over, because another one may get it soon after. */
static void end(struct supervisor *supervisor)
{
	uint64_t now = supervisor_now();
	uint64_t deadline = atomic_load(supervisor->plan->deadline_ns);

	if (supervisor->ending)
		return;
	if (!supervisor->plan->grace_ns) {
		kill_all(supervisor);
		return;
	}
	supervisor->ending = true;
	supervisor->kill_ns = (now < deadline ? now : deadline) + supervisor->plan->grace_ns;
	(void)kill(supervisor->child, SIGTERM);
	/* A stopped process would not get the signal. */
	(void)kill(supervisor->child, SIGCONT);
	set_timer(supervisor);
}

/* Collects ended processes. Returns whether any child is left. */
static bool reap(struct supervisor *supervisor)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != supervisor->child)
			continue;
		supervisor->exited = true;
		supervisor->status = status;
		/* Processes that it left behind have to end with it. */
		if (supervisor->ending && !supervisor->killing) {
			(void)signal_children(supervisor, SIGTERM);
			(void)signal_children(supervisor, SIGCONT);
		}
	}
	return pid == 0;
}

/* A child has ended. Returns whether the supervisor's work is done. */
static bool child_ended(struct supervisor *supervisor)
{
	struct signalfd_siginfo info;
	bool listed = true;
	bool left;

	while (read(supervisor->signals, &info, sizeof(info)) > 0)
		;
	left = reap(supervisor);
	/* Processes are adopted before their parent is reported as ended, so each death of a parent
	 * leads here. */
	if (left && supervisor->killing)
		listed = signal_children(supervisor, SIGKILL);
	if (!supervisor->exited || (supervisor->ending && left && listed))
		return false;
	report(supervisor, &(struct supervisor_report){
				   .kind = SUPERVISOR_ENDED,
				   .status = supervisor->status,
				   .overdue = supervisor->overdue,
			   });
	return true;
}

/* --- the loop */

/* Takes one message. Returns whether the supervisor's work is done. */
static bool take_order(struct supervisor *supervisor)
{
	struct supervisor_order order;
	ssize_t len = recv(supervisor->plan->socket, &order, sizeof(order), MSG_DONTWAIT);
	int error;

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (len != (ssize_t)sizeof(order)) {
		if (supervisor->child)
			kill_all(supervisor);
		supervisor->mute = true;
		return !supervisor->child;
	}
	if (order.kind == SUPERVISOR_RUN) {
		error = start(supervisor, order.fence);
		if (error && supervisor->child > 0)
			(void)waitpid(supervisor->child, NULL, 0);
		report(supervisor, &(struct supervisor_report){
					   .kind = error ? SUPERVISOR_FAILED : SUPERVISOR_STARTED,
					   .status = error,
				   });
		set_timer(supervisor);
		return error != 0;
	}
	if (!supervisor->child)
		return order.kind == SUPERVISOR_END;
	if (order.kind == SUPERVISOR_END)
		end(supervisor);
	else if (!supervisor->exited)
		(void)kill(supervisor->child, order.signal);
	return false;
}

/* The deadline, as set last, or the end of the grace. */
static void timer_due(struct supervisor *supervisor)
{
	uint64_t now = supervisor_now();
	uint64_t deadline = atomic_load(supervisor->plan->deadline_ns);
	uint64_t count;

	(void)!read(supervisor->timer, &count, sizeof(count));
	if (supervisor->ending) {
		if (now >= supervisor->kill_ns)
			kill_all(supervisor);
		return;
	}
	if (now < deadline + slack(supervisor)) {
		set_timer(supervisor);
		return;
	}
	supervisor->overdue = true;
	(void)ending_say(VERB_OK, VERB,
			 "the lease is over and spoke lock does not react; ending the command");
	end(supervisor);
}

int supervisor_run(const struct supervisor_plan *plan)
{
	struct supervisor supervisor = { .plan = plan };
	struct sigaction preset = { .sa_handler = SIG_DFL };
	struct pollfd polled[3] = { { .events = POLLIN },
				    { .events = POLLIN },
				    { .events = POLLIN } };
	sigset_t child;
	sigset_t all;
	bool done = false;

	/* Signals of the terminal are for the command alone; a stop of the whole job must not stop
	 * the supervisor, which has to see the deadline. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, NULL);
	(void)sigaction(SIGCHLD, &preset, NULL);
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	supervisor.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	supervisor.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (supervisor.signals < 0 || supervisor.timer < 0)
		return ending_say(1, VERB, "cannot supervise a command: %s",
				  strerror(errno)); /* NOLINT(concurrency-mt-unsafe): one thread */
	polled[0].fd = plan->socket;
	polled[1].fd = supervisor.signals;
	polled[2].fd = supervisor.timer;
	while (!done) {
		if (poll(polled, 3, -1) < 0)
			continue;
		if (polled[0].revents)
			done = take_order(&supervisor);
		if (supervisor.mute)
			polled[0].fd = -1;
		if (!done && polled[2].revents)
			timer_due(&supervisor);
		if (!done && polled[1].revents)
			done = child_ended(&supervisor);
	}
	return 0;
}
