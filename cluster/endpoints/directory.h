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

#include "cluster/balancer/least.h"
#include "cluster/balancer/state.h"
#include "cluster/config/owners.h"
#include "cluster/endpoints/endpoint.h"
#include "core/engine/task.h"
#include "core/memory/map.h"

#include <spoke/policy.h>
#include <spoke/wheel.h>

struct spoke_url;

struct spokei_directory_up {
	/* Link events for users. May end the directory. */
	void (*event)(void *arg, const struct spoke_link_event *event);
	/* A connected endpoint can take calls, and none could before. Called on the engine's
	 * soon queue. May be NULL. */
	void (*able)(void *arg);
	/* A resting directory has lost its last connection. */
	void (*rested)(void *arg);
};

/* Preference for an endpoint: its grade, below ASIDE; its grade plus ASIDE while it is
 * ejected; or one of the others. */
enum spokei_rank {
	SPOKEI_RANK_ASIDE = SPOKEI_GRADE_NONE,
	SPOKEI_RANK_FULL = 2 * SPOKEI_RANK_ASIDE, /* has reached its limit of calls */
	SPOKEI_RANK_NONE,
};

/* The endpoints of a directory as arrays for balancers. */
struct spokei_candidates {
	struct spoke_balancer_candidates shown; /* view for balancers */
	struct spokei_endpoint **endpoints;     /* in the order of the list */
	uint64_t *ids;
	uint64_t *means_ns;
	uint64_t *chosen_ns;
	const char **names;
	uint32_t *weights;
	uint32_t *actives;
	uint32_t *successes;
	uint8_t *ranks;
	uint8_t *able;
	struct spokei_moves moves;
	uint32_t *homes; /* likely place of an id, at id & (home_room - 1) */
	void *memory;
	size_t room;      /* capacity */
	size_t home_room; /* a power of two, at least `room` */
};

struct spokei_directory {
	struct spoke_engine *engine;
	struct spokei_endpoint
		*sole;      /* the only listed endpoint, if it has one connection; else NULL */
	uint64_t look_ns;   /* next change by time: refresh then */
	uint64_t list_id;   /* changes with the places; not 0 */
	uint64_t version;   /* changes with `able` or weights; not 0 */
	uint64_t dice;      /* state of its random numbers */
	bool others_told;   /* that the empty list has providers of other versions or groups */
	bool keeps;         /* that endpoints are kept in place of an empty list was logged */
	size_t turn;        /* next place in turn, without a balancer */
	size_t usable;      /* places that can take a call */
	uint8_t best;       /* rank of the able places */
	bool stale;         /* refresh before the next choice */
	bool barren;        /* no connected endpoint could take a call at the last refresh */
	bool needs_service; /* an endpoint's wire requires the name of the service */
	bool over;          /* the last list was longer than the limit, and logged */
	bool resting;
	bool ended;
	struct spokei_directory_settings settings;
	struct spokei_candidates candidates;
	struct spokei_link *link;
	const struct spokei_directory_up *up;
	void *up_arg;
	struct spokei_map keys;   /* endpoints listed by a registry, by key */
	struct spoke_list gone;   /* endpoints that were removed from the list */
	uint64_t last_id;         /* of an endpoint */
	uint64_t round;           /* number of the registry's latest list */
	uint64_t host_id;         /* of this process; 0: paths of providers are not used */
	struct spokei_task check; /* checks whether an endpoint can take calls */
	struct spoke_timer wake;  /* retries failed connects */
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
 * Sets the list of a registry. Endpoints that are missing are removed once their calls have
 * ended, new ones are connected. URLs of other groups and versions are ignored, invalid ones too,
 * with an event. Of several with one address the newest wins. More than endpoints.max are
 * ignored, with an event until a list fits again. Returns 0, or SPOKE_ENOMEM or SPOKE_ELIMIT if
 * some could not be added or the list is unchanged. An endpoint whose connection could not be
 * created is retried later.
 */
SPOKE_MUST_USE int spokei_directory_set(struct spokei_directory *directory,
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

/* Counts the endpoints that can take a call, of any grade, and those of them that were not
 * tried. */
void spokei_directory_count(struct spokei_directory *directory, const uint64_t *tried,
			    size_t tried_count, uint32_t *ret_able, uint32_t *ret_fresh);

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

/* Passes a link event on to users. May end everything. */
void spokei_directory_tell(struct spokei_directory *directory,
			   const struct spoke_link_event *event);

/* Schedules a refresh of the candidates. */
void spokei_directory_refresh_later(struct spokei_directory *directory);

/* Excludes an endpoint for a moment because its output queue is full. Returns whether another
 * can take the call. */
bool spokei_directory_full(struct spokei_endpoint *endpoint);

/* The figures of a place have changed. Balancers look at all places of a few. */
static inline void spokei_candidates_moved(struct spokei_candidates *candidates, size_t place)
{
	if (SPOKEI_UNLIKELY(candidates->shown.count > SPOKEI_LEAST_BLOCK))
		spokei_moves_note(&candidates->moves, place);
}

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
		directory->stale = true;
	}
}

/* Counts the end of an attempt, `took_ns` after its beginning. `error` decides whether it counts as
 * a success of the endpoint. */
void spokei_directory_ended(struct spokei_endpoint *endpoint, int error, uint64_t took_ns);

#endif
