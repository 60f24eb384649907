/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches signals. Each watch is an eventfd of its own: the handler writes 1 to every watch of its
 * signal, which wakes the loop that waits for it and remembers the signal. Watches share nothing,
 * so no watch can take the signal of another.
 *
 * The handler may run on any thread at any time, so it takes no lock: it walks a list to which
 * watches are added at the front, and counts itself in and out. A watch that has left the list is
 * closed when no handler is running that may have seen it; otherwise a handler could write to a
 * descriptor that was reused.
 *
 * A forked child inherits the handler and the list, but these watches would wake its parent, so
 * watches of another process are skipped. A child without a watch of its own restores the previous
 * handler and sends itself the signal again.
 */
#define _GNU_SOURCE
#include "core/host/host.h"

#include "timer/base.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct watched {
	_Atomic(struct watched *) next;
	int number;
	int fd;
	pid_t pid; /* the process that opened it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything that follows */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic(struct watched *) first;
static struct sigaction before[NSIG]; /* previous handlers, by signal, while it is watched */
static atomic_int home[NSIG];         /* by signal: the process that opened it last */
static atomic_uint inside;            /* handlers that are running */

_Static_assert(ATOMIC_POINTER_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "fit for a handler");

/* Async-signal-safe, as are all functions it calls. */
static void caught(int number)
{
	const uint64_t one = 1;
	int errno_before = errno;
	pid_t pid = getpid();
	bool own = false;

	(void)atomic_fetch_add(&inside, 1);
	for (const struct watched *at = atomic_load(&first); at; at = atomic_load(&at->next)) {
		if (at->number != number || at->pid != pid)
			continue;
		/* Fails when too many are unread; one is enough. */
		(void)!write(at->fd, &one, sizeof(one));
		own = true;
	}
	(void)atomic_fetch_sub(&inside, 1);
	/* The signal arrived just before its last watch ended. */
	if (!own && atomic_load(&home[number]) != pid) {
		(void)sigaction(number, &before[number], NULL);
		(void)raise(number);
	}
	errno = errno_before;
}

static bool is_ours(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == caught;
}

/* Installs the handler. The handler that it replaces is kept, unless that is the same one. */
static int install(int number)
{
	struct sigaction action = { .sa_handler = caught, .sa_flags = SA_RESTART };
	struct sigaction old;

	(void)sigemptyset(&action.sa_mask);
	if (sigaction(number, NULL, &old) != 0)
		return -errno;
	if (is_ours(&old))
		return 0;
	before[number] = old;
	return sigaction(number, &action, NULL) == 0 ? 0 : -errno;
}

static void uninstall(int number)
{
	struct sigaction now;

	if (sigaction(number, NULL, &now) == 0 && is_ours(&now))
		(void)sigaction(number, &before[number], NULL);
}

static void lock_up(void)
{
	(void)pthread_mutex_lock(&lock);
}

static void unlock(void)
{
	(void)pthread_mutex_unlock(&lock);
}

/* Handlers that were running on other threads do not exist in a child. */
static void unlock_child(void)
{
	atomic_store(&inside, 0);
	unlock();
}

/* A child must not inherit the lock held by a thread that does not exist there. */
static void watch_forks(void)
{
	(void)pthread_atfork(lock_up, unlock, unlock_child);
}

/* Removes the watch of this descriptor from the list; the lock is held. */
static struct watched *unlink_watched(int fd)
{
	_Atomic(struct watched *) *at = &first;
	struct watched *watched = atomic_load(at);

	while (watched && watched->fd != fd) {
		at = &watched->next;
		watched = atomic_load(at);
	}
	SPOKE_ASSERT(watched != NULL);
	atomic_store(at, atomic_load(&watched->next));
	return watched;
}

/* Closes a watch that has left the list, when no handler can have found it there. */
static void discard(struct watched *watched)
{
	while (atomic_load(&inside) > 0)
		(void)sched_yield();
	(void)close(watched->fd);
	free(watched);
}

static int signals_open(void *ctx, int number, int *ret_fd)
{
	struct watched *watched;
	int error;

	(void)ctx;
	if (number <= 0 || number >= NSIG)
		return -EINVAL;
	(void)pthread_once(&once, watch_forks);
	watched = calloc(1, sizeof(*watched));
	if (watched == NULL)
		return -ENOMEM;
	watched->number = number;
	watched->pid = getpid();
	watched->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (watched->fd < 0) {
		error = -errno;
		free(watched);
		return error;
	}
	lock_up();
	/* Listed first, so that no signal is lost once the handler is installed. */
	atomic_store(&watched->next, atomic_load(&first));
	atomic_store(&first, watched);
	atomic_store(&home[number], watched->pid);
	error = install(number);
	if (error)
		(void)unlink_watched(watched->fd);
	unlock();
	if (error) {
		discard(watched);
		return error;
	}
	*ret_fd = watched->fd;
	return 0;
}

static bool is_watched(int number, pid_t pid)
{
	struct watched *at = atomic_load(&first);

	while (at && (at->number != number || at->pid != pid))
		at = atomic_load(&at->next);
	return at != NULL;
}

static void signals_close(void *ctx, int fd)
{
	struct watched *watched;

	(void)ctx;
	lock_up();
	watched = unlink_watched(fd);
	if (!is_watched(watched->number, getpid()))
		uninstall(watched->number);
	unlock();
	discard(watched);
}

static bool signals_take(void *ctx, int fd)
{
	uint64_t count;

	(void)ctx;
	return read(fd, &count, sizeof(count)) == (ssize_t)sizeof(count);
}

const struct spoke_signals spokei_host_signals = {
	.open = signals_open,
	.take = signals_take,
	.close = signals_close,
};
