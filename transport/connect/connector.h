/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps one address connected: a name with a port, an IP address or the path of a unix socket. In
 * each round the name is resolved off the loop and all its addresses are tried, one attempt at a
 * time, from a random one on. When all have failed, the connector waits (backoff: longer after each
 * round) and starts again. A connection that ends before its peer has sent a valid message is a
 * failed attempt, too. So is one that ends because the peer broke the protocol or drains, unless it
 * was open for as long as the longest pause.
 *
 * The same peer may listen at the path of a unix socket on this host, too. Each round begins with
 * that path. If the peer does not answer a greeting there, the round goes on as above.
 *
 * The kernel of a silent peer may still accept connections. So the next connection after a
 * suspicion is on probation until its peer has answered. On the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_CONNECT_CONNECTOR_H
#define SPOKEI_TRANSPORT_CONNECT_CONNECTOR_H

#include "core/base/pace.h"

#include <spoke/base.h>

#define SPOKEI_CONNECT_NS UINT64_C(5000000000) /* default time limit of an attempt */
#define SPOKEI_BACKOFF_FIRST_NS UINT64_C(100000000)
#define SPOKEI_BACKOFF_CAP_NS UINT64_C(30000000000)
#define SPOKEI_CONNECTOR_WAIT_MAX_NS                                                               \
	UINT64_C(86400000000000) /* limit of backoff and connect times: a day */

enum spokei_connector_state {
	SPOKEI_CONNECTOR_RESOLVING,
	SPOKEI_CONNECTOR_CONNECTING, /* a connection exists, but is not open yet */
	SPOKEI_CONNECTOR_OPEN,
	SPOKEI_CONNECTOR_WAITING, /* backoff before the next attempt */
	SPOKEI_CONNECTOR_DONE,    /* it was retired, and its connection has ended: free it */
	SPOKEI_CONNECTOR_CLOSED,
};

struct spoke_link_event;
struct spokei_conn;
struct spokei_connector;
struct spokei_link;
struct spokei_message;
struct spokei_wire;

/* Profile ids below this are ids of serializations: the peer asks for nothing else. */
#define SPOKEI_PROFILE_OWN 32u

/*
 * The common part of all requests to one peer, and how often it expects heartbeats: their
 * serialization, and the names and attachments that its provider asks for in the registry. The
 * owner of a connector changes the profile and gives it a new id; a request that is encoded ahead
 * is valid for one id.
 */
struct spokei_connector_profile {
	uint64_t id; /* not 0 */
	uint8_t codec;
	/* Interval of silence at which the provider expects a heartbeat; 0: none. A longer interval
	 * of the link counts as this one. */
	uint64_t heartbeat_ns;
	const char *path;  /* of the service at its provider; NULL: the service's name */
	const char *token; /* to be sent with each request; NULL: none */
	/* No network lies between: the peer is at a unix socket or a loopback address. */
	bool near;
};

struct spokei_connector_options {
	const char *host; /* a name or an IP address; NULL: a unix socket. Copied */
	uint16_t port;
	const char *path; /* of the unix socket. Copied */
	/* Path of a unix socket at which the peer can be reached, too, on wires with heartbeats;
	 * NULL: none. Copied */
	const char *local;
	bool shm; /* memory is shared over that socket */
	const struct spokei_wire *wire;
	/* Of the requests of its connections, borrowed for its life; NULL: the default. */
	const struct spokei_connector_profile *profile;
	struct spokei_backoff backoff; /* 0: the default */
	uint64_t connect_ns;           /* 0: the default */
};

struct spokei_connector_up {
	/* Called for each new state, for each new connection in the state CONNECTING, and when the
	 * peer has told its instance; `error` is why it waits, else 0. May free the connector. */
	void (*changed)(void *arg, struct spokei_connector *connector, int error);
	/* Called for events that users see. May free the connector. May be NULL. */
	void (*event)(void *arg, const struct spoke_link_event *event);
};

/* How suitable its connection is for a call, the best first. */
enum spokei_grade {
	SPOKEI_GRADE_READY,
	SPOKEI_GRADE_SUSPECT,    /* a heartbeat is unanswered */
	SPOKEI_GRADE_PROBATION,  /* a new connection after a suspicion, not answered yet */
	SPOKEI_GRADE_CONNECTING, /* calls queue there */
	SPOKEI_GRADE_NONE,
};

/*
 * Starts at once: if no name has to be resolved, the state is CONNECTING or WAITING when this
 * returns. `changed` is called later, never from here, also for this first state unless another one
 * follows at once. Returns 0; or SPOKE_EINVAL (neither host nor path, a bad path, a time over
 * SPOKEI_CONNECTOR_WAIT_MAX_NS), SPOKE_EUNSUPPORTED (shared memory with TLS, or where it is not
 * available), SPOKE_ETOOLARGE (the name or the path), SPOKE_ELIMIT (the wheel
 * has no timer left: a connector holds one for its life, so that it can always wait), SPOKE_ENOMEM.
 */
SPOKE_MUST_USE int spokei_connector_new(struct spokei_link *link,
					const struct spokei_connector_options *options,
					const struct spokei_connector_up *up, void *up_arg,
					struct spokei_connector **ret_connector);

/*
 * Stops: no more attempts, its connection is closed with SPOKE_ECLOSED, and nothing is reported any
 * more. Its memory is freed when the connection has ended and the resolver has returned, before its
 * engine is freed. NULL is fine.
 */
void spokei_connector_free(struct spokei_connector *connector);

/*
 * Retires: makes no new connections. Returns whether a connection is open: it takes no more calls,
 * ends after its last one, and `changed` then reports DONE. Otherwise the connector is to be freed
 * now.
 */
SPOKE_MUST_USE bool spokei_connector_retire(struct spokei_connector *connector);

enum spokei_connector_state spokei_connector_state(const struct spokei_connector *connector);

/* Returns the connection: in the states RESOLVING and CONNECTING, where calls queue, and OPEN while
 * it takes calls; else NULL. */
struct spokei_conn *spokei_connector_conn(const struct spokei_connector *connector);

enum spokei_grade spokei_connector_grade(const struct spokei_connector *connector);

/* Returns whether its connection is open, and leads to the path `local`. */
bool spokei_connector_is_local(const struct spokei_connector *connector);

/* A snapshot for display. */
struct spokei_connector_look {
	uint32_t attempt;  /* while it waits: number of the next attempt */
	uint64_t retry_ns; /* ... and the time until then; else 0 */
	unsigned missed;   /* unanswered heartbeats in a row */
	uint64_t
		quiet_ns; /* since the last byte; UINT64_MAX: none has arrived on this connection */
};

void spokei_connector_look(const struct spokei_connector *connector,
			   struct spokei_connector_look *ret_look);

/* Returns the address as text, e.g. "demo.test:20880" or "unix:PATH"; valid as long as the
 * connector. */
const char *spokei_connector_name(const struct spokei_connector *connector);

#define SPOKEI_CONNECTOR_REASON 192u

/* Returns why the last attempt has failed, e.g. "127.0.0.1:20880: Connection refused
 * (ECONNREFUSED)"; "": none has since a peer was heard. */
const char *spokei_connector_reason(const struct spokei_connector *connector);

#endif
