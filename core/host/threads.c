/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, and how they wait for one another. */
#define _GNU_SOURCE
#include "core/host/threads.h"

#include "core/host/host.h"
#include "core/host/pool.h"
#include "timer/base.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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
