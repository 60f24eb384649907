/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real event loop, on libev. A loop of our own runs one round at a time: begin before libev's
 * events, turn after them. Rounds that poll and find nothing, as a spinning loop makes them, cost
 * one epoll_wait() and some clock readings, and are not reported. In a user's loop, check watchers
 * of the highest and the lowest priority call begin and turn around all descriptors; a prepare
 * watcher settles. One absolute timerfd wakes the wheel. It is set at once if the wheel wants to be
 * woken earlier, and to a later time only before some sleeps; libev's own timers are not used,
 * because they are twice as late. The owner's thread, except wake().
 *
 * While bytes may come without a descriptor, a look is much cheaper than a poll. Then descriptors
 * are polled only each POLL_NS, and in one of ROUNDS rounds that looks have begun.
 *
 * A forked child shares the descriptors of epoll, timer and wake-up with its parent. There the
 * loop calls no callbacks and does not read, write or set these descriptors; they are only closed.
 */
#define _GNU_SOURCE
#include "core/host/host.h"
#include "core/host/looks.h"
#include "core/host/threads.h"

#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* --- memory of libev, allocated in advance
 *
 * The tables of a loop are allocated when it is made, because libev ends the program when an
 * allocation fails. */

enum {
	FDS_AHEAD = 4096,  /* descriptors for which libev has room from the start */
	READY_AHEAD = 256, /* descriptors that may be ready or changed in one round */
};

static void ignore(struct ev_loop *ev, struct ev_io *io, int events)
{
	(void)ev;
	(void)io;
	(void)events;
}

/*
 * Grows libev's table of descriptors and its lists of changed and ready ones. A watcher that is
 * started and stopped between two rounds leaves the room behind and makes no system call. (The
 * array that the kernel reports into cannot be reached from here: 64 entries of 12 bytes, doubled
 * when it is full.)
 */
static void grow(struct ev_loop *ev)
{
	long limit = sysconf(_SC_OPEN_MAX);
	int fds = limit > 0 && limit < FDS_AHEAD ? (int)limit : FDS_AHEAD;
	struct ev_io some[READY_AHEAD] = { 0 };

	for (int i = 0; i < READY_AHEAD; i++) {
		/* From the highest descriptor down, so the table grows once. */
		ev_io_init(&some[i], ignore, i < fds ? fds - 1 - i : 0, EV_READ);
		ev_io_start(ev, &some[i]);
		ev_io_stop(ev, &some[i]);
	}
	for (int i = 0; i < READY_AHEAD; i++)
		ev_feed_event(ev, &some[i], EV_CUSTOM);
	ev_invoke_pending(ev);
}

/* Has libev sleep until an event: without a timer of its own for the wall clock, which it makes
 * with the first periodic watcher and then keeps, it wakes once a minute. */
static void sleep_long(struct ev_loop *ev)
{
	struct ev_periodic once;

	ev_periodic_init(&once, NULL, 0., 3600., NULL);
	ev_periodic_start(ev, &once);
	ev_periodic_stop(ev, &once);
}

/* Creates a loop; free it with ev_loop_destroy(). NULL: the system has no resources. Any thread. */
static struct ev_loop *new_loop(void)
{
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);

	if (ev) {
		grow(ev);
		sleep_long(ev);
	}
	return ev;
}

/* --- the loop */

#define POLL_NS UINT64_C(20000)
#define ROUNDS 16u
#define GLANCES 16u                  /* looks in a row */
#define DELAY_NS UINT64_C(100000000) /* from one delay of the timer to the next, at least */

struct host_loop {
	struct ev_loop *ev;
	bool own;
	bool at_once;    /* own loop: the next round does not wait */
	bool begun;      /* ... this round has found something */
	bool stopped;    /* ... the run is over */
	unsigned forks;  /* forks counted when it was opened */
	unsigned inside; /* the owner's callbacks that are running */
	unsigned ready;  /* descriptors served in this round, first in this turn */
	uint64_t number; /* of the turn */
	struct spokei_looks looks;
	uint64_t armed_ns;   /* time the timerfd is set to; UINT64_MAX: not set */
	uint64_t wanted_ns;  /* ... and that it could be set to, as of the last round */
	uint64_t delayed_ns; /* when it was set to a later time last */
	uint64_t polled_ns;  /* own loop: when a look polled descriptors last */
	unsigned unpolled;   /* ... and how many rounds have begun without a poll since */
	const struct spoke_loop_up *up;
	void *arg;
	struct ev_prepare settle; /* this and the next three: in a user's loop */
	struct ev_check begin;
	struct ev_check turn;
	struct ev_idle again; /* active: the next round does not wait */
	struct ev_async wake;
	struct ev_io timer;
	/* The works that the loop has given to threads of its pool and has not got back. */
	struct spokei_pool pool;
	struct spoke_list outside;             /* works not handed back yet, by loop[1] and [2] */
	_Atomic(struct spoke_work *) finished; /* linked by loop[0], newest first */
};

