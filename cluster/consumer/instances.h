/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers that a registry knows as instances of applications, as in Dubbo 3, for one consumer:
 * the service is mapped to applications, these have instances, each of which names the revision of
 * its metadata, and the metadata list its services. They become the URLs that providers would
 * publish by interface, and join those. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CONSUMER_INSTANCES_H
#define SPOKEI_CLUSTER_CONSUMER_INSTANCES_H

#include "core/base/env.h"
#include "core/memory/buffer.h"

struct spoke_engine;
struct spokei_instances;
struct spokei_keeper;
struct spokei_url_list;

/* The key "subscribe-mode". */
enum spokei_subscribe_mode {
	SPOKEI_SUBSCRIBE_ALL,
	SPOKEI_SUBSCRIBE_FIRST, /* instances, if there is one of the service; else interfaces */
	SPOKEI_SUBSCRIBE_INTERFACE,
	SPOKEI_SUBSCRIBE_INSTANCE,
};

struct spokei_instances_options {
	struct spoke_engine *engine;
	struct spokei_keeper *keeper;
	const char *service;
	enum spokei_subscribe_mode mode;
	/* Receives the URLs of all providers, like a keeper's owner. Called from take() and from
	 * the turn's end, too. */
	int (*list)(void *arg, struct spokei_buffer *texts, size_t count);
	void *arg;
};

/* Begins to follow the instances that have a service. The options are copied, without the text.
 * Returns 0 or an error of spokei_keeper_subscribe(). */
SPOKE_MUST_USE int spokei_instances_new(const struct spokei_instances_options *options,
					struct spokei_instances **ret_instances);

/* NULL is fine. */
void spokei_instances_free(struct spokei_instances *instances);

/* Takes the list of providers by interface, and passes on what it makes of both. Returns as
 * `list`. */
SPOKE_MUST_USE int spokei_instances_list(struct spokei_instances *instances,
					 const struct spokei_buffer *texts, size_t count);

/* Takes a list of another category from the keeper, if it is one of those that were requested.
 * Returns whether it is. */
bool spokei_instances_take(struct spokei_instances *instances, const char *service,
			   const char *category, struct spokei_url_list *list);

#endif
