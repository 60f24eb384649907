/* SPDX-License-Identifier: Apache-2.0 */
/* The registries of the library. */
#ifndef SPOKEI_CLUSTER_REGISTRY_REGISTRIES_H
#define SPOKEI_CLUSTER_REGISTRY_REGISTRIES_H

#include <spoke/registry.h>

#define SPOKEI_REGISTRY_DECLARED(name, url)                                                        \
	extern const struct spoke_registry spokei_registry_##name;
SPOKE_REGISTRIES(SPOKEI_REGISTRY_DECLARED, SPOKEI_REGISTRY_DECLARED)

/* In the order of the rows; NULL after the last. */
extern const struct spoke_registry *const spokei_registries[];

/* In place of that in ZooKeeper, without the client library. */
extern const struct spoke_registry spokei_registry_zookeeper_absent;

#endif
