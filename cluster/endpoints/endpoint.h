/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One provider as a consumer sees it: its connections and its health. It belongs to a directory.
 * Once removed from the list it is freed when its connections and attempts have ended. On the
 * engine's thread.
 */
#ifndef SPOKEI_CLUSTER_ENDPOINTS_ENDPOINT_H
#define SPOKEI_CLUSTER_ENDPOINTS_ENDPOINT_H

#include "cluster/endpoints/health.h"
#include "core/engine/task.h"
#include "transport/connect/connector.h"

#include <spoke/url.h>

#define SPOKEI_NOWHERE UINT32_MAX
#define SPOKEI_ENDPOINT_APPLICATION 64u /* bytes that are kept, with the NUL */
#define SPOKEI_ENDPOINT_TAG 64u         /* bytes of a tag, with the NUL */
#define SPOKEI_ENDPOINT_ADMIN 64u       /* bytes of the admin page's address, with the NUL */

struct spoke_engine;
struct spoke_link_event;
struct spokei_conn;
struct spokei_directory;
struct spokei_endpoint;
struct spokei_provider_url;

/* One connection slot of an endpoint. */
struct spokei_line {
	struct spokei_endpoint *endpoint;
	struct spokei_connector *connector; /* NULL: not made yet, or freed */
	struct spokei_conn *open;           /* its connection; NULL: it is not open, or is young */
};

struct spokei_endpoint {
	struct spoke_engine *engine;
	struct spokei_directory *directory;
	uint64_t id;      /* never reused; not 0 */
	uint32_t place;   /* place in the directory's arrays; NOWHERE: not listed */
	uint32_t actives; /* attempts in flight */
	uint64_t calls;   /* attempts ever begun */
	uint64_t failures;
	uint64_t chosen_ns; /* beginning of the last attempt; 0: never */
	uint64_t full_ns;   /* excluded until then, because its output queue was full */
	uint64_t lost_ns;   /* last time that a lost connection counted as a failure */
	struct spokei_score score;
	struct spokei_eject eject;
	uint32_t weight; /* after the warm-up */
	uint64_t warmup_ms;
	uint64_t timestamp_ms; /* 0: no warm-up */
	uint64_t listed_ns;    /* time of reading these values, with an uptime of uptime_ms */
	int64_t uptime_ms;
	uint32_t listed; /* texts of a registry's list that name it */
	uint32_t entry;  /* index of one of them */
	bool touched;    /* its texts have changed: `chore` is in the list of such endpoints */
	bool asleep;     /* not connected yet */
	bool removed;    /* not listed */
	bool named;      /* it has told its instance: it remembers requests, or did */
	uint32_t line_count;
	uint32_t turn; /* next line in turn */
	struct spokei_connector_options options;
	struct spokei_connector_profile profile; /* of its requests */
	const char *key;                   /* `key_len` bytes, which include the texts below */
	const char *name;                  /* address, e.g. "127.0.0.1:20880" */
	const char *group;                 /* "": none */
	const char *version;               /* "": none */
	char admin[SPOKEI_ENDPOINT_ADMIN]; /* address of the admin page; "": none */
	char application[SPOKEI_ENDPOINT_APPLICATION]; /* name of the application; "": none */
	char tag[SPOKEI_ENDPOINT_TAG]; /* calls without this tag go elsewhere; "": none */
	struct spoke_url url;          /* its text of the list, for rules; empty: not read yet */
	size_t key_len;
	size_t size; /* of this struct with lines and texts */
	struct spoke_list node;
	struct spoke_list news;  /* of endpoints to be looked at before the next choice */
	struct spoke_list chore; /* of endpoints whose texts have changed, or to be connected */
	struct spokei_task finalise;
	struct spokei_line lines[];
};

/* Makes an endpoint without connections; `provider` is borrowed. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_endpoint_new(struct spokei_directory *directory,
				       const struct spokei_provider_url *provider,
				       struct spokei_endpoint **ret_endpoint);

/* Returns whether a host is this machine, without asking for its address. */
bool spokei_endpoint_is_near(const char *host);

/* Returns whether the provider is connected to, and requests are written, as the list asks for. If
 * not, another endpoint has to replace this one. */
bool spokei_endpoint_fits(const struct spokei_endpoint *endpoint,
			  const struct spokei_provider_url *provider);

/* Updates weight, application and admin page from the list. Returns whether the weight has
 * changed. */
bool spokei_endpoint_take(struct spokei_endpoint *endpoint,
			  const struct spokei_provider_url *provider);

/* Returns the weight during warm-up, at least 1 unless `weight` is 0. `uptime_ms` may be
 * negative if clocks differ. */
uint32_t spokei_endpoint_warm(uint32_t weight, uint64_t warmup_ms, int64_t uptime_ms);

/* Returns the current weight, and whether it still grows. */
uint32_t spokei_endpoint_weight(const struct spokei_endpoint *endpoint, bool *ret_grows);

/* Connects a sleeping endpoint. Returns 0; or as spokei_connector_new(), and the endpoint
 * sleeps on. */
SPOKE_MUST_USE int spokei_endpoint_wake(struct spokei_endpoint *endpoint);

/* Returns its best grade. A sleeping endpoint is ready. */
enum spokei_grade spokei_endpoint_grade(const struct spokei_endpoint *endpoint);

/* Returns a connection of its best grade, in turn; NULL: none takes calls. */
struct spokei_conn *spokei_endpoint_conn(struct spokei_endpoint *endpoint,
					 enum spokei_grade *ret_grade);

/* Finds a connection to this instance of the provider. Returns 0; SPOKE_EUNAVAILABLE: there is
 * none now, but a new connection may turn out to be one; SPOKE_ENOPROVIDER: other instances are
 * there instead. */
SPOKE_MUST_USE int spokei_endpoint_reach(const struct spokei_endpoint *endpoint, uint32_t instance,
					 struct spokei_conn **ret_conn);

/* Closes a connection for good. */
void spokei_line_drop(struct spokei_line *line);

/* Returns why the last attempt to connect to an endpoint failed; NULL: none did. */
const char *spokei_endpoint_reason(const struct spokei_endpoint *endpoint);

/* Closes all connections, and reports open ones as CLOSED. */
void spokei_endpoint_end(struct spokei_endpoint *endpoint);

/* Stops connecting, because the endpoint was removed from the list. Calls that wait for a
 * connection end with EUNAVAILABLE. */
void spokei_endpoint_retire(struct spokei_endpoint *endpoint);

/* Prepares for a drain: see spokei_directory_rest(). */
void spokei_endpoint_rest(struct spokei_endpoint *endpoint, bool calls);

/* Frees an endpoint that has neither connections nor attempts. */
void spokei_endpoint_free(struct spokei_endpoint *endpoint);

/* Frees an endpoint that was removed from the list, at the end of the turn, if nothing uses it. */
void spokei_endpoint_free_if_over(struct spokei_endpoint *endpoint);

#endif
