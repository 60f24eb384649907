/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load balancer in use: its functions and its memory of the candidates. A consumer has one, and
 * each method with a balancer of its own. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_BALANCER_STATE_H
#define SPOKEI_CLUSTER_BALANCER_STATE_H

#include <spoke/balancer.h>

struct spoke_env;

/* Balancers look at all of so few places, so that no notice of their figures is needed. */
#define SPOKEI_FEW_PLACES 16u

/* Places that have changed: the newest mask + 1 of all. */
struct spokei_moves {
	uint32_t *places; /* number i is at i & mask */
	size_t mask;
	uint64_t count; /* ever noted */
};

/* Changes of candidates. Kept by their owner. */
struct spokei_changes {
	uint64_t version;           /* changes with `able`, weights or providers; not 0 */
	struct spokei_moves moved;  /* places with other figures, e.g. calls in flight */
	struct spokei_moves placed; /* places with another provider, or none */
};

static inline void spokei_moves_note(struct spokei_moves *moves, size_t place)
{
	moves->places[moves->count++ & moves->mask] = (uint32_t)place;
}

struct spokei_balancer_state {
	const struct spoke_balancer *balancer;
	void *memory;
	size_t size;
	/* The changes that the memory reflects. */
	size_t room; /* of the candidates; 0: none */
	uint64_t version;
	uint64_t moved;
	uint64_t placed;
};

static inline void spokei_balancer_state_init(struct spokei_balancer_state *state,
					      const struct spoke_balancer *balancer)
{
	*state = (struct spokei_balancer_state){ .balancer = balancer };
}

/* Frees the memory. */
void spokei_balancer_state_fini(struct spokei_balancer_state *state, const struct spoke_env *env);

/* Chooses a candidate, after passing changes to the balancer. Returns SPOKE_NO_ENDPOINT if there is
 * no memory or the balancer chooses none. */
size_t spokei_balancer_state_pick(struct spokei_balancer_state *state, const struct spoke_env *env,
				  const struct spoke_balancer_candidates *candidates,
				  const struct spokei_changes *changes,
				  const struct spoke_balancer_choice *choice);

#endif
