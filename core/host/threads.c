/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the real environment: those that wait for one another, and the pool for work that
 * blocks. */
#define _GNU_SOURCE
#include "core/host/threads.h"
#include "core/host/host.h"
#include "timer/base.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

/* --- parkers
 *
 * Parks threads in rooms. A room is a futex whose counter ticks whenever one of its threads is
 * woken; each thread has a bit that says for which one. Parkers get rooms and bits in the order of
 * their creation, so threads that wait at the same time mostly share a room and hardly ever a bit.
 * If they do share one, the wrong thread wakes and waits again. Rooms are never freed, and a
 * parker whose token has been brought is not touched again, because its owner may be gone. */

#define NS_PER_S UINT64_C(1000000000)
#define BITS 32u
#define ROOMS 64u
#define LINE 64 /* bytes of a cache line */

enum {
	EMPTY,
	TOKEN,  /* unparked and not yet parked */
	PARKED, /* a thread waits, or is about to */
};

static struct {
	_Alignas(LINE) _Atomic(uint32_t) ticker;
} rooms[ROOMS];

static _Atomic(uint32_t) made;

void spokei_parker_init(struct spokei_parker *parker)
{
	uint32_t number = atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);

	atomic_init(&parker->state, EMPTY);
	parker->bit = UINT32_C(1) << number % BITS;
	parker->ticker = &rooms[number / BITS % ROOMS].ticker;
}

/* Waits while the room has not ticked. Returns 0, or the errno for which the wait ended. */
static int wait_at(const struct spokei_parker *parker, uint32_t tick, uint64_t deadline_ns)
{
	struct timespec until = { .tv_sec = (time_t)(deadline_ns / NS_PER_S),
				  .tv_nsec = (long)(deadline_ns % NS_PER_S) };
	const struct timespec *end = deadline_ns == UINT64_MAX ? NULL : &until;

	if (syscall(SYS_futex, parker->ticker, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, tick, end,
		    NULL, parker->bit) == 0)
		return 0;
	return errno;
}

static bool change(struct spokei_parker *parker, uint32_t from, uint32_t to)
{
	return atomic_compare_exchange_strong_explicit(&parker->state, &from, to,
						       memory_order_acquire, memory_order_relaxed);
}

int spokei_park(struct spokei_parker *parker, uint64_t deadline_ns)
{
	for (;;) {
		/* Read before the token: an unpark after this makes the room tick. */
		uint32_t tick = atomic_load_explicit(parker->ticker, memory_order_acquire);

		if (change(parker, TOKEN, EMPTY))
			return 0;
		(void)change(parker, EMPTY, PARKED);
		if (atomic_load_explicit(&parker->state, memory_order_relaxed) == PARKED &&
		    wait_at(parker, tick, deadline_ns) == ETIMEDOUT &&
		    change(parker, PARKED, EMPTY))
			return -ETIMEDOUT;
	}
}

void spokei_unpark_one_of(struct spokei_unparking *several, struct spokei_parker *parker)
{
	_Atomic(uint32_t) *ticker = parker->ticker;
	uint32_t bit = parker->bit;

	if (atomic_exchange_explicit(&parker->state, TOKEN, memory_order_release) != PARKED)
		return;
	if (several->ticker != ticker)
		spokei_unpark_end(several);
	several->ticker = ticker;
	several->bits |= bit;
}

void spokei_unpark_end(struct spokei_unparking *several)
{
	_Atomic(uint32_t) *ticker = several->ticker;

	if (several->bits == 0)
		return;
	(void)atomic_fetch_add_explicit(ticker, 1, memory_order_release);
	(void)syscall(SYS_futex, ticker, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG, INT_MAX, NULL,
		      NULL, several->bits);
	several->bits = 0;
}

void spokei_unpark(struct spokei_parker *parker)
{
	struct spokei_unparking one = { 0 };

	spokei_unpark_one_of(&one, parker);
	spokei_unpark_end(&one);
}

/* --- the table
 *
 * Threads and parkers for the environment. In a forked child nothing here touches a lock, a
 * condition or a thread of the parent: they would never be released. */

struct thread {
	pthread_t id;
	unsigned forks; /* forks counted when it was started */
	void (*run)(void *arg);
	void *arg;
};

struct parker {
	struct spokei_parker parker;
	unsigned forks;
};

static uintptr_t threads_self(void *ctx)
{
	static _Thread_local char mine;

	(void)ctx;
	return (uintptr_t)&mine;
}

static void *run_thread(void *arg)
{
	struct thread *thread = arg;

	thread->run(thread->arg);
	return NULL;
}

static int threads_start(void *ctx, void (*run)(void *arg), void *arg, void **ret_thread)
{
	struct thread *thread = calloc(1, sizeof(*thread));
	int error;

	(void)ctx;
	if (thread == NULL)
		return -ENOMEM;
	*thread = (struct thread){ .forks = spokei_forks, .run = run, .arg = arg };
	error = spokei_thread_create(&thread->id, run_thread, thread);
	if (error) {
		free(thread);
		return error;
	}
	*ret_thread = thread;
	return 0;
}

static void threads_join(void *handle)
{
	struct thread *thread = handle;

	if (thread->forks == spokei_forks) {
		int error = pthread_join(thread->id, NULL);

		SPOKE_ASSERT(error == 0);
	}
	free(thread);
}

static int threads_open(void *ctx, void **ret_parker)
{
	struct parker *parker = calloc(1, sizeof(*parker));

	(void)ctx;
	if (parker == NULL)
		return -ENOMEM;
	parker->forks = spokei_forks;
	spokei_parker_init(&parker->parker);
	*ret_parker = parker;
	return 0;
}

static int threads_park(void *handle, uint64_t until_ns)
{
	struct parker *parker = handle;

	return spokei_park(&parker->parker, until_ns);
}

static void threads_unpark(void *handle)
{
	struct parker *parker = handle;

	if (parker->forks == spokei_forks)
		spokei_unpark(&parker->parker);
}

static void threads_unpark_all(void *const *handles, size_t count)
{
	struct spokei_unparking several = { 0 };

	for (size_t i = 0; i < count; i++) {
		struct parker *parker = handles[i];

		if (parker->forks == spokei_forks)
			spokei_unpark_one_of(&several, &parker->parker);
	}
	spokei_unpark_end(&several);
}

static void threads_close(void *handle)
{
	free(handle);
}

const struct spoke_threads spokei_host_threads = {
	.self = threads_self,
	.start = threads_start,
	.join = threads_join,
	.open = threads_open,
	.park = threads_park,
	.unpark = threads_unpark,
	.close = threads_close,
	.unpark_all = threads_unpark_all,
};
