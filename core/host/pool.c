/* SPDX-License-Identifier: Apache-2.0 */
/* The thread pool, and the works of a loop that it runs. */
#define _GNU_SOURCE
#include "core/host/pool.h"

#include "core/host/host.h"
#include "timer/base.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

/* --- the pool
 *
 * The thread pool. Its queues are linked through loop[0] of each work, so submitting allocates
 * nothing. */

/* Of the thread of background works: it gets about a tenth of a CPU that others keep busy. */
#define BEHIND_NICE 10

enum stage {
	AT_HOME, /* between two works, or running one that the pool waits for */
	AWAY,    /* runs a work with a release() */
	LEFT,    /* the same, and the pool has gone */
};

/* Freed by the stopping thread, or by its own thread if that is left behind. */
struct spokei_pool_thread {
	struct spokei_pool *pool;
	struct spoke_work *work; /* while AWAY; guarded by the lock */
	atomic_int stage;        /* of enum stage */
	bool behind;             /* runs background works, and no others */
	pthread_t id;
};

static struct spoke_work *next_of(const struct spoke_work *work)
{
	return work->loop[0];
}

static void push(struct spokei_pool_queue *queue, struct spoke_work *work)
{
	work->loop[0] = NULL;
	if (queue->last)
		queue->last->loop[0] = work;
	else
		queue->first = work;
	queue->last = work;
	queue->count++;
}

static struct spoke_work *pop(struct spokei_pool_queue *queue)
{
	struct spoke_work *work = queue->first;

	queue->first = next_of(work);
	if (queue->first == NULL)
		queue->last = NULL;
	queue->count--;
	return work;
}

/* Returns the next work for this thread, or NULL; the lock is held. */
static struct spoke_work *take(const struct spokei_pool_thread *thread)
{
	struct spokei_pool *pool = thread->pool;

	if (thread->behind)
		return pool->background.count > 0 ? pop(&pool->background) : NULL;
	if (pool->urgent.count > 0)
		return pop(&pool->urgent);
	if (pool->others.count > 0 && pool->others_run < pool->threads_max)
		return pop(&pool->others);
	return NULL;
}

/* Runs the work. Returns false if the pool has gone meanwhile. */
static bool run_work(struct spokei_pool_thread *thread, struct spoke_work *work)
{
	int away = AWAY;

	work->run(work);
	return work->release == NULL ||
	       atomic_compare_exchange_strong(&thread->stage, &away, AT_HOME);
}

/* The lock is held. */
static void note_work(struct spokei_pool_thread *thread, struct spoke_work *work)
{
	if (work->release == NULL)
		return;
	thread->work = work;
	atomic_store(&thread->stage, AWAY);
}

/* Waits for more work; the lock is held. */
static void wait_for_work(const struct spokei_pool_thread *thread)
{
	struct spokei_pool *pool = thread->pool;

	if (thread->behind) {
		(void)pthread_cond_wait(&pool->later, &pool->lock);
		return;
	}
	pool->idle++;
	(void)pthread_cond_wait(&pool->more, &pool->lock);
	pool->idle--;
}

/* Lets other threads go first, where a thread has a priority of its own. */
static void step_behind(void)
{
#ifdef __linux__
	(void)!nice(BEHIND_NICE);
#endif
}

static void *serve(void *arg)
{
	struct spokei_pool_thread *thread = arg;
	struct spokei_pool *pool = thread->pool;

	if (thread->behind)
		step_behind();
	(void)pthread_mutex_lock(&pool->lock);
	while (!pool->stopping) {
		struct spoke_work *work = take(thread);
		unsigned others;

		if (work == NULL) {
			wait_for_work(thread);
			continue;
		}
		others = !work->urgent && !work->background;
		pool->others_run += others;
		note_work(thread, work);
		(void)pthread_mutex_unlock(&pool->lock);
		if (!run_work(thread, work)) {
			work->release(work);
			free(thread);
			return NULL;
		}
		work->status = 0;
		pool->done(pool->arg, work);
		(void)pthread_mutex_lock(&pool->lock);
		pool->others_run -= others;
	}
	(void)pthread_mutex_unlock(&pool->lock);
	return NULL;
}

int spokei_thread_create(pthread_t *ret_id, void *(*run)(void *arg), void *arg)
{
	sigset_t all;
	sigset_t before;
	int error;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(ret_id, NULL, run, arg);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -error;
}

/* Starts one more thread, or that for background works; the lock is held. Returns whether it has.
 */
static bool start_thread(struct spokei_pool *pool, bool behind)
{
	struct spokei_pool_thread *thread = calloc(1, sizeof(*thread));

	if (thread == NULL)
		return false;
	thread->pool = pool;
	thread->behind = behind;
	if (spokei_thread_create(&thread->id, serve, thread)) {
		free(thread);
		return false;
	}
	if (behind)
		pool->behind = thread;
	else
		pool->threads[pool->started++] = thread;
	return true;
}

