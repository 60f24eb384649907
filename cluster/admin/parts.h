/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The struct of an admin page, and what its files use of one another: admin.c makes and ends it,
 * serve.c answers requests and writes to streams. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_ADMIN_PARTS_H
#define SPOKEI_CLUSTER_ADMIN_PARTS_H

#include "cluster/admin/status.h"
#include "core/engine/members.h"
#include "core/engine/task.h"
#include "core/memory/buffer.h"
#include "transport/http/server.h"
#include "transport/listen/quota.h"

#include <spoke/admin.h>

struct spokei_tls;

#define SPOKEI_ADMIN_ACTIONS_MAX 16u
#define SPOKEI_ADMIN_OWN_ACTIONS 2u
#define SPOKEI_ADMIN_PROBES 64u /* connections beyond viewers_max, which no viewer takes */
#define SPOKEI_ADMIN_BODY_MAX (SPOKEI_HTTP_OUT_MAX / 2) /* bytes of a response's body */
#define SPOKEI_ADMIN_TICK_NS UINT64_C(500000000)
#define SPOKEI_ADMIN_SAMPLE_NS UINT64_C(1000000000)

/* A timer of the class "admin". */
struct spokei_admin_timer {
	struct spoke_timer timer;
	void (*due)(struct spokei_admin_timer *timer);
};

struct spoke_admin {
	struct spoke_engine *engine;
	struct spokei_member member; /* of the engine's members */
	struct spokei_quota quota;
	struct spokei_listener *listener;
	struct spokei_tls *tls;         /* NULL: connections are plain */
	struct spokei_http_server http; /* its connections have a struct spokei_viewer */
	unsigned timer_class;
	struct spokei_admin_timer sample; /* once a second */
	struct spokei_admin_timer tick;   /* armed while there are streams */
	struct spokei_history history;
	struct spokei_buffer document; /* one event for all streams, made at each tick */
	struct spokei_buffer body;     /* of the response that is being made */
	const char *name;
	const char *token; /* of the next */
	bool token_reads;  /* GET needs it, too */
	const char *token_file;
	const char *hosts;
	/* Those of the program, then those of spoke, whose `arg` is this struct. */
	struct spoke_admin_action actions[SPOKEI_ADMIN_ACTIONS_MAX + SPOKEI_ADMIN_OWN_ACTIONS];
	size_t action_count;
	uint64_t number;
	uint64_t born_ns;
	uint32_t viewers_max;
	uint32_t viewers; /* connections that have asked for anything but a probe */
	char *texts;      /* memory of the texts above */
	size_t texts_size;
	char address[SPOKEI_HTTP_ADDRESS];
	bool closed; /* all that it did has ended */
	bool freed;  /* its user has freed it too; until then the struct stays */
	struct spokei_task finalise;
};

/* The page's own data of a connection. */
struct spokei_viewer {
	struct spokei_quota_peer *quota_peer;    /* in the quota */
	bool views;                              /* it is one of admin->viewers */
	const struct spoke_admin_action *action; /* runs once the response is written; or NULL */
	uint64_t events_from;                    /* the first event that a stream has not had */
	uint64_t history_from;                   /* the first such sample */
};

static inline struct spoke_admin *spokei_admin_of(const struct spokei_http_conn *conn)
{
	return spoke_container_of(spokei_http_server_of(conn), struct spoke_admin, http);
}

/* Adds the actions of spoke itself, unless the program has some of the same names. */
void spokei_admin_add_own(struct spoke_admin *admin);

/* Arms a timer, or moves it. Returns false if the wheel has no room. */
bool spokei_admin_arm(struct spoke_admin *admin, struct spokei_admin_timer *timer,
		      uint64_t delay_ns);

/* Writes to all streams; the function of admin->tick. */
void spokei_admin_tick(struct spokei_admin_timer *timer);

/* Handles the page's connections. */
extern const struct spokei_http_up spokei_admin_up;

#endif
