/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine on the real loop: alarms, posts, its life, task queues, and work for other
 * threads.
 */
#define _GNU_SOURCE
#include "core/engine/engine.h"
#include "core/engine/members.h"
#include "core/engine/task.h"
#include "core/virtual/faults.h"
#include "tests/support/test.h"

#include <spoke/engine.h>
#include <spoke/host.h>
#include <spoke/wheel.h>

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- the engine on the real loop: alarms, posts, and the order of events in a turn */

static uint64_t clock_ns(void)
{
	const struct spoke_env *env = spoke_host_env();

	return env->now(env->ctx);
}

static struct spoke_engine *make_engine(void)
{
	struct spoke_engine *engine = NULL;

	assert_int_equal(spoke_engine_new(NULL, &engine), SPOKE_OK);
	return engine;
}

struct alarmed {
	struct spoke_alarm alarm;
	struct spoke_engine *engine;
	int count;
	int until; /* number of calls after which the engine is stopped */
	uint64_t at_ns;
};

static void count_alarm(struct spoke_alarm *alarm)
{
	struct alarmed *alarmed = spoke_container_of(alarm, struct alarmed, alarm);

	alarmed->at_ns = clock_ns();
	if (++alarmed->count == alarmed->until)
		spoke_engine_stop(alarmed->engine);
}

TEST(an_alarm_is_due_once_and_not_before_its_time)
{
	struct alarmed alarmed = { .engine = make_engine(), .until = 1 };
	uint64_t start_ns = clock_ns();

	assert_int_equal(spoke_alarm_after(alarmed.engine, &alarmed.alarm, 20 * MS, count_alarm),
			 SPOKE_OK);
	assert_int_equal(spoke_engine_run(alarmed.engine), SPOKE_OK);
	assert_int_equal(alarmed.count, 1);
	assert_true(alarmed.at_ns - start_ns >= 20 * MS);
	assert_int_equal(spoke_engine_turn(alarmed.engine, false), SPOKE_OK);
	assert_int_equal(alarmed.count, 1);
	assert_false(spoke_alarm_cancel(&alarmed.alarm));
	spoke_engine_free(alarmed.engine);
}

TEST(an_alarm_set_after_long_code_is_not_early)
{
	struct alarmed alarmed = { .engine = make_engine(), .until = 1 };
	uint64_t start_ns = clock_ns();

	while (clock_ns() - start_ns < 30 * MS)
		continue; /* the engine's time does not move meanwhile */
	start_ns = clock_ns();
	assert_int_equal(spoke_alarm_after(alarmed.engine, &alarmed.alarm, 20 * MS, count_alarm),
			 SPOKE_OK);
	assert_int_equal(spoke_engine_run(alarmed.engine), SPOKE_OK);
	assert_true(alarmed.at_ns - start_ns >= 20 * MS);
	spoke_engine_free(alarmed.engine);
}

TEST(an_alarm_can_be_due_again_and_again)
{
	struct alarmed alarmed = { .engine = make_engine(), .until = 5 };
	uint64_t start_ns = clock_ns();

	assert_int_equal(spoke_alarm_every(alarmed.engine, &alarmed.alarm, 0, count_alarm),
			 SPOKE_EINVAL);
	assert_int_equal(spoke_alarm_every(alarmed.engine, &alarmed.alarm, 3 * MS / 2, count_alarm),
			 SPOKE_OK);
	assert_int_equal(spoke_engine_run(alarmed.engine), SPOKE_OK);
	assert_int_equal(alarmed.count, 5);
	assert_true(alarmed.at_ns - start_ns >= 15 * MS / 2);
	assert_true(spoke_alarm_cancel(&alarmed.alarm));
	assert_false(spoke_alarm_cancel(&alarmed.alarm));
	spoke_engine_free(alarmed.engine);
}

TEST(an_alarm_that_is_set_can_be_moved)
{
	struct alarmed alarmed = { .engine = make_engine(), .until = 1 };

	assert_int_equal(spoke_alarm_after(alarmed.engine, &alarmed.alarm, 3600000 * MS,
					   count_alarm),
			 SPOKE_OK);
	assert_int_equal(spoke_alarm_after(alarmed.engine, &alarmed.alarm, MS, count_alarm),
			 SPOKE_OK);
	assert_int_equal(spoke_engine_run(alarmed.engine), SPOKE_OK);
	assert_int_equal(alarmed.count, 1);
	assert_int_equal(spoke_alarm_after(alarmed.engine, &alarmed.alarm, UINT64_MAX, count_alarm),
			 SPOKE_ERANGE);
	spoke_engine_free(alarmed.engine);
}

