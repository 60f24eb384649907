/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load balancer in use: its functions and its memory of the candidates. A consumer has one, and
 * each method with a balancer of its own. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_BALANCER_STATE_H
#define SPOKEI_CLUSTER_BALANCER_STATE_H

#include <spoke/balancer.h>

struct spoke_env;

struct spokei_balancer_state {
	const struct spoke_balancer *balancer;
	void *memory;
	size_t size;
	uint64_t list_id; /* list number of the directory that the memory reflects; 0: none */
	uint64_t version;
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
				  const struct spoke_balancer_choice *choice);

#endif
