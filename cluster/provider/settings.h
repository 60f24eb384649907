/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of a provider. Of its sources the later wins: defaults, the file, the options.
 */
#ifndef SPOKEI_CLUSTER_PROVIDER_SETTINGS_H
#define SPOKEI_CLUSTER_PROVIDER_SETTINGS_H

#include "cluster/config/settings.h"
#include "transport/conn/link.h"
#include "transport/listen/quota.h"

struct spoke_provider;
struct spoke_provider_options;
struct spokei_route;

struct spokei_provider_settings {
	struct spokei_settings keys;
	struct spokei_link_limits limits;
	struct spokei_quota_limits connections;
	bool local_path; /* a path is published with the ports */
};

/* Reads all sources, and registers for reloads of the file, which apply the settings to
 * `provider`. *ret may not be moved. Returns 0 or an error, which the engine's newest event
 * explains. Undo with fini, also after an error. */
SPOKE_MUST_USE int spokei_settings_provider(struct spoke_engine *engine,
					    const struct spoke_provider_options *options,
					    struct spoke_provider *provider,
					    struct spokei_provider_settings *ret);
void spokei_settings_provider_fini(const struct spoke_env *env,
				   struct spokei_provider_settings *settings);

/* Reads the values of a method: those of its handler, else of the file. */
void spokei_settings_route(const struct spokei_settings *settings, const struct spokei_route *route,
			   struct spokei_key_values *ret);

#endif
