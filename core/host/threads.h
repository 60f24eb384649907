/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for one another, and the threads of a pool. */
#ifndef SPOKEI_CORE_HOST_THREADS_H
#define SPOKEI_CORE_HOST_THREADS_H

#include "timer/base.h"

#include <spoke/env.h>

#include <pthread.h>
#include <stdatomic.h>

/* --- parkers
 *
 * A parker: a place where one thread waits until another thread wakes it; embedded in its owner.
 * It costs one system call on each side, and none if there is nothing to wait for or to wake;
 * several threads are woken by one call. A forked child must not use the parkers of its parent. */

struct spokei_parker {
	_Atomic(uint32_t) state;
	uint32_t bit;              /* tells the threads of a room apart */
	_Atomic(uint32_t) *ticker; /* the room's counter, on which threads wait */
};

void spokei_parker_init(struct spokei_parker *parker);

/* Waits for an unpark, which may have come before, or until `deadline_ns` of CLOCK_MONOTONIC;
 * UINT64_MAX: without a deadline. Returns 0 or -ETIMEDOUT. After 0 the parker may be freed at once.
 */
int spokei_park(struct spokei_parker *parker, uint64_t deadline_ns);

/* Makes park() return, now or the next time; several calls before one park count as one. Any
 * thread. */
void spokei_unpark(struct spokei_parker *parker);

/* The same for several parkers. */
struct spokei_unparking {
	_Atomic(uint32_t) *ticker;
	uint32_t bits;
};

void spokei_unpark_one_of(struct spokei_unparking *several, struct spokei_parker *parker);
void spokei_unpark_end(struct spokei_unparking *several);

/* --- the pool
 *
 * A small thread pool for work that blocks, embedded in its owner. In a forked child it takes no
 * more work; stop and fini do nothing there.
 *
 * The pool runs a bounded queue in order of submission on up to threads_max threads, which it
 * starts when there is work and no thread is free. Urgent works have a queue of their own that
 * goes first, and one extra thread, so that other works can never keep all threads busy.
 * Background works have a queue and a thread for themselves, which has a lower priority. Signals
 * are left to the program's own threads. */

/* Starts a thread to which no signal is delivered. Returns 0 or a negative errno. Any thread. */
int spokei_thread_create(pthread_t *ret_id, void *(*run)(void *arg), void *arg);

/*
 * Takes back a work, once for each submission. Status 0: it has run, and this is a thread of the
 * pool. -ECANCELED: it never will, and this is the thread that stops the pool. -EINPROGRESS: the
 * same thread, while the work, which has a release(), still runs. No lock is held. It must not
 * submit.
 */
typedef void (*spokei_pool_done_fn)(void *arg, struct spoke_work *work);

struct spokei_pool_queue {
	struct spoke_work *first;
	struct spoke_work *last;
	unsigned count;
};

struct spokei_pool_thread;

/* All fields are private to the pool. */
struct spokei_pool {
	pthread_mutex_t lock; /* guards everything below it */
	pthread_cond_t more;  /* work has come, or the end */
	pthread_cond_t later; /* the same for the thread of background works */
	struct spokei_pool_queue urgent;
	struct spokei_pool_queue others;
	struct spokei_pool_queue background;
	struct spokei_pool_thread *behind; /* runs background works; NULL: there were none */
	unsigned others_run;               /* others that are running */
	unsigned idle;                     /* threads that wait for urgent works and others */
	unsigned started;
	bool stopping;
	unsigned threads_max;
	unsigned queue_max;
	struct spokei_pool_thread *threads[SPOKE_POOL_THREADS_MAX + 1];
	unsigned forks; /* from here on: never changes */
	spokei_pool_done_fn done;
	void *arg;
};

/* Prepares the pool. `threads_max` 0: SPOKE_POOL_THREADS, at most SPOKE_POOL_THREADS_MAX;
 * `queue_max`, for urgent works and for others, 0: SPOKE_POOL_QUEUE, which background works always
 * have. Returns 0 or a negative errno. */
int spokei_pool_init(struct spokei_pool *pool, unsigned threads_max, unsigned queue_max,
		     spokei_pool_done_fn done, void *arg);

/* Changes the limits, with the same rules. Works that are queued already stay. */
void spokei_pool_limit(struct spokei_pool *pool, unsigned threads_max, unsigned queue_max);

/* Reports limits and load. */
void spokei_pool_look(struct spokei_pool *pool, struct spoke_pool *ret);

/*
 * Queues the work, which belongs to the pool until it is done. Returns 0; -EAGAIN: the queue is
 * full, or no thread runs and none can be started; -ECANCELED: the pool was stopped. After an error
 * the work was not taken. Any thread.
 */
int spokei_pool_submit(struct spokei_pool *pool, struct spoke_work *work);

/*
 * Waits for running works without a release(), hands back as cancelled those that have not begun,
 * and ends the threads. A thread that runs a work with a release() is left alone: it calls that and
 * ends, without touching the pool.
 * A second stop does nothing. Not from a thread of the pool. In a forked child it hands back
 * nothing: the submitter knows its works.
 */
void spokei_pool_stop(struct spokei_pool *pool);

/* Frees the pool, after stop, when nothing is submitted any more. */
void spokei_pool_fini(struct spokei_pool *pool);

#endif
