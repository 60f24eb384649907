/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the registry in ZooKeeper if its client library is missing. */
#include "cluster/registry/registries.h"

#include "core/engine/engine.h"

static int absent_open(struct spoke_engine *engine, const struct spoke_url *url,
		       const struct spoke_registry_up *up, void *arg, void **ret_registry)
{
	(void)url;
	(void)up;
	(void)arg;
	(void)ret_registry;
	spokei_event(engine, SPOKE_EUNSUPPORTED,
		     "registry zookeeper: not built in; build spoke with libzookeeper_st "
		     "(apt-get install libzookeeper-st-dev)");
	return SPOKE_EUNSUPPORTED;
}

/* open() never succeeds, so there is nothing that the other functions could get. */
#define ABSENT                                                                                     \
	{                                                                                          \
		.scheme = "zookeeper", .open = absent_open                                         \
	}

const struct spoke_registry spokei_registry_zookeeper_absent = ABSENT;

#ifndef SPOKE_WITH_ZOOKEEPER
const struct spoke_registry spokei_registry_zookeeper = ABSENT;
#endif