/* Returns whether this process is a child of the one that opened the loop. */
static bool is_parted(const struct host_loop *loop)
{
	return loop->forks != spokei_forks;
}

/* --- works for the pool */

static struct spoke_list *node_of(struct spoke_work *work)
{
	_Static_assert(sizeof(struct spoke_list) == 2 * sizeof(work->loop[0]), "it fits");
	return (struct spoke_list *)(void *)&work->loop[1];
}

/* Called by a thread of the pool, or by the loop as it closes. The first work that has finished
 * wakes the loop. */
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

/* Calls done() of all finished works, the first to finish first. A work may fork: the others are
 * then for the parent, and the child abandons them. */
static void hand_back_works(struct host_loop *loop)
{
	struct spoke_work *work = oldest_first(
		atomic_exchange_explicit(&loop->finished, NULL, memory_order_acquire));

	while (work && !is_parted(loop)) {
		struct spoke_work *next = work->loop[0];

		spokei_list_remove(node_of(work));
		work->done(work);
		work = next;
	}
}

/* In a forked child, where the state of the parent's threads is unknown: hands back all works as
 * cancelled. */
static void abandon_works(struct host_loop *loop)
{
	while (!spokei_list_empty(&loop->outside)) {
		struct spoke_list *node = loop->outside.next;
		struct spoke_work *work = spoke_container_of(node, struct spoke_work, loop[1]);

		spokei_list_remove(node);
		work->status = -ECANCELED;
		work->done(work);
	}
}

static void settle(struct host_loop *loop)
{
	loop->inside++;
	loop->up->settle(loop->arg);
	loop->inside--;
}

static void begin(struct host_loop *loop)
{
	loop->ready = 0;
	loop->inside++;
	loop->number = loop->up->begin(loop->arg);
	loop->inside--;
}

static void turn(struct host_loop *loop)
{
	loop->inside++;
	loop->up->turn(loop->arg, loop->ready);
	loop->inside--;
}

static void host_loop_again(void *handle)
{
	struct host_loop *loop = handle;

	if (loop->own)
		loop->at_once = true;
	else
		ev_idle_start(loop->ev, &loop->again);
}

/* Sets the timerfd; UINT64_MAX: to never. */
static void set_timer(struct host_loop *loop, uint64_t ns)
{
	struct itimerspec at = { 0 };

	if (ns != UINT64_MAX) {
		at.it_value.tv_sec = (time_t)(ns / 1000000000u);
		at.it_value.tv_nsec = (long)(ns % 1000000000u);
		if (ns == 0)
			at.it_value.tv_nsec = 1; /* 0 would mean never */
	}
	if (timerfd_settime(loop->timer.fd, TFD_TIMER_ABSTIME, &at, NULL) == 0)
		loop->armed_ns = ns;
	else
		host_loop_again(loop); /* cannot happen; busy is better than asleep */
}

/* The loop sleeps now, and need not be woken as early as it has once asked for. To be woken in vain
 * costs one round, and to set the timer before each sleep a system call each. */
static void delay_timer(struct host_loop *loop)
{
	uint64_t now_ns;

	if (loop->wanted_ns <= loop->armed_ns || is_parted(loop))
		return;
	now_ns = spokei_clock_now(NULL);
	if (now_ns - loop->delayed_ns < DELAY_NS)
		return;
	loop->delayed_ns = now_ns;
	set_timer(loop, loop->wanted_ns);
}

/* Returns whether the loop must not sleep. */
static bool is_disturbed(struct host_loop *loop)
{
	return loop->up->prepare_to_sleep && loop->up->prepare_to_sleep(loop->arg);
}

/* --- rounds of a user's loop */

static void native_settle(struct ev_loop *ev, struct ev_prepare *watcher, int events)
{
	struct host_loop *loop = watcher->data;

	(void)events;
	settle(loop);
	delay_timer(loop);
	/* Whether libev sleeps is not known here. */
	if (is_disturbed(loop))
		ev_idle_start(ev, &loop->again);
}

static void native_begin(struct ev_loop *ev, struct ev_check *watcher, int events)
{
	struct host_loop *loop = watcher->data;

	(void)events;
	ev_idle_stop(ev, &loop->again);
	begin(loop);
}

static void native_turn(struct ev_loop *ev, struct ev_check *watcher, int events)
{
	(void)ev;
	(void)events;
	turn(watcher->data);
}

/* Does nothing: an active idle watcher keeps libev from waiting. */
static void native_idle(struct ev_loop *ev, struct ev_idle *watcher, int events)
{
	(void)ev;
	(void)watcher;
	(void)events;
}

