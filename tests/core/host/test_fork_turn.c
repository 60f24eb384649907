/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A callback forks in the middle of a turn: the rest of each phase belongs to the parent. The exit
 * status of a child is 0, or the line of the failed expectation.
 */
#include "core/engine/engine.h"
#include "core/virtual/faults.h"
#include "tests/support/test.h"

#include <spoke/engine.h>
#include <spoke/host.h>

#include <errno.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ends a child whose expectation fails. */
#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			_exit(__LINE__);                                                           \
	} while (0)

/* A callback of each kind. */
struct callback {
	struct spokei_early early;
	struct spoke_post post;
	struct spoke_alarm alarm;
	struct spokei_task task;
};

static struct {
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	struct callback forker;
	struct callback counter; /* called right after that one */
	unsigned counted;
	pid_t child;
} rig;

static void fork_here(void)
{
	rig.child = fork();
	spoke_engine_stop(rig.engine);
}

static void fork_in_early(struct spokei_early *early)
{
	spokei_run_first_end(early);
	fork_here();
}

static void fork_in_post(struct spoke_post *post)
{
	(void)post;
	fork_here();
}

static void fork_in_alarm(struct spoke_alarm *alarm)
{
	(void)alarm;
	fork_here();
}

static void fork_in_task(struct spokei_task *task)
{
	(void)task;
	fork_here();
}

static void count_early(struct spokei_early *early)
{
	spokei_run_first_end(early);
	rig.counted++;
}

static void count_post(struct spoke_post *post)
{
	(void)post;
	rig.counted++;
}

static void count_alarm(struct spoke_alarm *alarm)
{
	(void)alarm;
	rig.counted++;
}

static void count_task(struct spokei_task *task)
{
	(void)task;
	rig.counted++;
}

static void wake(struct spoke_post *post)
{
	(void)post;
}

/* It is due when a turn begins, and does not begin one. */
static void put_early(void)
{
	spokei_run_first(rig.engine, &rig.forker.early);
	spokei_run_first(rig.engine, &rig.counter.early);
	rig.forker.post.run = wake;
	spoke_engine_post(rig.engine, &rig.forker.post);
}

static void put_alarms(void)
{
	assert_int_equal(spoke_alarm_after(rig.engine, &rig.forker.alarm, 0, fork_in_alarm), 0);
	assert_int_equal(spoke_alarm_after(rig.engine, &rig.counter.alarm, 0, count_alarm), 0);
}

static void put_posts(void)
{
	spoke_engine_post(rig.engine, &rig.forker.post);
	spoke_engine_post(rig.engine, &rig.counter.post);
}

static void put_soon(void)
{
	spokei_run_soon(rig.engine, &rig.forker.task);
	spokei_run_soon(rig.engine, &rig.counter.task);
}

static void put_last(void)
{
	spokei_run_settling(rig.engine, &rig.forker.task);
	spokei_run_settling(rig.engine, &rig.counter.task);
}

static void assert_parted(void (*put)(void))
{
	struct spoke_engine_options options = { .env = &rig.faulty.env };
	int status = -1;
	int error;

	rig.counted = 0;
	rig.forker = (struct callback){
		.early.begin = fork_in_early,
		.post.run = fork_in_post,
		.task.run = fork_in_task,
	};
	rig.counter = (struct callback){
		.early.begin = count_early,
		.post.run = count_post,
		.task.run = count_task,
	};
	spokei_faults_init(&rig.faulty, spoke_host_env());
	assert_int_equal(spoke_engine_new(&options, &rig.engine), 0);
	put();
	error = spoke_engine_run(rig.engine);
	if (rig.child == 0) {
		EXPECT(error == SPOKE_EFORKED);
		EXPECT(rig.counted == 0);
		spoke_engine_free(rig.engine);
		EXPECT(rig.faulty.blocks == 0);
		_exit(0);
	}
	assert_int_equal(error, SPOKE_OK);
	assert_int_equal(waitpid(rig.child, &status, 0), rig.child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(rig.counted, 1);
	spoke_engine_free(rig.engine);
	assert_int_equal(rig.faulty.blocks, 0);
}

TEST(rest_of_each_phase_is_not_run_in_a_child)
{
	assert_parted(put_early);
	assert_parted(put_alarms);
	assert_parted(put_posts);
	assert_parted(put_soon);
	assert_parted(put_last);
}

/* --- works that come back together */

struct errand {
	struct spoke_work work;
	atomic_bool begun;
	unsigned done;
	int status;
};

static void begin_errand(struct spoke_work *work)
{
	atomic_store(&spoke_container_of(work, struct errand, work)->begun, true);
}

static void errand_done(struct spoke_work *work)
{
	struct errand *errand = spoke_container_of(work, struct errand, work);

	errand->done++;
	errand->status = work->status;
}

static void fork_when_done(struct spoke_work *work)
{
	errand_done(work);
	fork_here();
}

/* One thread takes background works in their order, so two are over when the third begins. */
TEST(works_behind_a_fork_are_the_parents)
{
	struct errand errands[3] = { 0 };
	int status = -1;
	int error;

	spokei_faults_init(&rig.faulty, spoke_host_env());
	assert_int_equal(spoke_engine_new(&(struct spoke_engine_options){ .env = &rig.faulty.env },
					  &rig.engine),
			 0);
	for (unsigned i = 0; i < 3; i++) {
		errands[i].work = (struct spoke_work){
			.run = begin_errand,
			.done = i == 0 ? fork_when_done : errand_done,
			.background = true,
		};
		assert_int_equal(rig.engine->env->loop->offload(rig.engine->loop, &errands[i].work),
				 0);
	}
	while (!atomic_load(&errands[2].begun))
		continue;
	error = spoke_engine_run(rig.engine);
	if (rig.child == 0) {
		EXPECT(error == SPOKE_EFORKED);
		EXPECT(errands[1].done == 0);
		spoke_engine_free(rig.engine);
		EXPECT(errands[1].done == 1 && errands[1].status == -ECANCELED);
		EXPECT(errands[2].done == 1 && errands[2].status == -ECANCELED);
		_exit(0);
	}
	assert_int_equal(error, SPOKE_OK);
	assert_int_equal(waitpid(rig.child, &status, 0), rig.child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(errands[1].status, 0);
	spoke_engine_free(rig.engine);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(errands[i].done, 1);
	assert_int_equal(rig.faulty.blocks, 0);
}
