/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals at the worst moments: in forked children, and while a handler is being installed. The
 * linker wraps two functions that the code under test calls, so that the test can choose the
 * moment.
 */
#define _GNU_SOURCE

#include "tests/support/test.h"

#include <spoke/engine.h>
#include <spoke/signals.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_S 20 /* time limit of a child */

static unsigned told;

static void came(struct spoke_signal *signal)
{
	(void)signal;
	told++;
}

static void set_handler(int number, void (*handler)(int number))
{
	const struct sigaction action = { .sa_handler = handler };

	assert_int_equal(sigaction(number, &action, NULL), 0);
}

static struct spoke_engine *engine_that_watches(struct spoke_signal *signal, int number)
{
	struct spoke_engine *engine;

	*signal = (struct spoke_signal){ .engine = NULL };
	assert_int_equal(spoke_engine_new(NULL, &engine), SPOKE_OK);
	assert_int_equal(spoke_signal_watch(engine, signal, number, came), SPOKE_OK);
	return engine;
}

/* --- wrapped functions */

static _Thread_local bool stays; /* this thread stays in write() */
static atomic_bool stay;
static atomic_bool stands;
static int raised_at_once; /* raised once it has a handler; 0 means none */

/* The linker's --wrap prescribes the names. */
/* NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming) */
ssize_t __real_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len);
int __real_sigaction(int number, const struct sigaction *action, struct sigaction *old);
int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *old);

ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
	if (stays) {
		atomic_store(&stands, true);
		while (atomic_load(&stay))
			(void)sched_yield();
	}
	return __real_write(fd, bytes, len);
}

int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	int status = __real_sigaction(number, action, old);

	if (action && number == raised_at_once) {
		raised_at_once = 0;
		(void)raise(number);
	}
	return status;
}
/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */

/* --- */

/* The signal was ignored before. It would stay ignored if the code took it for a signal of other
 * code. */
TEST(signal_raised_during_watch_runs_its_callback)
{
	struct spoke_signal signal;
	struct spoke_engine *engine;

	told = 0;
	set_handler(SIGUSR1, SIG_IGN);
	raised_at_once = SIGUSR1;
	engine = engine_that_watches(&signal, SIGUSR1);
	assert_int_equal(raised_at_once, 0);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(spoke_engine_turn(engine, false), SPOKE_OK);
		assert_int_equal(told, i);
		assert_int_equal(raise(SIGUSR1), 0);
	}
	spoke_engine_free(engine);
	set_handler(SIGUSR1, SIG_DFL);
}

static void *signal_itself(void *arg)
{
	stays = true;
	(void)pthread_kill(pthread_self(), SIGUSR1);
	return arg;
}

TEST(a_child_forked_while_a_handler_runs_ends_its_engine)
{
	struct spoke_signal signal;
	struct spoke_engine *engine = engine_that_watches(&signal, SIGUSR1);
	pthread_t thread;
	pid_t child;
	int status;

	atomic_store(&stay, true);
	assert_int_equal(pthread_create(&thread, NULL, signal_itself, NULL), 0);
	while (!atomic_load(&stands))
		(void)sched_yield();
	child = fork();
	if (child == 0) {
		(void)alarm(CHILD_S);
		spoke_engine_free(engine);
		_exit(0);
	}
	atomic_store(&stay, false);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	spoke_engine_free(engine);
}

static void assert_ends_by_sigterm(void (*child_does)(void))
{
	struct spoke_signal signal;
	struct spoke_engine *engine = engine_that_watches(&signal, SIGTERM);
	pid_t child = fork();
	int status;

	if (child == 0) {
		child_does();
		(void)raise(SIGTERM);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
	spoke_engine_free(engine);
}

static void watch_another(void)
{
	static struct spoke_signal signal;

	(void)engine_that_watches(&signal, SIGHUP);
}

static void watch_and_cancel(void)
{
	struct spoke_signal signal;
	struct spoke_engine *engine = engine_that_watches(&signal, SIGTERM);

	(void)spoke_signal_cancel(&signal);
	spoke_engine_free(engine);
}

TEST(a_child_that_watches_another_one_ends_by_sigterm)
{
	assert_ends_by_sigterm(watch_another);
}

TEST(a_child_that_watches_no_more_ends_by_sigterm)
{
	assert_ends_by_sigterm(watch_and_cancel);
}

/* Handlers may be inherited. */
static int reset_handlers(void **state)
{
	(void)state;
	set_handler(SIGUSR1, SIG_DFL);
	set_handler(SIGTERM, SIG_DFL);
	set_handler(SIGHUP, SIG_DFL);
	return 0;
}

GROUP(reset_handlers, NULL);
