/* SPDX-License-Identifier: Apache-2.0 */
/* The registries of the library. */
#ifndef SPOKEI_CLUSTER_REGISTRY_REGISTRIES_H
#define SPOKEI_CLUSTER_REGISTRY_REGISTRIES_H

#include <spoke/registry.h>

/*
 * One row for each.
 *
 * - zookeeper: Dubbo's layout, "zookeeper://host:2181?backup=host2:2181". Published providers are
 *   ephemeral nodes. Without the client library its open() fails and says so.
 * - file: a file that the processes of one machine share.
 * - static: its URL contains the providers of all services:
 *   "static://10.0.0.1:20880?backup=10.0.0.2:20880,[::1]:20880" lists
 *   "dubbo://10.0.0.1:20880/demo.Echo" and two more for demo.Echo. The parameter "protocol" sets
 *   another scheme for them. Publishing succeeds and has no effect.
 */
#define SPOKEI_REGISTRIES(X)                                                                       \
	X(zookeeper)                                                                               \
	X(file)                                                                                    \
	X(static)

#define SPOKEI_REGISTRY_DECLARED(name) extern const struct spoke_registry spokei_registry_##name;
SPOKEI_REGISTRIES(SPOKEI_REGISTRY_DECLARED)

/* In place of that in ZooKeeper, without the client library. */
extern const struct spoke_registry spokei_registry_zookeeper_absent;

#endif
