/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry in ZooKeeper, with Dubbo's layout: "zookeeper://host:2181?backup=host2:2181".
 * Published providers are ephemeral nodes, removed with the session or by withdraw(). See names.h
 * for URLs. Without the client library its open() fails and says so.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_ZOOKEEPER_H
#define SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_ZOOKEEPER_H

#include <spoke/registry.h>

extern const struct spoke_registry spokei_registry_zookeeper;        /* if built in */
extern const struct spoke_registry spokei_registry_zookeeper_absent; /* always fails */

#ifdef SPOKE_WITH_ZOOKEEPER
#define SPOKEI_REGISTRY_ZOOKEEPER spokei_registry_zookeeper
#else
#define SPOKEI_REGISTRY_ZOOKEEPER spokei_registry_zookeeper_absent
#endif

#endif
