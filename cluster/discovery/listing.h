/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the URL of a provider says, as a directory understands it, and whether it is one that is
 * looked for. A value; on the engine's thread, for what it says of errors.
 */
#ifndef SPOKEI_CLUSTER_DISCOVERY_LISTING_H
#define SPOKEI_CLUSTER_DISCOVERY_LISTING_H

#include "transport/connect/connector.h"

#include <spoke/url.h>

#define SPOKEI_LISTING_KEY 1024u /* bytes */
#define SPOKEI_LISTING_ADMIN 64u /* bytes of a place, with the NUL */

struct spoke_engine;

struct spokei_listing {
	struct spokei_connector_options options; /* the texts are the URL's */
	/* Wire, place as "127.0.0.1:20880", group and version, each with a NUL: two of one key are
	 * one provider. */
	char key[SPOKEI_LISTING_KEY];
	size_t key_len;
	size_t name_at; /* bytes of the key before the place */
	size_t group_at;
	size_t version_at;
	uint32_t weight;
	uint64_t warmup_ms;    /* until it has all of its weight */
	uint64_t timestamp_ms; /* when it was started, since 1970; 0: long ago */
	const char *admin;     /* where its process shows itself, the URL's; "": it does not say */
	const char *application; /* what it is called, the URL's; "": the same */
};

/* What is looked for. */
struct spokei_wanted {
	const char *service;
	const char *version; /* "": none; "*": any */
	const char *group;   /* the same */
};

/* Reads any provider's. Numbers that are none are passed over, with an event. Returns 0 or an
 * error, of which the engine's newest event has a sentence. */
SPOKE_MUST_USE int spokei_listing_read(struct spoke_engine *engine, const struct spoke_url *url,
				       struct spokei_listing *ret);

/* Is it a provider of what is looked for? Those that are, but not as they should be, are no, with
 * an event. */
bool spokei_listing_matches(struct spoke_engine *engine, const struct spoke_url *url,
			    const struct spokei_wanted *wanted);

/* Is it a place where a process may show itself: HOST:PORT or [IPv6]:PORT, of letters, digits, dots
 * and hyphens alone, and short enough? */
bool spokei_listing_is_admin(const char *text);

/* The weight of a provider that was started `uptime_ms` ago, which may be less than 0: where the
 * clocks differ. From 1 on, unless it has none. */
uint32_t spokei_listing_weight(uint32_t weight, uint64_t warmup_ms, int64_t uptime_ms);

#endif
