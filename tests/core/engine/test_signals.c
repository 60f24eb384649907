/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals as callbacks, with real signals of this process and of forked children. The exit status
 * of a child is 0, or the line of the failed expectation.
 */
#define _GNU_SOURCE

#include "core/engine/engine.h"
#include "core/virtual/faults.h"
#include "tests/support/test.h"

#include <spoke/host.h>
#include <spoke/signals.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define S UINT64_C(1000000000)

#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			_exit(__LINE__ < 256 ? __LINE__ : __LINE__ - 200);                         \
	} while (0)

struct watcher {
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	struct spoke_signal signal;
	struct spoke_post post;
	unsigned came;
	void (*then)(struct watcher *watcher); /* called afterwards; NULL: stops the engine */
};

static atomic_int previous_came;

static void previous(int number)
{
	(void)number;
	atomic_fetch_add(&previous_came, 1);
}

static void set_handler(int number, void (*handler)(int number))
{
	struct sigaction action = { .sa_handler = handler };

	assert_int_equal(sigaction(number, &action, NULL), 0);
}

static void (*handler_of(int number))(int number)
{
	struct sigaction action;

	assert_int_equal(sigaction(number, NULL, &action), 0);
	return action.sa_handler;
}

static void came(struct spoke_signal *signal)
{
	struct watcher *watcher = spoke_container_of(signal, struct watcher, signal);

	watcher->came++;
	if (watcher->then)
		watcher->then(watcher);
	else
		spoke_engine_stop(watcher->engine);
}

static void set_up(struct watcher *watcher)
{
	struct spoke_engine_options options = { .env = &watcher->faulty.env };

	*watcher = (struct watcher){ .came = 0 };
	spokei_faults_init(&watcher->faulty, spoke_host_env());
	assert_int_equal(spoke_engine_new(&options, &watcher->engine), SPOKE_OK);
}

static void watch(struct watcher *watcher, int number)
{
	assert_int_equal(spoke_signal_watch(watcher->engine, &watcher->signal, number, came),
			 SPOKE_OK);
}

static void tear_down(struct watcher *watcher)
{
	spoke_engine_free(watcher->engine);
	assert_int_equal(watcher->faulty.blocks, 0);
	assert_int_equal(watcher->faulty.fds, 0);
}

TEST(signal_runs_callback_on_engine_each_time)
{
	struct watcher watcher;

	set_up(&watcher);
	watch(&watcher, SIGUSR1);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(raise(SIGUSR1), 0);
		assert_int_equal(watcher.came, i - 1);
		assert_int_equal(spoke_engine_run(watcher.engine), SPOKE_OK);
		assert_int_equal(watcher.came, i);
	}
	/* Signals that arrive before the callback runs are merged into one. */
	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(spoke_engine_run(watcher.engine), SPOKE_OK);
	assert_int_equal(spoke_engine_turn(watcher.engine, false), SPOKE_OK);
	assert_int_equal(watcher.came, 4);
	tear_down(&watcher);
}

/* The handler leaves errno unchanged, even if the eventfd is full. */
TEST(more_signals_than_can_be_counted_are_one)
{
	const uint64_t full = UINT64_MAX - 1;
	struct watcher watcher;

	set_up(&watcher);
	watch(&watcher, SIGUSR1);
	assert_int_equal(write(watcher.signal.watch.fd, &full, sizeof(full)), sizeof(full));
	errno = 77;
	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(errno, 77);
	assert_int_equal(spoke_engine_run(watcher.engine), SPOKE_OK);
	assert_int_equal(spoke_engine_turn(watcher.engine, false), SPOKE_OK);
	assert_int_equal(watcher.came, 1);
	tear_down(&watcher);
}

TEST(last_watch_restores_previous_handler)
{
	struct watcher one;
	struct watcher two;

	set_handler(SIGUSR1, previous);
	set_up(&one);
	set_up(&two);
	watch(&one, SIGUSR1);
	watch(&two, SIGUSR1);
	assert_true(handler_of(SIGUSR1) != previous);
	assert_true(spoke_signal_cancel(&one.signal));
	assert_false(spoke_signal_cancel(&one.signal));
	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(atomic_load(&previous_came), 0);
	assert_int_equal(spoke_engine_turn(one.engine, false), SPOKE_OK);
	assert_int_equal(spoke_engine_run(two.engine), SPOKE_OK);
	assert_int_equal(one.came, 0);
	assert_int_equal(two.came, 1);
	tear_down(&two); /* cancels the watch */
	assert_true(handler_of(SIGUSR1) == previous);
	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(atomic_load(&previous_came), 1);
	tear_down(&one);
	set_handler(SIGUSR1, SIG_DFL);
}

