/* SPDX-License-Identifier: Apache-2.0 */
/* Fixture of tests of the thread pool, with jobs that can wait. */
#ifndef TESTS_CORE_HOST_POOLRIG_H
#define TESTS_CORE_HOST_POOLRIG_H

#include "core/host/threads.h"
#include "tests/support/test.h"

#include <stdatomic.h>

enum {
	JOBS = 16,
	LOG_SIZE = 64,
};

struct rig;

struct job {
	struct spoke_work work;
	struct rig *rig;
	unsigned ran;
	unsigned done;
	int status;
	bool own_thread; /* ran on the submitting thread */
	bool hears_signals;
	unsigned released;
	int priority;                  /* of its thread */
	void (*then)(struct job *job); /* called by its run function, or NULL */
};

struct rig {
	struct spokei_pool pool;
	struct spokei_parker begun;   /* unparked when a holding job begins */
	struct spokei_parker release; /* lets a holding job end */
	struct spokei_parker finished;
	pthread_t tester;
	atomic_uint done;
	atomic_uint logged;
	struct job *log[LOG_SIZE]; /* in order of completion */
	struct job jobs[JOBS];
};

void job_run(struct spoke_work *work);

/* Functions of a job: one blocks it until the test unparks `release`, one until the pool is being
 * stopped; job_release() counts. */
void hold(struct job *job);
void hold_until_stop(struct job *job);
void job_release(struct spoke_work *work);

void wait_begun(struct rig *rig);
void wait_done(struct rig *rig, unsigned count);

struct rig *new_rig(unsigned threads, unsigned queue);
void free_rig(struct rig *rig);
int submit(struct rig *rig, int job);

/* Occupies all threads that work without urgency may use. */
void keep_busy(struct rig *rig, int threads);

#endif
