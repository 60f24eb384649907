/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State changes of connections. Consumers and providers report them to their option `changed`.
 *
 * A connection that received nothing for one interval (`heartbeat`) is probed with a heartbeat.
 * While a heartbeat stays unanswered for an interval, the connection is suspect, and calls avoid it
 * if they can. After three unanswered heartbeats it is closed, and a consumer reconnects. The
 * interval of the other side does not matter.
 */
#ifndef SPOKE_LINK_H
#define SPOKE_LINK_H

#include <spoke/error.h>
#include <spoke/stats.h>

#include <stdbool.h>
#include <stdint.h>

SPOKE_BEGIN_DECLS

/* Value of options that are intervals: switched off. */
#define SPOKE_OFF UINT64_MAX

/* Identifies a connection of a provider, by value. The identity of a closed connection stays safe
 * to use and is not reused. { 0 }: none. */
struct spoke_peer {
	uint64_t handle;
};

/* State changes of a connection. */
enum spoke_link_change {
	SPOKE_LINK_CONNECTED, /* connected; at a provider: the peer has also sent bytes */
	SPOKE_LINK_PROBATION, /* connected, but the peer was silent before and must answer first */
	SPOKE_LINK_SUSPECT,   /* a heartbeat is unanswered; reported for each, see `missed` */
	SPOKE_LINK_RECOVERED, /* no longer suspect, on probation or read-only */
	SPOKE_LINK_READONLY,  /* the peer takes no more calls */
	/* Closed; `error` is the reason. ECLOSED: the owner closed it, or it ended after the
	 * peer's drain notice (READONLY) with no call outstanding. */
	SPOKE_LINK_CLOSED,
	SPOKE_LINK_RECONNECTING, /* a consumer pauses before its next attempt; `error`: why */
};

/* One state change; borrowed for the callback. */
struct spoke_link_event {
	enum spoke_link_change change;
	enum spoke_event_user user; /* HEARTBEAT: silence, or its end, caused it; else NONE */
	int error;                  /* for CLOSED and RECONNECTING; else SPOKE_OK */
	const char *name;           /* the configured endpoint, or the address of the peer */
	/* For RECONNECTING: why the last attempt failed, e.g. "Connection refused (ECONNREFUSED)".
	 * "" or NULL: nothing is known. */
	const char *reason;
	struct spoke_peer peer; /* the connection of a provider; else { 0 } */
	unsigned missed;        /* for SUSPECT: unanswered heartbeats in a row, 1 to 3 */
	uint32_t attempt;       /* for RECONNECTING: number of the next attempt since success */
	uint64_t pause_ns;      /* for RECONNECTING: time until this attempt */
};

/* Called on the engine's thread after a change. May call any function and free the owner of the
 * connection. Connections closed by the end of their owner are reported only if the engine ended
 * the owner. */
typedef void (*spoke_link_changed_fn)(void *arg, const struct spoke_link_event *event);

/* Returns the name of a change in lower case, e.g. "probation"; NULL for other numbers. */
SPOKE_API const char *spoke_link_change_name(enum spoke_link_change change);

SPOKE_END_DECLS

#endif
