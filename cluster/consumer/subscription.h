/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a consumer's directory gets its list from: a keeper that asks a registry for it. Part of
 * the consumer; on the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CONSUMER_SUBSCRIPTION_H
#define SPOKEI_CLUSTER_CONSUMER_SUBSCRIPTION_H

#include "cluster/discovery/keeper.h"
#include "cluster/endpoints/directory.h"

struct spokei_subscription {
	struct spokei_keeper *keeper; /* NULL: there is no registry, or it has ended */
	struct spokei_directory *directory;
	/* What the list says beside who there is. */
	void (*listed)(void *arg, const struct spoke_url *urls, size_t count);
	void *arg;
	bool told; /* there was a list */
};

/* Asks who provides `service`, and keeps the directory, borrowed until the end, up to date.
 * `listed` and what follows is the caller's to set before. Returns 0, ENOMEM, ELIMIT, or an error
 * of which the engine's newest event has a sentence. */
SPOKE_MUST_USE int spokei_subscription_begin(struct spokei_subscription *subscription,
					     struct spoke_engine *engine,
					     const struct spokei_keeper_options *options,
					     const char *service);

/* The directory is told nothing any more. One that has not begun, and is all zero, is fine. */
void spokei_subscription_end(struct spokei_subscription *subscription);

#endif
