/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread pool, with real threads. Threads record results, and the test asserts
 * them.
 */
#define _GNU_SOURCE
#include "tests/core/host/poolrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	CROWD = 4,
	CROWD_JOBS = 500,
	QUEUE = 8,
};

TEST(work_runs_once_on_another_thread_which_hears_no_signals)
{
	struct rig *rig = new_rig(2, 0);

	assert_int_equal(submit(rig, 0), 0);
	wait_done(rig, 1);
	assert_int_equal(rig->jobs[0].ran, 1);
	assert_int_equal(rig->jobs[0].done, 1);
	assert_int_equal(rig->jobs[0].status, 0);
	assert_false(rig->jobs[0].own_thread);
	assert_false(rig->jobs[0].hears_signals);
	free_rig(rig);
}

TEST(thread_is_started_for_work_if_none_is_free)
{
	struct rig *rig = new_rig(2, 0);

	assert_int_equal(rig->pool.started, 0);
	for (int i = 0; i < 3; i++) {
		rig->jobs[i].then = hold;
		assert_int_equal(submit(rig, i), 0);
		if (i < 2)
			wait_begun(rig);
		assert_int_equal(rig->pool.started, i < 2 ? i + 1 : 2);
	}
	for (unsigned i = 1; i <= 3; i++) {
		spokei_unpark(&rig->release);
		wait_done(rig, i);
	}
	free_rig(rig);
}

TEST(a_full_queue_refuses_and_takes_again_when_there_is_room)
{
	struct rig *rig = new_rig(1, 2);

	rig->jobs[0].then = hold;
	assert_int_equal(submit(rig, 0), 0);
	wait_begun(rig);
	assert_int_equal(submit(rig, 1), 0);
	assert_int_equal(submit(rig, 2), 0);
	assert_int_equal(submit(rig, 3), -EAGAIN);
	spokei_unpark(&rig->release);
	wait_done(rig, 3);
	assert_int_equal(rig->jobs[3].ran, 0);
	assert_int_equal(submit(rig, 3), 0);
	wait_done(rig, 4);
	assert_int_equal(rig->jobs[3].ran, 1);
	free_rig(rig);
}

TEST(one_thread_keeps_the_order)
{
	struct rig *rig = new_rig(1, JOBS);

	for (int i = 0; i < JOBS; i++)
		assert_int_equal(submit(rig, i), 0);
	wait_done(rig, JOBS);
	for (int i = 0; i < JOBS; i++)
		assert_ptr_equal(rig->log[i], &rig->jobs[i]);
	free_rig(rig);
}

TEST(stop_waits_for_running_work_and_cancels_the_rest_once)
{
	struct rig *rig = new_rig(1, JOBS);

	rig->jobs[0].then = hold_until_stop;
	assert_int_equal(submit(rig, 0), 0);
	wait_begun(rig);
	for (int i = 1; i < JOBS; i++)
		assert_int_equal(submit(rig, i), 0);
	spokei_pool_stop(&rig->pool);
	for (int i = 0; i < JOBS; i++) {
		assert_int_equal(rig->jobs[i].done, 1);
		assert_int_equal(rig->jobs[i].ran, i == 0);
		assert_int_equal(rig->jobs[i].status, i == 0 ? 0 : -ECANCELED);
		assert_ptr_equal(rig->log[i], &rig->jobs[i]);
	}
	assert_int_equal(submit(rig, 1), -ECANCELED);
	spokei_pool_stop(&rig->pool);
	assert_int_equal(atomic_load(&rig->done), JOBS);
	free_rig(rig);
}

TEST(stop_leaves_running_work_with_a_release_behind)
{
	struct rig *rig = new_rig(2, JOBS);

	for (int i = 0; i < 3; i++) {
		rig->jobs[i].then = hold;
		rig->jobs[i].work.release = job_release;
	}
	/* One that has ended, one that runs, and two that wait. */
	assert_int_equal(submit(rig, 0), 0);
	wait_begun(rig);
	spokei_unpark(&rig->release);
	wait_done(rig, 1);
	assert_int_equal(submit(rig, 1), 0);
	wait_begun(rig);
	rig->jobs[3].then = hold_until_stop;
	assert_int_equal(submit(rig, 3), 0);
	wait_begun(rig);
	assert_int_equal(submit(rig, 2), 0);
	assert_int_equal(submit(rig, 4), 0);
	spokei_pool_stop(&rig->pool);
	assert_int_equal(rig->jobs[1].status, -EINPROGRESS);
	assert_int_equal(rig->jobs[1].done, 1);
	assert_int_equal(rig->jobs[2].status, -ECANCELED);
	assert_int_equal(rig->jobs[3].status, 0);
	assert_int_equal(rig->jobs[4].status, -ECANCELED);
	spokei_pool_fini(&rig->pool);
	memset(&rig->pool, 0xa5, sizeof(rig->pool)); /* the thread left behind must not touch it */
	while (spokei_park(&rig->finished, 0) == 0)
		;
	spokei_unpark(&rig->release);
	assert_int_equal(spokei_park(&rig->finished, UINT64_MAX), 0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(rig->jobs[i].released, i == 1);
		assert_int_equal(rig->jobs[i].done, 1);
	}
	free(rig);
}

