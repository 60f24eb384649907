/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a balancer after telling it which candidates have changed. */
#include "cluster/balancer/state.h"

#include "core/base/env.h"

/* The places are different: resets the memory. */
static bool renew(struct spokei_balancer_state *state, const struct spoke_env *env,
		  const struct spoke_balancer_candidates *candidates)
{
	const struct spoke_balancer *balancer = state->balancer;
	size_t size = balancer->room ? balancer->room(candidates->count) : 0;

	state->list_id = 0;
	if (size == SIZE_MAX)
		return false;
	if (size > state->size) {
		void *memory = env->resize(env->ctx, state->memory, state->size, size);

		if (memory == NULL)
			return false;
		state->memory = memory;
		state->size = size;
	}
	if (size > 0)
		memset(state->memory, 0, size);
	return true;
}

static bool refresh(struct spokei_balancer_state *state, const struct spoke_env *env,
		    uint64_t list_id, uint64_t version,
		    const struct spoke_balancer_candidates *candidates)
{
	bool fresh = state->list_id != list_id;

	if (fresh && !renew(state, env, candidates))
		return false;
	if (state->balancer->changed)
		state->balancer->changed(state->memory, candidates, fresh);
	state->list_id = list_id;
	state->version = version;
	return true;
}

/* Passes on which places have moved since the last choice; all, if the list of them is too short.
 */
static void follow(struct spokei_balancer_state *state,
		   const struct spoke_balancer_candidates *candidates,
		   const struct spokei_moves *moves)
{
	if (moves->count - state->moved > moves->mask)
		state->balancer->changed(state->memory, candidates, false);
	else
		for (; state->moved != moves->count; state->moved++)
			state->balancer->moved(state->memory, candidates,
					       moves->places[state->moved & moves->mask]);
	state->moved = moves->count;
}

size_t spokei_balancer_state_pick(struct spokei_balancer_state *state, const struct spoke_env *env,
				  uint64_t list_id, uint64_t version,
				  const struct spoke_balancer_candidates *candidates,
				  const struct spokei_moves *moves,
				  const struct spoke_balancer_choice *choice)
{
	if (SPOKEI_UNLIKELY(state->version != version || state->list_id != list_id)) {
		if (!refresh(state, env, list_id, version, candidates))
			return SPOKE_NO_ENDPOINT;
		state->moved = moves->count;
	}
	if (SPOKEI_UNLIKELY(state->moved != moves->count) && state->balancer->moved)
		follow(state, candidates, moves);
	return state->balancer->pick(state->memory, candidates, choice);
}

void spokei_balancer_state_fini(struct spokei_balancer_state *state, const struct spoke_env *env)
{
	spokei_free(env, state->memory, 1, state->size);
	*state = (struct spokei_balancer_state){ .balancer = state->balancer };
}
