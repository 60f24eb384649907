/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a consumer. On the engine's thread.
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
	_Atomic(struct spokei_desk *) desk; /* for futures; NULL: none was made yet */
	struct spokei_directory directory;
	struct spokei_subscription subscription; /* at a registry */
	struct spoke_url provided;               /* URL of the first provider listed; or empty */
	struct spokei_balancer_state
		balancer_state; /* of methods without a balancer of their own */
	struct spokei_filters filters;
	bool ended; /* takes no calls, and has no connections */
	bool freed; /* its memory goes with the last connection */
	struct spokei_task bury;
	struct spokei_route pushed; /* the handler of pushes */
};

/* The kind of consumers among the engine's members, compared by address. */
extern const char spokei_consumer_kind[];

/* Renews the settings of all methods after those of the consumer have changed. */
void spokei_methods_inherit(struct spoke_consumer *consumer);

/* Ends everything that the consumer does. */
void spokei_consumer_end(struct spoke_consumer *consumer);

#endif
