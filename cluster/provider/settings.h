/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of a provider. Of its sources the later wins: defaults, the file, the options.
 */
#ifndef SPOKEI_CLUSTER_PROVIDER_SETTINGS_H
#define SPOKEI_CLUSTER_PROVIDER_SETTINGS_H

#include "cluster/config/keys.h"
#include "transport/conn/link.h"
#include "transport/listen/quota.h"

struct spoke_config;
struct spoke_provider_options;

struct spokei_provider_settings {
	struct spokei_key_values options; /* keys that the options set */
	struct spokei_key_values in_force;
	struct spokei_link_limits limits;
	struct spokei_quota_limits connections;
	bool local_path; /* a path is published with the ports */
};

/* Lists of peers and callers, which a reload may change; NULL: absent. */
struct spokei_provider_lists {
	const char *allow_from;
	const char *deny_from;
	const char *allow_users;
	const char *allow_callers;
};

/* Reads all sources. Returns 0 or an error, which the engine's newest event explains. */
SPOKE_MUST_USE int spokei_settings_provider(struct spoke_engine *engine,
					    const struct spoke_provider_options *options,
					    struct spokei_provider_settings *ret);
void spokei_settings_provider_fini(const struct spoke_env *env,
				   struct spokei_provider_settings *settings);

/* Applies a reloaded file, which may be NULL. */
void spokei_settings_served(const struct spoke_config *config,
			    struct spokei_provider_settings *settings);

/* Returns the present texts of all lists: of the options, or of the file, which are valid until the
 * next reload. */
struct spokei_provider_lists spokei_settings_lists(const struct spokei_provider_settings *settings,
						   const struct spoke_config *config);

/* Limits of a method; 0: no limit. */
struct spokei_served_limit {
	uint64_t slow_ns; /* 0: no request is slow */
	uint32_t executes;
	uint32_t per_second;
};

/* Reads the values of a method, as below. */
void spokei_settings_served_method(const struct spoke_config *config, struct spoke_span service,
				   const char *method, struct spokei_served_limit own,
				   struct spokei_key_values *ret);

/* Returns the limits of a method: the handler's `own`, else the file's. `config` may be NULL. */
struct spokei_served_limit spokei_settings_limit(const struct spoke_config *config,
						 struct spoke_span service, const char *method,
						 struct spokei_served_limit own);

#endif
