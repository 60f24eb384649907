/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads: a small pool for work that blocks, embedded in its owner. In a forked child it takes no
 * more work and can be stopped and finished, which does nothing.
 *
 * The pool runs a bounded queue in order of submission on up to threads_max threads, which it
 * starts when there is work and nobody free. Urgent works have a queue of their own that goes
 * first, and there is one thread more, so that others can never keep all of them busy. Signals are
 * left to the program's own threads.
 */
#ifndef SPOKEI_CORE_HOST_THREAD_H
#define SPOKEI_CORE_HOST_THREAD_H

#include <spoke/env.h>

#include <pthread.h>

/* Starts a thread to which no signal is delivered. 0 or a negative errno. Any thread. */
int spokei_thread_create(pthread_t *ret_id, void *(*run)(void *arg), void *arg);

#define SPOKEI_POOL_THREADS_MAX 16u
#define SPOKEI_POOL_THREADS 4u
#define SPOKEI_POOL_QUEUE 256u

/*
 * Takes back a work, once for each that was submitted. With status 0 it has run, and this is a
 * thread of the pool; with -ECANCELED it never will, and this is the thread that stops. No lock is
 * held. It does not submit.
 */
typedef void (*spokei_pool_done_fn)(void *arg, struct spoke_work *work);

struct spokei_pool_queue {
	struct spoke_work *first;
	struct spoke_work *last;
	unsigned count;
};

/* All fields are the pool's. */
struct spokei_pool {
	pthread_mutex_t lock; /* for all below it */
	pthread_cond_t more;  /* work has come, or the end */
	struct spokei_pool_queue urgent;
	struct spokei_pool_queue others;
	unsigned others_run; /* by threads, now */
	unsigned idle;       /* threads that wait for work */
	unsigned started;
	bool stopping;
	unsigned forks; /* from here on: never changes */
	unsigned threads_max;
	unsigned queue_max;
	spokei_pool_done_fn done;
	void *arg;
	/* The submitters' and, later, the stopper's. */
	pthread_t threads[SPOKEI_POOL_THREADS_MAX + 1];
};

/* `threads_max` 0: SPOKEI_POOL_THREADS, at most SPOKEI_POOL_THREADS_MAX; `queue_max`, of
 * each queue, 0: SPOKEI_POOL_QUEUE. 0 or a negative errno. */
int spokei_pool_init(struct spokei_pool *pool, unsigned threads_max, unsigned queue_max,
		     spokei_pool_done_fn done, void *arg);

/* Queues the work, which is the pool's until done. 0; -EAGAIN: the queue is full, or no thread can
 * be started and there is none; -ECANCELED: stopped. When it is not 0 the work was not taken. Any
 * thread. */
int spokei_pool_submit(struct spokei_pool *pool, struct spoke_work *work);

/* Waits for what runs, hands back as cancelled what has not begun, and ends the threads. A second
 * stop finds nothing. Not from a thread of the pool. In a forked child it hands back
 * nothing: whoever submitted knows what. */
void spokei_pool_stop(struct spokei_pool *pool);

/* After stop, when nobody submits any more. */
void spokei_pool_fini(struct spokei_pool *pool);

#endif
