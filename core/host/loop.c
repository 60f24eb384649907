/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libev as the loop. A check watcher of the highest priority and one of the lowest bracket all
 * descriptors as begin and turn; a prepare watcher settles. One absolute timerfd wakes the wheel:
 * it is armed anew only when the wheel wants to be woken earlier than it stands, and never by
 * libev's timers, which are twice as late. The owner's thread, but for wake().
 *
 * A forked child shares the descriptors of epoll, timer and wake-up with its parent. There the loop
 * calls nobody, and nothing here reads, writes or sets one of them: they are closed, that is all.
 */
#define _GNU_SOURCE
#include "core/host/loop.h"

#include "core/host/forks.h"
#include "core/host/thread.h"

#include "timer/base.h"

#include <errno.h>
#include <ev.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
	FDS_AHEAD = 4096,  /* descriptors of a process that libev has room for from the start */
	READY_AHEAD = 256, /* of which so many are ready or changed in one round */
};

struct host_loop {
	struct ev_loop *ev;
	bool own;
	unsigned forks;    /* as they were when it was opened */
	unsigned inside;   /* functions of the owner's that are being called */
	unsigned ready;    /* descriptors served in this round */
	uint64_t armed_ns; /* what the timerfd is set to; UINT64_MAX: not set */
	const struct spoke_loop_up *up;
	void *arg;
	struct ev_prepare settle;
	struct ev_check begin;
	struct ev_check turn;
	struct ev_idle again; /* active: the next round does not wait */
	struct ev_async wake;
	struct ev_io timer;
	struct spokei_pool pool;
	struct spoke_list outside; /* works that have not been handed back, by loop[1] and [2] */
	_Atomic(struct spoke_work *) finished; /* linked by loop[0], the newest first */
};

/* Is this a child of the process that opened the loop? */
static bool is_parted(const struct host_loop *loop)
{
	return loop->forks != spokei_forks;
}

static void loop_settle(struct ev_loop *ev, struct ev_prepare *watcher, int events)
{
	struct host_loop *loop = watcher->data;

	(void)ev;
	(void)events;
	loop->inside++;
	loop->up->settle(loop->arg);
	loop->inside--;
}

static void loop_begin(struct ev_loop *ev, struct ev_check *watcher, int events)
{
	struct host_loop *loop = watcher->data;

	(void)events;
	loop->ready = 0;
	ev_idle_stop(ev, &loop->again);
	loop->inside++;
	loop->up->begin(loop->arg);
	loop->inside--;
}

static void loop_turn(struct ev_loop *ev, struct ev_check *watcher, int events)
{
	struct host_loop *loop = watcher->data;

	(void)ev;
	(void)events;
	loop->inside++;
	loop->up->turn(loop->arg, loop->ready);
	loop->inside--;
}

/* Being active is all it does: libev does not wait then. */
static void loop_idle(struct ev_loop *ev, struct ev_idle *watcher, int events)
{
	(void)ev;
	(void)watcher;
	(void)events;
}

/* A thread of the pool, or the loop's own as it closes. */
static void work_finished(void *arg, struct spoke_work *work)
{
	struct host_loop *loop = arg;
	struct spoke_work *newest = atomic_load_explicit(&loop->finished, memory_order_relaxed);

	do {
		work->loop[0] = newest;
	} while (!atomic_compare_exchange_weak_explicit(&loop->finished, &newest, work,
							memory_order_release,
							memory_order_relaxed));
	if (newest == NULL)
		ev_async_send(loop->ev, &loop->wake);
}

static struct spoke_list *node_of(struct spoke_work *work)
{
	_Static_assert(sizeof(struct spoke_list) == 2 * sizeof(work->loop[0]), "it fits");
	return (struct spoke_list *)(void *)&work->loop[1];
}

/* In a forked child: what its parent's threads do with the works is not known here. */
static void cancel_outside(struct host_loop *loop)
{
	while (!spokei_list_empty(&loop->outside)) {
		struct spoke_list *node = loop->outside.next;
		struct spoke_work *work = spoke_container_of(node, struct spoke_work, loop[1]);

		spokei_list_remove(node);
		work->status = -ECANCELED;
		work->done(work);
	}
}

static void hand_back_work(struct host_loop *loop)
{
	struct spoke_work *work = atomic_exchange_explicit(&loop->finished, NULL,
							   memory_order_acquire);

	while (work) {
		struct spoke_work *next = work->loop[0];

		spokei_list_remove(node_of(work));
		work->done(work);
		work = next;
	}
}

