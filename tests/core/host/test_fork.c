/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine and a forked child: the child can only free the engine, and the parent's engine is not
 * affected. The exit status of a child is 0, or the line of the failed expectation.
 */
#include "core/engine/engine.h"
#include "core/engine/members.h"
#include "core/virtual/faults.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <errno.h>
#include <ev.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ends a child whose expectation fails. */
#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			_exit(__LINE__ < 256 ? __LINE__ : __LINE__ - 200);                         \
	} while (0)

struct rig;

/* Reads a byte that its peer has sent. */
struct reader {
	struct spoke_watch watch;
	struct rig *rig;
	int peer;
	unsigned bytes;
};

struct rig {
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	struct spokei_member member;
	struct reader readers[2];
	struct spoke_alarm alarm;
	struct spoke_post post;
	struct spokei_task task; /* in the engine's queues during the fork */
	unsigned ran;
	unsigned posts;
	unsigned alarms;
	unsigned reads;
	int closed; /* calls of close, made in a child too */
	bool closed_in_child;
	void (*in_callback)(struct rig *rig); /* called once, in the first callback */
	pid_t child;
};

static void count_task(struct spokei_task *task)
{
	spoke_container_of(task, struct rig, task)->ran++;
}

static void count_post(struct spoke_post *post)
{
	spoke_container_of(post, struct rig, post)->posts++;
}

static void count_alarm(struct spoke_alarm *alarm)
{
	struct rig *rig = spoke_container_of(alarm, struct rig, alarm);

	rig->alarms++;
	spoke_engine_stop(rig->engine);
}

static void read_byte(struct spoke_watch *watch, unsigned io)
{
	struct reader *reader = spoke_container_of(watch, struct reader, watch);
	struct rig *rig = reader->rig;
	void (*in_callback)(struct rig * rig) = rig->in_callback;
	char byte;

	(void)io;
	if (read(watch->fd, &byte, 1) == 1)
		reader->bytes++;
	rig->reads++;
	rig->in_callback = NULL;
	if (in_callback)
		in_callback(rig);
}

static void member_closed(struct spokei_member *member)
{
	struct rig *rig = spoke_container_of(member, struct rig, member);
	const struct spoke_env *env = rig->engine->env;

	rig->closed++;
	rig->closed_in_child = spokei_engine_forked(rig->engine);
	for (int i = 0; i < 2; i++) {
		env->loop->watch(rig->engine->loop, &rig->readers[i].watch, 0);
		(void)close(rig->readers[i].watch.fd);
	}
	spokei_member_drop(member);
	spokei_run_settling(rig->engine, &rig->task);
}

