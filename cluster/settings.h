/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What users say in URLs and options, as the structs that the floors below understand. One table
 * has every key. Text ends here.
 */
#ifndef SPOKEI_SETTINGS_H
#define SPOKEI_SETTINGS_H

#include "transport/connector.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/url.h>

#define SPOKEI_TIMEOUT_NS UINT64_C(1000000000)
#define SPOKEI_TIMEOUT_MAX_NS UINT64_C(2147483647000000) /* 2^31 - 1 ms, as Java's int */
#define SPOKEI_NAME_MAX 65536u                           /* bytes of a service's or method's name */

/* A consumer's settings: what its URL says, overruled by its options. */
struct spokei_consumer_settings {
	struct spoke_url url; /* owns the texts */
	const char *service;  /* "": none */
	const char *version;
	const char *group;
	bool needs_service; /* an endpoint speaks a wire that has to name it */
	uint64_t timeout_ns;
	spoke_link_changed changed; /* may be NULL */
	void *changed_arg;
	struct spokei_link_limits limits;
};

/* Returns 0 or an error, of which the engine's newest event has a sentence. Undo with fini. */
SPOKE_MUST_USE int spokei_settings_consumer(struct spoke_engine *engine,
					    const struct spoke_consumer_options *options,
					    struct spokei_consumer_settings *ret);
void spokei_settings_consumer_fini(struct spokei_consumer_settings *settings);

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

/* A provider's limits. Returns 0 or SPOKE_EINVAL. */
SPOKE_MUST_USE int spokei_settings_provider(struct spoke_engine *engine,
					    const struct spoke_provider_options *options,
					    struct spokei_link_limits *ret);

/* The address that a provider's URL names, in digits or as a path. */
SPOKE_MUST_USE int spokei_settings_listen(struct spoke_engine *engine, const char *text,
					  struct spoke_address *ret);

#endif
