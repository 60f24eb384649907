/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer's subscription at a registry: a keeper requests the list of providers, which goes to
 * the directory after the rules of operators were applied to it. If the registry has categories,
 * the consumer is published too. Part of the consumer; on the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CONSUMER_SUBSCRIPTION_H
#define SPOKEI_CLUSTER_CONSUMER_SUBSCRIPTION_H

#include "cluster/discovery/override.h"
#include "cluster/route/router.h"

#include <stddef.h>

struct spoke_consumer;
struct spokei_instances;
struct spokei_keeper;

#define SPOKEI_ROUTED_APPLICATIONS 16u /* names of providers for which rules are looked for */

/* Zero-initialised: not begun. */
struct spokei_subscription {
	struct spokei_keeper
		*keeper; /* NULL: there is no registry, or the subscription has ended */
	struct spokei_instances *instances;     /* NULL: the registry has none */
	struct spoke_consumer *consumer;        /* NULL: not begun */
	struct spokei_override_of of;           /* the consumer */
	struct spokei_overrides rules;          /* those that apply to it */
	size_t others[SPOKEI_OVERRIDE_SOURCES]; /* rules that do not apply */
	/* Applications of first providers so far, and their rules. */
	struct spokei_routed_application {
		char name[129];
		struct spokei_route_rule *tags; /* NULL: none, as below */
		struct spokei_route_rule *conditions;
	} applications[SPOKEI_ROUTED_APPLICATIONS];
	unsigned application_count;
	struct spokei_routed_application *first; /* that of the present list; NULL: none */
	struct spokei_route_rule *routes[SPOKEI_ROUTE_SOURCES]; /* the other ones */
	size_t others_routed;    /* routers that are not understood */
	const char *unsupported; /* why a rule was ignored last; NULL: none was */
	bool too_many;           /* a further application was logged */
	bool empty;              /* an empty list was logged */
};

/* Subscribes to the providers of the service of a consumer. Returns 0, ENOMEM, ELIMIT, or an error
 * that the engine's newest event explains. */
SPOKE_MUST_USE int spokei_subscription_begin(struct spoke_consumer *consumer);

/* Applies the rules to the URL of a provider: see spokei_override_provider(). */
SPOKE_MUST_USE int spokei_subscription_edit(const struct spokei_subscription *subscription,
					    const struct spoke_url *url, struct spoke_url *ret_url);

/* Ends the subscription; the directory keeps its list. */
void spokei_subscription_end(struct spokei_subscription *subscription);

#endif
