/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer inside. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CONSUMER_PARTS_H
#define SPOKEI_CLUSTER_CONSUMER_PARTS_H

#include "cluster/call/caller.h"
#include "cluster/consumer/settings.h"
#include "cluster/consumer/subscription.h"
#include "cluster/endpoints/directory.h"
#include "cluster/filter/filter.h"
#include "cluster/serve/routes.h"
#include "core/engine/desk.h"
#include "core/engine/roll.h"

struct spoke_consumer {
	struct spoke_engine *engine;
	struct spokei_link link;
	struct spokei_member member; /* of the engine's roll */
	struct spokei_consumer_settings settings;
	struct spokei_caller caller;        /* closed: no more calls */
	_Atomic(struct spokei_desk *) desk; /* where futures reach it; NULL: it never had one */
	struct spokei_directory directory;
	struct spokei_subscription subscription; /* keeps the directory up to date, or nothing */
	struct spoke_url provided; /* of the first provider that a registry listed; or empty */
	struct spokei_balancer_state balancer_state; /* of methods that have none of their own */
	struct spokei_filters filters;
	bool ended; /* no more calls, and no connections */
	bool freed; /* gone when the last connection is */
	struct spokei_task bury;
	struct spokei_route pushed; /* who serves what providers push */
};

/* The kind of the engine's members that are consumers: this very string. */
extern const char spokei_consumer_kind[];

/* What is provided has changed: its methods go by that where they say nothing themselves. */
void spokei_methods_inherit(struct spoke_consumer *consumer);

/* Ends all that the consumer does. */
void spokei_consumer_end(struct spoke_consumer *consumer);

#endif