TEST(handler_of_other_code_stays)
{
	struct watcher watcher;

	set_handler(SIGUSR2, SIG_IGN);
	set_up(&watcher);
	watch(&watcher, SIGUSR2);
	set_handler(SIGUSR2, previous);
	tear_down(&watcher);
	assert_true(handler_of(SIGUSR2) == previous);
	set_handler(SIGUSR2, SIG_DFL);
}

TEST(signal_runs_callback_of_each_watching_engine)
{
	struct watcher watchers[3];

	for (int i = 0; i < 3; i++) {
		set_up(&watchers[i]);
		watch(&watchers[i], i == 2 ? SIGUSR2 : SIGUSR1);
	}
	assert_int_equal(kill(getpid(), SIGUSR1), 0);
	assert_int_equal(spoke_engine_run(watchers[0].engine), SPOKE_OK);
	assert_int_equal(spoke_engine_run(watchers[1].engine), SPOKE_OK);
	assert_int_equal(spoke_engine_turn(watchers[2].engine, false), SPOKE_OK);
	assert_int_equal(watchers[0].came, 1);
	assert_int_equal(watchers[1].came, 1);
	assert_int_equal(watchers[2].came, 0);
	for (int i = 0; i < 3; i++)
		tear_down(&watchers[i]);
}

static void *send_one(void *arg)
{
	(void)arg;
	(void)kill(getpid(), SIGUSR1);
	return NULL;
}

