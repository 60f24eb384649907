/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a connector, for one another: report.c has its state and reports changes, keep.c
 * keeps its address connected and calls report.c.
 */
#ifndef SPOKEI_TRANSPORT_CONNECT_PARTS_H
#define SPOKEI_TRANSPORT_CONNECT_PARTS_H

#include "core/engine/task.h"
#include "transport/connect/connector.h"
#include "transport/connect/resolve.h"

#include <spoke/stats.h>
#include <spoke/wheel.h>

/* Bytes of a name in an event: unix sockets and most hosts are shown whole. */
#define SPOKEI_CONNECTOR_SHOWN 120u

struct spokei_greeting;

struct spokei_connector {
	struct spoke_engine *engine;
	struct spokei_link *link; /* not used after close: its owner may be gone */
	const struct spokei_connector_up *up;
	void *up_arg;
	const struct spokei_wire *wire;
	const struct spokei_connector_profile *profile; /* NULL: the default */
	struct spokei_backoff backoff;
	uint64_t connect_ns;
	enum spokei_connector_state state;
	int error;                /* for reports */
	struct spokei_conn *conn; /* until it has reported its end */
	uint32_t failures;        /* backoffs since a peer has sent a message */
	uint32_t unheard;         /* connections in a row that a known peer ended unheard */
	uint64_t pause_ns;        /* the last backoff */
	bool young;               /* inside new(): nothing is reported */
	bool heard;               /* the peer of this connection has sent a message */
	bool acquainted;          /* ... or the peer of one before */
	bool suspected;           /* the last peer was silent, and none has answered since */
	bool retired;             /* makes no new connections */
	bool complained;          /* this series of failures was logged */
	bool hinted;              /* ... with the question whether the peer expects TLS */
	bool by_path;             /* the present attempt or connection leads to `local` */
	bool path_failed;         /* ... the last attempt of that kind has failed, and was logged */
	bool shuns_path;          /* ... the last connection of that kind has brought no answer */
	char reason[SPOKEI_CONNECTOR_REASON]; /* place, and why the last attempt failed; "": none */
	uint32_t reason_at;                   /* where the text behind the place begins */
	unsigned timer_class;
	struct spoke_timer
		timer; /* armed during its whole life: backoff, an attempt's limit, or its place */
	struct spokei_resolve resolve;
	struct spokei_place place;
	struct spoke_address local;       /* path of the same peer on this host */
	struct spokei_greeting *greeting; /* the first bytes sent there; NULL: none */
	struct spokei_task news;          /* reports changes made inside new() */
	struct spokei_task bury;
};

/* Returns the subsystem to which a reconnect is attributed. */
static inline enum spoke_event_user spokei_connector_user(const struct spokei_connector *connector)
{
	return connector->suspected ? SPOKE_EVENT_OF_HEARTBEAT : SPOKE_EVENT_OF_NONE;
}

/* --- attempt.c */

/* Arms the timer. The wheel has room, because the timer is armed during its whole life. */
SPOKE_MUST_USE int spokei_connector_arm(struct spokei_connector *connector, uint64_t delay_ns);

/* Does the same; an error, at the end of the wheel's time range, is reported as an event. */
void spokei_connector_set_timer(struct spokei_connector *connector, uint64_t delay_ns);

/* Sets the path of the peer on this host. Returns 0 or the error of spokei_connector_new(). */
SPOKE_MUST_USE int spokei_connector_set_path(struct spokei_connector *connector, const char *path);

/* Tries the path, if there is one; or the next address of this round. Returns whether an attempt
 * has begun, on the connection, which has no descriptor. */
bool spokei_connector_try_path(struct spokei_connector *connector);
bool spokei_connector_try_next(struct spokei_connector *connector);

/* --- report.c */

/* Returns whether an open connection is on probation. */
bool spokei_connector_on_probation(const struct spokei_connector *connector);

/* Changes the state. Call it last: the owner may free the connector. */
void spokei_connector_tell(struct spokei_connector *connector, enum spokei_connector_state state,
			   int error);

/* Reports an event to users. Returns whether the connector still exists. */
bool spokei_connector_announce(struct spokei_connector *connector, struct spoke_link_event *event);
void spokei_connector_announce_pause(struct spokei_connector *connector);

/* Returns the part of a name that events show: its end, which has the port or the socket. */
const char *spokei_connector_shown(const char *name);

/* Prints the address where a connection leads, cut to `size` with the NUL. */
void spokei_connector_print(const struct spokei_connector *connector,
			    const struct spokei_conn *conn, char *text, size_t size);

/* The function of the task `news`. */
void spokei_connector_news(struct spokei_task *task);

/* Logs the end of an open connection, which `news` describes. A plain connection that ends before
 * the peer has sent a byte raises a question, once until a peer has sent a message. */
void spokei_connector_report_loss(struct spokei_connector *connector,
				  const struct spokei_conn *conn,
				  const struct spoke_link_event *news);

/* Logs once why attempts fail, until a peer has sent a message; counters have the number. */
SPOKEI_PRINTF(3, 4)
void spokei_connector_complain(struct spokei_connector *connector, int error, const char *format,
			       ...);
void spokei_connector_complain_of_system(struct spokei_connector *connector, int error, int status);
void spokei_connector_complain_of_stream(struct spokei_connector *connector,
					 const struct spokei_conn *conn);
/* Logs once why the path of the peer cannot be used, until it can. */
void spokei_connector_complain_of_path(struct spokei_connector *connector, int status);
/* The time for connecting is over. */
void spokei_connector_complain_of_time(struct spokei_connector *connector);

/* Events of the connector's connection: the peer has sent something, or a reply; a heartbeat is
 * missed; a reason against the connection is gone, because of this user of the wheel. */
void spokei_connector_heard(struct spokei_connector *connector);
void spokei_connector_answered(struct spokei_connector *connector);
void spokei_connector_missed(struct spokei_connector *connector, unsigned missed);
void spokei_connector_recovered(struct spokei_connector *connector, enum spoke_event_user user);

#endif
