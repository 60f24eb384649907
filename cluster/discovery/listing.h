/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider's URL, read for a directory, and the decision whether it is the service in question.
 * On the engine's thread, because errors are explained in its events.
 */
#ifndef SPOKEI_CLUSTER_DISCOVERY_LISTING_H
#define SPOKEI_CLUSTER_DISCOVERY_LISTING_H

#include "transport/connect/connector.h"

#include <spoke/url.h>

struct spoke_engine;

#define SPOKEI_LISTING_KEY 1024u  /* bytes */
#define SPOKEI_LISTING_ADMIN 64u  /* bytes of an address, with the NUL */
#define SPOKEI_LISTING_TOKEN 256u /* bytes */

struct spoke_engine;

struct spokei_listing {
	struct spokei_connector_options options; /* the texts belong to the URL */
	/* Wire, address as "127.0.0.1:20880", group and version, each with a NUL. Equal keys
	 * mean the same provider. */
	char key[SPOKEI_LISTING_KEY];
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
};

/* The service that a directory needs. */
struct spokei_wanted {
	const char *service;
	const char *version; /* "": none; "*": any */
	const char *group;   /* same as version; or several, with commas between */
};

/* Reads the options, the key and the time of the start only. An invalid time counts as 0. Returns
 * as spokei_listing_read(). */
SPOKE_MUST_USE int spokei_listing_identify(struct spoke_engine *engine, const struct spoke_url *url,
					   struct spokei_listing *ret);

/* Reads a provider's URL. Ignores invalid numbers, with an event. `host_id` is the number of this
 * host; 0: paths of unix sockets are ignored. Returns 0 or an error, which the engine's newest
 * event explains. */
SPOKE_MUST_USE int spokei_listing_read(struct spoke_engine *engine, const struct spoke_url *url,
				       uint64_t host_id, struct spokei_listing *ret);

/* Returns whether the URL is a usable provider of the service. Unusable ones are logged. */
bool spokei_listing_matches(struct spoke_engine *engine, const struct spoke_url *url,
			    const struct spokei_wanted *wanted);

/* Returns whether the URL is of a service, of any version and group. */
bool spokei_listing_serves(const struct spoke_url *url, const char *service);

/* Returns whether service, group and version of a URL are those that are wanted. */
bool spokei_listing_concerns(const struct spoke_url *url, const struct spokei_wanted *wanted);

/* Returns whether the registry or an operator has disabled the provider. */
bool spokei_listing_is_disabled(const struct spoke_url *url);

/* Returns whether the text is HOST:PORT or [IPv6]:PORT, made of letters, digits, dots and
 * hyphens, and short enough. */
bool spokei_listing_is_admin(const char *text);

/* Returns the weight during warm-up, at least 1 unless `weight` is 0. `uptime_ms` may be
 * negative if clocks differ. */
uint32_t spokei_listing_weight(uint32_t weight, uint64_t warmup_ms, int64_t uptime_ms);

#endif
