/* SPDX-License-Identifier: Apache-2.0 */
/* Preallocates the tables of libev; see ahead.h. */
#include "core/host/ahead.h"

#include <ev.h>
#include <unistd.h>

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

struct ev_loop *spokei_ahead_new(void)
{
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);

	if (ev)
		grow(ev);
	return ev;
}
