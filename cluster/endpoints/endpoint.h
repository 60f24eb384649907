/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One provider as a consumer sees it: the connections to it, and how it does. It belongs to a
 * directory; when that has removed it, it goes as soon as its connections and its attempts have
 * ended. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_ENDPOINTS_ENDPOINT_H
#define SPOKEI_CLUSTER_ENDPOINTS_ENDPOINT_H

#include "cluster/endpoints/eject.h"
#include "cluster/endpoints/score.h"
#include "core/engine/task.h"
#include "transport/connect/connector.h"

#define SPOKEI_NOWHERE UINT32_MAX
#define SPOKEI_ENDPOINT_APPLICATION 64u /* bytes that are kept, with the NUL */
#define SPOKEI_ENDPOINT_ADMIN 64u       /* bytes of the admin page's address, with the NUL */

struct spoke_engine;
struct spoke_link_event;
struct spokei_conn;
struct spokei_directory;
struct spokei_endpoint;
struct spokei_link;
struct spokei_listing;

/* One of its connections. */
struct spokei_line {
	struct spokei_endpoint *endpoint;
	struct spokei_connector *connector; /* NULL: not made yet, or freed */
};

/* What it tells. */
struct spokei_endpoint_up {
	/* Its grade may be another one. May free the line's connector. */
	void (*changed)(void *arg, struct spokei_line *line);
	/* What users are told. May end everything. */
	void (*event)(void *arg, const struct spoke_link_event *event);
};

struct spokei_endpoint {
	struct spoke_engine *engine;
	struct spokei_link *link;
	const struct spokei_endpoint_up *up;
	void *up_arg;
	struct spokei_directory *directory;
	uint64_t id;      /* never used again; not 0 */
	uint32_t place;   /* in the directory's arrays; NOWHERE: not listed any more */
	uint32_t actives; /* attempts that have not ended */
	uint64_t calls;   /* attempts that were begun, ever */
	uint64_t failures;
	uint64_t chosen_ns; /* when an attempt was begun last; 0: never */
	uint64_t full_ns;   /* until then it is not asked: a call did not fit what waits for it */
	uint64_t lost_ns;   /* when a lost connection was held against it last */
	struct spokei_score score;
	struct spokei_eject eject;
	uint32_t weight; /* when it is warm */
	uint64_t warmup_ms;
	uint64_t timestamp_ms; /* 0: it is warm */
	uint64_t listed_ns;    /* when that was read; it had been up for uptime_ms then */
	int64_t uptime_ms;
	uint64_t round; /* of the list it was last seen in */
	bool asleep;    /* no connection was wanted yet */
	bool removed;   /* not listed any more */
	uint32_t line_count;
	uint32_t turn; /* the line to ask next */
	struct spokei_connector_options options;
	const char *key;     /* what it is known by: `key_len` bytes, with those below */
	const char *name;    /* the place, as "127.0.0.1:20880" */
	const char *group;   /* that it has, "": none */
	const char *version; /* the same */
	char admin[SPOKEI_ENDPOINT_ADMIN]; /* where its process shows itself; "": it does not say */
	char application[SPOKEI_ENDPOINT_APPLICATION]; /* what that is called; "": the same */
	size_t key_len;
	size_t size; /* of this, with lines and texts */
	struct spoke_list node;
	struct spokei_task bury;
	struct spokei_line lines[];
};

/* Makes one, without connections; `listing` is borrowed. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_endpoint_new(struct spokei_link *link,
				       const struct spokei_listing *listing, uint32_t connections,
				       const struct spokei_endpoint_up *up, void *up_arg,
				       struct spokei_endpoint **ret_endpoint);

/* Takes over what the list says of it, but for the place. Returns whether it is news. */
bool spokei_endpoint_take(struct spokei_endpoint *endpoint, const struct spokei_listing *listing);

/* Its weight as of now, and whether it still grows. */
uint32_t spokei_endpoint_weight(const struct spokei_endpoint *endpoint, bool *ret_grows);

/* One that sleeps begins to connect. Returns 0; or as spokei_connector_new(): not all connections
 * could be made, and it sleeps on. */
SPOKE_MUST_USE int spokei_endpoint_wake(struct spokei_endpoint *endpoint);

/* Its best grade. One that sleeps is ready. */
enum spokei_grade spokei_endpoint_grade(const struct spokei_endpoint *endpoint);

/* A connection of its best grade, each in its turn; NULL: none takes calls. */
struct spokei_conn *spokei_endpoint_conn(struct spokei_endpoint *endpoint,
					 enum spokei_grade *ret_grade);

/* Closes a connection, and connects there no more. */
void spokei_line_drop(struct spokei_line *line);

/* Closes all; what stood is told as CLOSED. */
void spokei_endpoint_end(struct spokei_endpoint *endpoint);

/* It is not listed any more: connects no more, and calls that wait for a connection end with
 * EUNAVAILABLE. */
void spokei_endpoint_retire(struct spokei_endpoint *endpoint);

/* Its owner drains: see spokei_directory_rest(). */
void spokei_endpoint_rest(struct spokei_endpoint *endpoint, bool calls);

/* Does anything hold it? */
bool spokei_endpoint_busy(const struct spokei_endpoint *endpoint);

/* All has ended. */
void spokei_endpoint_free(struct spokei_endpoint *endpoint);

#endif
