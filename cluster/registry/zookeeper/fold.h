/* SPDX-License-Identifier: Apache-2.0 */
/* Codes of the ZooKeeper library as errors. Pure; any thread. */
#ifndef SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_FOLD_H
#define SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_FOLD_H

/* Converts a code of the library, e.g. ZNONODE, to an error of spoke. */
int spokei_zoo_fold(int code);

#endif
