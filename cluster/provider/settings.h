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
	uint32_t weight;
	uint64_t warmup_ns; /* 0: none */
	uint64_t registry_retry_ns;
	uint32_t registry_retries; /* 0: no limit */
	uint32_t auth_failures_max;
	size_t unproven_frame_max;
	bool token_publish;
	bool fence_proven;
	bool local_path; /* a path is published with the ports */
};

/* Texts of a provider, borrowed from the options and the file; NULL: not set. */
struct spokei_provider_texts {
	const char *registry;
	const char *default_service;
	const char *advertise;
	const char *application;
	const char *access_log;
	const char *http_origins;
	const char *http_hosts;
	const char *allow_from;
	const char *deny_from;
	const char *allow_users;
	const char *allow_callers;
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

/* Applies a reloaded file, which may be NULL. */
void spokei_settings_served(const struct spoke_config *config,
			    struct spokei_provider_settings *settings);

/* Reads the texts. Valid as long as the options and until the next reload. */
struct spokei_provider_texts spokei_settings_texts(const struct spoke_provider_options *options);

/* Copies the texts into `ret`, which is all zero. Returns 0 or ENOMEM. */
SPOKE_MUST_USE int spokei_settings_copy_texts(const struct spoke_env *env,
					      const struct spokei_provider_texts *texts,
					      struct spokei_provider_texts *ret, char **ret_block,
					      size_t *ret_size);

/* Returns the present text of a list: that of the options, as copied in `texts`, or of the file,
 * which is valid until the next reload. NULL: absent. */
const char *spokei_settings_list(const struct spokei_provider_settings *settings,
				 const struct spokei_provider_texts *texts,
				 const struct spoke_config *config, enum spokei_key key);

/* Returns the present texts of all lists. */
struct spokei_provider_lists spokei_settings_lists(const struct spokei_provider_settings *settings,
						   const struct spokei_provider_texts *texts,
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
