/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the registry in ZooKeeper if its client library is missing. */
#include "cluster/registry/zookeeper/zookeeper.h"

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

static int absent_put(void *registry, uint64_t intent, const char *service, const char *url)
{
	(void)registry;
	(void)intent;
	(void)service;
	(void)url;
	return SPOKE_EUNAVAILABLE;
}

static int absent_ask(void *registry, uint64_t intent, const char *service)
{
	(void)registry;
	(void)intent;
	(void)service;
	return SPOKE_EUNAVAILABLE;
}

static int absent_take(void *registry, uint64_t intent, uint64_t which)
{
	(void)registry;
	(void)intent;
	(void)which;
	return SPOKE_EUNAVAILABLE;
}

static void absent_close(void *registry)
{
	(void)registry;
}

const struct spoke_registry spokei_registry_zookeeper_absent = {
	.scheme = "zookeeper",
	.open = absent_open,
	.publish = absent_put,
	.withdraw = absent_take,
	.subscribe = absent_ask,
	.unsubscribe = absent_take,
	.close = absent_close,
};