static void set_limits(struct spokei_pool *pool, unsigned threads_max, unsigned queue_max)
{
	SPOKE_ASSERT(threads_max <= SPOKE_POOL_THREADS_MAX);
	pool->threads_max = threads_max ? threads_max : SPOKE_POOL_THREADS;
	pool->queue_max = queue_max ? queue_max : SPOKE_POOL_QUEUE;
}

int spokei_pool_init(struct spokei_pool *pool, unsigned threads_max, unsigned queue_max,
		     spokei_pool_done_fn done, void *arg)
{
	int error;

	*pool = (struct spokei_pool){ .forks = spokei_forks, .done = done, .arg = arg };
	set_limits(pool, threads_max, queue_max);
	error = pthread_mutex_init(&pool->lock, NULL);
	if (error)
		return -error;
	error = pthread_cond_init(&pool->more, NULL);
	if (error == 0) {
		error = pthread_cond_init(&pool->later, NULL);
		if (error == 0)
			return 0;
		(void)pthread_cond_destroy(&pool->more);
	}
	(void)pthread_mutex_destroy(&pool->lock);
	return -error;
}

void spokei_pool_limit(struct spokei_pool *pool, unsigned threads_max, unsigned queue_max)
{
	if (pool->forks != spokei_forks)
		return;
	(void)pthread_mutex_lock(&pool->lock);
	set_limits(pool, threads_max, queue_max);
	(void)pthread_mutex_unlock(&pool->lock);
}

void spokei_pool_look(struct spokei_pool *pool, struct spoke_pool *ret)
{
	*ret = (struct spoke_pool){ .threads_max = pool->threads_max,
				    .queue_max = pool->queue_max };
	if (pool->forks != spokei_forks)
		return;
	(void)pthread_mutex_lock(&pool->lock);
	ret->threads = pool->started;
	ret->running = pool->others_run;
	ret->queued = pool->others.count;
	(void)pthread_mutex_unlock(&pool->lock);
}

/* Returns whether one more work needs another thread. */
static bool wants_thread(const struct spokei_pool *pool, const struct spoke_work *work)
{
	/* Waiting threads may have been woken for works queued before this one. */
	if (pool->idle > pool->urgent.count + pool->others.count)
		return false;
	if (pool->started < pool->threads_max)
		return true;
	/* The extra thread, for urgent works or in place of one that runs such a work. */
	return pool->started == pool->threads_max &&
	       (work->urgent || pool->others_run + pool->others.count < pool->threads_max);
}

static struct spokei_pool_queue *queue_of(struct spokei_pool *pool, const struct spoke_work *work)
{
	if (work->background)
		return &pool->background;
	return work->urgent ? &pool->urgent : &pool->others;
}

/* Starts a thread for the work if it needs one. Returns whether there is one. */
static bool provide_thread(struct spokei_pool *pool, const struct spoke_work *work)
{
	if (work->background)
		return pool->behind || start_thread(pool, true);
	if (wants_thread(pool, work))
		(void)start_thread(pool, false);
	return pool->started > 0;
}

int spokei_pool_submit(struct spokei_pool *pool, struct spoke_work *work)
{
	struct spokei_pool_queue *queue = queue_of(pool, work);
	unsigned max = work->background ? SPOKE_POOL_QUEUE : pool->queue_max;
	int error = 0;

	SPOKE_ASSERT(!work->urgent || !work->background);
	if (pool->forks != spokei_forks)
		return -ECANCELED;
	(void)pthread_mutex_lock(&pool->lock);
	if (pool->stopping) {
		error = -ECANCELED;
	} else if (queue->count >= max || !provide_thread(pool, work)) {
		error = -EAGAIN;
	}
	if (!error) {
		push(queue, work);
		(void)pthread_cond_signal(work->background ? &pool->later : &pool->more);
	}
	(void)pthread_mutex_unlock(&pool->lock);
	return error;
}

static void cancel_all(struct spokei_pool *pool, struct spoke_work *work)
{
	while (work) {
		struct spoke_work *next = next_of(work);

		work->status = -ECANCELED;
		pool->done(pool->arg, work);
		work = next;
	}
}

/* Joins a thread, or leaves it behind with its work. */
static void end_thread(struct spokei_pool *pool, struct spokei_pool_thread *thread)
{
	struct spoke_work *work = thread->work;
	pthread_t id = thread->id;
	int away = AWAY;

	SPOKE_ASSERT(!pthread_equal(id, pthread_self()));
	if (work && atomic_compare_exchange_strong(&thread->stage, &away, LEFT)) {
		(void)pthread_detach(id);
		work->status = -EINPROGRESS;
		pool->done(pool->arg, work);
		return;
	}
	(void)pthread_join(id, NULL);
	free(thread);
}

