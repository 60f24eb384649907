/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The providers of a service as one consumer sees them: the list, their health, and the choice of
 * one for a call. Part of a consumer, on the engine's thread.
 *
 * A call goes to the best grade available: ready, else suspect, on probation, connecting. Among
 * equals the balancer chooses. Ejected endpoints, those at their limit of calls and removed ones
 * are excluded; if no other endpoint can take a call, ejected ones are used.
 */
#ifndef SPOKEI_CLUSTER_ENDPOINTS_DIRECTORY_H
#define SPOKEI_CLUSTER_ENDPOINTS_DIRECTORY_H

#include "cluster/config/owners.h"
#include "cluster/endpoints/candidates.h"
#include "cluster/endpoints/endpoint.h"

#include <spoke/policy.h>
#include <spoke/wheel.h>

struct spoke_url;
struct spokei_listing;
struct spokei_provider_url;
struct spokei_routing;
struct spokei_view;

struct spokei_directory_up {
	/* Link events for users. May end the directory. */
	void (*event)(void *arg, const struct spoke_link_event *event);
	/* A connected endpoint can take calls, and none could before; or connections have changed,
	 * which `awaited` asks for. Called on the engine's soon queue. May be NULL. */
	void (*able)(void *arg);
	/* An endpoint remembers requests, the first one that does. May be NULL. */
	void (*named)(void *arg);
	/* A resting directory has lost its last connection. */
	void (*rested)(void *arg);
	/* Applies the rules of operators to the URL of a provider. Returns 0, or SPOKE_ENOMEM.
	 * *ret_url is the URL itself unless they have changed its parameters. */
	int (*edit)(void *arg, const struct spoke_url *url, struct spoke_url *ret_url);
};

/* The response times of endpoints that are not ejected, in one round of looks. */
struct spokei_means {
	uint64_t sum_ns;
	size_t count;
};

struct spokei_directory {
	struct spoke_engine *engine;
	/* The only listed endpoint, if it has one connection, and no rule or tag decides; else NULL
	 */
	struct spokei_endpoint *sole;
	uint64_t look_ns;          /* next change by time: all are looked at again from then on */
	uint64_t next_ns;          /* next one of those that were looked at since */
	struct spokei_means means; /* of the last round, for eject.latency ... */
	struct spokei_means next_means; /* ... and of the present one */
	size_t look_at;                 /* next place to be looked at; 0: all were */
	uint64_t dice;                  /* state of its random numbers */
	size_t turn;                    /* next place in turn, without a balancer */
	bool stale;                     /* there are `news`, or `all` is true */
	bool all;           /* all endpoints are to be looked at before the next choice */
	bool barren;        /* no connected endpoint could take a call at the last refresh */
	bool needs_service; /* an endpoint's wire requires the name of the service */
	bool resting;
	bool ended;
	bool named;   /* an endpoint has told its instance */
	bool awaited; /* able() is to be called when a connection changes, once */
	bool routes;  /* there are rules, or listed endpoints with a tag, or calls have one */
	struct spokei_directory_settings settings;
	struct spokei_candidates candidates;
	struct spokei_link *link;
	struct spokei_routing *routing; /* NULL: there is no view and no rule so far */
	size_t tagged;                  /* listed endpoints with a tag */
	bool forced;       /* calls have a tag of the consumer, and go nowhere without it */
	uint64_t rerouted; /* changes of rules, tags and texts, from 1 on */
	const struct spokei_directory_up *up;
	void *up_arg;
	struct spokei_listing *listing; /* NULL: no list of a registry yet */
	struct spoke_list gone;         /* endpoints that were removed from the list */
	struct spoke_list news;         /* endpoints to be looked at before the next choice */
	uint64_t last_id;               /* of an endpoint */
	struct spokei_task check;       /* checks whether an endpoint can take calls */
};

/* The requirements of a call. */
struct spokei_ask {
	/* NULL: the first usable one in the list; without a balancer: in turn. */
	struct spokei_balancer_state *balancer_state;
	struct spoke_span key;
	uint64_t timeout_ns;
	const uint64_t *tried; /* ids of endpoints that are used only if no other can */
	size_t tried_count;
	uint64_t *sticky; /* in and out: id of the sticky endpoint, 0: none yet; may be NULL */
	struct spokei_view *view; /* the endpoints that the call may go to; NULL: all */
};

/* Initialises a directory, which must not be moved afterwards. */
void spokei_directory_init(struct spokei_directory *directory, struct spokei_link *link,
			   const struct spokei_directory_settings *settings,
			   const struct spokei_directory_up *up, void *up_arg);

/* Closes all connections, reporting open ones as CLOSED, and makes no more. No callbacks
 * follow. Calls in flight end. */
void spokei_directory_end(struct spokei_directory *directory);

