/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that an engine asks of its loop, see struct spoke_loop of <spoke/env.h>. */
#define _GNU_SOURCE
#include "fd_loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define NS_PER_SECOND 1000000000u

/* --- the two halves of a turn */

int fd_loop_before(struct fd_loop *loop)
{
	loop->up->settle(loop->arg);
	return loop->at_once ? 0 : -1;
}

static void drain(int fd)
{
	uint64_t count;
	ssize_t got = read(fd, &count, sizeof(count));

	(void)got; /* an error: nothing is there any more */
}

/* Calls done() of all works that have run. */
static void hand_back(struct fd_loop *loop)
{
	struct spoke_work *done[FD_LOOP_WORKS];
	unsigned count;

	pthread_mutex_lock(&loop->lock);
	count = loop->done_count;
	for (unsigned i = 0; i < count; i++)
		done[i] = loop->done[i];
	loop->done_count = 0;
	pthread_mutex_unlock(&loop->lock);
	for (unsigned i = 0; i < count; i++)
		done[i]->done(done[i]);
}

static void serve_watch(struct spoke_watch *watch, uint32_t events)
{
	const uint32_t broken = EPOLLERR | EPOLLHUP;
	unsigned ready = 0;

	if (events & (EPOLLIN | broken))
		ready |= SPOKE_IO_READ;
	if (events & (EPOLLOUT | broken))
		ready |= SPOKE_IO_WRITE;
	watch->ready(watch, ready & watch->io);
}

void fd_loop_after(struct fd_loop *loop)
{
	unsigned ready = 0;
	uint64_t turn;
	int count = epoll_wait(loop->epoll, loop->events, FD_LOOP_EVENTS, 0);

	loop->at_once = false;
	loop->count = count < 0 ? 0 : count;
	turn = loop->up->begin(loop->arg);
	for (int i = 0; i < loop->count; i++) {
		void *at = loop->events[i].data.ptr;

		if (at == &loop->timer) {
			drain(loop->timer);
			loop->armed_ns = UINT64_MAX;
		} else if (at == &loop->wake) {
			drain(loop->wake);
			hand_back(loop);
		} else if (at) {
			struct spoke_watch *watch = at;

			ready += watch->turn != turn;
			watch->turn = turn;
			serve_watch(watch, loop->events[i].events);
		}
	}
	loop->count = 0;
	loop->up->turn(loop->arg, ready);
}

/* --- descriptors and the time */

