/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses in URLs: where a consumer connects to, and where a provider listens. On the engine's
 * thread, because errors are explained in its newest event.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_PLACES_H
#define SPOKEI_CLUSTER_CONFIG_PLACES_H

#include "cluster/config/keys.h"

#include <spoke/env.h>
#include <spoke/tls.h>
#include <spoke/url.h>

struct spoke_engine;
struct spokei_callers;
struct spokei_connector_options;
struct spokei_rules;
struct spokei_wire;

#define SPOKEI_PORT_PRESET 20880
#define SPOKEI_PLACES_LISTED "consumer" /* scheme of a URL whose addresses are in a registry */
#define SPOKEI_PLACES_SHOWN 128u        /* bytes of an address in a message, with the NUL */

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

/* Returns the wire of a URL's scheme; NULL: unknown. Without a scheme, and with tcp, it is dubbo.
 */
const struct spokei_wire *spokei_places_wire(const char *scheme);

/* Finds a mode of TLS by its name. Returns false if there is none. */
bool spokei_places_tls_mode(const char *text, enum spokei_tls_mode *ret);

/* Reads an address as it is printed: digits with a port, or "unix:" and a path. */
SPOKE_MUST_USE bool spokei_places_read(const struct spoke_env *env, struct spoke_span text,
				       struct spoke_address *ret);

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

/* Checks the URL of an address to listen at, for any environment. Pure. Returns NULL if it is
 * valid; or a sentence, which may be in `why`. */
const char *spokei_places_check_listen(const struct spoke_env *env, const struct spoke_url *url,
				       char why[SPOKEI_CHECK_WHY]);

/* Reads where to listen. The caller frees the rules. Returns as spokei_places_url(). */
SPOKE_MUST_USE int spokei_places_listen(struct spoke_engine *engine, const char *text,
					struct spokei_listen_place *ret);

/* Checks that the URL of a consumer names a service with a registry, and an address without.
 * `has_registry`: of the options or the file. Returns 0, or EINVAL after an event. */
SPOKE_MUST_USE int spokei_places_check(struct spoke_engine *engine, const struct spoke_url *url,
				       bool has_registry);

/* Returns whether the host is a wildcard address. */
bool spokei_places_is_any(const char *host);

/* Checks a host to publish, which must be nothing but a host; IPv6 with or without brackets. Pure.
 * Returns NULL if it is valid; or a sentence. */
const char *spokei_places_check_host(const struct spoke_env *env, const char *host);

/* The guards between a host and a service, or a page, at one address. */
struct spokei_exposure {
	bool local;                   /* only processes of this machine reach the address */
	bool plain;                   /* plain bytes are served there, with or without TLS */
	bool asks;                    /* for a token or a signature */
	enum spoke_tls_verify verify; /* of TLS; see spokei_tls_verifies() */
	/* Lists; NULL: none. */
	const struct spokei_rules *of_owner; /* of peers, at all addresses ... */
	const struct spokei_rules *of_address;
	const struct spokei_callers *of_provider;
	const struct spokei_callers *of_service;
};

/* The first thing to set, because every host is let in. */
enum spokei_exposed {
	SPOKEI_EXPOSED_NOT,
	SPOKEI_EXPOSED_PLAIN,
	SPOKEI_EXPOSED_NO_CA,      /* TLS asks for no certificate */
	SPOKEI_EXPOSED_UNVERIFIED, /* tls.verify does not require one */
};

/* Decides whether every host that reaches an address is let in there, for the event that reports
 * it. Pure. */
enum spokei_exposed spokei_exposure_judge(const struct spokei_exposure *of);

/* Returns the rest of the sentence, up to the first remedy; "" for NOT. Others may follow it. */
const char *spokei_exposed_why(enum spokei_exposed exposed);

#endif
