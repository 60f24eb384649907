/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of connections, as consumers and providers tell it: their options `changed` and
 * `changed_arg`. A connection on which nothing was heard for an interval (`heartbeat`) is asked
 * whether its peer lives. While one heartbeat is unanswered for an interval it is suspect, and
 * calls go elsewhere if they can; after three it is closed, and a consumer connects anew. The
 * interval of the other side does not matter.
 */
#ifndef SPOKE_LINK_H
#define SPOKE_LINK_H

#include <spoke/error.h>
#include <spoke/stats.h>

#include <stdbool.h>
#include <stdint.h>

SPOKE_BEGIN_DECLS

/* For options that are intervals: none at all. */
#define SPOKE_OFF UINT64_MAX

/* Names a connection of a provider, by value; one that is gone is noticed. { 0 } names none. */
struct spoke_peer {
	uint64_t handle;
};

enum spoke_link_change {
	SPOKE_LINK_CONNECTED, /* it stands; of a provider's: and its peer has spoken */
	SPOKE_LINK_PROBATION, /* it stands, but its peer was silent before: it has to answer first
			       */
	SPOKE_LINK_SUSPECT,   /* a heartbeat is unanswered; told for each, see `missed` */
	SPOKE_LINK_RECOVERED, /* what was suspect, on probation or read-only no longer is */
	SPOKE_LINK_READONLY,  /* the peer takes no more calls */
	/* ECLOSED: after a goodbye (READONLY) on which nobody waited any more, or by its owner's
	 * end. */
	SPOKE_LINK_CLOSED,       /* it is no more; `error` says why */
	SPOKE_LINK_RECONNECTING, /* a consumer pauses before its next attempt; `error`: why */
};

/* Borrowed for the callback. */
struct spoke_link_event {
	enum spoke_link_change change;
	enum spoke_event_user user; /* HEARTBEAT: silence led to it, or its end; else NONE */
	int error;                  /* of CLOSED and RECONNECTING; else SPOKE_OK */
	const char *name;           /* the endpoint as it was named, or the peer's address */
	struct spoke_peer peer;     /* of a provider's connection; else { 0 } */
	unsigned missed;            /* of SUSPECT: heartbeats without an answer in a row, 1 to 3 */
	uint32_t attempt;  /* of RECONNECTING: the next one's number since the last success */
	uint64_t pause_ns; /* of RECONNECTING: until then */
};

/* Called on the engine's thread, after the fact; it may call anything, and free its owner. What the
 * owner's end closes is told only if the engine ends it. */
typedef void (*spoke_link_changed_fn)(void *arg, const struct spoke_link_event *event);

/* The name of a change in small letters, as "probation"; NULL for none. */
SPOKE_API const char *spoke_link_change_name(enum spoke_link_change change);

SPOKE_END_DECLS

#endif
