/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The endpoints of a directory as arrays for balancers. Part of a directory, on its thread.
 */
#ifndef SPOKEI_CLUSTER_ENDPOINTS_CANDIDATES_H
#define SPOKEI_CLUSTER_ENDPOINTS_CANDIDATES_H

#include "cluster/endpoints/endpoint.h"

#include <spoke/balancer.h>

/* Preference for an endpoint: its grade, below ASIDE; its grade plus ASIDE while it is
 * ejected; or one of the others. */
enum spokei_rank {
	SPOKEI_RANK_ASIDE = SPOKEI_GRADE_NONE,
	SPOKEI_RANK_FULL = 2 * SPOKEI_RANK_ASIDE, /* has reached its limit of calls */
	SPOKEI_RANK_NONE,
};

struct spokei_candidates {
	const struct spoke_env *env;
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
	uint32_t *homes; /* likely place of an id, at id & (home_room - 1) */
	void *memory;
	size_t room;      /* capacity */
	size_t home_room; /* a power of two, at least `room` */
};

static inline void spokei_candidates_init(struct spokei_candidates *candidates,
					  const struct spoke_env *env)
{
	*candidates = (struct spokei_candidates){ .env = env };
}

/* Ensures capacity for `count` endpoints. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_candidates_reserve(struct spokei_candidates *candidates, size_t count);

/* Appends an endpoint; there is capacity. */
void spokei_candidates_add(struct spokei_candidates *candidates, struct spokei_endpoint *endpoint);

/* Returns the place of an endpoint, or SPOKE_NO_ENDPOINT. Nearly always one access. */
size_t spokei_candidates_find(const struct spokei_candidates *candidates, uint64_t id);

/* Removes all endpoints. */
void spokei_candidates_clear(struct spokei_candidates *candidates);

void spokei_candidates_fini(struct spokei_candidates *candidates);

#endif
