/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The providers of a service as one consumer sees them: who is listed, who can take a call now, and
 * which of those does. Part of a consumer, on the engine's thread.
 *
 * A call goes to the best there are: those that are ready; else suspect, on probation, connecting.
 * Among them the balancer chooses. Endpoints that are put aside after failures (ejected), that have
 * as many calls under way as they may, or that are not listed any more, are left out; but if all
 * others cannot, those put aside are called all the same.
 */
#ifndef SPOKEI_CLUSTER_ENDPOINTS_DIRECTORY_H
#define SPOKEI_CLUSTER_ENDPOINTS_DIRECTORY_H

#include "cluster/balancer/state.h"
#include "cluster/endpoints/candidates.h"
#include "cluster/endpoints/settings.h"
#include "core/memory/map.h"

#include <spoke/policy.h>
#include <spoke/wheel.h>

#define SPOKEI_ENDPOINTS_MAX 4096u /* listed ones */

struct spoke_url;

struct spokei_directory_up {
	/* What users are told. May end the directory. */
	void (*event)(void *arg, const struct spoke_link_event *event);
	/* Somebody who is connected can take calls, as nobody could before. Told on the engine's
	 * soon. NULL: nobody wants to know. */
	void (*able)(void *arg);
	/* A directory that rests has no connections any more. */
	void (*rested)(void *arg);
};

struct spokei_directory {
	struct spoke_engine *engine;
	struct spokei_link *link;
	struct spokei_directory_settings settings;
	const struct spokei_directory_up *up;
	void *up_arg;
	struct spokei_endpoint *sole; /* the only one listed, if it has one connection; else NULL */
	struct spokei_candidates candidates;
	struct spokei_map keys; /* endpoints that a registry lists, by key */
	struct spoke_list gone; /* endpoints that are not listed any more */
	uint64_t last_id;       /* of endpoints */
	uint64_t round;         /* number of the list that a registry told last */
	uint64_t look_ns;       /* when something changes by itself: it is looked at anew then */
	uint64_t listing;       /* another one when places are others; not 0 */
	uint64_t version;       /* another one when able or weights have changed; not 0 */
	uint64_t dice;          /* state of its random numbers */
	size_t turn;            /* place to ask next, where no balancer chooses */
	size_t usable;          /* places that could take a call */
	uint8_t best;           /* rank of the able */
	bool stale;             /* something has changed since `seats` was looked through */
	bool barren;            /* nobody who could take a call was connected then */
	bool needs_service;     /* an endpoint speaks a wire that has to name the service */
	bool resting;
	bool ended;
	struct spokei_task news; /* looks whether somebody can */
	struct spoke_timer wake; /* connects to who could not be connected to */
};

/* What a call wants of the directory. */
struct spokei_ask {
	/* NULL: the first one in the list that can; without a balancer: each in its turn. */
	struct spokei_balancer_state *balancer_state;
	struct spoke_span key;
	uint64_t timeout_ns;
	const uint64_t *tried; /* ids of endpoints: these only if there is nobody else */
	size_t tried_count;
	uint64_t *sticky; /* the id of an endpoint, 0: none yet; set to the one chosen. NULL */
};

/* It must not be moved afterwards. */
void spokei_directory_init(struct spokei_directory *directory, struct spokei_link *link,
			   const struct spokei_directory_settings *settings,
			   const struct spokei_directory_up *up, void *up_arg);

/* Closes all connections, which is told as CLOSED of those that stood, and makes no more; nothing
 * is told afterwards. Calls under way end. */
void spokei_directory_end(struct spokei_directory *directory);

/* After the link's last connection is freed, and the last call has ended. */
void spokei_directory_fini(struct spokei_directory *directory);

/* A consumer drains: endpoints that wait for their next attempt are given up; connections say that
 * they take no more, and those that only connect are given up unless calls are under way. */
void spokei_directory_rest(struct spokei_directory *directory, bool calls);

/*
 * The one list that users wrote themselves; of two with one place each is an endpoint. Returns 0
 * or an error, of which the engine's newest event has a sentence; the list is as before then.
 */
SPOKE_MUST_USE int spokei_directory_fix(struct spokei_directory *directory,
					const struct spoke_url *urls, size_t count);

/*
 * The whole list, as a registry tells it: those not in it any more are removed, which lets calls
 * under way end, and new ones are connected. Those of other groups and versions are not meant, and
 * what cannot be understood is passed over, with an event. Of several with one place the newest
 * counts. Returns 0, or SPOKE_ENOMEM or SPOKE_ELIMIT: some could not be
 * added, or the list is as before. Who could only not be connected to is tried again later.
 */
SPOKE_MUST_USE int spokei_directory_set(struct spokei_directory *directory,
					const struct spoke_url *urls, size_t count);

/* The only endpoint listed, if it is ready and may take a call on its one connection, as most are
 * that are called; NULL: it has to be chosen. */
struct spokei_endpoint *spokei_directory_sole(const struct spokei_directory *directory,
					      struct spokei_conn **ret_conn);

/*
 * Chooses an endpoint, and the connection to call on. Returns 0; ENOPROVIDER: none is listed;
 * EUNAVAILABLE: none can take it; ELIMIT: all that could have as many calls as they may. Where the
 * connection is wanted for the first time, it may also be that it cannot be made: ENOMEM, or
 * ELIMIT.
 */
SPOKE_MUST_USE int spokei_directory_pick(struct spokei_directory *directory,
					 const struct spokei_ask *ask,
					 struct spokei_endpoint **ret_endpoint,
					 struct spokei_conn **ret_conn);

/* How many could take a call now, of any grade, and how many of them are not among those tried. */
void spokei_directory_count(struct spokei_directory *directory, const uint64_t *tried,
			    size_t tried_count, uint32_t *ret_able, uint32_t *ret_fresh);

/* What may change of its settings has: actives, and when endpoints are put aside. */
void spokei_directory_change(struct spokei_directory *directory,
			     const struct spokei_directory_settings *settings);

/* How many are listed. */
static inline size_t spokei_directory_listed(const struct spokei_directory *directory)
{
	return directory->candidates.shown.count;
}

/* Something has changed that decides who takes calls. */
void spokei_directory_refresh_later(struct spokei_directory *directory);

/* A call did not fit what waits to be written to this one: others are to take calls for a moment.
 * Returns whether anybody can. */
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
	if (SPOKEI_UNLIKELY(endpoint->actives == directory->settings.actives_max ||
			    endpoint->eject.aside)) {
		spokei_eject_begun(&endpoint->eject, now_ns);
		directory->stale = true;
	}
}

/* ... and ends there, `took_ns` after its beginning, with this error; `fate` tells whether that
 * speaks for the endpoint. */
void spokei_directory_ended(struct spokei_endpoint *endpoint, enum spoke_policy_fate fate,
			    int error, uint64_t took_ns);

#endif