static void turn_again(struct spoke_alarm *alarm)
{
	struct alarmed *alarmed = spoke_container_of(alarm, struct alarmed, alarm);

	assert_int_equal(spoke_engine_run(alarmed->engine), SPOKE_ESTATE);
	assert_int_equal(spoke_engine_turn(alarmed->engine, false), SPOKE_ESTATE);
	count_alarm(alarm);
}

TEST(an_engine_cannot_be_run_from_its_own_callback)
{
	struct alarmed alarmed = { .engine = make_engine(), .until = 1 };

	assert_int_equal(spoke_alarm_after(alarmed.engine, &alarmed.alarm, 0, turn_again),
			 SPOKE_OK);
	assert_int_equal(spoke_engine_run(alarmed.engine), SPOKE_OK);
	assert_int_equal(alarmed.count, 1);
	spoke_engine_free(alarmed.engine);
}

struct visitor {
	struct spoke_post post;
	struct spoke_engine *engine;
	pthread_t engine_thread;
	int visits;
};

static void visit(struct spoke_post *post)
{
	struct visitor *visitor = spoke_container_of(post, struct visitor, post);

	assert_true(pthread_equal(pthread_self(), visitor->engine_thread));
	visitor->visits++;
	spoke_engine_stop(visitor->engine);
}

static void *post_one(void *arg)
{
	struct visitor *visitor = arg;

	spoke_engine_post(visitor->engine, &visitor->post);
	return NULL;
}

TEST(a_post_of_another_thread_wakes_the_engine)
{
	struct visitor visitor = {
		.post.run = visit,
		.engine = make_engine(),
		.engine_thread = pthread_self(),
	};

	for (int i = 1; i <= 20; i++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, post_one, &visitor), 0);
		assert_int_equal(spoke_engine_run(visitor.engine), SPOKE_OK);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(visitor.visits, i);
	}
	spoke_engine_free(visitor.engine);
}

/* Each event of a turn appends its letter to the text. */
struct story {
	struct spoke_engine *engine;
	char text[16];
	struct spoke_watch watch;
	struct spoke_alarm alarm;
	struct spoke_post post;
	struct spokei_task soon, last, dead;
	int fd[2];
};

static void tell(struct story *story, char letter)
{
	size_t len = strlen(story->text);

	assert_true(len < sizeof(story->text) - 1);
	story->text[len] = letter;
}

static void tell_ready(struct spoke_watch *watch, unsigned io)
{
	struct story *story = spoke_container_of(watch, struct story, watch);
	char byte;

	assert_int_equal(io, SPOKE_IO_READ);
	assert_int_equal(read(watch->fd, &byte, 1), 1);
	tell(story, 'r');
	/* Requested in reverse order. */
	spokei_run_freeing(story->engine, &story->dead);
	spokei_run_settling(story->engine, &story->last);
	spokei_run_soon(story->engine, &story->soon);
	spoke_engine_post(story->engine, &story->post);
}

static void tell_alarm(struct spoke_alarm *alarm)
{
	tell(spoke_container_of(alarm, struct story, alarm), 'w');
}

static void tell_post(struct spoke_post *post)
{
	tell(spoke_container_of(post, struct story, post), 'p');
}

static void tell_soon(struct spokei_task *task)
{
	tell(spoke_container_of(task, struct story, soon), 's');
}

static void tell_last(struct spokei_task *task)
{
	tell(spoke_container_of(task, struct story, last), 'l');
}

static void tell_dead(struct spokei_task *task)
{
	struct story *story = spoke_container_of(task, struct story, dead);

	tell(story, 'd');
	spoke_engine_stop(story->engine);
}

TEST(a_turn_has_one_order)
{
	struct story story = {
		.engine = make_engine(),
		.watch.ready = tell_ready,
		.post.run = tell_post,
		.soon.run = tell_soon,
		.last.run = tell_last,
		.dead.run = tell_dead,
	};
	const struct spoke_loop *loop = spoke_host_env()->loop;
	uint64_t start_ns = clock_ns();

	/* A late turn would poll again before its wheel advances. */
	story.engine->late_max_ns = UINT64_MAX;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, story.fd), 0);
	story.watch.fd = story.fd[0];
	loop->watch(story.engine->loop, &story.watch, SPOKE_IO_READ);
	assert_int_equal(spoke_alarm_after(story.engine, &story.alarm, MS, tell_alarm), SPOKE_OK);
	assert_int_equal(write(story.fd[1], "x", 1), 1);
	while (clock_ns() - start_ns < 5 * MS)
		continue; /* both are due when the turn begins */
	assert_int_equal(spoke_engine_run(story.engine), SPOKE_OK);
	assert_string_equal(story.text, "rwpsld");
	loop->watch(story.engine->loop, &story.watch, 0);
	spoke_engine_free(story.engine);
	(void)close(story.fd[0]);
	(void)close(story.fd[1]);
}

