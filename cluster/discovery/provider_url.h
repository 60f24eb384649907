/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The URL of a provider: formats it for a registry, like those of Dubbo's providers, parses it for
 * a directory, and decides whether it is the service in question. Parsing runs on the engine's
 * thread, because errors are explained in its events.
 */
#ifndef SPOKEI_CLUSTER_DISCOVERY_PROVIDER_URL_H
#define SPOKEI_CLUSTER_DISCOVERY_PROVIDER_URL_H

#include "core/memory/buffer.h"
#include "transport/connect/connector.h"

#include <spoke/url.h>

struct spoke_engine;

#define SPOKEI_PROVIDER_URL_KEY 1024u  /* bytes */
#define SPOKEI_PROVIDER_URL_ADMIN 64u  /* bytes of an address, with the NUL */
#define SPOKEI_PROVIDER_URL_TOKEN 256u /* bytes */

/* --- format */

/* The parts of the URL of a provider. */
struct spokei_provider_parts {
	const char *service;
	const char *version; /* "": none */
	const char *group;   /* "": none */
	const char *methods; /* with commas between; "*": any */
	const char *socket;  /* path of the unix socket; NULL: a host */
	bool shm;            /* memory is shared over it */
	const char *host;    /* a name or digits, IPv6 without brackets */
	uint16_t port;
	/* Of a host: the unix socket where the provider listens, too, e.g. "unix:/run/demo.sock",
	 * and the number of the host where that path is valid. 0: none. */
	const char *local;
	uint64_t host_id;
	const char *admin; /* address of the process's admin page; "": none */
	const char *application;
	const char *tag;   /* "": none */
	const char *token; /* to be sent with each request; "": none */
	uint32_t weight;
	uint64_t warmup_ms;    /* 0: none */
	uint64_t timestamp_ms; /* start of the warm-up, since 1970 */
};

/* Appends the URL, with sorted keys, and a NUL. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_provider_url_format(const struct spokei_provider_parts *parts,
					      struct spokei_buffer *out);

/* Appends the URL under which a consumer is published, with the host 0.0.0.0, which the registry
 * replaces. Uses service, version, group, application and timestamp_ms; `id` distinguishes the
 * consumers of one address. Returns as above. */
SPOKE_MUST_USE int spokei_consumer_url_format(const struct spokei_provider_parts *parts,
					      uint64_t id, struct spokei_buffer *out);

/* --- parse */

struct spokei_provider_url {
	struct spokei_connector_options options; /* the texts belong to the URL */
	/* Wire, address as "127.0.0.1:20880", group and version, each with a NUL. Equal keys
	 * mean the same provider. */
	char key[SPOKEI_PROVIDER_URL_KEY];
	size_t key_len;
	size_t name_at; /* start of the address in the key */
	size_t group_at;
	size_t version_at;
	/* Interval at which the provider expects heartbeats: a Java provider closes connections
	 * that are silent for three of its intervals. 0: none. */
	uint64_t heartbeat_ns;
	uint8_t codec;    /* id of the serialization that the provider asks for */
	const char *path; /* of the service, in the URL; "": as the service's name */
	const char
		*local; /* path of the provider's unix socket on this host, in the URL; "": none */
	const char *token; /* to be sent with each request, in the URL; "": none */
	uint32_t weight;
	uint64_t warmup_ms;      /* duration of the warm-up */
	uint64_t timestamp_ms;   /* start of the provider, since 1970; 0: long ago */
	const char *admin;       /* address of the admin page, in the URL; "": none */
	const char *application; /* name of the application, in the URL; "": none */
	const char *tag;         /* only calls with it are for the provider, in the URL; "": none */
};

/* The service that a directory needs. */
struct spokei_wanted {
	const char *service;
	const char *version; /* "": none; "*": any */
	const char *group;   /* same as version; or several, with commas between */
};

/* Reads the options, the key and the time of the start only. An invalid time counts as 0. Returns
 * as spokei_provider_url_parse(). */
SPOKE_MUST_USE int spokei_provider_url_identify(struct spoke_engine *engine,
						const struct spoke_url *url,
						struct spokei_provider_url *ret);

/* Reads a provider's URL. Ignores invalid numbers, with an event. `host_id` is the number of this
 * host; 0: paths of unix sockets are ignored. Returns 0 or an error, which the engine's newest
 * event explains. */
SPOKE_MUST_USE int spokei_provider_url_parse(struct spoke_engine *engine,
					     const struct spoke_url *url, uint64_t host_id,
					     struct spokei_provider_url *ret);

/* Returns whether the URL is a usable provider of the service. Unusable ones are logged. */
bool spokei_provider_url_matches(struct spoke_engine *engine, const struct spoke_url *url,
				 const struct spokei_wanted *wanted);

/* Returns whether the URL is of a service, of any version and group. */
bool spokei_provider_url_serves(const struct spoke_url *url, const char *service);

/* Returns whether service, group and version of a URL are those that are wanted. */
bool spokei_provider_url_concerns(const struct spoke_url *url, const struct spokei_wanted *wanted);

/* Returns whether the registry or an operator has disabled the provider. */
bool spokei_provider_url_is_disabled(const struct spoke_url *url);

/* Returns whether the text is HOST:PORT or [IPv6]:PORT, made of letters, digits, dots and
 * hyphens, and short enough. */
bool spokei_provider_url_is_admin(const char *text);

#endif
