/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What users say in URLs and options, as the structs that the floors below understand. Text ends
 * here; the table of keys is in keys.h.
 */
#ifndef SPOKEI_CLUSTER_CALL_SETTINGS_H
#define SPOKEI_CLUSTER_CALL_SETTINGS_H

#include "cluster/config/config.h"
#include "cluster/config/keys.h"
#include "cluster/discovery/keeper.h"
#include "transport/connect/connector.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/url.h>

#define SPOKEI_NAME_MAX 65536u /* bytes of a service's or method's name */
#define SPOKEI_RETRIES_OF_POLICY UINT32_MAX

/* How calls are made; of a consumer, and of each of its methods. */
struct spokei_call_settings {
	const struct spoke_policy *policy;
	const struct spoke_balancer *balancer;
	uint64_t timeout_ns;
	uint64_t period_ns;
	uint64_t deadline_ns; /* of a ticket, since its call; 0: see spokei_settings_deadline() */
	uint32_t retries;     /* SPOKEI_RETRIES_OF_POLICY: as many as the policy has */
	uint32_t forks;
	uint32_t fail_percent;
	uint32_t actives;    /* 0: no limit */
	uint32_t per_second; /* 0: no limit */
	bool growing;        /* the pauses */
	bool wait_ready;
	bool sticky;
	bool idempotent;
};

/* Of the directory of a consumer. */
struct spokei_directory_settings {
	const char *service; /* the texts outlive the directory */
	const char *version; /* "*": any */
	const char *group;
	uint32_t connections;    /* to each endpoint; 0: 1 */
	uint32_t actives_max;    /* attempts under way at one endpoint; 0: no limit */
	uint32_t eject_failures; /* in a row, before an endpoint is put aside; 0: never */
	uint64_t eject_ns;       /* for so long the first time, longer each time */
	bool lazy;
	bool protects; /* a list of nobody leaves those who are listed */
};

/*
 * A consumer's settings. Of two that say something the narrower counts: what is said of a method
 * before what is said of a service, that before what is said of all consumers. A consumer calls one
 * service, so its URL and options speak of that. Of the same breadth the later counts: what is
 * preset, what a provider says of itself, the file, the consumer's URL, the options.
 */
struct spokei_consumer_settings {
	struct spoke_url url; /* owns the texts; empty without one */
	struct spokei_config_user file;
	struct spoke_consumer_options said; /* numbers, policy and balancer; of the rest NULL */
	const char *service;                /* "": none */
	const char *version;
	const char *group;
	char *texts; /* version and group, if they are the file's */
	size_t texts_size;
	bool needs_service; /* an endpoint speaks a wire that has to name it */
	struct spokei_call_settings calls;
	spoke_link_changed_fn changed; /* may be NULL */
	void *changed_arg;
	spoke_ticket_done_fn settled; /* may be NULL */
	void *settled_arg;
	uint32_t tasks_max; /* tickets, and the bytes that they keep */
	size_t bytes_max;
	bool drops_oldest;
	struct spokei_link_limits limits;
	struct spokei_directory_settings directory;
	struct spokei_keeper_options keeper; /* registry NULL: the URLs are the providers */
};

/* Returns 0 or an error, of which the engine's newest event has a sentence. Undo with fini. */
SPOKE_MUST_USE int spokei_settings_consumer(struct spoke_engine *engine,
					    const struct spoke_consumer_options *options,
					    struct spokei_consumer_settings *ret);
void spokei_settings_consumer_fini(const struct spoke_env *env,
				   struct spokei_consumer_settings *settings);

/* The version and group of a service that a consumer's methods call: what its URL says, else the
 * file of this service. Good until the file is read again. */
void spokei_settings_which(const struct spokei_consumer_settings *settings,
			   struct spoke_span service, const char **ret_version,
			   const char **ret_group);

/* A method, whoever serves it. */
struct spokei_method_name {
	struct spoke_span service;
	const char *method;
};

/* ... of a method; `provided` is the URL of a provider, all zero if there is none. */
SPOKE_MUST_USE int spokei_settings_method(struct spoke_engine *engine,
					  const struct spokei_consumer_settings *settings,
					  const struct spoke_url *provided,
					  const struct spokei_method_name *name,
					  const struct spoke_method_options *options,
					  struct spokei_call_settings *ret);

/* ... of all of its methods that say nothing else. */
void spokei_settings_inherit(struct spoke_engine *engine, struct spokei_consumer_settings *settings,
			     const struct spoke_url *provided);

/* The file has changed: what can change does, but for calls; see inherit. */
void spokei_settings_renew(struct spoke_engine *engine, struct spokei_consumer_settings *settings);

static inline uint32_t spokei_settings_retries(const struct spokei_call_settings *settings,
					       const struct spoke_policy *policy)
{
	return settings->retries == SPOKEI_RETRIES_OF_POLICY ? policy->retries : settings->retries;
}

/* How long a call lasts, since it was made: of one that may become a ticket retry.deadline, else
 * what all of its attempts and pauses may take. */
uint64_t spokei_settings_deadline(const struct spokei_call_settings *settings,
				  const struct spoke_policy *policy, uint64_t timeout_ns);

/* Which service a URL is of; "": it does not say. */
static inline const char *spokei_settings_service(const struct spoke_url *url)
{
	const char *service = spoke_url_get(url, "interface");

	return service && *service ? service : url->path;
}

/* Reads a URL; a sentence for the error is in the engine's newest event. */
SPOKE_MUST_USE int spokei_settings_url(struct spoke_engine *engine, const char *text,
				       struct spoke_url *ret_url);

/* Looks at the URL of a further endpoint: it may say what the first says, of the same service. */
SPOKE_MUST_USE int spokei_settings_further(struct spoke_engine *engine,
					   const struct spokei_consumer_settings *settings,
					   const struct spoke_url *url);

/* Where a consumer's URL leads, and what is spoken there. The texts are the URL's. */
SPOKE_MUST_USE int spokei_settings_endpoint(struct spoke_engine *engine,
					    const struct spoke_url *url,
					    struct spokei_connector_options *ret);

/* An interval of options: SPOKE_OFF is none at all, which is SPOKEI_IDLE_OFF. As
 * spokei_keys_overrule(). */
SPOKE_MUST_USE int spokei_settings_interval(struct spoke_engine *engine,
					    struct spokei_key_values *values, enum spokei_key key,
					    uint64_t option);

/* A provider's limits. Returns 0, or an error of which the engine's newest event has a sentence. */
SPOKE_MUST_USE int spokei_settings_provider(struct spoke_engine *engine,
					    const struct spoke_provider_options *options,
					    struct spokei_link_limits *ret);

/* Fills what the options leave open with what the file says; its texts are the file's. */
void spokei_settings_served(const struct spoke_config *config,
			    struct spoke_provider_options *options);

/* How much of a method a provider serves, as it says itself, else as the file does; 0: no limit. */
struct spokei_served_limit {
	uint32_t executes;
	uint32_t per_second;
};
struct spokei_served_limit spokei_settings_limit(const struct spoke_config *config,
						 const struct spokei_method_name *name,
						 struct spokei_served_limit own);

/* What a provider's URL says: an address in digits or a path. */
struct spokei_listen_place {
	struct spoke_address address;
	bool shared; /* with providers of other engines */
	bool handed; /* ... by handing connections over; else the system shares them out */
};
SPOKE_MUST_USE int spokei_settings_listen(struct spoke_engine *engine, const char *text,
					  struct spokei_listen_place *ret);

#endif
