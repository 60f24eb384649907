/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A balancer at work: its table, and the memory it has beside the candidates. Of a consumer, and of
 * each method that has a balancer of its own. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_BALANCER_STATE_H
#define SPOKEI_CLUSTER_BALANCER_STATE_H

#include <spoke/balancer.h>

struct spoke_env;

struct spokei_balancer_state {
	const struct spoke_balancer *balancer;
	void *memory;
	size_t size;
	uint64_t listing; /* of the directory, as the memory knows it; 0: it knows nothing */
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
 * Asks the balancer, after it was told what has changed: `listing` and `version` of the directory
 * are never 0. SPOKE_NO_ENDPOINT: it has no memory for so many now, or no opinion.
 */
size_t spokei_balancer_state_pick(struct spokei_balancer_state *state, const struct spoke_env *env,
				  uint64_t listing, uint64_t version,
				  const struct spoke_balancer_candidates *candidates,
				  const struct spoke_balancer_choice *choice);

#endif
