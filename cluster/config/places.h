/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses in URLs: where a consumer connects to, and where a provider listens. On the engine's
 * thread, because errors are explained in its newest event.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_PLACES_H
#define SPOKEI_CLUSTER_CONFIG_PLACES_H

#include "cluster/config/check.h"
#include <spoke/env.h>
#include <spoke/url.h>

struct spoke_engine;
struct spokei_connector_options;
struct spokei_rules;

#define SPOKEI_PLACES_SHOWN 128u /* bytes of an address in a message, with the NUL */

/* Writes the address in a text, which may be no URL at all, without a possible password and
 * without parameters. */
void spokei_places_show(const char *text, char shown[SPOKEI_PLACES_SHOWN]);

/* Returns the service that a URL names; "" if none. */
static inline const char *spokei_places_service(const struct spoke_url *url)
{
	const char *service = spoke_url_get(url, "interface");

	return service && *service ? service : url->path;
}

/* Parses a URL. Returns 0 or an error, which the engine's newest event explains. */
SPOKE_MUST_USE int spokei_places_url(struct spoke_engine *engine, const char *text,
				     struct spoke_url *ret_url);

/* Reads the address and the wire of a provider from its URL. The texts belong to the URL. Returns
 * as spokei_places_url(). */
SPOKE_MUST_USE int spokei_places_endpoint(struct spoke_engine *engine, const struct spoke_url *url,
					  struct spokei_connector_options *ret);

/* An address to listen at: digits or a path. */
struct spokei_listen_place {
	struct spoke_address address;
	bool shared;   /* providers of other engines may listen there too */
	bool shm;      /* memory is shared over the connections */
	bool http;     /* HTTP clients are served there */
	bool local;    /* only processes of this machine reach it */
	bool says_tls; /* `tls` was given */
	enum spokei_tls_mode tls;
	bool handed; /* ... one of them accepts for all; else the kernel distributes connections */
	bool has_mode;
	uint32_t mode;              /* permission bits of the path */
	struct spokei_rules *rules; /* which peers may connect there; NULL: all */
};

/* Returns whether only processes of this machine reach an address. */
bool spokei_places_is_local(const struct spoke_env *env, const struct spoke_address *address);

/* Reads where to listen. The caller frees the rules. Returns as spokei_places_url(). */
SPOKE_MUST_USE int spokei_places_listen(struct spoke_engine *engine, const char *text,
					struct spokei_listen_place *ret);

/* Checks that the URL of a consumer names a service with a registry, and an address without.
 * `has_registry`: of the options or the file. Returns 0, or EINVAL after an event. */
SPOKE_MUST_USE int spokei_places_check(struct spoke_engine *engine, const struct spoke_url *url,
				       bool has_registry);

#endif