static int add(struct fd_loop *loop, int fd, void *at)
{
	struct epoll_event event = { .events = EPOLLIN, .data = { .ptr = at } };

	return fd < 0 || epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static void close_all(struct fd_loop *loop)
{
	(void)close(loop->wake);
	(void)close(loop->timer);
	(void)close(loop->epoll);
}

static int loop_open(void *ctx, void *native, const struct spoke_loop_up *up, void *arg,
		     void **ret_loop)
{
	struct fd_loop *loop = native;
	int error;

	(void)ctx;
	loop->up = up;
	loop->arg = arg;
	loop->armed_ns = UINT64_MAX;
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	loop->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	error = add(loop, loop->timer, &loop->timer);
	if (!error)
		error = add(loop, loop->wake, &loop->wake);
	if (error)
		close_all(loop);
	*ret_loop = loop;
	return error;
}

static void loop_close(void *handle)
{
	close_all(handle);
}

/* A watch that ends may have an event in the present turn. */
static void forget(struct fd_loop *loop, const struct spoke_watch *watch)
{
	for (int i = 0; i < loop->count; i++)
		if (loop->events[i].data.ptr == watch)
			loop->events[i].data.ptr = NULL;
}

static void loop_watch(void *handle, struct spoke_watch *watch, unsigned io)
{
	struct fd_loop *loop = handle;
	struct epoll_event event = { .data = { .ptr = watch } };
	int how = watch->io ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (io == watch->io)
		return;
	if (io & SPOKE_IO_READ)
		event.events |= EPOLLIN;
	if (io & SPOKE_IO_WRITE)
		event.events |= EPOLLOUT;
	if (io == 0) {
		how = EPOLL_CTL_DEL;
		forget(loop, watch);
	}
	watch->io = io;
	if (epoll_ctl(loop->epoll, how, watch->fd, &event) && how != EPOLL_CTL_DEL)
		abort(); /* no memory in the kernel: the descriptor would be silent for ever */
}

static void loop_again(void *handle)
{
	struct fd_loop *loop = handle;

	loop->at_once = true;
}

static void loop_wake_at(void *handle, uint64_t ns)
{
	struct fd_loop *loop = handle;
	struct itimerspec at = { .it_value = { .tv_sec = (time_t)(ns / NS_PER_SECOND),
					       .tv_nsec = (long)(ns % NS_PER_SECOND) } };

	if (ns >= loop->armed_ns)
		return; /* too early costs one turn */
	if (ns == 0)
		at.it_value.tv_nsec = 1; /* 0 would mean never */
	if (timerfd_settime(loop->timer, TFD_TIMER_ABSTIME, &at, NULL) == 0)
		loop->armed_ns = ns;
	else
		loop->at_once = true;
}

static void loop_wake(void *handle)
{
	struct fd_loop *loop = handle;
	uint64_t one = 1;
	ssize_t sent = write(loop->wake, &one, sizeof(one));

	(void)sent; /* an error: it is awake already */
}

/* --- rounds, for spoke_engine_run() and spoke_engine_turn() */

static void loop_round(void *handle, bool wait)
{
	struct fd_loop *loop = handle;
	struct epoll_event event;

	loop->stopped = false;
	if (fd_loop_before(loop) && wait && !loop->stopped)
		(void)epoll_wait(loop->epoll, &event, 1, -1);
	if (!loop->stopped)
		fd_loop_after(loop);
}

static void loop_run(void *handle)
{
	struct fd_loop *loop = handle;

	do
		loop_round(loop, true);
	while (!loop->stopped);
}

static void loop_stop(void *handle)
{
	struct fd_loop *loop = handle;

	loop->stopped = true;
}

/* --- works: each has a thread of its own */

struct errand {
	struct fd_loop *loop;
	struct spoke_work *work;
};

static void *run_errand(void *arg)
{
	struct errand errand = *(struct errand *)arg;

	free(arg);
	errand.work->run(errand.work);
	pthread_mutex_lock(&errand.loop->lock);
	errand.loop->done[errand.loop->done_count++] = errand.work;
	loop_wake(errand.loop);
	errand.loop->running--;
	pthread_cond_signal(&errand.loop->ended);
	pthread_mutex_unlock(&errand.loop->lock);
	return NULL;
}

static int loop_offload(void *handle, struct spoke_work *work)
{
	struct fd_loop *loop = handle;
	struct errand *errand = malloc(sizeof(*errand));
	pthread_t thread;
	int error = -EAGAIN;

	if (errand == NULL)
		return error;
	*errand = (struct errand){ loop, work };
	work->status = 0;
	pthread_mutex_lock(&loop->lock);
	if (loop->running + loop->done_count < FD_LOOP_WORKS)
		error = -pthread_create(&thread, NULL, run_errand, errand);
	if (!error) {
		(void)pthread_detach(thread);
		loop->running++;
	}
	pthread_mutex_unlock(&loop->lock);
	if (error)
		free(errand);
	return error ? -EAGAIN : 0;
}

/* Waits for all works. */
static void loop_retire(void *handle)
{
	struct fd_loop *loop = handle;

	pthread_mutex_lock(&loop->lock);
	while (loop->running > 0)
		(void)pthread_cond_wait(&loop->ended, &loop->lock);
	pthread_mutex_unlock(&loop->lock);
	hand_back(loop);
}

void fd_loop_init(struct fd_loop *loop, struct spoke_env *env)
{
	static const struct spoke_loop table = {
		.open = loop_open,
		.retire = loop_retire,
		.close = loop_close,
		.watch = loop_watch,
		.wake_at = loop_wake_at,
		.again = loop_again,
		.wake = loop_wake,
		.run = loop_run,
		.round = loop_round,
		.stop = loop_stop,
		.offload = loop_offload,
	};

	memset(loop, 0, sizeof(*loop));
	(void)pthread_mutex_init(&loop->lock, NULL);
	(void)pthread_cond_init(&loop->ended, NULL);
	*env = *spoke_host_env();
	env->loop = &table;
	env->forks = NULL;
}
