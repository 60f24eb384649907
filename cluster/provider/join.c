/* SPDX-License-Identifier: Apache-2.0 */
/* Lets a provider listen together with a provider of another engine. */
#include "cluster/provider/parts.h"

#include "core/engine/engine.h"
#include "transport/listen/group.h"

#include <spoke/provider.h>

static int refuse(struct spoke_provider *provider, const char *why)
{
	spokei_event(provider->engine, SPOKE_EINVAL, "join: %s", why);
	return SPOKE_EINVAL;
}

/* Returns 0 if the provider may join. `first` belongs to another thread. */
static int check(struct spoke_provider *provider, const struct spoke_provider *first)
{
	int error = spokei_engine_check(provider->engine);

	if (error)
		return error;
	if (provider->ended || provider->draining || spokei_listen_group_stopped(first->listeners))
		return SPOKE_ECLOSED;
	if (spokei_listen_group_joined(provider->listeners))
		return SPOKE_ESTATE;
	if (provider->engine == first->engine)
		return refuse(provider, "both providers are on the same engine; add the services "
					"to the other one");
	if (provider->engine->env->net != first->engine->env->net)
		return refuse(provider, "the engines have different networks");
	if (spokei_listen_group_shared(first->listeners) == 0)
		return refuse(provider, "the other provider shares no address; add shared=true or "
					"shared=turns to its URLs");
	return SPOKE_OK;
}

static int join(struct spoke_provider *provider, struct spoke_provider *first)
{
	int error = check(provider, first);

	return error ? error : spokei_listen_group_join(provider->listeners, first->listeners);
}

int spoke_provider_join(struct spoke_provider *provider, struct spoke_provider *first)
{
	uint64_t begun = spokei_why_begin(provider->engine);

	return spokei_why_end(provider->engine, begun, join(provider, first), "join");
}
