/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the settings of a provider and of its methods from defaults, the file and options, and
 * applies each reload of the file. */
#include "cluster/provider/settings.h"

#include "cluster/call/caller.h"
#include "cluster/filter/filter.h"
#include "cluster/filter/limit.h"
#include "cluster/provider/doors.h"
#include "cluster/provider/parts.h"
#include "cluster/provider/proof.h"
#include "cluster/provider/registration.h"
#include "cluster/serve/routes.h"
#include "core/engine/figures.h"
#include "transport/listen/group.h"
#include "transport/stream/tls/tls.h"

#include <spoke/provider.h>

/* Time limit of a peer's first byte: so many intervals, and never less than MUTE_NS, because Java
 * consumers send nothing before their first call or their own interval of 60 s. */
#define MUTE_INTERVALS 4u
#define MUTE_NS UINT64_C(240000000000)

/* --- methods */

void spokei_settings_route(const struct spokei_settings *settings, const struct spokei_route *route,
			   struct spokei_key_values *ret)
{
	char method[SPOKEI_SERVICE_KEY_MAX + 1];
	const struct spokei_method_name name = { route->service->name, method };

	if (route->method.len)
		memcpy(method, route->method.data, route->method.len);
	method[route->method.len] = '\0';
	/* Cannot fail: there is no URL, and no code that could be wrong. */
	(void)!spokei_settings_read_method(settings, &name, NULL, ret);
	spokei_keys_set(ret, SPOKEI_KEY_EXECUTES, route->executes);
	spokei_keys_set(ret, SPOKEI_KEY_EXECUTES_TPS, route->per_second);
}

static void limit_route(const struct spokei_settings *settings, const struct spokei_route *route)
{
	struct spokei_key_values values;

	spokei_settings_route(settings, route, &values);
	spokei_figures_slow_after(route->figures, values.of[SPOKEI_KEY_SLOW_AFTER]);
	if (route->limit)
		spokei_limit_change(route->limit, spokei_keys_u32(&values, SPOKEI_KEY_EXECUTES),
				    spokei_keys_u32(&values, SPOKEI_KEY_EXECUTES_TPS));
}

void spokei_provider_limit(struct spoke_provider *provider)
{
	struct spoke_list *all = &provider->services->all;

	if (provider->settings->keys.file.config == NULL)
		return;
	for (struct spoke_list *node = all->next; node != all; node = node->next) {
		const struct spokei_service *service =
			spoke_container_of(node, struct spokei_service, node);

		for (size_t i = 0; i < service->count; i++)
			limit_route(&provider->settings->keys, &service->routes[i]);
	}
}

/* --- changes */

static void bound_silence(struct spokei_link_limits *limits)
{
	limits->mute_ns = MUTE_INTERVALS * limits->heartbeat_ns;
	if (limits->mute_ns < MUTE_NS)
		limits->mute_ns = MUTE_NS;
}

void spokei_provider_bound_unproven(struct spoke_provider *provider)
{
	struct spokei_provider_settings *settings = provider->settings;

	settings->limits.unproven_frame_max =
		spokei_proof_asks(provider->proof->own)
			? (size_t)settings->keys.in_force.of[SPOKEI_KEY_UNPROVEN_FRAME_MAX]
			: 0;
}

void spokei_provider_proof_changed(void *arg)
{
	struct spoke_provider *provider = arg;

	if (provider->proof->set.new_text)
		spokei_registration_renew(provider->registration);
	spokei_doors_drain(provider);
}

static void apply_link(void *owner)
{
	struct spoke_provider *provider = owner;

	bound_silence(&provider->settings->limits);
	spokei_provider_bound_unproven(provider);
	spokei_link_change(provider->link, &provider->settings->limits);
}

static void apply_connections(void *owner)
{
	const struct spoke_provider *provider = owner;

	spokei_listen_group_limit(provider->listeners, &provider->settings->connections);
}

static int prepare(void *owner)
{
	return spokei_doors_prepare_all(owner);
}

static void drop(void *owner)
{
	spokei_doors_drop(owner);
}

static void take(void *owner)
{
	struct spoke_provider *provider = owner;
	const struct spokei_key_values *values = &provider->settings->keys.in_force;
	struct spokei_tls_limits handshakes;

	spokei_keys_fill(values, 1u << SPOKEI_IN_PROVIDER, SPOKEI_AT_HANDSHAKES, &handshakes);
	spokei_tls_limit(provider->tls, &handshakes);
	provider->filters->fence_proven = values->of[SPOKEI_KEY_FENCE_PROVEN] != 0;
	spokei_caller_resize(provider->caller, provider->settings->limits.pending_max, 0);
	spokei_registration_reweigh(provider->registration,
				    spokei_keys_u32(values, SPOKEI_KEY_WEIGHT),
				    values->of[SPOKEI_KEY_WARMUP]);
	spokei_provider_limit(provider);
	spokei_doors_take(provider);
	spokei_provider_warn(provider);
	spokei_registration_changed(provider->registration);
}

#define AT(member) offsetof(struct spokei_provider_settings, member)

static const struct spokei_settings_part parts[] = {
	{ SPOKEI_AT_LINK, AT(limits), apply_link },
	{ SPOKEI_AT_QUOTA, AT(connections), apply_connections },
};

static const struct spokei_settings_kind kind = {
	.sections = 1u << SPOKEI_IN_PROVIDER | 1u << SPOKEI_IN_REGISTRY,
	.parts = parts,
	.part_count = sizeof(parts) / sizeof(parts[0]),
	.prepare = prepare,
	.drop = drop,
	.take = take,
};

/* --- life */

int spokei_settings_provider(struct spoke_engine *engine,
			     const struct spoke_provider_options *options,
			     struct spoke_provider *provider, struct spokei_provider_settings *ret)
{
	struct spokei_key_values *values = &ret->keys.options;
	int error;

	*ret = (struct spokei_provider_settings){ .local_path = false };
	ret->keys.kind = &kind;
	ret->keys.owner = provider;
	ret->keys.structs = ret;
	ret->keys.file.config = options->config;
	spokei_link_limits_init(&ret->limits);
	error = spokei_keys_read_code(engine, values, SPOKEI_IN_PROVIDER, SPOKEI_AT_PROVIDER,
				      options);
	if (error == SPOKE_OK)
		error = spokei_keys_read_code(engine, values, SPOKEI_IN_PROVIDER, SPOKEI_AT_TLS,
					      options->tls);
	if (error == SPOKE_OK)
		error = spokei_settings_begin(&ret->keys, engine);
	if (error)
		return error;
	bound_silence(&ret->limits);
	spokei_link_limits_frame(&ret->limits, ret->limits.wire.frame_max);
	spokei_link_limits_values(&ret->limits, ret->limits.wire.value.items_max);
	ret->local_path = ret->keys.in_force.of[SPOKEI_KEY_LOCAL_PATH] == 0;
	return SPOKE_OK;
}

void spokei_settings_provider_fini(const struct spoke_env *env,
				   struct spokei_provider_settings *settings)
{
	spokei_settings_end(&settings->keys, env);
}
