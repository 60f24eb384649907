/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry in ZooKeeper, laid out as Dubbo's: "zookeeper://host:2181?backup=host2:2181". What
 * is published is an ephemeral node, gone with the session or by withdraw(). See zookeeper_names.h
 * for URLs. The library of spoke may be built without it; then its open() says so.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_ZOOKEEPER_H
#define SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_ZOOKEEPER_H

#include <spoke/registry.h>

extern const struct spoke_registry spokei_registry_zookeeper;        /* if it is built in */
extern const struct spoke_registry spokei_registry_zookeeper_absent; /* refuses */

#ifdef SPOKE_WITH_ZOOKEEPER
#define SPOKEI_REGISTRY_ZOOKEEPER spokei_registry_zookeeper
#else
#define SPOKEI_REGISTRY_ZOOKEEPER spokei_registry_zookeeper_absent
#endif

#endif