/* Frees everything, after the link's last connection is freed and the last call has ended. */
void spokei_directory_fini(struct spokei_directory *directory);

/* Prepares for a drain: waiting reconnects are given up, connections send the drain notice,
 * and connecting ones are given up unless there are `calls`. */
void spokei_directory_rest(struct spokei_directory *directory, bool calls);

/*
 * Sets a fixed list; two URLs with one address are two endpoints. Returns 0 or an error, which
 * the engine's newest event explains; the list is unchanged then.
 */
SPOKE_MUST_USE int spokei_directory_fix(struct spokei_directory *directory,
					const struct spoke_url *urls, size_t count);

/*
 * Chooses an endpoint and the connection to call on. Returns 0; ENOPROVIDER: none is listed;
 * EUNAVAILABLE: none can take the call; ELIMIT: all have reached their limit of calls; or, if a
 * first connection could not be created, ENOMEM or ELIMIT.
 */
SPOKE_MUST_USE int spokei_directory_pick(struct spokei_directory *directory,
					 const struct spokei_ask *ask,
					 struct spokei_endpoint **ret_endpoint,
					 struct spokei_conn **ret_conn);

/* Counts the endpoints of a view (NULL: all) that can take a call, of any grade, and those of them
 * that were not tried. */
void spokei_directory_count(struct spokei_directory *directory, struct spokei_view *view,
			    const uint64_t *tried, size_t tried_count, uint32_t *ret_able,
			    uint32_t *ret_fresh);

/* Returns the number of listed endpoints of a view. */
size_t spokei_view_count(const struct spokei_view *view);

/* Applies changed settings. */
void spokei_directory_change(struct spokei_directory *directory,
			     const struct spokei_directory_settings *settings);

/* Returns the number of listed endpoints. */
static inline size_t spokei_directory_listed(const struct spokei_directory *directory)
{
	return directory->candidates.shown.count;
}

/* Returns why the last attempt to connect to an endpoint failed, as "place: reason"; NULL: no
 * attempt has. Valid until the next turn. */
const char *spokei_directory_reason(const struct spokei_directory *directory);

/* The grade of a connection may have changed. May free the connector of its line. */
void spokei_directory_changed(struct spokei_line *line);

/* Rules or tags have begun to decide, or have ended. */
void spokei_directory_route(struct spokei_directory *directory, bool routes);

/* An endpoint has told its instance for the first time. */
void spokei_directory_named(struct spokei_endpoint *endpoint);

/* Returns the listed endpoint with this id, or NULL. */
struct spokei_endpoint *spokei_directory_find(const struct spokei_directory *directory,
					      uint64_t id);

/* Passes a link event on to users. May end everything. */
void spokei_directory_tell(struct spokei_endpoint *endpoint, const struct spoke_link_event *event);

/* All candidates are looked at before the next choice. */
void spokei_directory_refresh_later(struct spokei_directory *directory);

/* The same for one endpoint, whose health has changed. */
void spokei_directory_note(struct spokei_endpoint *endpoint);

/* For lists. Makes an endpoint without a place. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_directory_make(struct spokei_directory *directory,
					 const struct spokei_provider_url *provider,
					 struct spokei_endpoint **ret_endpoint);

/* Gives an endpoint a place. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_directory_add(struct spokei_directory *directory,
					struct spokei_endpoint *endpoint);

/* Takes an endpoint's place. It is freed once its calls have ended. */
void spokei_directory_remove(struct spokei_endpoint *endpoint);

/* Excludes an endpoint for a moment because its output queue is full. Returns whether another
 * can take the call. */
bool spokei_directory_full(struct spokei_endpoint *endpoint);

/* Counts an attempt that begins at a chosen endpoint, which exists until the attempt has ended.
 * `now_ns` is when this turn began. */
static inline void spokei_directory_begun(struct spokei_endpoint *endpoint, uint64_t now_ns)
{
	struct spokei_directory *directory = endpoint->directory;

	endpoint->actives++;
	endpoint->calls++;
	endpoint->chosen_ns = now_ns;
	if (SPOKEI_UNLIKELY(endpoint->place == SPOKEI_NOWHERE))
		return;
	directory->candidates.actives[endpoint->place] = endpoint->actives;
	directory->candidates.chosen_ns[endpoint->place] = now_ns;
	spokei_candidates_moved(&directory->candidates, endpoint->place);
	if (SPOKEI_UNLIKELY(endpoint->actives == directory->settings.actives_max ||
			    endpoint->eject.aside)) {
		spokei_eject_begun(&endpoint->eject, now_ns);
		spokei_directory_note(endpoint);
	}
}

/* Counts the end of an attempt, `took_ns` after its beginning. `error` decides whether it counts as
 * a success of the endpoint. */
void spokei_directory_ended(struct spokei_endpoint *endpoint, int error, uint64_t took_ns);

#endif
