/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/connect/resolve.h"

#include <errno.h>

void spokei_round_init(struct spokei_round *round, struct spoke_engine *engine,
		       const struct spokei_place *place,
		       void (*resolved)(struct spokei_round *round, int status))
{
	*round = (struct spokei_round){ .engine = engine, .place = place, .resolved = resolved };
}

static void start_at_any(struct spokei_round *round, unsigned count)
{
	const struct spoke_env *env = round->engine->env;
	uint64_t dice;

	env->dice(env->ctx, &dice, sizeof(dice));
	round->count = count;
	round->left = count;
	round->next = (unsigned)(dice % count);
}

/* A thread of the pool. */
static void resolve(struct spoke_work *work)
{
	struct spokei_round *round = spoke_container_of(work, struct spokei_round, work);
	const struct spoke_env *env = round->engine->env;

	round->found = env->net->resolve(env->ctx, round->place->host, round->place->port,
					 round->addresses, SPOKEI_ROUND_ADDRESSES);
}

static void resolve_done(struct spoke_work *work)
{
	struct spokei_round *round = spoke_container_of(work, struct spokei_round, work);
	int status = work->status;

	round->resolving = false;
	if (status == 0 && round->found <= 0)
		status = round->found < 0 ? round->found : -ENOENT;
	if (status == 0)
		start_at_any(round, (unsigned)round->found);
	round->resolved(round, status);
}

int spokei_round_begin(struct spokei_round *round)
{
	struct spoke_engine *engine = round->engine;
	int status;

	round->left = 0;
	if (round->place->fixed) {
		round->addresses[0] = round->place->address;
		start_at_any(round, 1);
		return 0;
	}
	round->work = (struct spoke_work){ .run = resolve, .done = resolve_done, .urgent = true };
	status = engine->env->loop->offload(engine->loop, &round->work);
	if (status)
		return status;
	round->resolving = true;
	return SPOKEI_ROUND_MORE;
}

const struct spoke_address *spokei_round_next(struct spokei_round *round)
{
	const struct spoke_address *address = &round->addresses[round->next];

	if (round->left == 0)
		return NULL;
	round->left--;
	round->next = (round->next + 1) % round->count;
	return address;
}
