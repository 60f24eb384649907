/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of a consumer. A narrower scope overrides a wider one: method, then service, then
 * consumer. A consumer calls one service, so its URL and options belong to that scope. Within a
 * scope the later source wins: defaults, the provider's URL, the file, the consumer's URL, the
 * options.
 */
#ifndef SPOKEI_CLUSTER_CONSUMER_SETTINGS_H
#define SPOKEI_CLUSTER_CONSUMER_SETTINGS_H

#include "cluster/config/config.h"
#include "cluster/config/owners.h"
#include "cluster/discovery/keeper.h"
#include "transport/conn/link.h"

struct spoke_consumer_options;
struct spoke_link_event;
struct spoke_method_options;
struct spoke_ticket_result;

struct spokei_consumer_settings {
	struct spoke_url url; /* owns the texts; empty if there is no URL */
	struct spokei_config_user file;
	struct spokei_key_values options; /* keys that the options set */
	struct spokei_key_values in_force;
	struct spoke_url ruled; /* settings of calls that an operator overrides; or empty */
	const struct spoke_policy *policy;     /* ... the policy, or NULL */
	const struct spoke_balancer *balancer; /* ... the balancer, or NULL */
	const char *service;                   /* "": none */
	bool needs_service; /* an endpoint's wire requires the name of the service */
	struct spokei_call_settings calls;
	void (*changed)(void *arg, const struct spoke_link_event *event); /* may be NULL */
	void *changed_arg;
	/* May be NULL. */
	void (*settled)(void *arg, const struct spoke_ticket_result *settled);
	void *settled_arg;
	struct spokei_link_limits limits;
	struct spokei_directory_settings directory;
	struct spokei_keeper_options keeper; /* registry NULL: the URLs name the providers */
};

/* Reads all sources. Returns 0 or an error, which the engine's newest event explains. Undo with
 * fini. */
SPOKE_MUST_USE int spokei_settings_consumer(struct spoke_engine *engine,
					    const struct spoke_consumer_options *options,
					    struct spokei_consumer_settings *ret);
void spokei_settings_consumer_fini(const struct spoke_env *env,
				   struct spokei_consumer_settings *settings);

/* Finds version and group of another service: the URL's, else the file's. Valid until the next
 * reload. */
void spokei_settings_which(const struct spokei_consumer_settings *settings,
			   struct spoke_span service, const char **ret_version,
			   const char **ret_group);

struct spokei_method_name {
	struct spoke_span service;
	const char *method;
};

/* Reads the values of a method, as below. */
SPOKE_MUST_USE int spokei_settings_method_values(struct spoke_engine *engine,
						 const struct spokei_consumer_settings *settings,
						 const struct spoke_url *provided,
						 const struct spokei_method_name *name,
						 const struct spoke_method_options *options,
						 struct spokei_key_values *ret);

/* Reads the settings of a method. `provided` is the URL of a provider, all zero if there is none.
 */
SPOKE_MUST_USE int spokei_settings_method(struct spoke_engine *engine,
					  const struct spokei_consumer_settings *settings,
					  const struct spoke_url *provided,
					  const struct spokei_method_name *name,
					  const struct spoke_method_options *options,
					  struct spokei_call_settings *ret);

/* Renews all settings that may change, from the file and from the URL of a provider. */
void spokei_settings_inherit(struct spoke_engine *engine, struct spokei_consumer_settings *settings,
			     const struct spoke_url *provided);

/* Checks the URL of a further endpoint: it must name the same service and repeat settings only. */
SPOKE_MUST_USE int spokei_settings_further(struct spoke_engine *engine,
					   const struct spokei_consumer_settings *settings,
					   const struct spoke_url *url);

#endif