static void set_up(struct rig *rig, void *native)
{
	struct spoke_engine_options options = { .env = &rig->faulty.env, .native = native };
	const struct spoke_loop *loop;

	*rig = (struct rig){ .member = { .kind = "test", .close = member_closed },
			     .task.run = count_task,
			     .post.run = count_post };
	spokei_faults_init(&rig->faulty, spoke_host_env());
	loop = rig->faulty.env.loop;
	assert_int_equal(spoke_engine_new(&options, &rig->engine), SPOKE_OK);
	spokei_member_add(rig->engine, &rig->member);
	for (int i = 0; i < 2; i++) {
		struct reader *reader = &rig->readers[i];
		int fd[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
		*reader = (struct reader){ .watch = { .ready = read_byte, .fd = fd[0] },
					   .rig = rig,
					   .peer = fd[1] };
		loop->watch(rig->engine->loop, &reader->watch, SPOKE_IO_READ);
	}
}

static void tear_down(struct rig *rig)
{
	spoke_engine_free(rig->engine);
	assert_int_equal(rig->closed, 1);
	assert_false(rig->closed_in_child);
	assert_int_equal(rig->faulty.blocks, 0);
	for (int i = 0; i < 2; i++)
		(void)close(rig->readers[i].peer);
}

static uint64_t now_ns(struct rig *rig)
{
	return rig->faulty.env.now(rig->faulty.env.ctx);
}

static void send_bytes(struct rig *rig)
{
	for (int i = 0; i < 2; i++)
		assert_int_equal(write(rig->readers[i].peer, "x", 1), 1);
}

static void assert_child_was_content(pid_t child)
{
	int status = -1;

	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("the child ended with %#x: line %d, or 200 more", (unsigned)status,
			 WEXITSTATUS(status));
}

/* Asserts that the parent's engine still works after its child has ended. */
static void assert_parent_is_well(struct rig *rig)
{
	uint64_t due_ns;
	unsigned reads = rig->readers[0].bytes + rig->readers[1].bytes;
	unsigned posts = rig->posts;

	/* The child has not woken the engine and has not changed its timer. */
	rig->alarms = 0;
	assert_int_equal(spoke_alarm_after(rig->engine, &rig->alarm, 30 * MS, count_alarm),
			 SPOKE_OK);
	due_ns = spoke_wheel_next(rig->engine->wheel);
	assert_int_equal(spoke_engine_turn(rig->engine, true), SPOKE_OK);
	assert_true(now_ns(rig) >= due_ns);
	while (rig->alarms == 0)
		assert_int_equal(spoke_engine_turn(rig->engine, true), SPOKE_OK);
	/* The engine still reads bytes and receives posts. */
	send_bytes(rig);
	assert_int_equal(spoke_engine_turn(rig->engine, true), SPOKE_OK);
	assert_int_equal(rig->readers[0].bytes + rig->readers[1].bytes, reads + 2);
	spoke_engine_post(rig->engine, &rig->post);
	assert_int_equal(spoke_engine_turn(rig->engine, true), SPOKE_OK);
	assert_int_equal(rig->posts, posts + 1);
}

/* Expects, in the child and after the inherited engine is freed, that a new engine works. */
static void expect_new_engines_work(struct rig *rig)
{
	struct spoke_engine_options options = { .env = &rig->faulty.env };

	rig->alarm = (struct spoke_alarm){ 0 };
	rig->alarms = 0;
	EXPECT(spoke_engine_new(&options, &rig->engine) == SPOKE_OK);
	EXPECT(!spokei_engine_forked(rig->engine));
	EXPECT(spoke_alarm_after(rig->engine, &rig->alarm, MS, count_alarm) == SPOKE_OK);
	EXPECT(spoke_engine_run(rig->engine) == SPOKE_OK);
	EXPECT(rig->alarms == 1);
	spoke_engine_free(rig->engine);
	EXPECT(rig->faulty.blocks == 0);
}

static void expect_refusals(struct rig *rig)
{
	struct spoke_post post = { .run = count_post };

	EXPECT(spokei_engine_forked(rig->engine));
	EXPECT(spoke_engine_run(rig->engine) == SPOKE_EFORKED);
	EXPECT(spoke_engine_turn(rig->engine, true) == SPOKE_EFORKED);
	EXPECT(spoke_engine_start(rig->engine) == SPOKE_EFORKED);
	EXPECT(spoke_engine_join(rig->engine) == SPOKE_EFORKED);
	EXPECT(spoke_engine_drain(rig->engine, MS) == SPOKE_EFORKED);
	EXPECT(spoke_alarm_after(rig->engine, &(struct spoke_alarm){ 0 }, MS, NULL) ==
	       SPOKE_EFORKED);
	spoke_engine_post(rig->engine, &post);
	spoke_engine_stop(rig->engine);
}

static void expect_it_goes(struct rig *rig)
{
	spoke_engine_free(rig->engine);
	EXPECT(rig->closed == 1);
	EXPECT(rig->closed_in_child);
	EXPECT(rig->ran == 1);
	EXPECT(rig->posts == 0);
	EXPECT(rig->faulty.blocks == 0);
}

TEST(a_child_is_refused_and_frees_without_disturbing_its_parent)
{
	struct rig rig;
	pid_t child;

	set_up(&rig, NULL);
	assert_int_equal(spoke_alarm_after(rig.engine, &rig.alarm, 20 * MS, count_alarm), SPOKE_OK);
	assert_int_equal(spoke_engine_turn(rig.engine, false), SPOKE_OK);
	send_bytes(&rig);
	child = fork();
	if (child == 0) {
		expect_refusals(&rig);
		expect_it_goes(&rig);
		EXPECT(rig.reads == 0);
		expect_new_engines_work(&rig);
		_exit(0);
	}
	assert_child_was_content(child);
	/* The timer armed before the fork and the bytes sent before it. */
	assert_int_equal(spoke_engine_run(rig.engine), SPOKE_OK);
	assert_int_equal(rig.alarms, 1);
	assert_int_equal(rig.readers[0].bytes, 1);
	assert_int_equal(rig.readers[1].bytes, 1);
	assert_parent_is_well(&rig);
	tear_down(&rig);
}

static void fork_here(struct rig *rig)
{
	rig->child = fork();
}

static void fork_and_free_there(struct rig *rig)
{
	rig->child = fork();
	if (rig->child == 0)
		spoke_engine_free(rig->engine);
}

static void fork_in_a_callback(void (*in_callback)(struct rig *rig))
{
	struct rig rig;
	int error;

	set_up(&rig, NULL);
	rig.in_callback = in_callback;
	send_bytes(&rig);
	assert_int_equal(spoke_alarm_after(rig.engine, &rig.alarm, 20 * MS, count_alarm), SPOKE_OK);
	error = spoke_engine_run(rig.engine);
	if (rig.child == 0) {
		EXPECT(error == SPOKE_EFORKED);
		EXPECT(rig.reads == 1); /* the other reader's byte belongs to the parent */
		EXPECT(rig.alarms == 0);
		if (in_callback == fork_here)
			spoke_engine_free(rig.engine);
		EXPECT(rig.closed == 1);
		EXPECT(rig.faulty.blocks == 0);
		expect_new_engines_work(&rig);
		_exit(0);
	}
	assert_int_equal(error, SPOKE_OK);
	assert_child_was_content(rig.child);
	assert_int_equal(rig.reads, 2);
	assert_int_equal(rig.alarms, 1);
	assert_parent_is_well(&rig);
	tear_down(&rig);
}

TEST(a_run_ends_in_a_child_that_was_forked_by_a_callback)
{
	fork_in_a_callback(fork_here);
}

TEST(a_callback_may_fork_and_free_the_engine_in_the_child)
{
	fork_in_a_callback(fork_and_free_there);
}

TEST(a_users_loop_in_the_child_goes_on_without_the_engine)
{
	struct rig rig;
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO);
	uint64_t begun_ns;
	pid_t child;

	set_up(&rig, ev);
	send_bytes(&rig);
	(void)ev_run(ev, EVRUN_NOWAIT);
	assert_int_equal(rig.reads, 2);
	do { /* until an alarm is pending while the loop would wait */
		assert_int_equal(spoke_alarm_after(rig.engine, &rig.alarm, 3 * MS, count_alarm),
				 SPOKE_OK);
		(void)ev_run(ev, EVRUN_NOWAIT);
	} while (!spoke_timer_armed(&rig.alarm.timer));
	rig.alarms = 0;
	begun_ns = now_ns(&rig);
	send_bytes(&rig);
	child = fork();
	if (child == 0) {
		ev_loop_fork(ev);
		while (now_ns(&rig) - begun_ns < 9 * MS)
			(void)ev_run(ev, EVRUN_NOWAIT);
		EXPECT(rig.reads == 2);
		EXPECT(rig.alarms == 0);
		spoke_engine_free(rig.engine);
		EXPECT(rig.closed_in_child);
		EXPECT(rig.faulty.blocks == 0);
		(void)ev_run(ev, EVRUN_NOWAIT);
		_exit(0);
	}
	assert_child_was_content(child);
	/* The bytes and the expiry of the timer still belong to the parent. */
	(void)ev_run(ev, 0); /* ended by count_alarm() */
	assert_int_equal(rig.reads, 4);
	assert_int_equal(rig.alarms, 1);
	assert_parent_is_well(&rig);
	tear_down(&rig);
	ev_loop_destroy(ev);
}

