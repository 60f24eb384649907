/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/balancer/state.h"

/* Other places: its memory begins anew. */
static bool renew(struct spokei_balance *balance, const struct spoke_env *env,
		  const struct spoke_candidates *candidates)
{
	const struct spoke_balancer *balancer = balance->balancer;
	size_t size = balancer->room ? balancer->room(candidates->count) : 0;

	balance->listing = 0;
	if (size == SIZE_MAX)
		return false;
	if (size > balance->size) {
		void *memory = env->resize(env->ctx, balance->memory, balance->size, size);

		if (memory == NULL)
			return false;
		balance->memory = memory;
		balance->size = size;
	}
	if (size > 0)
		memset(balance->memory, 0, size);
	return true;
}

static bool refresh(struct spokei_balance *balance, const struct spoke_env *env, uint64_t listing,
		    uint64_t version, const struct spoke_candidates *candidates)
{
	bool fresh = balance->listing != listing;

	if (fresh && !renew(balance, env, candidates))
		return false;
	if (balance->balancer->changed)
		balance->balancer->changed(balance->memory, candidates, fresh);
	balance->listing = listing;
	balance->version = version;
	return true;
}

size_t spokei_balance_pick(struct spokei_balance *balance, const struct spoke_env *env,
			   uint64_t listing, uint64_t version,
			   const struct spoke_candidates *candidates,
			   const struct spoke_choice *choice)
{
	if (SPOKEI_UNLIKELY(balance->version != version || balance->listing != listing) &&
	    !refresh(balance, env, listing, version, candidates))
		return SPOKE_NOBODY;
	return balance->balancer->pick(balance->memory, candidates, choice);
}