/* Drains the descriptor; the round that it causes is the purpose. */
static void loop_woken(struct ev_loop *ev, struct ev_async *watcher, int events)
{
	struct host_loop *loop = watcher->data;

	(void)ev;
	(void)events;
	if (is_parted(loop))
		return;
	loop->inside++;
	hand_back_works(loop);
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
	(void)got; /* -EAGAIN: it was set again meanwhile */
	loop->armed_ns = UINT64_MAX;
}

static void start_native(struct host_loop *loop)
{
	ev_prepare_init(&loop->settle, native_settle);
	ev_check_init(&loop->begin, native_begin);
	ev_check_init(&loop->turn, native_turn);
	ev_idle_init(&loop->again, native_idle);
	ev_set_priority(&loop->begin, EV_MAXPRI);
	ev_set_priority(&loop->turn, EV_MINPRI);
	ev_set_priority(&loop->settle, EV_MINPRI);
	ev_set_priority(&loop->again, EV_MINPRI);
	loop->settle.data = loop->begin.data = loop->turn.data = loop;
	ev_prepare_start(loop->ev, &loop->settle);
	ev_check_start(loop->ev, &loop->begin);
	ev_check_start(loop->ev, &loop->turn);
}

static void stop_native(struct host_loop *loop)
{
	ev_prepare_stop(loop->ev, &loop->settle);
	ev_check_stop(loop->ev, &loop->begin);
	ev_check_stop(loop->ev, &loop->turn);
	ev_idle_stop(loop->ev, &loop->again);
}

static void start_watchers(struct host_loop *loop, int timer_fd)
{
	ev_async_init(&loop->wake, loop_woken);
	ev_io_init(&loop->timer, loop_timer, timer_fd, EV_READ);
	loop->timer.data = loop->wake.data = loop;
	ev_async_start(loop->ev, &loop->wake);
	ev_io_start(loop->ev, &loop->timer);
	if (!loop->own)
		start_native(loop);
}

/* --- rounds of our own loop */

/* Called after libev has polled, with or without events. */
static void invoke_pending(struct ev_loop *ev)
{
	struct host_loop *loop = ev_userdata(ev);

	if (ev_pending_count(ev) == 0)
		return;
	if (!loop->begun)
		begin(loop);
	loop->begun = true;
	ev_invoke_pending(ev);
}

static void poll(struct host_loop *loop)
{
	loop->unpolled = 0;
	(void)ev_run(loop->ev, EVRUN_NOWAIT);
}

/* Something has come without a descriptor, at `now_ns`. In some of these rounds descriptors are
 * polled too, and in each one if rounds are long. */
static bool come(struct host_loop *loop, uint64_t now_ns)
{
	if (++loop->unpolled >= ROUNDS || now_ns - loop->polled_ns >= POLL_NS) {
		loop->polled_ns = now_ns;
		poll(loop);
	}
	return true;
}

/* Looks a few times: that costs less than to read the clock. No instruction that rests between two
 * looks: it takes longer than some looks, and hypervisors take the processor away from such loops.
 */
static enum spoke_loop_found glance(struct host_loop *loop)
{
	enum spoke_loop_found found = SPOKE_LOOP_ALL_TELL;

	if (loop->up->poll == NULL)
		return found;
	for (unsigned i = 0; i < GLANCES; i++) {
		found = loop->up->poll(loop->arg);
		if (found != SPOKE_LOOP_NOTHING)
			break;
	}
	return found;
}

/* Looks until something is found, for as long as a look lasts. Where all events tell, it stays so
 * for this wait. */
static bool look(struct host_loop *loop, enum spoke_loop_found found)
{
	uint64_t now_ns = spokei_clock_now(NULL);
	const uint64_t until_ns = now_ns + loop->looks.ns;

	do {
		if (SPOKEI_UNLIKELY(found != SPOKE_LOOP_ALL_TELL))
			found = glance(loop);
		if (found == SPOKE_LOOP_COME)
			return come(loop, now_ns);
		if (found == SPOKE_LOOP_ALL_TELL || now_ns - loop->polled_ns >= POLL_NS) {
			loop->polled_ns = now_ns;
			poll(loop);
		}
		if (loop->begun)
			return true;
		now_ns = spokei_clock_now(NULL);
	} while (now_ns < until_ns);
	return false;
}

/* Returns false if nothing was found, or if this wait does not look. Events that the first look or
 * poll finds would also have ended a sleep, so they say nothing about looks. */
