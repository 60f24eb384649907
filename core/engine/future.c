/* SPDX-License-Identifier: Apache-2.0 */
/* Shares a future between threads, and wakes the threads that wait for it. */
#include "core/engine/future.h"

#include "core/base/env.h"

#include <spoke/engine.h>

void spokei_future_drop(struct spokei_future *future)
{
	struct spokei_weak *weak = future->weak;

	if (atomic_fetch_sub_explicit(&future->shares, 1, memory_order_acq_rel) > 1)
		return;
	spokei_free(weak->env, future->bytes, 1, future->bytes_len);
	spokei_free(weak->env, future, 1, future->size);
	spokei_weak_drop(weak);
}

bool spokei_future_post(struct spokei_future *future, struct spoke_post *post)
{
	if (!spokei_weak_enter(future->weak))
		return false;
	spokei_future_share(future);
	spoke_engine_post(future->weak->engine, post);
	spokei_weak_leave(future->weak);
	return true;
}

int spokei_future_begin(struct spokei_future *future, struct spoke_post *post)
{
	if (spokei_engine_here(future->weak->engine)) {
		spokei_future_share(future);
		post->run(post);
	} else if (!spokei_future_post(future, post)) {
		spokei_future_drop(future);
		return SPOKE_ECLOSED;
	}
	return SPOKE_OK;
}

unsigned char *spokei_future_bytes(struct spokei_future *future, size_t len)
{
	future->bytes = spokei_alloc_unset(future->weak->env, len);
	future->bytes_len = len;
	return future->bytes;
}

/* --- threads that wait: a stack, which only the engine's thread takes, as a whole. A waiter is
 * freed by its thread; or, if that gives up first, by the engine's thread. */

#define WOKEN 64 /* threads, by one system call */

enum stage {
	WAITS,
	CALLED, /* the thread is woken now, or was */
	GONE,
};

struct spokei_waiter {
	struct spokei_waiter *next;
	void *parker;
	atomic_int stage; /* of enum stage */
};

/* Stands for a list that takes no more waiters. */
static struct spokei_waiter closed_list;

bool spokei_waiters_over(const struct spokei_waiters *waiters)
{
	return atomic_load_explicit(&waiters->first, memory_order_acquire) == &closed_list;
}

static void free_waiter(const struct spoke_env *env, struct spokei_waiter *waiter)
{
	env->threads->close(waiter->parker);
	spokei_free(env, waiter, 1, sizeof(*waiter));
}

/* Wakes at most WOKEN threads, each of which frees its waiter. Returns the remaining waiters. */
static struct spokei_waiter *wake_some(const struct spoke_env *env, struct spokei_waiter *waiter)
{
	void *parkers[WOKEN];
	size_t count = 0;

	while (waiter && count < WOKEN) {
		struct spokei_waiter *next = waiter->next;

		if (atomic_exchange_explicit(&waiter->stage, CALLED, memory_order_acq_rel) == WAITS)
			parkers[count++] = waiter->parker;
		else
			free_waiter(env, waiter);
		waiter = next;
	}
	if (count > 0 && env->threads->unpark_all)
		env->threads->unpark_all(parkers, count);
	else
		for (size_t i = 0; i < count; i++)
			env->threads->unpark(parkers[i]);
	return waiter;
}

static void wake_called(struct spokei_task *task)
{
	struct spokei_weak *weak = spoke_container_of(task, struct spokei_weak, wake);
	struct spokei_waiter *waiter = weak->called;

	weak->called = NULL;
	while (waiter)
		waiter = wake_some(weak->env, waiter);
	spokei_weak_drop(weak);
}

/* A waiter may give up before it is woken. */
void spokei_waiters_end(struct spokei_waiters *waiters, struct spokei_weak *weak)
{
	struct spokei_waiter *waiter = atomic_exchange_explicit(&waiters->first, &closed_list,
								memory_order_acq_rel);

	if (waiter && weak->called == NULL) {
		spokei_weak_share(weak);
		weak->wake.run = wake_called;
		spokei_run_freeing(weak->engine, &weak->wake);
	}
	while (waiter) {
		struct spokei_waiter *next = waiter->next;

		waiter->next = weak->called;
		weak->called = waiter;
		waiter = next;
	}
}

static int make_waiter(const struct spoke_env *env, struct spokei_waiter **ret_waiter)
{
	struct spokei_waiter *waiter;

	if (env->threads == NULL)
		return SPOKE_EUNSUPPORTED;
	waiter = spokei_alloc(env, 1, sizeof(*waiter));
	if (waiter == NULL)
		return SPOKE_ENOMEM;
	if (env->threads->open(env->ctx, &waiter->parker)) {
		spokei_free(env, waiter, 1, sizeof(*waiter));
		return SPOKE_ENOMEM;
	}
	*ret_waiter = waiter;
	return SPOKE_OK;
}

/* Returns false if the event has happened. */
static bool join(struct spokei_waiters *waiters, struct spokei_waiter *waiter)
{
	waiter->next = atomic_load_explicit(&waiters->first, memory_order_acquire);
	do {
		if (waiter->next == &closed_list)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&waiters->first, &waiter->next, waiter,
							memory_order_acq_rel,
							memory_order_acquire));
	return true;
}

int spokei_waiters_wait(struct spokei_waiters *waiters, struct spokei_weak *weak, uint64_t until_ns)
{
	const struct spoke_env *env = weak->env;
	struct spokei_waiter *waiter;
	int error = make_waiter(env, &waiter);

	if (error)
		return error;
	if (join(waiters, waiter) && env->threads->park(waiter->parker, until_ns)) {
		if (atomic_exchange_explicit(&waiter->stage, GONE, memory_order_acq_rel) == WAITS)
			return spokei_waiters_over(waiters) ? SPOKE_OK : SPOKE_ESTATE;
		/* The engine is waking this thread just now, so that has to arrive. */
		(void)env->threads->park(waiter->parker, UINT64_MAX);
	}
	free_waiter(env, waiter);
	return SPOKE_OK;
}
