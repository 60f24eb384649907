/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spoke lock: runs a command while a lease is held. The command is ended when the lease is lost,
 * and the lease is given back when the command has ended.
 */
#include "examples/spoke/lock.h"
#include "examples/spoke/lock_wait.h"
#include "examples/spoke/runner.h"
#include "examples/spoke/supervisor.h"

#include <spoke/stats.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXTEND_MIN_NS UINT64_C(20000000)
#define EXTEND_MAX_NS UINT64_C(1000000000)
#define STUCK_NS UINT64_C(3000000000) /* after the grace: the supervisor does not react */

struct run {
	struct locker *locker;
	struct runner runner;
	struct lock_wait wait;
	struct spoke_lease lease;
	struct spoke_alarm extend; /* tells the supervisor how long the lease is valid */
	struct spoke_alarm stuck;  /* the command should have ended */
	bool held;
	bool running;  /* the command has been started, and has not been reported as ended */
	bool ran;      /* the command was started */
	bool ended;    /* the run ends with `end` */
	bool abandon;  /* the lease must not be given back: processes of the command may live */
	int cancelled; /* the status if the run was ended before the command began; 0: it was not */
	int end;
};

/* --- the end */

/* Ends the run when all leases have been given back. */
static void finish(struct run *run, int end)
{
	if (!run->ended)
		run->end = end;
	run->ended = true;
	lock_wait_end(&run->wait);
	if (run->abandon || spoke_engine_drain(run->locker->engine, LOCK_RELEASE_NS))
		spoke_engine_stop(run->locker->engine);
}

static void released(void *arg, int error)
{
	struct run *run = arg;
	const struct locker *locker = run->locker;

	/* A command that has outlived its lease was not alone, so its own status does not count. */
	if (error == SPOKE_ENOENT && run->ran) {
		run->end = ending_say(LOCK_LOST, LOCK_VERB,
				      "%s was not held any more when the command ended",
				      locker->shown);
	} else if (error && !locker->quiet) {
		(void)ending_say(VERB_OK, LOCK_VERB,
				 "%s could not be given back (%s); it is free when its time to "
				 "live is over",
				 locker->shown, spoke_strerror(error));
	} else if (!error && locker->verbose) {
		(void)ending_say(VERB_OK, LOCK_VERB, "%s is given back", locker->shown);
	}
}

/* The command has ended, or has not begun: gives the lease back. */
static void release(struct run *run, int end)
{
	bool held = run->held;

	run->held = false;
	finish(run, end);
	if (held && spoke_lease_release(run->lease, released, run))
		released(run, SPOKE_ENOENT);
}

/* --- the lease */

static void extend(struct run *run)
{
	/* Time that passes between the two readings must not be counted twice. */
	uint64_t now = supervisor_now();
	uint64_t left = spoke_lease_left(run->lease);

	if (left)
		runner_extend(&run->runner, now + left);
}

static void extend_due(struct spoke_alarm *alarm)
{
	extend(spoke_container_of(alarm, struct run, extend));
}

/* The command has not ended in spite of SIGKILL, so it is the supervisor that hangs. */
static void stuck_due(struct spoke_alarm *alarm)
{
	struct run *run = spoke_container_of(alarm, struct run, stuck);

	runner_kill(&run->runner);
}

static void end_command(struct run *run)
{
	runner_end(&run->runner);
	/* Without a timer the supervisor is trusted. */
	(void)!spoke_alarm_after(run->locker->engine, &run->stuck, run->locker->grace_ns + STUCK_NS,
				 stuck_due);
}

static void lost(void *arg, struct spoke_lease lease, enum spoke_lease_loss why)
{
	static const char *const reasons[] = {
		[SPOKE_LEASE_EXPIRED] = "it could not be renewed in time",
		[SPOKE_LEASE_TAKEN] = "it was broken or taken by another holder",
		[SPOKE_LEASE_CLOSED] = "it was closed",
	};
	struct run *run = arg;

	(void)lease;
	if (!run->held || run->locker->closing)
		return;
	run->held = false;
	(void)ending_say(VERB_OK, LOCK_VERB, "%s is lost: %s%s", run->locker->shown, reasons[why],
			 run->running ? "; ending the command" : "");
	run->end = LOCK_LOST;
	if (run->running)
		end_command(run);
	else
		finish(run, LOCK_LOST);
}

