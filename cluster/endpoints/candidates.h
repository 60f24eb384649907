/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The endpoints of a directory as arrays for balancers. An endpoint keeps its place while it is
 * listed, unless a place before the end becomes free: then the last one moves there. Part of a
 * directory, on its thread.
 */
#ifndef SPOKEI_CLUSTER_ENDPOINTS_CANDIDATES_H
#define SPOKEI_CLUSTER_ENDPOINTS_CANDIDATES_H

#include "cluster/balancer/state.h"
#include "core/base/env.h"
#include "transport/connect/connector.h"

struct spokei_endpoint;

/* Preference for an endpoint: its grade, below ASIDE; its grade plus ASIDE while it is
 * ejected; or one of the others. */
enum spokei_rank {
	SPOKEI_RANK_ASIDE = SPOKEI_GRADE_NONE,
	SPOKEI_RANK_FULL = 2 * SPOKEI_RANK_ASIDE, /* has reached its limit of calls */
	SPOKEI_RANK_NONE,
	SPOKEI_RANKS,
};

struct spokei_candidates {
	struct spoke_balancer_candidates shown; /* view for balancers */
	struct spokei_endpoint **endpoints;
	uint64_t *ids;
	uint64_t *means_ns;
	uint64_t *chosen_ns;
	const char **names;
	uint32_t *weights;
	uint32_t *actives;
	uint32_t *successes;
	uint8_t *ranks;
	uint8_t *able;
	struct spokei_changes changes;
	uint32_t *homes; /* likely place of an id, at id & (home_room - 1) */
	void *memory;
	size_t room;                 /* capacity */
	size_t home_room;            /* a power of two, at least `room` */
	size_t ranked[SPOKEI_RANKS]; /* places of each rank */
	size_t usable;               /* places that can take a call */
	uint64_t regraded;           /* changes of ranks, ever */
	uint8_t best;                /* rank of the able places */
	bool differs;                /* the version of the changes is to be counted up */
};

/* Makes room for `count` places. Returns 0, or SPOKE_ENOMEM and nothing has changed. */
SPOKE_MUST_USE int spokei_candidates_reserve(const struct spoke_env *env,
					     struct spokei_candidates *candidates, size_t count);

void spokei_candidates_fini(const struct spoke_env *env, struct spokei_candidates *candidates);

/* Gives an endpoint the next place, for which there is room. */
void spokei_candidates_add(struct spokei_candidates *candidates, struct spokei_endpoint *endpoint);

/* Takes the place of an endpoint. Returns the endpoint that has moved there, or NULL. */
struct spokei_endpoint *spokei_candidates_remove(struct spokei_candidates *candidates,
						 struct spokei_endpoint *endpoint);

/* Sets the rank of a place. */
void spokei_candidates_rank(struct spokei_candidates *candidates, size_t place, uint8_t rank);

/* Determines the best rank, and the able and usable places, after ranks have changed. */
void spokei_candidates_grade(struct spokei_candidates *candidates);

/* The figures of a place have changed. Balancers look at all places of a few. */
static inline void spokei_candidates_moved(struct spokei_candidates *candidates, size_t place)
{
	if (SPOKEI_UNLIKELY(candidates->shown.count > SPOKEI_FEW_PLACES))
		spokei_moves_note(&candidates->changes.moved, place);
}

#endif
