/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for libev, ahead; see ahead.h. */
#include "core/host/ahead.h"

#include <ev.h>
#include <unistd.h>

enum {
	FDS_AHEAD = 4096,  /* descriptors of a process that libev has room for from the start */
	READY_AHEAD = 256, /* of which so many are ready or changed in one round */
};

static void ignore(struct ev_loop *ev, struct ev_io *io, int events)
{
	(void)ev;
	(void)io;
	(void)events;
}

/*
 * Grows its table of descriptors, its lists of those that changed and that are ready. Started and
 * stopped between two rounds, a watcher leaves room behind and makes no system call. (What the
 * kernel reports into cannot be reached from here: 64 entries of 12 bytes that double when they are
 * full.)
 */
static void grow(struct ev_loop *ev)
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

struct ev_loop *spokei_ahead_new(void)
{
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);

	if (ev)
		grow(ev);
	return ev;
}
