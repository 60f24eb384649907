/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the settings file, and each reload of it, to a provider. */
#include "cluster/filter/filter.h"
#include "cluster/provider/parts.h"

#include "cluster/call/caller.h"
#include "cluster/config/tls.h"
#include "cluster/filter/limit.h"
#include "cluster/provider/doors.h"
#include "cluster/provider/proof.h"
#include "cluster/provider/registration.h"
#include "cluster/provider/settings.h"
#include "cluster/serve/routes.h"
#include "core/engine/figures.h"
#include "transport/conn/link.h"
#include "transport/listen/group.h"
#include "transport/stream/tls/tls.h"

static void limit_route(struct spoke_provider *provider, const struct spokei_route *route)
{
	const struct spokei_service *service = route->service;
	struct spokei_served_limit limit;
	char method[SPOKEI_SERVICE_KEY_MAX + 1];

	if (provider->file.config == NULL)
		return;
	if (route->method.len)
		memcpy(method, route->method.data, route->method.len);
	method[route->method.len] = '\0';
	limit = spokei_settings_limit(provider->file.config, service->name, method,
				      (struct spokei_served_limit){
					      .executes = route->executes,
					      .per_second = route->per_second,
				      });
	spokei_figures_slow_after(route->figures, limit.slow_ns);
	if (route->limit)
		spokei_limit_change(route->limit, limit.executes, limit.per_second);
}

void spokei_provider_limit(struct spoke_provider *provider)
{
	struct spoke_list *all = &provider->services->all;

	for (struct spoke_list *node = all->next; node != all; node = node->next) {
		const struct spokei_service *service =
			spoke_container_of(node, struct spokei_service, node);

		for (size_t i = 0; i < service->count; i++)
			limit_route(provider, &service->routes[i]);
	}
}

void spokei_provider_bound_unproven(struct spoke_provider *provider)
{
	struct spokei_provider_settings *settings = provider->settings;

	settings->limits.unproven_frame_max =
		spokei_proof_asks(provider->proof->own)
			? (size_t)settings->in_force.of[SPOKEI_KEY_UNPROVEN_FRAME_MAX]
			: 0;
}

void spokei_provider_proof_changed(void *arg)
{
	struct spoke_provider *provider = arg;

	if (provider->proof->set.new_text)
		spokei_registration_renew(provider->registration);
	spokei_doors_drain(provider);
}

static int prepare(struct spokei_config_user *user)
{
	return spokei_doors_prepare_all(spoke_container_of(user, struct spoke_provider, file));
}

static void drop(struct spokei_config_user *user)
{
	spokei_doors_drop(spoke_container_of(user, struct spoke_provider, file));
}

static void take(struct spokei_config_user *user)
{
	struct spoke_provider *provider = spoke_container_of(user, struct spoke_provider, file);
	struct spokei_provider_settings *settings = provider->settings;
	const struct spokei_key_values *values = &settings->in_force;
	struct spokei_tls_limits handshakes;

	spokei_settings_served(user->config, settings);
	spokei_provider_bound_unproven(provider);
	provider->filters->fence_proven = values->of[SPOKEI_KEY_FENCE_PROVEN] != 0;
	spokei_caller_resize(provider->caller, settings->limits.pending_max, 0);
	spokei_listen_group_limit(provider->listeners, &settings->connections);
	spokei_link_change(provider->link, &settings->limits);
	handshakes = spokei_tls_limits_of(values);
	spokei_tls_limit(provider->tls, &handshakes);
	spokei_registration_reweigh(provider->registration,
				    spokei_keys_u32(values, SPOKEI_KEY_WEIGHT),
				    values->of[SPOKEI_KEY_WARMUP]);
	if (provider->proof->set.new_text)
		spokei_registration_renew(provider->registration);
	spokei_provider_limit(provider);
	spokei_doors_take(provider);
	spokei_provider_warn(provider);
	spokei_registration_changed(provider->registration);
}

const struct spokei_config_user_up spokei_provider_file_up = {
	.prepare = prepare,
	.take = take,
	.drop = drop,
};