TEST(limits_of_a_pool_can_be_raised)
{
	struct rig *rig = new_rig(1, 1);
	struct spoke_pool pool;

	spokei_pool_limit(&rig->pool, 3, 2);
	for (int i = 0; i < 3; i++) {
		rig->jobs[i].then = hold;
		assert_int_equal(submit(rig, i), 0);
		wait_begun(rig);
	}
	assert_int_equal(submit(rig, 3), 0);
	assert_int_equal(submit(rig, 4), 0);
	assert_int_equal(submit(rig, 5), -EAGAIN);
	spokei_pool_look(&rig->pool, &pool);
	assert_int_equal(pool.threads_max, 3);
	assert_int_equal(pool.queue_max, 2);
	assert_int_equal(pool.threads, 3);
	assert_int_equal(pool.running, 3);
	assert_int_equal(pool.queued, 2);
	while (atomic_load(&rig->done) < 5) {
		spokei_unpark(&rig->release);
		(void)sched_yield();
	}
	free_rig(rig);
}

static void release_all(struct rig *rig, unsigned first, unsigned threads)
{
	for (unsigned i = 1; i <= threads; i++) {
		spokei_unpark(&rig->release);
		wait_done(rig, first + i);
	}
}

TEST(urgent_work_runs_though_others_block_and_fill_the_queue)
{
	struct rig *rig = new_rig(2, 1);

	keep_busy(rig, 2);
	assert_int_equal(submit(rig, 2), 0);
	assert_int_equal(submit(rig, 3), -EAGAIN);
	for (int i = 4; i < 7; i++) {
		rig->jobs[i].work.urgent = true;
		assert_int_equal(submit(rig, i), 0);
		wait_done(rig, (unsigned)i - 3);
		assert_int_equal(rig->jobs[i].ran, 1);
	}
	assert_int_equal(rig->jobs[2].ran, 0); /* the extra thread is for urgent work only */
	assert_int_equal(rig->pool.started, 3);
	release_all(rig, 3, 2);
	wait_done(rig, 6);
	assert_int_equal(rig->jobs[2].ran, 1);
	free_rig(rig);
}

TEST(urgent_work_goes_first_and_has_its_own_limit)
{
	struct rig *rig = new_rig(1, 2);

	for (int i = 3; i < 7; i++)
		rig->jobs[i].work.urgent = true;
	rig->jobs[3].then = hold;
	assert_int_equal(submit(rig, 3), 0); /* runs on the extra thread */
	wait_begun(rig);
	keep_busy(rig, 1);
	assert_int_equal(submit(rig, 1), 0);
	assert_int_equal(submit(rig, 4), 0);
	assert_int_equal(submit(rig, 5), 0);
	assert_int_equal(submit(rig, 6), -EAGAIN);
	assert_int_equal(rig->pool.started, 2);
	spokei_unpark(&rig->release);
	wait_done(rig, 3); /* one of the held jobs, and jobs 4 and 5 */
	assert_true(rig->log[1] == &rig->jobs[4] && rig->log[2] == &rig->jobs[5]);
	spokei_unpark(&rig->release);
	wait_done(rig, 5);
	assert_int_equal(rig->jobs[1].ran, 1);
	free_rig(rig);
}

TEST(a_pool_that_never_worked_stops_without_threads)
{
	struct rig *rig = new_rig(0, 0);

	spokei_pool_stop(&rig->pool);
	assert_int_equal(rig->pool.started, 0);
	assert_int_equal(atomic_load(&rig->done), 0);
	free_rig(rig);
}

struct submitter {
	struct rig *rig;
	pthread_t thread;
	struct job jobs[CROWD_JOBS];
	unsigned refused;
};

static void *submit_all(void *arg)
{
	struct submitter *me = arg;

	for (int i = 0; i < CROWD_JOBS; i++) {
		me->jobs[i] = (struct job){ .work = { .run = job_run }, .rig = me->rig };
		while (spokei_pool_submit(&me->rig->pool, &me->jobs[i].work) == -EAGAIN) {
			me->refused++;
			(void)sched_yield();
		}
	}
	return NULL;
}

TEST(many_threads_submit_and_each_work_runs_once)
{
	struct rig *rig = new_rig(3, QUEUE);
	struct submitter *quota = calloc(CROWD, sizeof(*quota));

	assert_non_null(quota);
	for (int i = 0; i < CROWD; i++) {
		quota[i].rig = rig;
		assert_int_equal(pthread_create(&quota[i].thread, NULL, submit_all, &quota[i]), 0);
	}
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(pthread_join(quota[i].thread, NULL), 0);
	wait_done(rig, CROWD * CROWD_JOBS);
	spokei_pool_stop(&rig->pool);
	for (int i = 0; i < CROWD * CROWD_JOBS; i++) {
		const struct job *job = &quota[i / CROWD_JOBS].jobs[i % CROWD_JOBS];

		assert_int_equal(job->ran, 1);
		assert_int_equal(job->done, 1);
	}
	free(quota);
	free_rig(rig);
}
