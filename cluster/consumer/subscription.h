/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer's subscription at a registry: a keeper requests the list of providers, which goes to
 * the directory. Part of the consumer; on the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CONSUMER_SUBSCRIPTION_H
#define SPOKEI_CLUSTER_CONSUMER_SUBSCRIPTION_H

#include <spoke/error.h>

#include <stddef.h>

struct spoke_engine;
struct spoke_url;
struct spokei_directory;
struct spokei_keeper;
struct spokei_keeper_options;

/* Zero-initialised: not begun. */
struct spokei_subscription {
	struct spokei_keeper
		*keeper; /* NULL: there is no registry, or the subscription has ended */
	struct spokei_directory *directory;
	/* Called with each list before the directory gets it. */
	void (*listed)(void *arg, const struct spoke_url *urls, size_t count);
	void *arg;
};

/* Subscribes to the providers of `service`. The user of this function sets the other fields before;
 * the directory is borrowed until the end. Returns 0, ENOMEM, ELIMIT, or an error that the engine's
 * newest event explains. */
SPOKE_MUST_USE int spokei_subscription_begin(struct spokei_subscription *subscription,
					     struct spoke_engine *engine,
					     const struct spokei_keeper_options *options,
					     const char *service);

/* Ends the subscription; the directory keeps its list. */
void spokei_subscription_end(struct spokei_subscription *subscription);

#endif
