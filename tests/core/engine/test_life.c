/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of an engine on the real loop: freed by its own callback, stopped from another thread,
 * run on a thread of its own.
 */
#define _GNU_SOURCE

#include "core/engine/engine.h"
#include "core/engine/roll.h"
#include "core/virtual/faults.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

/* An engine with a post, an alarm and a member. The engine's thread records its results, and the
 * test asserts them. */
struct rig {
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	struct spoke_post post;
	struct spoke_alarm alarm;
	struct spokei_member member;
	pthread_t main_thread;
	atomic_int closed;
	atomic_int ran;
	atomic_int after; /* callbacks after the one that freed the engine */
	int here;
	int joined; /* result of a join from a callback */
	int started;
	int rerun; /* result of a run while the engine was freed */
	bool here_closed;
	bool on_main;
};

static struct rig *rig_of(struct spoke_post *post)
{
	return spoke_container_of(post, struct rig, post);
}

static void member_closed(struct spokei_member *member)
{
	struct rig *rig = spoke_container_of(member, struct rig, member);

	rig->here_closed = spokei_engine_here(rig->engine);
	rig->rerun = spoke_engine_run(rig->engine);
	if (rig->engine->closing)
		spoke_engine_free(rig->engine); /* already in progress */
	atomic_fetch_add(&rig->closed, 1);
	spokei_roll_drop(rig->engine, member);
}

static void set_up(struct rig *rig)
{
	struct spoke_engine_options options = { .env = &rig->faulty.env };

	*rig = (struct rig){ .main_thread = pthread_self(),
			     .member = { .kind = "test", .close = member_closed } };
	spokei_faults_init(&rig->faulty, spoke_host_env());
	assert_int_equal(spoke_engine_new(&options, &rig->engine), SPOKE_OK);
	spokei_roll_add(rig->engine, &rig->member);
}

/* Asserts that the engine and all its members and memory are gone. */
static void assert_gone(struct rig *rig)
{
	assert_int_equal(atomic_load(&rig->closed), 1);
	assert_true(rig->here_closed);
	assert_int_equal(rig->rerun, SPOKE_ESTATE);
	assert_int_equal(rig->faulty.blocks, 0);
}

static void after_free(struct spoke_alarm *alarm)
{
	struct rig *rig = spoke_container_of(alarm, struct rig, alarm);

	atomic_fetch_add(&rig->after, 1);
}

static void free_from_post(struct spoke_post *post)
{
	struct rig *rig = rig_of(post);

	atomic_fetch_add(&rig->ran, 1);
	rig->here = spokei_engine_here(rig->engine);
	spoke_engine_free(rig->engine);
	/* The memory stays valid for the callbacks further up the stack. */
	(void)spoke_engine_now(rig->engine);
}

TEST(a_callback_may_free_its_engine_and_the_run_ends)
{
	struct rig rig;

	set_up(&rig);
	rig.post.run = free_from_post;
	spoke_engine_post(rig.engine, &rig.post);
	assert_int_equal(spoke_alarm_after(rig.engine, &rig.alarm, 3600000 * MS, after_free),
			 SPOKE_OK);
	assert_int_equal(spoke_engine_run(rig.engine), SPOKE_OK);
	assert_int_equal(rig.ran, 1);
	assert_true(rig.here);
	assert_int_equal(rig.after, 0);
	assert_gone(&rig);
}

TEST(a_callback_may_free_its_engine_in_a_single_turn)
{
	struct rig rig;

	set_up(&rig);
	rig.post.run = free_from_post;
	spoke_engine_post(rig.engine, &rig.post);
	assert_int_equal(spoke_engine_turn(rig.engine, true), SPOKE_OK);
	assert_gone(&rig);
}

struct user {
	struct rig *rig;
	struct ev_timer timer;
};

static void free_from_watcher(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct user *user = timer->data;

	(void)events;
	spoke_engine_free(user->rig->engine);
	ev_break(ev, EVBREAK_ALL);
}

TEST(a_users_own_watcher_may_free_the_engine_on_his_loop)
{
	struct rig rig;
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO);
	struct spoke_engine_options options = { .env = &rig.faulty.env, .native = ev };
	struct user user = { .rig = &rig };

	set_up(&rig);
	spoke_engine_free(rig.engine);
	assert_gone(&rig);
	rig.closed = 0;
	assert_int_equal(spoke_engine_new(&options, &rig.engine), SPOKE_OK);
	spokei_roll_add(rig.engine, &rig.member);
	assert_int_equal(spoke_engine_start(rig.engine), SPOKE_EINVAL);
	ev_timer_init(&user.timer, free_from_watcher, 0.001, 0.);
	user.timer.data = &user;
	ev_timer_start(ev, &user.timer);
	(void)ev_run(ev, 0);
	ev_loop_destroy(ev);
	assert_gone(&rig);
}