/* Begins the command. */
static void granted(struct run *run, const struct spoke_lease_answer *answer)
{
	uint64_t now = supervisor_now();
	uint64_t left = spoke_lease_left(run->lease);
	uint64_t period = left / 16;

	run->held = true;
	if (run->locker->verbose)
		(void)ending_say(VERB_OK, LOCK_VERB, "%s is held; fence %" PRIu64,
				 run->locker->shown, answer->fence);
	if (period < EXTEND_MIN_NS)
		period = EXTEND_MIN_NS;
	if (period > EXTEND_MAX_NS)
		period = EXTEND_MAX_NS;
	runner_extend(&run->runner, now + left);
	if (spoke_alarm_every(run->locker->engine, &run->extend, period, extend_due)) {
		release(run, ending_say(LOCK_FAILED, LOCK_VERB, "out of timers"));
		return;
	}
	run->running = runner_start(&run->runner, answer->fence);
}

/* Reports another holder. */
static int busy(const struct run *run, uint64_t left_ns)
{
	char left[32];

	if (run->locker->quiet)
		return LOCK_BUSY;
	if (left_ns == UINT64_MAX)
		return ending_say(LOCK_BUSY, LOCK_VERB, "%s is held by another one, without end",
				  run->locker->shown);
	return ending_say(LOCK_BUSY, LOCK_VERB, "%s is held by another one, for %s at most",
			  run->locker->shown, lock_time(left_ns, left, sizeof(left)));
}

/* Reports why the lease is not held; returns the status. */
static int refused(const struct run *run, const struct spoke_lease_answer *answer)
{
	const struct locker *locker = run->locker;
	struct spoke_leases_look look;

	spoke_leases_look(locker->leases, &look);
	if (answer->error == SPOKE_EBUSY)
		return busy(run, answer->left_ns);
	if (answer->error == SPOKE_EUNAVAILABLE ||
	    (answer->error == SPOKE_ETIMEOUT && !look.connected))
		return ending_say(LOCK_UNREACHABLE, LOCK_VERB, "%s cannot be reached%s%s",
				  look.store, *look.why ? ": " : "", look.why);
	if (answer->error == SPOKE_ETIMEOUT && locker->quiet)
		return LOCK_TIMEOUT;
	if (answer->error == SPOKE_ETIMEOUT)
		return ending_say(LOCK_TIMEOUT, LOCK_VERB, "%s was not granted in time",
				  locker->shown);
	if (answer->text.len)
		return ending_say(LOCK_FAILED, LOCK_VERB, "%s is refused: %.*s", locker->shown,
				  (int)answer->text.len, (const char *)answer->text.data);
	return ending_say(LOCK_FAILED, LOCK_VERB, "%s: %s", locker->shown,
			  spoke_strerror(answer->error));
}

static void told(void *arg, struct spoke_lease lease, const struct spoke_lease_answer *answer)
{
	struct run *run = arg;

	(void)lease;
	if (run->locker->closing)
		return;
	lock_wait_end(&run->wait);
	if (run->cancelled)
		finish(run, run->cancelled);
	else if (answer->error)
		finish(run, refused(run, answer));
	else
		granted(run, answer);
}

/* --- the command */

static void started(void *arg)
{
	struct run *run = arg;

	run->ran = true;
	if (run->locker->verbose)
		(void)ending_say(VERB_OK, LOCK_VERB, "%s has started", run->locker->command[0]);
}

static void failed(void *arg, int error)
{
	struct run *run = arg;
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
	const char *why = strerror(error);

	run->running = false;
	(void)ending_say(VERB_OK, LOCK_VERB, "%s: %s", run->locker->command[0], why);
	release(run, error == ENOENT ? LOCK_NOT_FOUND : LOCK_NOT_STARTED);
}