void spokei_pool_stop(struct spokei_pool *pool)
{
	static const struct spokei_pool_queue empty;
	struct spoke_work *urgent;
	struct spoke_work *others;
	struct spoke_work *background;
	struct spokei_pool_thread *behind;
	unsigned started;

	if (pool->forks != spokei_forks)
		return; /* the parent's threads do not exist here, and their state is unknown */
	(void)pthread_mutex_lock(&pool->lock);
	urgent = pool->urgent.first;
	others = pool->others.first;
	background = pool->background.first;
	pool->urgent = empty;
	pool->others = empty;
	pool->background = empty;
	started = pool->started;
	behind = pool->behind;
	pool->started = 0;
	pool->behind = NULL;
	pool->stopping = true;
	(void)pthread_cond_broadcast(&pool->more);
	(void)pthread_cond_signal(&pool->later);
	(void)pthread_mutex_unlock(&pool->lock);

	for (unsigned i = 0; i < started; i++)
		end_thread(pool, pool->threads[i]);
	if (behind)
		end_thread(pool, behind);
	cancel_all(pool, urgent);
	cancel_all(pool, others);
	cancel_all(pool, background);
}

void spokei_pool_fini(struct spokei_pool *pool)
{
	if (pool->forks != spokei_forks) {
		/* Destroying the condition would wait for its waiters. */
		for (unsigned i = 0; i < pool->started; i++)
			free(pool->threads[i]);
		free(pool->behind);
		return;
	}
	SPOKE_ASSERT(pool->stopping);
	(void)pthread_cond_destroy(&pool->more);
	(void)pthread_cond_destroy(&pool->later);
	(void)pthread_mutex_destroy(&pool->lock);
}

/* --- works of a loop */

static struct spoke_list *node_of(struct spoke_work *work)
{
	_Static_assert(sizeof(struct spoke_list) == 2 * sizeof(work->loop[0]), "it fits");
	return (struct spoke_list *)(void *)&work->loop[1];
}

/* Called by a thread of the pool, or by the loop as it closes. */
static void work_finished(void *arg, struct spoke_work *work)
{
	struct spokei_works *works = arg;
	struct spoke_work *newest = atomic_load_explicit(&works->finished, memory_order_relaxed);

	do {
		work->loop[0] = newest;
	} while (!atomic_compare_exchange_weak_explicit(&works->finished, &newest, work,
							memory_order_release,
							memory_order_relaxed));
	if (newest == NULL)
		works->back(works->arg);
}

int spokei_works_init(struct spokei_works *works, void (*back)(void *arg), void *arg)
{
	int error = spokei_pool_init(&works->pool, 0, 0, work_finished, works);

	if (error)
		return error;
	works->back = back;
	works->arg = arg;
	atomic_init(&works->finished, NULL);
	spokei_list_init(&works->outside);
	return 0;
}

int spokei_works_submit(struct spokei_works *works, struct spoke_work *work)
{
	int error = spokei_pool_submit(&works->pool, work);

	if (!error)
		spokei_list_append(&works->outside, node_of(work));
	return error;
}

/* Reverses a list of works. */
static struct spoke_work *oldest_first(struct spoke_work *work)
{
	struct spoke_work *oldest = NULL;

	while (work) {
		struct spoke_work *next = work->loop[0];

		work->loop[0] = oldest;
		oldest = work;
		work = next;
	}
	return oldest;
}

/* A work may fork: the others are then for the parent, and the child abandons them. */
void spokei_works_hand_back(struct spokei_works *works)
{
	struct spoke_work *work = oldest_first(
		atomic_exchange_explicit(&works->finished, NULL, memory_order_acquire));

	while (work && works->pool.forks == spokei_forks) {
		struct spoke_work *next = work->loop[0];

		spokei_list_remove(node_of(work));
		work->done(work);
		work = next;
	}
}

void spokei_works_stop(struct spokei_works *works)
{
	spokei_pool_stop(&works->pool);
	spokei_works_hand_back(works);
}

void spokei_works_abandon(struct spokei_works *works)
{
	while (!spokei_list_empty(&works->outside)) {
		struct spoke_list *node = works->outside.next;
		struct spoke_work *work = spoke_container_of(node, struct spoke_work, loop[1]);

		spokei_list_remove(node);
		work->status = -ECANCELED;
		work->done(work);
	}
}

void spokei_works_fini(struct spokei_works *works)
{
	spokei_pool_fini(&works->pool);
}
