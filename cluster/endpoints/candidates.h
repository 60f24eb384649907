/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The endpoints of a directory side by side, as arrays: what balancers look at, and what is noted
 * beside that. Part of a directory, on its thread.
 */
#ifndef SPOKEI_CLUSTER_ENDPOINTS_CANDIDATES_H
#define SPOKEI_CLUSTER_ENDPOINTS_CANDIDATES_H

#include "cluster/endpoints/endpoint.h"

#include <spoke/balancer.h>

/* How much an endpoint is wanted for a call: its grade, which is less than ASIDE; the same and
 * ASIDE, while it is put aside; or one of the others. */
enum spokei_rank {
	SPOKEI_RANK_ASIDE = SPOKEI_GRADE_NONE,
	SPOKEI_RANK_FULL = 2 * SPOKEI_RANK_ASIDE, /* has as many calls as it may */
	SPOKEI_RANK_NONE,
};

struct spokei_candidates {
	const struct spoke_env *env;
	struct spoke_balancer_candidates shown; /* to balancers: the arrays below */
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
	uint32_t *homes; /* where the endpoint of an id may sit, at id & (home_room - 1) */
	void *memory;
	size_t room;      /* places */
	size_t home_room; /* a power of two, not less than them */
};

static inline void spokei_candidates_init(struct spokei_candidates *candidates,
					  const struct spoke_env *env)
{
	*candidates = (struct spokei_candidates){ .env = env };
}

/* Sees to it that there is room for so many; what is there stays. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_candidates_reserve(struct spokei_candidates *candidates, size_t count);

/* Sits an endpoint behind the others; there is room. */
void spokei_candidates_add(struct spokei_candidates *candidates, struct spokei_endpoint *endpoint);

/* Where the endpoint of an id sits, or SPOKE_NO_ENDPOINT. As a rule one look, however many sit
 * there. */
size_t spokei_candidates_find(const struct spokei_candidates *candidates, uint64_t id);

/* Nobody sits there any more. */
void spokei_candidates_clear(struct spokei_candidates *candidates);

void spokei_candidates_fini(struct spokei_candidates *candidates);

#endif
