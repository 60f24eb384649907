/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves a name on the thread pool and walks through the addresses, from a random one on. */
#include "transport/connect/resolve.h"
#include "core/engine/engine.h"

#include <errno.h>

void spokei_resolve_init(struct spokei_resolve *resolve, struct spoke_engine *engine,
			 const struct spokei_place *place,
			 void (*resolved)(struct spokei_resolve *resolve, int status))
{
	*resolve =
		(struct spokei_resolve){ .engine = engine, .place = place, .resolved = resolved };
}

static void start_at_any(struct spokei_resolve *resolve, unsigned count)
{
	const struct spoke_env *env = resolve->engine->env;
	uint64_t dice;

	env->dice(env->ctx, &dice, sizeof(dice));
	resolve->count = count;
	resolve->left = count;
	resolve->next = (unsigned)(dice % count);
}

/* Runs on a thread of the pool. */
static void look_up(struct spoke_work *work)
{
	struct spokei_resolve *resolve = spoke_container_of(work, struct spokei_resolve, work);
	const struct spoke_env *env = resolve->engine->env;

	resolve->found = env->net->resolve(env->ctx, resolve->place->host, resolve->place->port,
					   resolve->addresses, SPOKEI_RESOLVE_ADDRESSES);
}

static void resolve_done(struct spoke_work *work)
{
	struct spokei_resolve *resolve = spoke_container_of(work, struct spokei_resolve, work);
	int status = work->status;

	resolve->resolving = false;
	if (status == 0 && resolve->found <= 0)
		status = resolve->found < 0 ? resolve->found : -ENOENT;
	if (status == 0)
		start_at_any(resolve, (unsigned)resolve->found);
	resolve->resolved(resolve, status);
}

int spokei_resolve_begin(struct spokei_resolve *resolve)
{
	struct spoke_engine *engine = resolve->engine;
	int status;

	resolve->left = 0;
	if (resolve->place->fixed) {
		resolve->addresses[0] = resolve->place->address;
		start_at_any(resolve, 1);
		return 0;
	}
	resolve->work = (struct spoke_work){ .run = look_up, .done = resolve_done, .urgent = true };
	status = engine->env->loop->offload(engine->loop, &resolve->work);
	if (status)
		return status;
	resolve->resolving = true;
	return SPOKEI_RESOLVE_MORE;
}

const struct spoke_address *spokei_resolve_next(struct spokei_resolve *resolve)
{
	const struct spoke_address *address = &resolve->addresses[resolve->next];

	if (resolve->left == 0)
		return NULL;
	resolve->left--;
	resolve->next = (resolve->next + 1) % resolve->count;
	return address;
}