/* Besides that, the round it causes is all that is wanted. */
static void loop_woken(struct ev_loop *ev, struct ev_async *watcher, int events)
{
	struct host_loop *loop = watcher->data;

	(void)ev;
	(void)events;
	if (is_parted(loop))
		return;
	loop->inside++;
	hand_back_work(loop);
	loop->inside--;
}

static void loop_timer(struct ev_loop *ev, struct ev_io *watcher, int events)
{
	struct host_loop *loop = watcher->data;
	uint64_t expirations;
	ssize_t got;

	(void)events;
	if (is_parted(loop)) {
		ev_io_stop(ev, watcher);
		return;
	}
	got = read(watcher->fd, &expirations, sizeof(expirations));
	(void)got; /* -EAGAIN: it was set anew meanwhile */
	loop->armed_ns = UINT64_MAX;
}

static void init_watchers(struct host_loop *loop, int timer_fd)
{
	ev_prepare_init(&loop->settle, loop_settle);
	ev_check_init(&loop->begin, loop_begin);
	ev_check_init(&loop->turn, loop_turn);
	ev_idle_init(&loop->again, loop_idle);
	ev_async_init(&loop->wake, loop_woken);
	ev_io_init(&loop->timer, loop_timer, timer_fd, EV_READ);
	ev_set_priority(&loop->begin, EV_MAXPRI);
	ev_set_priority(&loop->turn, EV_MINPRI);
	ev_set_priority(&loop->settle, EV_MINPRI);
	ev_set_priority(&loop->again, EV_MINPRI);
	loop->settle.data = loop->begin.data = loop->turn.data = loop;
	loop->timer.data = loop->wake.data = loop;
}

static void start_watchers(struct host_loop *loop)
{
	ev_prepare_start(loop->ev, &loop->settle);
	ev_check_start(loop->ev, &loop->begin);
	ev_check_start(loop->ev, &loop->turn);
	ev_async_start(loop->ev, &loop->wake);
	ev_io_start(loop->ev, &loop->timer);
}

static void ignore(struct ev_loop *ev, struct ev_io *io, int events)
{
	(void)ev;
	(void)io;
	(void)events;
}

/*
 * libev ends the program when it has no memory to grow by. So a loop of our own grows at the start:
 * its table of descriptors, its lists of those that changed and that are ready. Started and stopped
 * between two rounds, a watcher leaves room behind and makes no system call. (What the kernel
 * reports into cannot be reached from here: 64 entries of 12 bytes that double when they are full.)
 */
static void grow_ahead(struct ev_loop *ev)
{
	long limit = sysconf(_SC_OPEN_MAX);
	int fds = limit > 0 && limit < FDS_AHEAD ? (int)limit : FDS_AHEAD;
	struct ev_io some[READY_AHEAD] = { 0 };

	for (int i = 0; i < READY_AHEAD; i++) {
		/* Descriptors from the highest down: the table grows once. */
		ev_io_init(&some[i], ignore, i < fds ? fds - 1 - i : 0, EV_READ);
		ev_io_start(ev, &some[i]);
		ev_io_stop(ev, &some[i]);
	}
	for (int i = 0; i < READY_AHEAD; i++)
		ev_feed_event(ev, &some[i], EV_CUSTOM);
	ev_invoke_pending(ev);
}

/* A loop of our own, or NULL. */
static struct ev_loop *open_ev(void)
{
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);

	if (ev)
		grow_ahead(ev);
	return ev;
}

static int host_loop_open(void *ctx, void *native, const struct spoke_loop_up *up, void *arg,
			  void **ret_loop)
{
	struct host_loop *loop = calloc(1, sizeof(*loop));
	int timer_fd;
	int error;

	(void)ctx;
	if (loop == NULL)
		return -ENOMEM;
	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (timer_fd < 0) {
		error = -errno;
		goto err_after_alloc;
	}
	loop->own = native == NULL;
	loop->forks = spokei_forks;
	loop->ev = loop->own ? open_ev() : native;
	if (loop->ev == NULL) {
		error = -ENOSYS;
		goto err_after_timer;
	}
	error = spokei_pool_init(&loop->pool, 0, 0, work_finished, loop);
	if (error)
		goto err_after_ev;
	loop->up = up;
	loop->arg = arg;
	loop->armed_ns = UINT64_MAX;
	spokei_list_init(&loop->outside);
	init_watchers(loop, timer_fd);
	start_watchers(loop);
	*ret_loop = loop;
	return 0;

err_after_ev:
	if (loop->own)
		ev_loop_destroy(loop->ev);
err_after_timer:
	(void)close(timer_fd);
err_after_alloc:
	free(loop);
	return error;
}

