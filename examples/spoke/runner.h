/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command under a lease, by way of a supervisor: see supervisor.h. The supervisor is forked
 * at once, the command is started later:
 *
 *     end = runner_fork(&runner, &options);       before there is an engine
 *     error = runner_watch(&runner, engine);
 *     runner_extend(&runner, deadline_ns);        and again, after each renewal
 *     runner_start(&runner, fence);
 *     ...                                         runner.ended() or runner.failed()
 *     runner_close(&runner);
 *
 * Between runner_fork() and runner_close() the signals that the command should get are blocked, and
 * reported by `came`. So there is one runner at a time.
 */
#ifndef COMMAND_RUNNER_H
#define COMMAND_RUNNER_H

#include <spoke/engine.h>

#include <stdatomic.h>
#include <sys/types.h>

struct runner_options {
	char **command;    /* ends with NULL; borrowed until runner_close() */
	const char *lease; /* its name; borrowed alike */
	uint64_t grace_ns; /* between SIGTERM and SIGKILL; 0: SIGKILL at once */
};

/* The callbacks, on the engine's thread; all required. */
struct runner_up {
	void (*started)(void *arg);
	/* The command could not be started: `error` is an errno. */
	void (*failed)(void *arg, int error);
	/* The command has ended: `status` is that of waitpid(). `overdue`: the supervisor ended it,
	 * because the lease was over. */
	void (*ended)(void *arg, int status, bool overdue);
	/* The supervisor has died, and the kernel has killed the command. Processes that the
	 * command has started may live on. */
	void (*orphaned)(void *arg);
	/* A signal came. `shared`: the terminal has sent it to the command, too. */
	void (*came)(void *arg, int number, bool shared);
};

struct runner {
	const struct runner_up *up;
	void *arg;
	struct spoke_engine *engine;
	struct spoke_watch reports; /* the supervisor's messages */
	struct spoke_watch signals;
	pid_t supervisor;                   /* 0: none */
	atomic_uint_least64_t *deadline_ns; /* shared with the supervisor */
};

/* Forks the supervisor and blocks the signals. `runner` is zero-initialised, with `up` and `arg`
 * set. Returns 0, or an errno. Undo with runner_close(), also after an error. */
int runner_fork(struct runner *runner, const struct runner_options *options);

/* Watches for messages and signals. */
void runner_watch(struct runner *runner, struct spoke_engine *engine);

/* Tells the supervisor until when the lease is valid, in ns of supervisor_now(). It ends the
 * command by itself then, unless this function is called again. */
void runner_extend(struct runner *runner, uint64_t deadline_ns);

/* Starts the command. Returns false if the supervisor is gone; then orphaned() follows. */
bool runner_start(struct runner *runner, uint64_t fence);

/* Passes a signal on to the command. */
void runner_signal(struct runner *runner, int number);

/* Ends the command: SIGTERM, and SIGKILL after the grace. */
void runner_end(struct runner *runner);

/* Kills the supervisor, which does not react; the kernel then kills the command. */
void runner_kill(struct runner *runner);

/* Stops watching. A command that still runs is killed. Waits for the supervisor's end. */
void runner_close(struct runner *runner);

#endif
