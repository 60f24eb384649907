/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a registry lists, followed as it changes: all services or one, and the providers of each.
 * What fails is asked for again, once a second.
 */
#ifndef COMMAND_LISTING_H
#define COMMAND_LISTING_H

#include <spoke/registry.h>

#define LISTING_SERVICES_MAX 4096u

struct listing;

/* A service, and its providers as URLs, sorted. */
struct listing_service {
	struct listing *listing;
	char *name;
	char **urls;
	size_t count;
	uint64_t intent; /* by which it is subscribed to; 0: it is not */
	bool told;       /* its list has come */
	bool wanted;     /* it was in the newest list of services */
};

/* Told of a provider that is there now (`came`) or is not any more. */
typedef void (*listing_told)(void *arg, const struct listing_service *service, const char *url,
			     bool came);

struct listing {
	struct spoke_engine *engine;
	listing_told told; /* may be NULL */
	void *told_arg;
	void (*whole)(void *arg);             /* all lists have come, for now; may be NULL */
	void (*failed)(void *arg, int error); /* something did, and is tried again; may be NULL */
	const struct spoke_registry *kind;
	void *registry;
	struct listing_service all; /* "*", whose URLs are the services */
	struct listing_service *services[LISTING_SERVICES_MAX]; /* by name */
	size_t count;
	uint64_t intents; /* that were given out */
	struct spoke_alarm again;
	bool is_whole;
};

/* Opens the registry at a URL, and asks for a service, NULL: for all. Set engine and callbacks
 * before. Returns 0 or an error, about which spoke_engine_why() may have a sentence. Undo with
 * listing_end(), before the engine is freed. */
SPOKE_MUST_USE int listing_begin(struct listing *listing, const char *url, const char *service);

void listing_end(struct listing *listing);

#endif