static void host_loop_retire(void *handle)
{
	struct host_loop *loop = handle;

	/* Callbacks return to code that uses the loop. */
	SPOKE_ASSERT(loop->inside == 0);
	if (is_parted(loop)) {
		cancel_outside(loop);
		return;
	}
	spokei_pool_stop(&loop->pool);
	hand_back_work(loop);
}

static void host_loop_close(void *handle)
{
	struct host_loop *loop = handle;
	int timer_fd = loop->timer.fd;

	spokei_pool_fini(&loop->pool);
	ev_prepare_stop(loop->ev, &loop->settle);
	ev_check_stop(loop->ev, &loop->begin);
	ev_check_stop(loop->ev, &loop->turn);
	ev_idle_stop(loop->ev, &loop->again);
	ev_async_stop(loop->ev, &loop->wake);
	ev_io_stop(loop->ev, &loop->timer);
	(void)close(timer_fd);
	if (loop->own)
		ev_loop_destroy(loop->ev);
	free(loop);
}

/* The part of a watch that is the loop's. */
static struct ev_io *io_of(struct spoke_watch *watch)
{
	_Static_assert(sizeof(struct ev_io) <= sizeof(watch->loop), "a watch holds libev's");
	return (struct ev_io *)(void *)watch->loop;
}

static void watch_ready(struct ev_loop *ev, struct ev_io *io, int events)
{
	struct spoke_watch *watch = spoke_container_of(io, struct spoke_watch, loop);
	struct host_loop *loop = io->data;
	unsigned ready = 0;

	if (is_parted(loop)) {
		ev_io_stop(ev, io);
		return;
	}
	if (events & EV_READ)
		ready |= SPOKE_IO_READ;
	if (events & EV_WRITE)
		ready |= SPOKE_IO_WRITE;
	loop->ready++;
	loop->inside++;
	watch->ready(watch, ready);
	loop->inside--;
}

static void host_loop_watch(void *handle, struct spoke_watch *watch, unsigned io)
{
	struct host_loop *loop = handle;
	struct ev_io *watcher = io_of(watch);
	int events = 0;

	if (watch->io == io)
		return;
	if (watch->io)
		ev_io_stop(loop->ev, watcher);
	watch->io = io;
	if (io == 0)
		return;
	if (io & SPOKE_IO_READ)
		events |= EV_READ;
	if (io & SPOKE_IO_WRITE)
		events |= EV_WRITE;
	ev_io_init(watcher, watch_ready, watch->fd, events);
	watcher->data = loop;
	ev_io_start(loop->ev, watcher);
}

static void host_loop_wake_at(void *handle, uint64_t ns)
{
	struct host_loop *loop = handle;
	struct itimerspec at = { 0 };

	/* Waking too early costs one round; arming anew each round would cost a system call each.
	 */
	if (ns >= loop->armed_ns)
		return;
	at.it_value.tv_sec = (time_t)(ns / 1000000000u);
	at.it_value.tv_nsec = (long)(ns % 1000000000u);
	if (ns == 0)
		at.it_value.tv_nsec = 1; /* 0 would mean never */
	if (timerfd_settime(loop->timer.fd, TFD_TIMER_ABSTIME, &at, NULL) == 0)
		loop->armed_ns = ns;
	else
		ev_idle_start(loop->ev, &loop->again); /* cannot be; better busy than asleep */
}

static void host_loop_again(void *handle)
{
	struct host_loop *loop = handle;

	ev_idle_start(loop->ev, &loop->again);
}

static void host_loop_wake(void *handle)
{
	struct host_loop *loop = handle;

	if (!is_parted(loop))
		ev_async_send(loop->ev, &loop->wake);
}

static void host_loop_run(void *handle)
{
	struct host_loop *loop = handle;

	(void)ev_run(loop->ev, 0);
}

static void host_loop_round(void *handle, bool wait)
{
	struct host_loop *loop = handle;

	(void)ev_run(loop->ev, wait ? EVRUN_ONCE : EVRUN_NOWAIT);
}

static void host_loop_stop(void *handle)
{
	struct host_loop *loop = handle;

	ev_break(loop->ev, EVBREAK_ONE);
}

static int host_loop_offload(void *handle, struct spoke_work *work)
{
	struct host_loop *loop = handle;

	int error = spokei_pool_submit(&loop->pool, work);

	if (!error)
		spokei_list_append(&loop->outside, node_of(work));
	return error;
}

const struct spoke_loop spokei_host_loop = {
	.open = host_loop_open,
	.retire = host_loop_retire,
	.close = host_loop_close,
	.watch = host_loop_watch,
	.wake_at = host_loop_wake_at,
	.again = host_loop_again,
	.wake = host_loop_wake,
	.run = host_loop_run,
	.round = host_loop_round,
	.stop = host_loop_stop,
	.offload = host_loop_offload,
};
