/* SPDX-License-Identifier: Apache-2.0 */
/* Commands under a supervisor: their start, their end, and what happens when one of the three
 * processes dies or stops. The processes are real. */
#include "examples/spoke/runner.h"
#include "tests/support/test.h"

#include "examples/spoke/supervisor.h"
#include "examples/spoke/verbs.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOUR_NS UINT64_C(3600000000000)
#define GRACE_NS UINT64_C(50000000)

bool verbs_pipe_ignored;

struct rig {
	struct runner runner;
	struct spoke_engine *engine;
	char folder[64];
	uint64_t left_ns; /* of the lease */
	bool started;
	bool orphaned;
	bool overdue;
	int status; /* -1: not ended */
	int error;  /* of the start */
	int number; /* the last signal */
	bool shared;
};

static void started(void *arg)
{
	struct rig *rig = arg;

	rig->started = true;
	spoke_engine_stop(rig->engine);
}

static void failed(void *arg, int error)
{
	struct rig *rig = arg;

	rig->error = error;
	spoke_engine_stop(rig->engine);
}

static void ended(void *arg, int status, bool overdue)
{
	struct rig *rig = arg;

	rig->status = status;
	rig->overdue = overdue;
	spoke_engine_stop(rig->engine);
}

static void orphaned(void *arg)
{
	struct rig *rig = arg;

	rig->orphaned = true;
	spoke_engine_stop(rig->engine);
}

static void came(void *arg, int number, bool shared)
{
	struct rig *rig = arg;

	rig->number = number;
	rig->shared = shared;
	spoke_engine_stop(rig->engine);
}

static const struct runner_up up = {
	.started = started,
	.failed = failed,
	.ended = ended,
	.orphaned = orphaned,
	.came = came,
};

/* Forks the supervisor of a script, whose $0 is the folder. */
static void rig_fork(struct rig *rig, char **command, uint64_t grace_ns)
{
	const struct runner_options options = {
		.command = command,
		.lease = "a name",
		.grace_ns = grace_ns,
	};

	rig->runner = (struct runner){ .up = &up, .arg = rig };
	rig->status = -1;
	assert_int_equal(runner_fork(&rig->runner, &options), 0);
	assert_int_equal(spoke_engine_new(NULL, &rig->engine), 0);
	runner_watch(&rig->runner, rig->engine);
	runner_extend(&rig->runner, supervisor_now() + rig->left_ns);
}

static void rig_turn(struct rig *rig)
{
	assert_int_equal(spoke_engine_run(rig->engine), 0);
}

static void rig_begin(struct rig *rig, const char *script, uint64_t grace_ns)
{
	static char sh[] = "sh";
	static char option[] = "-c";
	char *text = strdup(script);
	char *command[] = { sh, option, text, rig->folder, NULL };

	rig_fork(rig, command, grace_ns);
	assert_true(runner_start(&rig->runner, 7));
	rig_turn(rig);
	assert_true(rig->started);
	free(text);
}

static void rig_close(struct rig *rig)
{
	runner_close(&rig->runner);
	spoke_engine_free(rig->engine);
	rig->engine = NULL;
}

/* Waits until the script has made a file with a number, and returns the number. */
static pid_t await_number(const struct rig *rig, const char *name)
{
	char path[128];
	char line[32] = "";
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", rig->folder, name);
	for (unsigned i = 0; i < 5000 && !strchr(line, '\n'); i++) {
		(void)poll(NULL, 0, 2);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (!fgets(line, sizeof(line), file))
			line[0] = '\0';
		(void)fclose(file);
	}
	assert_non_null(strchr(line, '\n'));
	return (pid_t)strtol(line, NULL, 10);
}

/* Waits until a process is gone, or a zombie. */
static void await_gone(pid_t pid)
{
	char path[64];
	char byte;
	FILE *file;
	bool gone = false;

	(void)snprintf(path, sizeof(path), "/proc/%ld/cmdline", (long)pid);
	for (unsigned i = 0; i < 5000 && !gone; i++) {
		(void)poll(NULL, 0, 2);
		file = fopen(path, "re");
		gone = !file || fread(&byte, 1, 1, file) != 1;
		if (file)
			(void)fclose(file);
	}
	assert_true(gone);
}

