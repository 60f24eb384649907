/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load balancer in use: its functions and its memory of the candidates. A consumer has one, and
 * each method with a balancer of its own. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_BALANCER_STATE_H
#define SPOKEI_CLUSTER_BALANCER_STATE_H

#include <spoke/balancer.h>

struct spoke_env;

/* The places whose figures have changed, e.g. calls in flight: the newest mask + 1 of all. Kept by
 * the owner of the candidates for balancers that do not look at all places. */
struct spokei_moves {
	uint32_t *places; /* number i is at i & mask */
	size_t mask;
	uint64_t count; /* ever noted */
};

static inline void spokei_moves_note(struct spokei_moves *moves, size_t place)
{
	moves->places[moves->count++ & moves->mask] = (uint32_t)place;
}

struct spokei_balancer_state {
	const struct spoke_balancer *balancer;
	void *memory;
	size_t size;
	uint64_t list_id; /* list number of the directory that the memory reflects; 0: none */
	uint64_t version;
	uint64_t moved; /* moves that the memory reflects */
};

static inline void spokei_balancer_state_init(struct spokei_balancer_state *state,
					      const struct spoke_balancer *balancer)
{
	*state = (struct spokei_balancer_state){ .balancer = balancer };
}

/* Frees the memory. */
void spokei_balancer_state_fini(struct spokei_balancer_state *state, const struct spoke_env *env);

/*
 * Chooses a candidate, after passing changes to the balancer. `list_id` and `version` of the
 * directory are never 0. Returns SPOKE_NO_ENDPOINT if there is no memory or the balancer chooses
 * none.
 */
size_t spokei_balancer_state_pick(struct spokei_balancer_state *state, const struct spoke_env *env,
				  uint64_t list_id, uint64_t version,
				  const struct spoke_balancer_candidates *candidates,
				  const struct spokei_moves *moves,
				  const struct spoke_balancer_choice *choice);

#endif
