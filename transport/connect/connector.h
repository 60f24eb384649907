/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps one place connected, which is a name, digits or a path. A round resolves the name off the
 * loop and tries all its addresses, one attempt in flight, from one on that the dice choose. When
 * all have failed it waits, longer after each round, and begins the next. A connection that ends
 * before its peer has spoken is a failed attempt too; only when a peer has spoken do the pauses
 * start over, and the loss of that connection begins with the first one.
 *
 * A peer that was silent may still have a system that accepts connections for it. So the next
 * connection after a suspicion is on probation until its peer has answered. On the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_CONNECT_CONNECTOR_H
#define SPOKEI_TRANSPORT_CONNECT_CONNECTOR_H

#include "core/base/pace.h"
#include "transport/conn/conn.h"

#include <spoke/link.h>

#define SPOKEI_CONNECTOR_HOST_MAX 255          /* bytes of a name */
#define SPOKEI_CONNECT_NS UINT64_C(5000000000) /* an attempt that takes longer has failed */
#define SPOKEI_BACKOFF_FIRST_NS UINT64_C(100000000)
#define SPOKEI_BACKOFF_CAP_NS UINT64_C(30000000000)
#define SPOKEI_CONNECTOR_WAIT_MAX_NS UINT64_C(86400000000000) /* the longest of these: a day */

enum spokei_connector_state {
	SPOKEI_CONNECTOR_RESOLVING,
	SPOKEI_CONNECTOR_CONNECTING, /* there is a connection, not open yet */
	SPOKEI_CONNECTOR_OPEN,
	SPOKEI_CONNECTOR_WAITING, /* for the next attempt */
	SPOKEI_CONNECTOR_DONE,    /* it was retired, and its connection has ended: to be freed */
	SPOKEI_CONNECTOR_CLOSED,
};

struct spokei_connector;

struct spokei_connector_options {
	const char *host; /* a name or digits; NULL: a unix socket. Copied */
	uint16_t port;
	const char *path; /* of the unix socket. Copied */
	const struct spokei_wire *wire;
	struct spokei_backoff backoff; /* 0: as above */
	uint64_t connect_ns;           /* 0: as above */
};

struct spokei_connector_up {
	/* Another state, or another connection in the state CONNECTING; `error` says why it waits,
	 * else 0. May free the connector. */
	void (*changed)(void *arg, struct spokei_connector *connector, int error);
	/* What users are told. May free the connector. NULL: nobody wants to know. */
	void (*event)(void *arg, const struct spoke_link_event *event);
};

/* How good its connection is for a call, the best first. */
enum spokei_grade {
	SPOKEI_GRADE_READY,
	SPOKEI_GRADE_SUSPECT,    /* a heartbeat is unanswered */
	SPOKEI_GRADE_PROBATION,  /* a new one, after a suspicion: unanswered */
	SPOKEI_GRADE_CONNECTING, /* calls queue there */
	SPOKEI_GRADE_NONE,
};

/*
 * Begins at once: where no name has to be resolved, it is CONNECTING already when this returns, or
 * WAITING. `changed` is called later, never from here, for this first state too unless another
 * follows it at once. Returns 0; or
 * SPOKE_EINVAL (neither host nor path, a bad path, a time over SPOKEI_CONNECTOR_WAIT_MAX_NS),
 * SPOKE_ETOOLARGE (the name or the path), SPOKE_ELIMIT (no timer left in the wheel: it holds one
 * for its life, so that it can always wait), SPOKE_ENOMEM.
 */
SPOKE_MUST_USE int spokei_connector_new(struct spokei_link *link,
					const struct spokei_connector_options *options,
					const struct spokei_connector_up *up, void *up_arg,
					struct spokei_connector **ret_connector);

/* No more attempts; its connection is closed with SPOKE_ECLOSED. Tells nothing any more, and is
 * freed when the connection has told its end and the name is resolved: before its engine is. NULL
 * is fine. */
void spokei_connector_free(struct spokei_connector *connector);

/*
 * Connects no more. Returns whether a connection stands: it takes no more calls and ends when those
 * under way have, which `changed` tells as DONE. Else the connector is to be freed now.
 */
SPOKE_MUST_USE bool spokei_connector_retire(struct spokei_connector *connector);

enum spokei_connector_state spokei_connector_state(const struct spokei_connector *connector);

/* The connection, in the states RESOLVING and CONNECTING (where calls queue) and OPEN, while it
 * takes calls; else NULL. */
struct spokei_conn *spokei_connector_conn(const struct spokei_connector *connector);

enum spokei_grade spokei_connector_grade(const struct spokei_connector *connector);

/* How it is with it now, for whoever shows it. */
struct spokei_connector_look {
	uint32_t attempt;  /* while it waits: the number of the next attempt ... */
	uint64_t retry_ns; /* ... and how long until it; else 0 */
	unsigned missed;   /* heartbeats without an answer */
	uint64_t quiet_ns; /* since the last byte; UINT64_MAX: none has come on this connection */
};

void spokei_connector_look(const struct spokei_connector *connector,
			   struct spokei_connector_look *ret_look);

/* What it connects to, as "demo.test:20880" or "unix:PATH"; lives as long as the connector. */
const char *spokei_connector_name(const struct spokei_connector *connector);

#endif