static void ended(void *arg, int status, bool overdue)
{
	struct run *run = arg;
	int end = WIFEXITED(status) ? WEXITSTATUS(status) : LOCK_SIGNAL + WTERMSIG(status);

	run->running = false;
	if (run->locker->verbose)
		(void)ending_say(VERB_OK, LOCK_VERB, "%s has ended with %d",
				 run->locker->command[0], end);
	if (run->held)
		release(run, overdue ? LOCK_LOST : end);
	else
		finish(run, LOCK_LOST);
}

/* There is no command yet: gives up the ask, or the lease. */
static void cancel(struct run *run, int end)
{
	run->cancelled = end;
	if (run->held)
		release(run, end);
	else if (spoke_lease_release(run->lease, NULL, NULL))
		finish(run, end);
}

/* Processes of a command may go on, so the lease is left to end by itself. */
static void orphaned(void *arg)
{
	struct run *run = arg;

	if (!run->running) {
		if (!run->ended && !run->cancelled)
			cancel(run, ending_say(LOCK_LOST, LOCK_VERB,
					       "the process that was to supervise the command was "
					       "killed; the command was not run"));
		return;
	}
	run->running = false;
	run->abandon = true;
	(void)ending_say(VERB_OK, LOCK_VERB,
			 "the process that supervises the command was killed, and the command with "
			 "it; %s is free when its time to live is over",
			 run->locker->shown);
	finish(run, run->held ? LOCK_FAILED : LOCK_LOST);
}

static void came(void *arg, int number, bool shared)
{
	struct run *run = arg;

	if (run->running) {
		if (!shared)
			runner_signal(&run->runner, number);
		return;
	}
	/* A second one does not wait for the store. */
	if (run->ended || run->cancelled)
		spoke_engine_stop(run->locker->engine);
	else
		cancel(run, LOCK_SIGNAL + number);
}

/* --- the mode */

static const struct runner_up up = {
	.started = started,
	.failed = failed,
	.ended = ended,
	.orphaned = orphaned,
	.came = came,
};

static int ask(struct run *run)
{
	const struct locker *locker = run->locker;
	const struct spoke_lease_options options = {
		.wait_ns = locker->wait_ns,
		.lost = lost,
		.arg = run,
	};
	int error = spoke_lease_ask(locker->leases, locker->name, &options, told, &run->lease);

	if (error == SPOKE_EINVAL || error == SPOKE_ERANGE)
		return ending_say(VERB_USAGE, LOCK_VERB, "%s: not a name; write 1 to %u bytes",
				  locker->shown, SPOKE_LEASE_NAME_MAX);
	if (error)
		return ending_say(LOCK_FAILED, LOCK_VERB, "%s", spoke_strerror(error));
	if (locker->wait)
		lock_wait_begin(&run->wait, locker);
	error = spoke_engine_run(locker->engine);
	if (error)
		return ending_say(LOCK_FAILED, LOCK_VERB, "%s", spoke_strerror(error));
	return run->end;
}

/* Local failures get a status that the command hardly has. */
static int own_end(int end)
{
	return end == VERB_USAGE || end == VERB_OK ? end : LOCK_FAILED;
}

int lock_run(struct locker *locker)
{
	struct run run = { .locker = locker, .runner = { .up = &up, .arg = &run } };
	struct runner_options options = { .command = locker->command, .lease = locker->name };
	int end = own_end(lock_prepare(locker));
	int error;

	if (end != VERB_OK)
		return end;
	options.grace_ns = locker->grace_ns;
	error = runner_fork(&run.runner, &options);
	if (error) {
		/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
		end = ending_say(LOCK_FAILED, LOCK_VERB, "cannot fork: %s", strerror(error));
	} else {
		end = own_end(lock_open(locker));
	}
	if (end == VERB_OK) {
		runner_watch(&run.runner, locker->engine);
		end = ask(&run);
	}
	lock_wait_end(&run.wait);
	if (run.abandon) {
		(void)ending_show();
		_exit(end);
	}
	(void)spoke_alarm_cancel(&run.extend);
	(void)spoke_alarm_cancel(&run.stuck);
	runner_close(&run.runner);
	lock_close(locker);
	return end;
}
