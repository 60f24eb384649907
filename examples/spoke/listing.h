/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the contents of a registry: one service or all, and the providers of each. Failed
 * subscriptions are retried once a second.
 */
#ifndef COMMAND_LISTING_H
#define COMMAND_LISTING_H

#include <spoke/registry.h>

#define LISTING_SERVICES_MAX 4096u

struct listing;

/* A service and the sorted URLs of its providers. */
struct listing_service {
	struct listing *listing;
	char *name;
	char **urls;
	size_t count;
	enum {
		LISTING_OUT,     /* not at the registry */
		LISTING_ASKED,   /* the subscription was requested */
		LISTING_LEAVING, /* its end was requested */
	} state;
	bool failed; /* the last request has */
	bool listed; /* its list has been received */
	bool wanted; /* in the latest list of services */
	/* The subscription; the registry's own bytes follow. */
	struct spoke_registry_entry entry;
};

/* Called when a provider was added (`came`) or removed. */
typedef void (*listing_changed_fn)(void *arg, const struct listing_service *service,
				   const char *url, bool came);

struct listing {
	struct spoke_engine *engine;
	listing_changed_fn changed; /* may be NULL */
	void *changed_arg;
	void (*whole)(void *arg);             /* all lists received, for now; may be NULL */
	void (*failed)(void *arg, int error); /* an operation did, and is retried; may be NULL */
	const struct spoke_registry *kind;
	void *registry;
	struct listing_service *all; /* "*": its URLs are the services; NULL: one service only */
	struct listing_service *services[LISTING_SERVICES_MAX]; /* by name */
	size_t count;
	struct spoke_alarm act; /* makes the requests that are due */
	bool soon;              /* ... in this turn */
	bool is_whole;
};

/* Opens the registry at a URL and subscribes to a service, NULL: to all. Set engine and callbacks
 * before. Returns 0 or an error, which spoke_engine_why() may describe. Undo with listing_end(),
 * before the engine is freed. */
SPOKE_MUST_USE int listing_begin(struct listing *listing, const char *url, const char *service);

void listing_end(struct listing *listing);

#endif