TEST(a_signal_of_another_thread_ends_the_wait)
{
	struct watcher watcher;
	pthread_t thread;

	set_up(&watcher);
	watch(&watcher, SIGUSR1);
	assert_int_equal(pthread_create(&thread, NULL, send_one, NULL), 0);
	assert_int_equal(spoke_engine_run(watcher.engine), SPOKE_OK);
	assert_int_equal(watcher.came, 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	tear_down(&watcher);
}

TEST(signal_callback_runs_on_thread_of_engine)
{
	struct watcher watcher;

	set_up(&watcher);
	watch(&watcher, SIGUSR1);
	assert_int_equal(spoke_engine_start(watcher.engine), SPOKE_OK);
	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(spoke_engine_join(watcher.engine), SPOKE_OK);
	assert_int_equal(watcher.came, 1);
	tear_down(&watcher);
}

static atomic_bool sending;

static void *send_many(void *arg)
{
	(void)arg;
	while (atomic_load(&sending))
		(void)kill(getpid(), SIGUSR1);
	return NULL;
}

/* Adds and removes watches during a stream of signals, which are ignored while no watch exists. */
TEST(watches_come_and_go_under_signals)
{
	struct watcher one;
	struct watcher two;
	pthread_t thread;

	set_handler(SIGUSR1, SIG_IGN);
	set_up(&one);
	set_up(&two);
	atomic_store(&sending, true);
	assert_int_equal(pthread_create(&thread, NULL, send_many, NULL), 0);
	for (int i = 0; i < 300; i++) {
		watch(&one, SIGUSR1);
		watch(&two, SIGUSR1);
		assert_true(spoke_signal_cancel(i % 2 ? &one.signal : &two.signal));
		assert_int_equal(spoke_engine_turn(one.engine, false), SPOKE_OK);
		assert_true(spoke_signal_cancel(i % 2 ? &two.signal : &one.signal));
	}
	watch(&two, SIGUSR1);
	two.came = 0;
	assert_int_equal(spoke_engine_run(two.engine), SPOKE_OK);
	assert_int_equal(two.came, 1);
	atomic_store(&sending, false);
	assert_int_equal(pthread_join(thread, NULL), 0);
	tear_down(&one);
	tear_down(&two);
	assert_true(handler_of(SIGUSR1) == SIG_IGN);
	set_handler(SIGUSR1, SIG_DFL);
}

TEST(unwatchable_signals_are_refused)
{
	struct watcher watcher;

	set_up(&watcher);
	assert_int_equal(spoke_signal_watch(watcher.engine, &watcher.signal, SIGKILL, came),
			 SPOKE_EINVAL);
	assert_int_equal(spoke_signal_watch(watcher.engine, &watcher.signal, 0, came),
			 SPOKE_EINVAL);
	assert_int_equal(spoke_signal_watch(watcher.engine, &watcher.signal, 100000, came),
			 SPOKE_EINVAL);
	assert_false(spoke_signal_cancel(&watcher.signal));
	spokei_faults_fail(&watcher.faulty, SPOKEI_FAULTS_SIGNAL_OPEN, 1, -EMFILE, false);
	assert_int_equal(spoke_signal_watch(watcher.engine, &watcher.signal, SIGUSR1, came),
			 SPOKE_ESYSTEM);
	spokei_faults_fail(&watcher.faulty, SPOKEI_FAULTS_SIGNAL_OPEN, 2, -ENOMEM, false);
	assert_int_equal(spoke_engine_drain_on_signals(watcher.engine, S), SPOKE_ENOMEM);
	assert_int_equal(watcher.faulty.fds, 0);
	watch(&watcher, SIGUSR1);
	assert_int_equal(spoke_signal_watch(watcher.engine, &watcher.signal, SIGUSR1, came),
			 SPOKE_EEXIST);
	tear_down(&watcher);
	assert_true(handler_of(SIGUSR1) == SIG_DFL);
	assert_true(handler_of(SIGTERM) == SIG_DFL);
}

/* Watches a signal from the closing notification. That watch ends with the engine too. */
static void watch_again(struct spoke_post *post)
{
	struct watcher *watcher = spoke_container_of(post, struct watcher, post);

	watch(watcher, SIGUSR1);
}

TEST(signal_watches_end_with_their_engine)
{
	struct watcher watcher;

	set_up(&watcher);
	watcher.post.run = watch_again;
	spoke_engine_post(watcher.engine, &watcher.post);
	tear_down(&watcher);
	assert_true(handler_of(SIGUSR1) == SIG_DFL);
}

static void free_engine(struct watcher *watcher)
{
	spoke_engine_free(watcher->engine);
}

static void cancel_and_stop(struct watcher *watcher)
{
	assert_true(spoke_signal_cancel(&watcher->signal));
	memset(&watcher->signal, 0xff, sizeof(watcher->signal));
	spoke_engine_stop(watcher->engine);
}

TEST(in_the_callback_all_may_be_freed)
{
	struct watcher watcher;

	set_up(&watcher);
	watch(&watcher, SIGUSR1);
	watcher.then = cancel_and_stop;
	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(spoke_engine_run(watcher.engine), SPOKE_OK);
	assert_int_equal(watcher.came, 1);
	watcher.signal = (struct spoke_signal){ .engine = NULL };
	watch(&watcher, SIGUSR1);
	watcher.then = free_engine;
	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(spoke_engine_run(watcher.engine), SPOKE_OK);
	watcher.engine = NULL;
	tear_down(&watcher);
	assert_false(spoke_signal_cancel(&watcher.signal));
}

static void status_of(pid_t child, int *ret_status)
{
	assert_true(child > 0);
	assert_int_equal(waitpid(child, ret_status, 0), child);
}

static void in_a_child(struct watcher *watcher)
{
	struct watcher own;

	EXPECT(spoke_signal_watch(watcher->engine, &watcher->signal, SIGHUP, came) ==
	       SPOKE_EFORKED);
	EXPECT(spoke_engine_drain_on_signals(watcher->engine, 0) == SPOKE_EFORKED);
	/* The callback of the child's own watch runs, that of the inherited watch does not. */
	set_up(&own);
	EXPECT(spoke_signal_watch(own.engine, &own.signal, SIGUSR1, came) == SPOKE_OK);
	EXPECT(raise(SIGUSR1) == 0);
	EXPECT(spoke_engine_run(own.engine) == SPOKE_OK);
	EXPECT(own.came == 1);
	spoke_engine_free(own.engine);
	EXPECT(watcher->came == 0);
	spoke_engine_free(watcher->engine);
	EXPECT(handler_of(SIGUSR1) == SIG_DFL);
	_exit(0);
}

TEST(a_forked_child_goes_its_own_way)
{
	struct watcher watcher;
	pid_t child;
	int status;

	set_up(&watcher);
	watch(&watcher, SIGUSR1);
	child = fork();
	if (child == 0)
		in_a_child(&watcher);
	status_of(child, &status);
	assert_int_equal(status, 0);
	/* A child without a watch is killed by the signal, like any process. */
	child = fork();
	if (child == 0) {
		(void)raise(SIGUSR1);
		_exit(1);
	}
	status_of(child, &status);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGUSR1);
	/* The parent received nothing from its children and still receives its own signals. */
	assert_int_equal(spoke_engine_turn(watcher.engine, false), SPOKE_OK);
	assert_int_equal(watcher.came, 0);
	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(spoke_engine_run(watcher.engine), SPOKE_OK);
	assert_int_equal(watcher.came, 1);
	tear_down(&watcher);
}

/* Handlers may be inherited. */
STEP(reset_handlers)
{
	set_handler(SIGUSR1, SIG_DFL);
	set_handler(SIGUSR2, SIG_DFL);
	set_handler(SIGTERM, SIG_DFL);
}

GROUP(reset_handlers, NULL);