enum {
	CALLS = 500
};

/* Calls that wait for a byte and time out after 50 ms. */
struct calls {
	struct spoke_engine *engine;
	unsigned timer_class;
	int answered;
	int timed_out;
	struct spoke_alarm stall;
	struct call {
		struct calls *all;
		struct spoke_watch watch;
		struct spoke_timer timeout;
		int peer;
	} call[CALLS];
};

static void end_call(struct calls *calls)
{
	if (calls->answered + calls->timed_out == CALLS)
		spoke_engine_stop(calls->engine);
}

static void call_ready(struct spoke_watch *watch, unsigned io)
{
	struct call *call = spoke_container_of(watch, struct call, watch);
	char byte;

	(void)io;
	if (read(watch->fd, &byte, 1) != 1)
		return;
	if (spoke_wheel_cancel(call->all->engine->wheel, &call->timeout))
		call->all->answered++;
	end_call(call->all);
}

static void call_timed_out(struct spoke_timer *timer, void *arg)
{
	struct calls *calls = arg;

	(void)timer;
	calls->timed_out++;
	end_call(calls);
}

/*
 * Begins the calls, sends all replies, and stalls the loop until every call is long overdue. All of
 * this happens in one callback, so that a pause of the machine cannot separate a call from its
 * reply.
 */
static void stall(struct spoke_alarm *alarm)
{
	struct calls *calls = spoke_container_of(alarm, struct calls, stall);
	uint64_t deadline_ns = clock_ns() + 50 * MS;

	for (int i = 0; i < CALLS; i++)
		assert_int_equal(spoke_wheel_schedule(calls->engine->wheel, &calls->call[i].timeout,
						      calls->timer_class, deadline_ns),
				 SPOKE_WHEEL_OK);
	for (int i = 0; i < CALLS; i++)
		assert_int_equal(write(calls->call[i].peer, "x", 1), 1);
	while (clock_ns() < deadline_ns + 150 * MS)
		continue;
}

TEST(arrived_answer_does_not_time_out_after_a_stall)
{
	static struct calls calls;
	const struct spoke_loop *loop = spoke_host_env()->loop;

	calls = (struct calls){ .engine = make_engine() };
	assert_int_equal(spoke_wheel_add_class(calls.engine->wheel, "call", call_timed_out, &calls,
					       &calls.timer_class),
			 SPOKE_WHEEL_OK);
	for (int i = 0; i < CALLS; i++) {
		struct call *call = &calls.call[i];
		int fd[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
		*call = (struct call){ .all = &calls,
				       .watch = { .ready = call_ready, .fd = fd[0] },
				       .peer = fd[1] };
		loop->watch(calls.engine->loop, &call->watch, SPOKE_IO_READ);
	}
	assert_int_equal(spoke_alarm_after(calls.engine, &calls.stall, 0, stall), SPOKE_OK);
	assert_int_equal(spoke_engine_run(calls.engine), SPOKE_OK);
	assert_int_equal(calls.timed_out, 0);
	assert_int_equal(calls.answered, CALLS);
	for (int i = 0; i < CALLS; i++) {
		loop->watch(calls.engine->loop, &calls.call[i].watch, 0);
		(void)close(calls.call[i].watch.fd);
		(void)close(calls.call[i].peer);
	}
	spoke_engine_free(calls.engine);
}

TEST(bad_options_are_refused)
{
	struct spoke_engine_options tick = { .tick_ns = SPOKE_WHEEL_TICK_MAX_NS + 1 };
	struct spoke_engine_options many = { .timers_max = SPOKE_WHEEL_PENDING_MAX + 1 };
	struct spoke_engine *engine = NULL;

	assert_int_equal(spoke_engine_new(&tick, &engine), SPOKE_EINVAL);
	assert_int_equal(spoke_engine_new(&many, &engine), SPOKE_EINVAL);
	assert_null(engine);
	spoke_engine_free(NULL);
}

TEST(alarms_over_the_limit_are_refused)
{
	struct spoke_engine_options options = { .timers_max = 1 };
	struct spoke_engine *engine;
	struct spoke_alarm alarms[2] = { 0 };

	assert_int_equal(spoke_engine_new(&options, &engine), SPOKE_OK);
	assert_int_equal(spoke_alarm_after(engine, &alarms[0], MS, count_alarm), SPOKE_OK);
	assert_int_equal(spoke_alarm_after(engine, &alarms[1], MS, count_alarm), SPOKE_ELIMIT);
	assert_false(spoke_alarm_cancel(&alarms[1]));
	spoke_engine_free(engine);
}

/*
 * --- the life of an engine on the real loop: freed by its own callback, stopped from another
 * thread, run on a thread of its own
 */

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
	spokei_member_drop(member);
}

