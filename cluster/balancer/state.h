/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A balancer at work: its table, and the memory it has beside the candidates. Of a consumer, and of
 * each method that has a balancer of its own. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_BALANCER_STATE_H
#define SPOKEI_CLUSTER_BALANCER_STATE_H

#include "core/base/env.h"

#include <spoke/balancer.h>

struct spokei_balance {
	const struct spoke_balancer *balancer;
	void *memory;
	size_t size;
	uint64_t listing; /* of the directory, as the memory knows it; 0: it knows nothing */
	uint64_t version;
};

static inline void spokei_balance_init(struct spokei_balance *balance,
				       const struct spoke_balancer *balancer)
{
	*balance = (struct spokei_balance){ .balancer = balancer };
}

static inline void spokei_balance_fini(struct spokei_balance *balance, const struct spoke_env *env)
{
	spokei_free(env, balance->memory, 1, balance->size);
	*balance = (struct spokei_balance){ .balancer = balance->balancer };
}

/*
 * Asks the balancer, after it was told what has changed: `listing` and `version` of the directory
 * are never 0. SPOKE_NOBODY: it has no memory for so many now, or no opinion.
 */
size_t spokei_balance_pick(struct spokei_balance *balance, const struct spoke_env *env,
			   uint64_t listing, uint64_t version,
			   const struct spoke_candidates *candidates,
			   const struct spoke_choice *choice);

#endif
