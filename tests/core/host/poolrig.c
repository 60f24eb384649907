/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/core/host/poolrig.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>

static struct job *job_of(struct spoke_work *work)
{
	return spoke_container_of(work, struct job, work);
}

void job_run(struct spoke_work *work)
{
	struct job *job = job_of(work);
	sigset_t blocked;

	job->ran++;
	job->own_thread = pthread_equal(pthread_self(), job->rig->tester) != 0;
	(void)pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	job->hears_signals = !sigismember(&blocked, SIGTERM) || !sigismember(&blocked, SIGINT);
	if (job->then)
		job->then(job);
}

static void job_done(void *arg, struct spoke_work *work)
{
	struct rig *rig = arg;
	struct job *job = job_of(work);
	unsigned at = atomic_fetch_add(&rig->logged, 1);

	job->done++;
	job->status = work->status;
	if (at < LOG_SIZE)
		rig->log[at] = job;
	atomic_fetch_add(&rig->done, 1);
	spokei_unpark(&rig->finished);
}

void job_release(struct spoke_work *work)
{
	struct job *job = job_of(work);

	job->released++;
	spokei_unpark(&job->rig->finished);
}

/* Blocks the job until the test releases it. */
void hold(struct job *job)
{
	spokei_unpark(&job->rig->begun);
	(void)spokei_park(&job->rig->release, UINT64_MAX);
}

/* Blocks the job until the pool is being stopped. */
void hold_until_stop(struct job *job)
{
	struct spokei_pool *pool = &job->rig->pool;
	bool stopping = false;

	spokei_unpark(&job->rig->begun);
	while (!stopping) {
		(void)pthread_mutex_lock(&pool->lock);
		stopping = pool->stopping;
		(void)pthread_mutex_unlock(&pool->lock);
		(void)sched_yield();
	}
}

void wait_begun(struct rig *rig)
{
	assert_int_equal(spokei_park(&rig->begun, UINT64_MAX), 0);
}

void wait_done(struct rig *rig, unsigned count)
{
	while (atomic_load(&rig->done) < count)
		assert_int_equal(spokei_park(&rig->finished, UINT64_MAX), 0);
}

struct rig *new_rig(unsigned threads, unsigned queue)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	rig->tester = pthread_self();
	assert_int_equal(spokei_pool_init(&rig->pool, threads, queue, job_done, rig), 0);
	spokei_parker_init(&rig->begun);
	spokei_parker_init(&rig->release);
	spokei_parker_init(&rig->finished);
	for (int i = 0; i < JOBS; i++)
		rig->jobs[i] = (struct job){ .work = { .run = job_run }, .rig = rig };
	return rig;
}

void free_rig(struct rig *rig)
{
	spokei_pool_stop(&rig->pool);
	spokei_pool_fini(&rig->pool);
	free(rig);
}

int submit(struct rig *rig, int job)
{
	return spokei_pool_submit(&rig->pool, &rig->jobs[job].work);
}

void keep_busy(struct rig *rig, int threads)
{
	for (int i = 0; i < threads; i++) {
		rig->jobs[i].then = hold;
		assert_int_equal(submit(rig, i), 0);
		wait_begun(rig);
	}
}