static void set_up(struct rig *rig)
{
	struct spoke_engine_options options = { .env = &rig->faulty.env };

	*rig = (struct rig){ .main_thread = pthread_self(),
			     .member = { .kind = "test", .close = member_closed } };
	spokei_faults_init(&rig->faulty, spoke_host_env());
	assert_int_equal(spoke_engine_new(&options, &rig->engine), SPOKE_OK);
	spokei_member_add(rig->engine, &rig->member);
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
	spokei_member_add(rig.engine, &rig.member);
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

/* --- task queues and mailboxes: order, removal, and posts from several threads */

struct job {
	struct spokei_task task;
	struct spoke_list *again; /* the queue to which the task adds itself again */
	int *log;                 /* the task appends its number */
	int number;
};

static int logged;

static void job_run(struct spokei_task *task)
{
	struct job *job = spoke_container_of(task, struct job, task);

	job->log[logged++] = job->number;
	if (job->again)
		spokei_task_put(job->again, task);
}

TEST(tasks_run_in_order_and_once)
{
	struct spoke_list queue;
	int log[8] = { 0 };
	struct job jobs[3];

	logged = 0;
	spokei_list_init(&queue);
	for (int i = 0; i < 3; i++) {
		jobs[i] = (struct job){ { { 0 }, job_run }, NULL, log, i + 1 };
		spokei_task_put(&queue, &jobs[i].task);
		spokei_task_put(&queue, &jobs[i].task); /* already queued */
	}
	spokei_task_drop(&jobs[1].task);
	spokei_task_drop(&jobs[1].task);
	assert_int_equal(spokei_task_run_all(&queue, NULL, 0), 2);
	assert_int_equal(spokei_task_run_all(&queue, NULL, 0), 0);
	assert_int_equal(logged, 2);
	assert_int_equal(log[0], 1);
	assert_int_equal(log[1], 3);
}

TEST(task_added_by_a_task_runs_in_next_round)
{
	struct spoke_list queue;
	int log[8] = { 0 };
	struct job job = { { { 0 }, job_run }, &queue, log, 1 };

	logged = 0;
	spokei_list_init(&queue);
	spokei_task_put(&queue, &job.task);
	for (int i = 1; i < 4; i++) {
		assert_int_equal(spokei_task_run_all(&queue, NULL, 0), 1);
		assert_int_equal(logged, i);
	}
	spokei_task_drop(&job.task);
	assert_int_equal(spokei_task_run_all(&queue, NULL, 0), 0);
}

static struct job *mortal; /* freed by its own run function */

static void free_task(struct spokei_task *task)
{
	assert_ptr_equal(task, &mortal->task);
	free(mortal);
	mortal = NULL;
}

TEST(a_task_may_free_itself)
{
	struct spoke_list queue;

	mortal = calloc(1, sizeof(*mortal));
	assert_non_null(mortal);
	spokei_list_init(&queue);
	mortal->task.run = free_task;
	spokei_task_put(&queue, &mortal->task);
	assert_int_equal(spokei_task_run_all(&queue, NULL, 0), 1);
	assert_null(mortal);
}

struct letter {
	struct spoke_post post;
	int sender;
	int number;
};

enum {
	SENDERS = 4,
	LETTERS = 5000
};

static struct letter letters[SENDERS][LETTERS];

static int received[SENDERS];

static struct spokei_mailbox mailbox;

static atomic_int wakes;

static void letter_run(struct spoke_post *post)
{
	struct letter *letter = spoke_container_of(post, struct letter, post);

	assert_int_equal(letter->number, received[letter->sender]);
	received[letter->sender]++;
}

static void *send_letters(void *arg)
{
	int sender = *(int *)arg;

	for (int i = 0; i < LETTERS; i++) {
		letters[sender][i] = (struct letter){ { NULL, letter_run }, sender, i };
		if (spokei_mailbox_put(&mailbox, &letters[sender][i].post))
			atomic_fetch_add(&wakes, 1);
	}
	return NULL;
}

TEST(posts_of_threads_arrive_once_in_order_of_each_thread)
{
	pthread_t threads[SENDERS];
	int numbers[SENDERS];
	size_t ran = 0;
	int batches = 0;

	for (int i = 0; i < SENDERS; i++) {
		numbers[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, send_letters, &numbers[i]), 0);
	}
	while (ran < (size_t)SENDERS * LETTERS) {
		size_t some = spokei_mailbox_run_all(&mailbox, NULL, 0);

		ran += some;
		batches += some > 0;
	}
	for (int i = 0; i < SENDERS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(received[i], LETTERS);
	}
	/* Only the first post into an empty mailbox reports a wake-up: one per batch. */
	assert_int_equal(atomic_load(&wakes), batches);
	assert_int_equal(spokei_mailbox_run_all(&mailbox, NULL, 0), 0);
}