STEP(setup)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	rig->left_ns = HOUR_NS;
	(void)snprintf(rig->folder, sizeof(rig->folder), "/tmp/spoke-runner-XXXXXX");
	assert_non_null(mkdtemp(rig->folder));
	*state = rig;
}

STEP(teardown)
{
	static const char *const names[] = { "pid", "child", "term" };
	struct rig *rig = *state;
	char path[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", rig->folder, names[i]);
		(void)unlink(path);
	}
	assert_int_equal(rmdir(rig->folder), 0);
	free(rig);
}

#define RIG_TEST(...) TEST_WITH(struct rig *rig, *state, __VA_ARGS__)

FIXTURE(setup, teardown);

RIG_TEST(status_of_the_command_is_reported)
{
	rig_begin(rig, "exit 7", GRACE_NS);
	rig_turn(rig);
	assert_true(WIFEXITED(rig->status));
	assert_int_equal(WEXITSTATUS(rig->status), 7);
	assert_false(rig->overdue);
	rig_close(rig);
}

RIG_TEST(command_finds_lease_and_fence_in_its_environment)
{
	rig_begin(rig, "test \"$SPOKE_LEASE\" = 'a name' -a \"$SPOKE_FENCE\" = 7", GRACE_NS);
	rig_turn(rig);
	assert_int_equal(rig->status, 0);
	rig_close(rig);
}

RIG_TEST(command_has_no_descriptor_of_spoke)
{
	char script[128];
	int next = dup(STDIN_FILENO);

	assert_true(next > 0);
	(void)close(next);
	(void)snprintf(script, sizeof(script),
		       "for fd in %d %d %d %d %d; do test ! -e /proc/self/fd/$fd || exit 1; done",
		       next, next + 1, next + 2, next + 3, next + 4);
	rig_begin(rig, script, GRACE_NS);
	rig_turn(rig);
	assert_int_equal(rig->status, 0);
	rig_close(rig);
}

RIG_TEST(command_that_is_missing_reports_the_errno)
{
	static char missing[] = "/nonexistent/command";
	char *command[] = { missing, NULL };

	rig_fork(rig, command, GRACE_NS);
	assert_true(runner_start(&rig->runner, 7));
	rig_turn(rig);
	assert_false(rig->started);
	assert_int_equal(rig->error, ENOENT);
	rig_close(rig);
}

RIG_TEST(supervisor_ends_if_nothing_is_started)
{
	static char none[] = "none";
	char *command[] = { none, NULL };

	rig_fork(rig, command, GRACE_NS);
	rig_close(rig);
	assert_int_equal(rig->runner.supervisor, 0);
}

RIG_TEST(end_sends_sigterm_first)
{
	rig_begin(rig, "trap 'exit 5' TERM; echo 1 >$0/pid; while :; do sleep 0.01; done", HOUR_NS);
	(void)await_number(rig, "pid");
	runner_end(&rig->runner);
	rig_turn(rig);
	assert_true(WIFEXITED(rig->status));
	assert_int_equal(WEXITSTATUS(rig->status), 5);
	rig_close(rig);
}

RIG_TEST(end_kills_after_the_grace)
{
	rig_begin(rig, "trap '' TERM; echo 1 >$0/pid; while :; do sleep 600; done", GRACE_NS);
	(void)await_number(rig, "pid");
	runner_end(&rig->runner);
	rig_turn(rig);
	assert_true(WIFSIGNALED(rig->status));
	assert_int_equal(WTERMSIG(rig->status), SIGKILL);
	rig_close(rig);
}