static void look_around(struct spoke_post *post)
{
	struct rig *rig = rig_of(post);

	rig->on_main = pthread_equal(pthread_self(), rig->main_thread) != 0;
	rig->here = spokei_engine_here(rig->engine);
	rig->joined = spoke_engine_join(rig->engine);
	rig->started = spoke_engine_start(rig->engine);
	atomic_fetch_add(&rig->ran, 1);
	spoke_engine_stop(rig->engine);
}

TEST(an_engine_runs_on_a_thread_of_its_own)
{
	struct rig rig;

	set_up(&rig);
	rig.post.run = look_around;
	assert_int_equal(spoke_engine_join(rig.engine), SPOKE_ESTATE);
	for (int i = 1; i <= 20; i++) {
		rig.on_main = true;
		assert_int_equal(spoke_engine_start(rig.engine), SPOKE_OK);
		assert_false(spokei_engine_here(rig.engine));
		spoke_engine_post(rig.engine, &rig.post);
		assert_int_equal(spoke_engine_start(rig.engine), SPOKE_ESTATE);
		assert_int_equal(spoke_engine_run(rig.engine), SPOKE_ESTATE);
		assert_int_equal(spoke_engine_turn(rig.engine, false), SPOKE_ESTATE);
		assert_int_equal(spoke_engine_join(rig.engine), SPOKE_OK);
		assert_int_equal(rig.ran, i);
		assert_false(rig.on_main);
		assert_true(rig.here);
		assert_int_equal(rig.joined, SPOKE_ETHREAD);
		assert_int_equal(rig.started, SPOKE_ESTATE);
		assert_int_equal(spoke_engine_join(rig.engine), SPOKE_ESTATE);
	}
	assert_int_equal(spoke_engine_turn(rig.engine, false), SPOKE_OK);
	spoke_engine_free(rig.engine);
	assert_gone(&rig);
}

/* Repeats, so that the stop comes before the thread runs, while it runs and while it waits. */
TEST(a_stop_from_another_thread_is_never_lost)
{
	struct rig rig;

	set_up(&rig);
	for (int i = 0; i < 300; i++) {
		assert_int_equal(spoke_engine_start(rig.engine), SPOKE_OK);
		for (int spin = 0; spin < i * 100; spin++)
			atomic_fetch_add(&rig.after, 1);
		spoke_engine_stop(rig.engine);
		assert_int_equal(spoke_engine_join(rig.engine), SPOKE_OK);
	}
	spoke_engine_free(rig.engine);
	assert_gone(&rig);
}

TEST(a_stop_without_a_run_has_no_effect)
{
	struct rig rig;

	set_up(&rig);
	rig.post.run = look_around;
	spoke_engine_stop(rig.engine);
	spoke_engine_post(rig.engine, &rig.post);
	assert_int_equal(spoke_engine_run(rig.engine), SPOKE_OK);
	assert_int_equal(rig.ran, 1);
	assert_true(rig.on_main);
	spoke_engine_free(rig.engine);
	assert_gone(&rig);
}

TEST(an_engine_on_its_thread_can_be_freed_from_another)
{
	struct rig rig;

	set_up(&rig);
	assert_int_equal(spoke_engine_start(rig.engine), SPOKE_OK);
	spoke_engine_free(rig.engine);
	assert_gone(&rig);
}

TEST(an_engine_freed_on_its_own_thread_goes_when_it_is_joined)
{
	struct rig rig;

	set_up(&rig);
	rig.post.run = free_from_post;
	assert_int_equal(spoke_engine_start(rig.engine), SPOKE_OK);
	spoke_engine_post(rig.engine, &rig.post);
	assert_int_equal(spoke_engine_join(rig.engine), SPOKE_OK);
	assert_int_equal(rig.ran, 1);
	assert_gone(&rig);
}

static void drain_elsewhere(struct spoke_post *post)
{
	struct rig *rig = rig_of(post);

	rig->joined = spoke_engine_drain(rig->engine, UINT64_MAX);
	atomic_fetch_add(&rig->ran, 1);
}

TEST(drain_from_other_thread_is_refused_but_posted_drain_works)
{
	struct rig rig;

	set_up(&rig);
	rig.post.run = look_around;
	assert_int_equal(spoke_engine_start(rig.engine), SPOKE_OK);
	while (atomic_load_explicit(&rig.engine->runner, memory_order_relaxed) == 0)
		continue;
	assert_int_equal(spoke_engine_drain(rig.engine, MS), SPOKE_ETHREAD);
	rig.post.run = drain_elsewhere;
	spoke_engine_post(rig.engine, &rig.post);
	assert_int_equal(spoke_engine_join(rig.engine), SPOKE_OK);
	assert_int_equal(rig.joined, SPOKE_OK);
	assert_int_equal(rig.closed, 1); /* the member has no drain function */
	spoke_engine_free(rig.engine);
	assert_gone(&rig);
}

