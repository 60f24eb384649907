/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of a consumer. A narrower scope overrides a wider one: method, then service, then
 * consumer. A consumer calls one service, so its URL and options belong to that scope. Within a
 * scope the later source wins: defaults, the provider's URL, the file, the consumer's URL, the
 * options.
 */
#ifndef SPOKEI_CLUSTER_CONSUMER_SETTINGS_H
#define SPOKEI_CLUSTER_CONSUMER_SETTINGS_H

#include "cluster/config/owners.h"
#include "cluster/config/settings.h"
#include "cluster/discovery/keeper.h"
#include "transport/conn/link.h"

#include <spoke/url.h>

struct spoke_consumer;
struct spoke_consumer_options;
struct spoke_link_event;
struct spoke_method_options;
struct spoke_recovered;
struct spoke_ticket_result;

struct spokei_consumer_settings {
	struct spokei_settings keys;
	struct spoke_url url;      /* owns the texts; empty if there is no URL */
	struct spoke_url provided; /* URL of the first provider listed; or empty */
	struct spoke_url ruled;    /* settings of calls that an operator overrides; or empty */
	const char *service;       /* "": none */
	bool needs_service;        /* an endpoint's wire requires the name of the service */
	struct spokei_call_settings calls;
	void (*changed)(void *arg, const struct spoke_link_event *event); /* may be NULL */
	void *changed_arg;
	/* May be NULL. */
	void (*settled)(void *arg, const struct spoke_ticket_result *settled);
	void *settled_arg;
	bool takes_tickets; /* the program expects them */
	struct spokei_link_limits limits;
	struct spokei_directory_settings directory;
	struct spokei_journal_settings journal;
	/* May be NULL. */
	void (*recovered)(void *arg, const struct spoke_recovered *recovered);
	void *recovered_arg;
	struct spokei_keeper_options keeper; /* registry NULL: the URLs name the providers */
};

/* Reads all sources, and registers for reloads of the file, which apply the settings to
 * `consumer`. *ret may not be moved. Returns 0 or an error, which the engine's newest event
 * explains. Undo with fini. */
SPOKE_MUST_USE int spokei_settings_consumer(struct spoke_engine *engine,
					    const struct spoke_consumer_options *options,
					    struct spoke_consumer *consumer,
					    struct spokei_consumer_settings *ret);
void spokei_settings_consumer_fini(const struct spoke_env *env,
				   struct spokei_consumer_settings *settings);

/* Reads the values of a method. */
SPOKE_MUST_USE int spokei_settings_method_values(const struct spokei_consumer_settings *settings,
						 const struct spokei_method_name *name,
						 const struct spoke_method_options *options,
						 struct spokei_key_values *ret);

/* Checks the URL of a further endpoint: it must name the same service and repeat settings only. */
SPOKE_MUST_USE int spokei_settings_further(struct spoke_engine *engine,
					   const struct spokei_consumer_settings *settings,
					   const struct spoke_url *url);

#endif