/* Work in progress on a thread of the pool during the fork. */
struct errand {
	struct spoke_work work;
	struct spoke_engine *engine;
	atomic_bool begun;
	atomic_bool may_end;
	int done;
	int status;
};

static void run_errand(struct spoke_work *work)
{
	struct errand *errand = spoke_container_of(work, struct errand, work);

	atomic_store(&errand->begun, true);
	while (!atomic_load(&errand->may_end))
		continue;
}

static void errand_done(struct spoke_work *work)
{
	struct errand *errand = spoke_container_of(work, struct errand, work);

	errand->done++;
	errand->status = work->status;
	spoke_engine_stop(errand->engine);
}

TEST(work_that_runs_as_a_process_forks_comes_back_on_both_sides)
{
	struct rig rig;
	struct errand errand = { .work = { .run = run_errand, .done = errand_done } };
	pid_t child;

	set_up(&rig, NULL);
	errand.engine = rig.engine;
	assert_int_equal(rig.engine->env->loop->offload(rig.engine->loop, &errand.work), 0);
	while (!atomic_load(&errand.begun))
		continue;
	child = fork();
	if (child == 0) {
		EXPECT(rig.engine->env->loop->offload(rig.engine->loop, &errand.work) != 0);
		expect_it_goes(&rig);
		EXPECT(errand.done == 1);
		EXPECT(errand.status == -ECANCELED);
		_exit(0);
	}
	assert_child_was_content(child);
	assert_parent_is_well(&rig);
	atomic_store(&errand.may_end, true);
	assert_int_equal(spoke_engine_run(rig.engine), SPOKE_OK);
	assert_int_equal(errand.done, 1);
	assert_int_equal(errand.status, 0);
	tear_down(&rig);
}

TEST(child_ignores_engine_that_ran_on_another_thread)
{
	struct rig rig;
	void *parker = NULL;
	pid_t child;

	set_up(&rig, NULL);
	assert_int_equal(rig.faulty.env.threads->open(rig.faulty.env.ctx, &parker), 0);
	assert_int_equal(spoke_engine_start(rig.engine), SPOKE_OK);
	child = fork();
	if (child == 0) {
		expect_refusals(&rig);
		rig.faulty.env.threads->unpark(parker);
		rig.faulty.env.threads->close(parker);
		spoke_engine_free(rig.engine);
		EXPECT(rig.closed == 0);
		EXPECT(rig.faulty.blocks > 0);
		_exit(0);
	}
	assert_child_was_content(child);
	spoke_engine_stop(rig.engine);
	assert_int_equal(spoke_engine_join(rig.engine), SPOKE_OK);
	/* Consume the wake-up that the stop left behind. */
	assert_int_equal(spoke_engine_turn(rig.engine, false), SPOKE_OK);
	rig.faulty.env.threads->close(parker);
	assert_parent_is_well(&rig);
	tear_down(&rig);
}
