/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves a name on the thread pool and walks through the addresses, from a random one on. */
#include "transport/connect/resolve.h"
#include "core/engine/engine.h"
#include "transport/connect/lookup.h"

#include <string.h>

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

static void looked_up(void *arg, const struct spoke_address *found, int count)
{
	struct spokei_resolve *resolve = arg;

	resolve->resolving = false;
	if (count > 0) {
		memcpy(resolve->addresses, found, (unsigned)count * sizeof(*found));
		start_at_any(resolve, (unsigned)count);
	}
	resolve->resolved(resolve, count > 0 ? 0 : count);
}

int spokei_resolve_begin(struct spokei_resolve *resolve)
{
	int status;

	resolve->left = 0;
	if (resolve->place->fixed) {
		resolve->addresses[0] = resolve->place->address;
		start_at_any(resolve, 1);
		return 0;
	}
	status = spokei_lookup(resolve->engine, resolve->place, 1, SPOKEI_RESOLVE_ADDRESSES,
			       looked_up, resolve);
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