/*
 * --- work for other threads whose completion runs on the loop of an engine; threads that wait
 */

struct errand {
	struct spoke_work work;
	struct spoke_engine *engine;
	pthread_t engine_thread;
	pthread_t ran_on;
	int ran;
	int done;
	int status;
};

static void run_errand(struct spoke_work *work)
{
	struct errand *errand = spoke_container_of(work, struct errand, work);

	errand->ran_on = pthread_self();
	errand->ran++;
}

static void errand_done(struct spoke_work *work)
{
	struct errand *errand = spoke_container_of(work, struct errand, work);

	assert_true(pthread_equal(pthread_self(), errand->engine_thread));
	errand->done++;
	errand->status = work->status;
	spoke_engine_stop(errand->engine);
}

TEST(work_runs_elsewhere_and_comes_back)
{
	const struct spoke_loop *loop = spoke_host_env()->loop;
	struct errand errand = {
		.work = { .run = run_errand, .done = errand_done },
		.engine = make_engine(),
		.engine_thread = pthread_self(),
	};

	for (int i = 1; i <= 10; i++) {
		assert_int_equal(loop->offload(errand.engine->loop, &errand.work), 0);
		assert_int_equal(spoke_engine_run(errand.engine), SPOKE_OK);
		assert_int_equal(errand.ran, i);
		assert_int_equal(errand.done, i);
		assert_int_equal(errand.status, 0);
		assert_false(pthread_equal(errand.ran_on, errand.engine_thread));
	}
	spoke_engine_free(errand.engine);
}

TEST(work_that_is_left_comes_back_once_when_the_engine_is_freed)
{
	enum {
		ERRANDS = 200
	};
	static struct errand errands[ERRANDS];
	const struct spoke_loop *loop = spoke_host_env()->loop;
	struct spoke_engine *engine = make_engine();

	for (int i = 0; i < ERRANDS; i++) {
		errands[i] = (struct errand){
			.work = { .run = run_errand, .done = errand_done },
			.engine = engine,
			.engine_thread = pthread_self(),
		};
		assert_int_equal(loop->offload(engine->loop, &errands[i].work), 0);
	}
	spoke_engine_free(engine);
	for (int i = 0; i < ERRANDS; i++) {
		assert_int_equal(errands[i].done, 1);
		assert_int_equal(errands[i].ran, errands[i].status == 0);
	}
}

struct waiter {
	const struct spoke_env *env;
	void *parker;
	uintptr_t self;
};

static void unpark(void *arg)
{
	struct waiter *waiter = arg;

	waiter->self = waiter->env->threads->self(waiter->env->ctx);
	waiter->env->threads->unpark(waiter->parker);
}

TEST(a_thread_waits_until_another_calls_it_or_its_time_is_over)
{
	const struct spoke_env *env = spoke_host_env();
	const struct spoke_threads *threads = env->threads;
	struct waiter waiter = { .env = env };
	uint64_t until_ns = env->now(env->ctx) + 3 * MS;
	void *thread;

	assert_int_equal(threads->open(env->ctx, &waiter.parker), 0);
	assert_int_equal(threads->park(waiter.parker, until_ns), -ETIMEDOUT);
	assert_true(env->now(env->ctx) >= until_ns);
	assert_int_equal(threads->start(env->ctx, unpark, &waiter, &thread), 0);
	assert_int_equal(threads->park(waiter.parker, UINT64_MAX), 0);
	threads->join(thread);
	assert_true(waiter.self != 0);
	assert_true(waiter.self != threads->self(env->ctx));
	threads->close(waiter.parker);
}
