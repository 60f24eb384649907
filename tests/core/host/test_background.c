/* SPDX-License-Identifier: Apache-2.0 */
/* Background works of the thread pool. */
#define _GNU_SOURCE
#include "tests/core/host/poolrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>

static void note_priority(struct job *job)
{
	job->priority = getpriority(PRIO_PROCESS, 0); /* of the thread */
}

TEST(background_work_runs_in_order_and_behind_though_others_block)
{
	struct rig *rig = new_rig(1, 4);
	int own = getpriority(PRIO_PROCESS, 0);
	struct spoke_pool pool;

	keep_busy(rig, 1);
	for (int i = 1; i <= 4; i++)
		assert_int_equal(submit(rig, i), 0);
	assert_int_equal(submit(rig, 5), -EAGAIN);
	for (int i = 8; i < 12; i++) {
		rig->jobs[i].work.background = true;
		rig->jobs[i].then = note_priority;
		assert_int_equal(submit(rig, i), 0);
	}
	wait_done(rig, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_ptr_equal(rig->log[i], &rig->jobs[8 + i]);
		assert_int_equal(rig->jobs[8 + i].priority, own + 10 < 19 ? own + 10 : 19);
	}
	spokei_pool_look(&rig->pool, &pool);
	assert_int_equal(pool.threads, 1);
	assert_int_equal(pool.running, 1);
	assert_int_equal(pool.queued, 4);
	rig->jobs[8].then = hold;
	assert_int_equal(submit(rig, 8), 0);
	wait_begun(rig);
	for (int i = 9; i < 13; i++) {
		rig->jobs[i].work.background = true;
		assert_int_equal(submit(rig, i), 0);
	}
	rig->jobs[13].work.background = true;
	assert_int_equal(submit(rig, 13), 0); /* more than the queue of others holds */
	while (atomic_load(&rig->done) < 15) {
		spokei_unpark(&rig->release);
		(void)sched_yield();
	}
	free_rig(rig);
}

TEST(stop_cancels_background_work_that_waits)
{
	struct rig *rig = new_rig(1, 4);

	for (int i = 0; i < 2; i++)
		rig->jobs[i].work.background = true;
	rig->jobs[0].then = hold_until_stop;
	assert_int_equal(submit(rig, 0), 0);
	wait_begun(rig);
	assert_int_equal(submit(rig, 1), 0);
	spokei_pool_stop(&rig->pool);
	assert_int_equal(rig->jobs[0].status, 0);
	assert_int_equal(rig->jobs[1].status, -ECANCELED);
	assert_int_equal(rig->jobs[1].ran, 0);
	free_rig(rig);
}
