/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a balancer after telling it which candidates have changed. */
#include "cluster/balancer/state.h"

#include "core/base/env.h"

/* Makes the memory new. */
static bool renew(struct spokei_balancer_state *state, const struct spoke_env *env,
		  const struct spoke_balancer_candidates *candidates)
{
	const struct spoke_balancer *balancer = state->balancer;
	size_t size = balancer->room ? balancer->room(candidates->room) : 0;

	state->room = 0;
	if (size == SIZE_MAX)
		return false;
	if (size > state->size) {
		spokei_free(env, state->memory, 1, state->size);
		state->size = 0;
		state->memory = spokei_alloc(env, 1, size);
		if (state->memory == NULL)
			return false;
		state->size = size;
	} else if (size > 0) {
		memset(state->memory, 0, size);
	}
	return true;
}

/* Returns whether the list of moves has all since number `since`. */
static bool has_all(const struct spokei_moves *moves, uint64_t since)
{
	return moves->count - since <= moves->mask;
}

static bool refresh(struct spokei_balancer_state *state, const struct spoke_env *env,
		    const struct spoke_balancer_candidates *candidates,
		    const struct spokei_changes *changes)
{
	const struct spokei_moves *placed = &changes->placed;
	bool fresh = state->room != candidates->room ||
		     (state->placed != placed->count &&
		      !(state->balancer->placed && has_all(placed, state->placed)));

	if (fresh && !renew(state, env, candidates))
		return false;
	if (!fresh)
		for (; state->placed != placed->count; state->placed++)
			state->balancer->placed(state->memory, candidates,
						placed->places[state->placed & placed->mask]);
	if (state->balancer->changed)
		state->balancer->changed(state->memory, candidates, fresh);
	state->room = candidates->room;
	state->version = changes->version;
	state->placed = placed->count;
	state->moved = changes->moved.count;
	return true;
}

/* Passes on which places have moved since the last choice; all, if the list of them is too short.
 */
static void follow(struct spokei_balancer_state *state,
		   const struct spoke_balancer_candidates *candidates,
		   const struct spokei_moves *moved)
{
	if (!has_all(moved, state->moved))
		state->balancer->changed(state->memory, candidates, false);
	else
		for (; state->moved != moved->count; state->moved++)
			state->balancer->moved(state->memory, candidates,
					       moved->places[state->moved & moved->mask]);
	state->moved = moved->count;
}

size_t spokei_balancer_state_pick(struct spokei_balancer_state *state, const struct spoke_env *env,
				  const struct spoke_balancer_candidates *candidates,
				  const struct spokei_changes *changes,
				  const struct spoke_balancer_choice *choice)
{
	if (SPOKEI_UNLIKELY(state->version != changes->version) &&
	    !refresh(state, env, candidates, changes))
		return SPOKE_NO_ENDPOINT;
	if (SPOKEI_UNLIKELY(state->moved != changes->moved.count) && state->balancer->moved)
		follow(state, candidates, &changes->moved);
	return state->balancer->pick(state->memory, candidates, choice);
}

void spokei_balancer_state_fini(struct spokei_balancer_state *state, const struct spoke_env *env)
{
	spokei_free(env, state->memory, 1, state->size);
	*state = (struct spokei_balancer_state){ .balancer = state->balancer };
}