static bool has_found(struct host_loop *loop)
{
	enum spoke_loop_found found;
	bool pays;

	if (!spokei_looks_next(&loop->looks))
		return false;
	found = glance(loop);
	if (found == SPOKE_LOOP_COME)
		return come(loop, spokei_clock_now(NULL));
	if (found == SPOKE_LOOP_ALL_TELL)
		poll(loop);
	if (loop->begun)
		return true;
	pays = look(loop, found);
	spokei_looks_note(&loop->looks, pays);
	return pays;
}

static void do_round(struct host_loop *loop, bool wait)
{
	settle(loop);
	if (loop->stopped)
		return;
	loop->begun = false;
	wait = wait && !loop->at_once;
	loop->at_once = false;
	if (!wait) {
		poll(loop);
	} else if (!has_found(loop) &&
		   !(is_disturbed(loop) && come(loop, spokei_clock_now(NULL)))) {
		delay_timer(loop);
		(void)ev_run(loop->ev, EVRUN_ONCE);
	}
	if (!loop->begun)
		begin(loop);
	turn(loop);
}

/* --- the table of functions */

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
	loop->ev = loop->own ? new_loop() : native;
	if (loop->ev == NULL) {
		error = -ENOSYS;
		goto err_after_timer;
	}
	error = spokei_pool_init(&loop->pool, 0, 0, work_finished, loop);
	if (error)
		goto err_after_ev;
	spokei_list_init(&loop->outside);
	loop->up = up;
	loop->arg = arg;
	loop->armed_ns = loop->wanted_ns = UINT64_MAX;
	if (loop->own) {
		ev_set_userdata(loop->ev, loop);
		ev_set_invoke_pending_cb(loop->ev, invoke_pending);
	}
	start_watchers(loop, timer_fd);
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

	/* A callback may return to code that uses the loop. */
	SPOKE_ASSERT(loop->inside == 0);
	if (is_parted(loop)) {
		abandon_works(loop);
		return;
	}
	spokei_pool_stop(&loop->pool);
	hand_back_works(loop);
}

static void host_loop_close(void *handle)
{
	struct host_loop *loop = handle;
	int timer_fd = loop->timer.fd;

	spokei_pool_fini(&loop->pool);
	if (!loop->own)
		stop_native(loop);
	ev_async_stop(loop->ev, &loop->wake);
	ev_io_stop(loop->ev, &loop->timer);
	(void)close(timer_fd);
	if (loop->own)
		ev_loop_destroy(loop->ev);
	free(loop);
}

/* The part of a watch that belongs to the loop. */
static struct ev_io *io_of(struct spoke_watch *watch)
{
	_Static_assert(sizeof(struct ev_io) <= sizeof(watch->loop), "a watch holds libev's");
	return (struct ev_io *)(void *)&watch->loop;
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
	loop->ready += watch->turn != loop->number;
	watch->turn = loop->number;
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

	loop->wanted_ns = ns;
	if (ns < loop->armed_ns)
		set_timer(loop, ns);
}

static void host_loop_spin(void *handle, uint64_t ns)
{
	struct host_loop *loop = handle;

	SPOKE_ASSERT(loop->own);
	if (ns == SPOKE_LOOP_SPIN_AUTO)
		spokei_looks_init(&loop->looks, SPOKEI_LOOKS_NS, true);
	else
		spokei_looks_init(&loop->looks, ns, false);
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

	if (!loop->own) {
		(void)ev_run(loop->ev, 0);
		return;
	}
	loop->stopped = false;
	while (!loop->stopped)
		do_round(loop, true);
}

static void host_loop_round(void *handle, bool wait)
{
	struct host_loop *loop = handle;

	if (!loop->own) {
		(void)ev_run(loop->ev, wait ? EVRUN_ONCE : EVRUN_NOWAIT);
		return;
	}
	loop->stopped = false;
	do_round(loop, wait);
}

static void host_loop_stop(void *handle)
{
	struct host_loop *loop = handle;

	if (loop->own)
		loop->stopped = true;
	else
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

static void host_loop_pool_limit(void *handle, uint32_t threads_max, uint32_t queue_max)
{
	struct host_loop *loop = handle;

	spokei_pool_limit(&loop->pool, threads_max, queue_max);
}

static void host_loop_pool_look(void *handle, struct spoke_pool *ret)
{
	struct host_loop *loop = handle;

	spokei_pool_look(&loop->pool, ret);
}

const struct spoke_loop spokei_host_loop = {
	.open = host_loop_open,
	.retire = host_loop_retire,
	.close = host_loop_close,
	.watch = host_loop_watch,
	.wake_at = host_loop_wake_at,
	.again = host_loop_again,
	.spin = host_loop_spin,
	.wake = host_loop_wake,
	.run = host_loop_run,
	.round = host_loop_round,
	.stop = host_loop_stop,
	.offload = host_loop_offload,
	.pool_limit = host_loop_pool_limit,
	.pool_look = host_loop_pool_look,
	.prepares_to_sleep = true,
};
