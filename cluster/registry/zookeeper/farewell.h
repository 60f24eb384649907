/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends a ZooKeeper session. The library's close waits for the server, for seconds if need be, and
 * so runs on a pool thread. Embedded in the owner of the library's handle. Also cuts connections.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_FAREWELL_H
#define SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_FAREWELL_H

#include "core/engine/task.h"

#include <spoke/env.h>

#include <zookeeper/zookeeper.h>

/* Disconnects the library's descriptor; the library closes it when it notices. */
void spokei_zoo_unplug(const struct spoke_env *env, int fd);

struct spokei_zoo_farewell {
	struct spoke_engine *engine;
	zhandle_t *zh;
	int fd; /* last known descriptor */
	struct spoke_work work;
	struct spokei_task bury;
	void (*said)(struct spokei_zoo_farewell *farewell);
};

/*
 * Ends and frees the handle, which must be unused; the library may call back on another thread
 * meanwhile. `fd` is its last known descriptor, -1: none. `said` runs on the engine's dead list
 * when the library is done; it may free the owner.
 */
void spokei_zoo_farewell_say(struct spokei_zoo_farewell *farewell, struct spoke_engine *engine,
			     zhandle_t *zh, int fd,
			     void (*said)(struct spokei_zoo_farewell *farewell));

#endif