/* `spoke lock` was stopped for so long that another one has the lease soon. */
RIG_TEST(end_counts_the_grace_from_the_end_of_the_lease)
{
	rig_begin(rig, "trap '' TERM; echo 1 >$0/pid; while :; do sleep 600; done",
		  supervisor_now() / 2);
	(void)await_number(rig, "pid");
	runner_extend(&rig->runner, 1);
	runner_end(&rig->runner);
	rig_turn(rig);
	assert_true(WIFSIGNALED(rig->status));
	assert_int_equal(WTERMSIG(rig->status), SIGKILL);
	rig_close(rig);
}

RIG_TEST(end_of_a_stopped_command_continues_it)
{
	rig_begin(rig, "trap 'exit 5' TERM; echo $$ >$0/pid; kill -STOP $$", HOUR_NS);
	(void)await_number(rig, "pid");
	runner_end(&rig->runner);
	rig_turn(rig);
	assert_true(WIFEXITED(rig->status));
	rig_close(rig);
}

RIG_TEST(end_waits_for_children_that_are_left)
{
	pid_t child;

	rig_begin(rig, "(trap '' TERM; echo 1 >$0/pid; exec sleep 600) & echo $! >$0/child; wait",
		  GRACE_NS);
	child = await_number(rig, "child");
	(void)await_number(rig, "pid");
	runner_end(&rig->runner);
	rig_turn(rig);
	assert_true(rig->status >= 0);
	/* Gone already, and collected. */
	assert_int_equal(kill(child, 0), -1);
	rig_close(rig);
}

RIG_TEST(command_is_ended_when_the_lease_is_over)
{
	/* As if this process were stopped: it does not renew, and does not end the command. */
	rig->left_ns = GRACE_NS;
	rig_begin(rig, "trap '' TERM; while :; do sleep 600; done", GRACE_NS);
	rig_turn(rig);
	assert_true(rig->overdue);
	assert_true(WIFSIGNALED(rig->status));
	rig_close(rig);
}

RIG_TEST(signal_is_passed_on)
{
	rig_begin(rig, "trap 'exit 6' USR1; echo 1 >$0/pid; while :; do sleep 0.01; done",
		  GRACE_NS);
	(void)await_number(rig, "pid");
	runner_signal(&rig->runner, SIGUSR1);
	rig_turn(rig);
	assert_true(WIFEXITED(rig->status));
	assert_int_equal(WEXITSTATUS(rig->status), 6);
	rig_close(rig);
}

RIG_TEST(signal_to_this_process_is_reported)
{
	rig_begin(rig, "exec sleep 600", GRACE_NS);
	assert_int_equal(kill(getpid(), SIGHUP), 0);
	rig_turn(rig);
	assert_int_equal(rig->number, SIGHUP);
	assert_false(rig->shared);
	rig_close(rig);
}

RIG_TEST(closing_kills_command_and_children)
{
	pid_t child;

	rig_begin(rig, "trap '' TERM; sleep 600 & echo $! >$0/child; wait", HOUR_NS);
	child = await_number(rig, "child");
	rig_close(rig);
	await_gone(child);
}

RIG_TEST(death_of_the_supervisor_kills_the_command)
{
	pid_t command;

	rig_begin(rig, "echo $$ >$0/pid; exec sleep 600", HOUR_NS);
	command = await_number(rig, "pid");
	runner_kill(&rig->runner);
	rig_turn(rig);
	assert_true(rig->orphaned);
	await_gone(command);
	rig_close(rig);
}

RIG_TEST(command_is_not_started_if_the_supervisor_is_killed_before)
{
	static char none[] = "none";
	char *command[] = { none, NULL };

	rig_fork(rig, command, GRACE_NS);
	assert_int_equal(kill(rig->runner.supervisor, SIGKILL), 0);
	await_gone(rig->runner.supervisor);
	/* Its memory goes before its descriptors do. */
	for (unsigned i = 0; i < 5000 && runner_start(&rig->runner, 7); i++)
		(void)poll(NULL, 0, 2);
	assert_false(runner_start(&rig->runner, 7));
	rig_turn(rig);
	assert_true(rig->orphaned);
	rig_close(rig);
}
