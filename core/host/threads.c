/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads and parkers for the environment. In a forked child nothing here touches a lock, a
 * condition or a thread of the parent: they would never be released.
 */
#define _GNU_SOURCE
#include "core/host/threads.h"

#include "core/host/forks.h"
#include "core/host/parker.h"
#include "core/host/thread.h"

#include "timer/base.h"

#include <errno.h>
#include <stdlib.h>

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
