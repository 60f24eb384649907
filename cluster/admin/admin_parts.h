/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rooms of the admin page share: the page's owner, who listens and keeps the times, and
 * its viewers, of whom each is one connection. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_ADMIN_ADMIN_PARTS_H
#define SPOKEI_CLUSTER_ADMIN_ADMIN_PARTS_H

#include "cluster/admin/status.h"
#include "core/engine/roll.h"
#include "core/engine/task.h"
#include "transport/http/request.h"
#include "transport/listen/listener.h"
#include "transport/stream/stream.h"

#include <spoke/admin.h>

#define SPOKEI_ADMIN_ACTIONS_MAX 16u
#define SPOKEI_ADMIN_OUT_MAX ((size_t)16777216) /* bytes of an answer */
#define SPOKEI_ADMIN_ADDRESS 160u               /* bytes of an address as text */
#define SPOKEI_ADMIN_TICK_NS UINT64_C(500000000)
#define SPOKEI_ADMIN_SAMPLE_NS UINT64_C(1000000000)
#define SPOKEI_ADMIN_REQUEST_NS UINT64_C(5000000000) /* a request has to be complete within */
#define SPOKEI_ADMIN_SLOW_NS                                                                       \
	UINT64_C(30000000000)                       /* an answer has to be taken, a stream to move \
						     */
#define SPOKEI_ADMIN_LINGER_NS UINT64_C(2000000000) /* for the peer to end it first */

/* A timer of the class "admin". */
struct spokei_admin_timer {
	struct spoke_timer timer;
	void (*due)(struct spokei_admin_timer *timer);
};

struct spoke_admin {
	struct spoke_engine *engine;
	struct spokei_member member; /* of the engine's roll */
	struct spokei_quota quota;
	struct spokei_listener *listener;
	struct spoke_list viewers; /* struct spokei_viewer */
	unsigned timer_class;
	struct spokei_admin_timer sample; /* takes one a second */
	struct spokei_admin_timer tick;   /* armed while somebody watches the stream */
	struct spokei_history history;
	struct spokei_buffer document; /* what the streams are told at a tick, made once for all */
	struct spokei_buffer body;     /* of the answer that is being made */
	const char *name;
	const char *token;
	const char *hosts;
	struct spoke_admin_action actions[SPOKEI_ADMIN_ACTIONS_MAX];
	size_t action_count;
	uint64_t number;
	uint64_t born_ns;
	uint32_t viewers_max;
	char *texts; /* to which the pointers above point */
	size_t texts_size;
	char address[SPOKEI_ADMIN_ADDRESS];
	bool closed; /* all that it does has ended ... */
	bool freed;  /* ... and its owner knows: it goes; else it stays as a shell */
	struct spokei_task bury;
};

enum spokei_viewer_state {
	SPOKEI_VIEWER_ASKING,    /* its request is being read */
	SPOKEI_VIEWER_ANSWERED,  /* what is in `out` is the rest */
	SPOKEI_VIEWER_STREAMING, /* told at every tick */
	SPOKEI_VIEWER_LINGERING, /* all is written, and the peer ends it */
};

struct spokei_viewer {
	struct spoke_list node; /* of the admin's viewers */
	struct spoke_admin *admin;
	struct spokei_stream stream;
	struct spokei_admin_timer timer; /* see the times above; not armed while it streams */
	struct spoke_address peer;
	struct spokei_buffer in;
	struct spokei_buffer out;
	enum spokei_viewer_state state;
	bool closed;
	const struct spoke_admin_action *action; /* to be done when the answer is written */
	uint64_t events_from;                    /* what the stream has not been told yet */
	uint64_t history_from;                   /* ... of samples */
	uint64_t moved_ns;                       /* when its output moved last, or began to wait */
	struct spokei_task bury;
};

/* --- viewer.c */

/* Takes a connection over, which is counted into the crowd. */
void spokei_viewer_take(struct spoke_admin *admin, int fd, const struct spoke_address *peer);

/* Closes it at once; anywhere. */
void spokei_viewer_close(struct spokei_viewer *viewer);

/* Gives a stream bytes, borrowed for the call, as much as goes; the rest waits at the viewer, who
 * has to be done with what it was given before. May close it. */
void spokei_viewer_tell(struct spokei_viewer *viewer, unsigned char *bytes, size_t len);

/* --- serve.c */

/* Answers the request: appends to viewer->out, and sets its state and action. Returns 0, or an
 * error: nobody can be answered then. */
SPOKE_MUST_USE int spokei_admin_serve(struct spokei_viewer *viewer,
				      const struct spokei_http_request *request);

/* Answers what could not be read, with that status. */
SPOKE_MUST_USE int spokei_admin_refuse(struct spokei_viewer *viewer, int status, bool head_only);

/* Who shows it, and from which event and sample on. */
struct spokei_status_of spokei_admin_status_of(const struct spoke_admin *admin,
					       uint64_t events_from, uint64_t history_from);

/* --- streams.c */

/* The timer's: tells all streams what is new. */
void spokei_admin_tick(struct spokei_admin_timer *timer);

/* A stream has begun, or has ended: there is the timer if there is one. May close viewers. */
void spokei_admin_watched(struct spoke_admin *admin);

/* --- admin.c */

/* Arms a timer, or moves it. Returns whether there was room for it. */
bool spokei_admin_arm(struct spoke_admin *admin, struct spokei_admin_timer *timer,
		      uint64_t delay_ns);

#endif