/* Repeats, because the thread may not have begun, may be running or may have ended. */
TEST(drain_is_refused_while_engine_has_its_own_thread)
{
	struct rig rig;

	set_up(&rig);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(spoke_engine_start(rig.engine), SPOKE_OK);
		assert_int_equal(spoke_engine_drain(rig.engine, MS), SPOKE_ETHREAD);
		spoke_engine_stop(rig.engine);
		assert_int_equal(spoke_engine_drain(rig.engine, MS), SPOKE_ETHREAD);
		assert_int_equal(spoke_engine_join(rig.engine), SPOKE_OK);
	}
	assert_int_equal(rig.closed, 0);
	spoke_engine_free(rig.engine);
	assert_gone(&rig);
}

TEST(failed_thread_start_is_reported)
{
	struct rig rig;

	set_up(&rig);
	spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_THREAD_START, 1, -EAGAIN, false);
	assert_int_equal(spoke_engine_start(rig.engine), SPOKE_ESYSTEM);
	spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_THREAD_START, 1, -ENOMEM, false);
	assert_int_equal(spoke_engine_start(rig.engine), SPOKE_ENOMEM);
	assert_int_equal(spoke_engine_join(rig.engine), SPOKE_ESTATE);
	assert_int_equal(spoke_engine_turn(rig.engine, false), SPOKE_OK);
	spoke_engine_free(rig.engine);
	assert_gone(&rig);
}

TEST(an_engine_is_made_whole_or_not_at_all)
{
	struct rig rig;
	struct spoke_engine_options options = { .env = &rig.faulty.env };
	struct spoke_engine *engine = NULL;
	uint64_t demands;

	set_up(&rig);
	demands = rig.faulty.calls[SPOKEI_FAULTS_MEMORY];
	spoke_engine_free(rig.engine);
	assert_gone(&rig);
	assert_true(demands >= 3);
	for (uint64_t nth = 1; nth <= demands; nth++) {
		spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		assert_int_equal(spoke_engine_new(&options, &engine), SPOKE_ENOMEM);
		assert_null(engine);
		assert_int_equal(rig.faulty.blocks, 0);
	}
	spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_LOOP_OPEN, 1, -EMFILE, false);
	assert_int_equal(spoke_engine_new(&options, &engine), SPOKE_ESYSTEM);
	assert_int_equal(rig.faulty.blocks, 0);
}

static unsigned demands_of_libev;

static void *count_demand(void *memory, long size)
{
	if (size == 0) {
		free(memory);
		return NULL;
	}
	demands_of_libev++;
	return realloc(memory, (size_t)size);
}

enum {
	READY = 50
};

static void nobody_reads(struct spoke_watch *watch, unsigned io)
{
	unsigned *ready = (unsigned *)(void *)(watch + 1);

	(void)io;
	++*ready;
}

/* libev aborts the program when an allocation fails. */
TEST(libev_asks_for_no_memory_as_descriptors_come)
{
	static struct {
		struct spoke_watch watch;
		unsigned ready;
	} watched[READY];
	const struct spoke_loop *loop = spoke_host_env()->loop;
	struct spoke_engine *engine;
	long limit = sysconf(_SC_OPEN_MAX);
	int highest = limit > 0 && limit < 4096 ? (int)limit - 1 : 4095;
	int fd[2];
	unsigned before;

	ev_set_allocator(count_demand);
	assert_int_equal(spoke_engine_new(NULL, &engine), SPOKE_OK);
	assert_int_equal(spoke_engine_turn(engine, false), SPOKE_OK);
	before = demands_of_libev;
	assert_true(before > 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	assert_int_equal(write(fd[1], "x", 1), 1);
	for (int i = 0; i < READY; i++) {
		watched[i].watch = (struct spoke_watch){ .ready = nobody_reads };
		watched[i].watch.fd = fcntl(fd[0], F_DUPFD_CLOEXEC, highest - READY + 1);
		assert_true(watched[i].watch.fd > highest - READY);
		loop->watch(engine->loop, &watched[i].watch, SPOKE_IO_READ);
	}
	assert_int_equal(spoke_engine_turn(engine, false), SPOKE_OK);
	for (int i = 0; i < READY; i++) {
		assert_int_equal(watched[i].ready, 1);
		loop->watch(engine->loop, &watched[i].watch, 0);
		(void)close(watched[i].watch.fd);
	}
	assert_int_equal(demands_of_libev, before);
	spoke_engine_free(engine);
	(void)close(fd[0]);
	(void)close(fd[1]);
}
