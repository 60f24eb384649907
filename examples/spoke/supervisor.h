/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor: a process between `spoke lock` and the command that runs under a lease. It is the
 * parent of the command, and adopts every process that the command leaves behind. It ends all of
 * them when the lease is lost, when `spoke lock` has died, and when `spoke lock` is stopped or
 * stuck for so long that the lease is over. If the supervisor itself dies, the kernel kills the
 * command.
 *
 * It is forked before there is an engine, so it has no threads and no descriptors of the engine.
 * Both sides talk over a SOCK_SEQPACKET pair, a struct below for each message.
 */
#ifndef COMMAND_SUPERVISOR_H
#define COMMAND_SUPERVISOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Messages to the supervisor. The end of the stream kills the command. */
struct supervisor_order {
	enum {
		SUPERVISOR_RUN,    /* start the command */
		SUPERVISOR_SIGNAL, /* pass on a signal */
		SUPERVISOR_END,    /* SIGTERM now, SIGKILL after the grace */
	} kind;
	int signal;     /* of SIGNAL */
	uint64_t fence; /* of RUN */
};

/* Messages from the supervisor. FAILED and ENDED are the last ones. */
struct supervisor_report {
	enum {
		SUPERVISOR_STARTED, /* the command runs */
		SUPERVISOR_FAILED,  /* it could not be started: `status` is the errno */
		SUPERVISOR_ENDED,   /* it has ended: `status` is that of waitpid() */
	} kind;
	int status;
	bool overdue; /* of ENDED: the supervisor ended it, because the lease was over */
};

struct supervisor_plan {
	char **command;    /* ends with NULL */
	const char *lease; /* its name, for the environment of the command */
	uint64_t grace_ns; /* between SIGTERM and SIGKILL; 0: SIGKILL at once */
	const void *mask;  /* sigset_t: signals blocked in the command */
	bool pipe_ignored; /* SIGPIPE is ignored in the command */
	int socket;        /* the supervisor's end */
	/* When the lease is over, in ns of CLOCK_BOOTTIME; shared with `spoke lock`, which moves it
	 * on. */
	const atomic_uint_least64_t *deadline_ns;
};

/* Returns CLOCK_BOOTTIME in ns. */
uint64_t supervisor_now(void);

/* The body of the process: returns its exit status when everything has ended. */
int supervisor_run(const struct supervisor_plan *plan);

#endif
